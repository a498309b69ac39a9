// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Agreement with perf's packet decoder, compiled from the package linux-source at
 * test time: on random bytes, cut anywhere, in and out of packet blocks, and on
 * every packet of the real traces.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/arch/perf-map.h"
#include "tests/arch/perf-tests.h"
#include "tests/support/support.h"

/* What perf returns where we return @err, the bytes being @buf. */
static int perf_error(int err, const u8 *buf, size_t len)
{
	switch (err) {
	case -VMPT_E_TRUNCATED:
		/* It does not know TRIG. */
		return len && buf[0] == 0xd9 ? INTEL_PT_BAD_PACKET : INTEL_PT_NEED_MORE_BYTES;
	case -VMPT_E_PSB:
		/* It needs all 16 bytes before it checks them. */
		return len < 16 ? INTEL_PT_NEED_MORE_BYTES : INTEL_PT_BAD_PACKET;
	case -VMPT_E_CYC:
		/* It accepts ten bytes as a packet; the bits above the 64th are lost. */
		return buf[9] & 1 ? INTEL_PT_BAD_PACKET : 10;
	default:
		return INTEL_PT_BAD_PACKET;
	}
}

/* Perf ends a block at CFE and EVD, which Table 33-15 does not name. */
static bool perf_ends_block(const struct vmpt_pt_packet *p)
{
	return p->kind == VMPT_PT_CFE || p->kind == VMPT_PT_EVD;
}

static void show(const u8 *buf, size_t len)
{
	size_t i;

	for (i = 0; i < len && i < VMPT_PT_SIZE_MAX; i++)
		printf("%02x ", buf[i]);
	printf("(%zu bytes)\n", len);
}

/* Decode at @buf with both. Returns perf's size, or a negative error. */
static int compare(const u8 *buf, size_t len, unsigned int *block, struct vmpt_pt_packet *p)
{
	enum intel_pt_pkt_ctx ctx = perf_ctx_of(*block);
	struct intel_pt_pkt perf;
	struct perf_view view;
	int err, size;

	size = intel_pt_get_packet(buf, len, &perf, &ctx);
	err = vmpt_pt_decode(p, buf, len, *block);
	if (err) {
		if (size != perf_error(err, buf, len)) {
			show(buf, len);
			ck_abort_msg("block %x: %s, but perf says %d", *block, vmpt_strerror(err),
				     size);
		}
		return err;
	}
	perf_view_of(&view, p, buf, len);
	if (!perf_view_is(&view, &perf, size)) {
		show(buf, len);
		ck_abort_msg("block %x: %s %d as perf has it: %d %x %llx, perf: %d %d %x %llx",
			     *block, vmpt_pt_name(p->kind), view.size, view.pkt.type,
			     view.pkt.count, (unsigned long long)view.pkt.payload, size, perf.type,
			     perf.count, (unsigned long long)perf.payload);
	}
	*block = vmpt_pt_block_after(p, *block);
	if (size > 0 && ctx != (perf_ends_block(p) ? INTEL_PT_NO_CTX : perf_ctx_of(*block))) {
		show(buf, len);
		ck_abort_msg("%s: context %x, perf's %d", vmpt_pt_name(p->kind), *block, ctx);
	}
	return size;
}

static void random_head(struct test_rng *rng, u8 *buf)
{
	u64 r = test_random(rng);
	int i;

	for (i = 0; i < 2; i++) {
		u64 v = test_random(rng);

		memcpy(buf + 8 * i, &v, 8);
	}
	if (r & 1)
		buf[0] = 0x02;
	if ((r & 0x1f) == 1)
		memcpy(buf, "\x02\xc3\x88", 3);
	/* CYC continues with bit 0 of each byte set. */
	if ((r & 0x1f) == 2)
		for (i = 0; i < 9; i++)
			buf[i] |= i ? 1 : 7;
	if ((r & 0x1f) == 4)
		for (i = 0; i < 16; i++)
			buf[i] = i & 1 ? 0x82 : 0x02;
	/* Zeros after it: PADs that perf includes */
	if ((r & 0xe0) == 0x20)
		memset(buf + (r >> 8) % 16, 0, 16 - (r >> 8) % 16);
}

START_TEST(random_bytes_agree)
{
	struct test_rng rng = { 0x9e3f };
	u64 seen[VMPT_PT_KINDS] = { 0 };
	unsigned int block, n, i;
	struct vmpt_pt_packet p;
	u8 buf[16];

	for (n = 0; n < 2000000; n++) {
		size_t len = n & 3 ? 16 : test_random(&rng) % 17;
		u8 *exact = malloc(len);

		random_head(&rng, buf);
		/* Only these bytes: the address sanitizer detects a read beyond them. */
		memcpy(exact, buf, len);
		block = n % 3 ? VMPT_PT_BLOCK(n % 3 - 1, test_random(&rng)) : 0;
		if (compare(exact, len, &block, &p) > 0)
			seen[p.kind]++;
		free(exact);
	}
	for (i = 0; i < VMPT_PT_KINDS; i++)
		ck_assert_msg(seen[i] > 100 || i == VMPT_PT_TRIG, "%s came %llu times",
			      vmpt_pt_name(i), (unsigned long long)seen[i]);
}
END_TEST

static const char *const traces[] = { "guest-two-vmcs.pt", "guest-mruby.pt", "guest-unzip.pt",
				      "host-lldb.pt" };

START_TEST(real_traces_agree)
{
	static const u64 counts[] = { 1206987, 404969, 12497, 84 };
	const char *path = test_data(traces[_i]);
	unsigned int block = 0;
	struct vmpt_pt_packet p;
	u64 packets = 0;
	size_t size, at;
	u8 *data, *psb;
	int n;

	if (!path)
		return;
	data = test_read_file(path, &size);
	psb = memmem(data, size, INTEL_PT_PSB_STR, INTEL_PT_PSB_LEN);
	ck_assert_ptr_nonnull(psb);
	for (at = (size_t)(psb - data); at < size; at += (size_t)n) {
		n = compare(data + at, size - at, &block, &p);
		if (n <= 0)
			ck_abort_msg("%s: error %d at %#zx", traces[_i], n, at);
		packets += 1 + (u64)n - p.size;
	}
	ck_assert_uint_eq(packets, counts[_i]);
	free(data);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("arch/perf-packets");
	TCase *t = tcase_create("packets");

	suite_add_tcase(s, perf_vectors_case());
	tcase_add_test(t, random_bytes_agree);
	tcase_add_loop_test(t, real_traces_agree, 0, VMPT_ARRAY_SIZE(traces));
	suite_add_tcase(s, t);
	return s;
}
