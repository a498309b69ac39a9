// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* arch/pt-packet.c: IP compression, Table 33-18 row by row. */
#include "arch/pt-packet.h"
#include "tests/support/support.h"

#define LAST 0x1122334455667788ULL

START_TEST(payload_sizes_of_table_33_18)
{
	static const unsigned int bytes[8] = { 0, 2, 4, 6, 6, 255, 8, 255 };
	unsigned int i;

	for (i = 0; i < 8; i++)
		ck_assert_uint_eq(vmpt_pt_ip_size(i), bytes[i]);
}
END_TEST

struct row {
	unsigned int ipbytes;
	u64 last, payload, ip;
};

static const struct row rows[] = {
	/* 000b: none, Last IP is kept */
	{ 0, LAST, 0, LAST },
	{ 0, 0, 0, 0 },
	/* 001b: Last IP[63:16], payload[15:0] */
	{ 1, LAST, 0xaabb, 0x112233445566aabb },
	{ 1, LAST, 0, 0x1122334455660000 },
	{ 1, ~0ULL, 0, 0xffffffffffff0000 },
	{ 1, 0, 0xffff, 0xffff },
	/* 010b: Last IP[63:32], payload[31:0]; no sign extension */
	{ 2, LAST, 0xaabbccdd, 0x11223344aabbccdd },
	{ 2, 0, 0xffffffff, 0xffffffff },
	{ 2, ~0ULL, 0, 0xffffffff00000000 },
	/* 011b: payload[47] extended; Last IP does not matter */
	{ 3, LAST, 0x7fffffffffff, 0x00007fffffffffff },
	{ 3, LAST, 0x800000000000, 0xffff800000000000 },
	{ 3, ~0ULL, 0, 0 },
	{ 3, 0, 0xffffffffffff, ~0ULL },
	/* 100b: Last IP[63:48], payload[47:0] */
	{ 4, LAST, 0xaabbccddeeff, 0x1122aabbccddeeff },
	{ 4, 0, 0x800000000000, 0x800000000000 },
	{ 4, ~0ULL, 0, 0xffff000000000000 },
	/* 110b: payload[63:0] */
	{ 6, LAST, 0xa1a2a3a4a5a6a7a8, 0xa1a2a3a4a5a6a7a8 },
	{ 6, ~0ULL, 0, 0 },
};

START_TEST(expand_follows_table_33_18)
{
	const struct row *r = &rows[_i];

	ck_assert_uint_eq(vmpt_pt_ip_expand(r->last, r->ipbytes, r->payload), r->ip);
	/* The payload of the IP under the same encoding is the one sent. */
	ck_assert_uint_eq(vmpt_pt_ip_payload(r->ip, r->ipbytes), r->ipbytes ? r->payload : 0);
}
END_TEST

START_TEST(compress_takes_the_fewest_bytes)
{
	static const struct {
		u64 last, ip;
		unsigned int ipbytes;
	} best[] = {
		{ LAST, LAST, 1 },
		{ LAST, 0x112233445566ffff, 1 },
		{ LAST, 0x1122334455678788, 2 },
		{ LAST, 0x11223344ffffffff, 2 },
		{ LAST, 0x1122ffffffffffff, 4 },
		{ LAST, 0x0000334455667788, 3 },
		{ LAST, 0xffff800000000000, 3 },
		{ LAST, 0x0000800000000000, 6 },
		{ LAST, 0xffff7fffffffffff, 6 },
		{ 0, 0xffff, 1 },
		{ 0, 0x10000, 2 },
		{ 0, 0x100000000, 3 },
		{ 0, 0x7fffffffffff, 3 },
		/* Not canonical, but Last IP has the upper bits: 6 bytes do. */
		{ 0, 0x800000000000, 4 },
		{ ~0ULL, 0xffffffff81000000, 2 },
		{ ~0ULL, 0xffff888000000000, 3 },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(best); i++)
		ck_assert_msg(vmpt_pt_ip_compress(best[i].last, best[i].ip) == best[i].ipbytes,
			      "row %zu: %u", i, vmpt_pt_ip_compress(best[i].last, best[i].ip));
}
END_TEST

START_TEST(full_is_six_bytes_if_sign_extension_gives_it)
{
	ck_assert_uint_eq(vmpt_pt_ip_full(0), 3);
	ck_assert_uint_eq(vmpt_pt_ip_full(0x00007fffffffffff), 3);
	ck_assert_uint_eq(vmpt_pt_ip_full(0x0000800000000000), 6);
	ck_assert_uint_eq(vmpt_pt_ip_full(0xffff7fffffffffff), 6);
	ck_assert_uint_eq(vmpt_pt_ip_full(0xffff800000000000), 3);
	ck_assert_uint_eq(vmpt_pt_ip_full(~0ULL), 3);
}
END_TEST

START_TEST(reserved_ipbytes_have_no_payload)
{
	ck_assert_uint_eq(vmpt_pt_ip_payload(~0ULL, 5), 0);
	ck_assert_uint_eq(vmpt_pt_ip_payload(~0ULL, 7), 0);
}
END_TEST

/* Whatever is chosen, the decoder must get the same IP back. */
START_TEST(compressed_ips_are_rebuilt)
{
	struct test_rng rng = { 1818 };
	unsigned int n, ipbytes;
	u64 last, ip;

	for (n = 0; n < 100000; n++) {
		last = test_random(&rng);
		ip = last ^ test_random(&rng) >> (test_random(&rng) & 63);
		if (n & 1)
			ip = (u64)((s64)(ip << 16) >> 16);
		ipbytes = vmpt_pt_ip_compress(last, ip);
		if (vmpt_pt_ip_expand(last, ipbytes, vmpt_pt_ip_payload(ip, ipbytes)) != ip)
			ck_abort_msg("last %llx ip %llx ipbytes %u", (unsigned long long)last,
				     (unsigned long long)ip, ipbytes);
		ipbytes = vmpt_pt_ip_full(ip);
		if (vmpt_pt_ip_expand(last, ipbytes, vmpt_pt_ip_payload(ip, ipbytes)) != ip)
			ck_abort_msg("ip %llx in full, ipbytes %u", (unsigned long long)ip,
				     ipbytes);
	}
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("arch/pt-ip");
	TCase *t = tcase_create("table 33-18");

	tcase_add_test(t, payload_sizes_of_table_33_18);
	tcase_add_loop_test(t, expand_follows_table_33_18, 0, VMPT_ARRAY_SIZE(rows));
	tcase_add_test(t, compress_takes_the_fewest_bytes);
	tcase_add_test(t, full_is_six_bytes_if_sign_extension_gives_it);
	tcase_add_test(t, reserved_ipbytes_have_no_payload);
	tcase_add_test(t, compressed_ips_are_rebuilt);
	suite_add_tcase(s, t);
	return s;
}
