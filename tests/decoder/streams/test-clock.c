// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/streams/clock.c: streams of machines with known maps, on the host's clock and on their
 * owners'. The truth is the definition of the map, computed for the source's packets.
 */
#include <stdlib.h>

#include "arch/pt-regs.h"
#include "tests/decoder/clock-machine.h"
#include "tests/decoder/extract-memory.h"
#include "tests/decoder/ipt-flow.h"
#include "tests/support/support.h"

#define TIMED \
	(VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN | VMPT_CTL_CYC_EN | 9ULL << VMPT_CTL_MTC_FREQ_SHIFT)
#define START 0x7654321000ULL
#define A     0xa000
#define B     0xb000
#define MASK  ((1ULL << 56) - 1)

static struct machine *m;
static struct vmpt_clocks *clocks;
static const struct vmpt_stream *stream;
static struct extracted e;

static const struct machine_guest a = { A, { VMPT_TSC_UNSCALED, -(u64)(START / 2) } };
static const struct machine_guest b = { B, { VMPT_TSC_UNSCALED / 4 * 5, 12345 } };

static void teardown(void)
{
	extracted_free(&e);
	vmpt_clocks_close(clocks);
	machine_free(m);
}

static void make(bool given)
{
	static const struct vmpt_given both[] = {
		{ .vmcs = A,
		  .map = { VMPT_TSC_UNSCALED, -(u64)(START / 2) },
		  .source = VMPT_MAP_KVM },
		{ .vmcs = B, .map = { VMPT_TSC_UNSCALED / 4 * 5, 12345 }, .source = VMPT_MAP_KVM },
	};
	struct vmpt_clocks_options options = { .rates = machine_rates(TIMED) };
	unsigned int i;

	m = machine_new(1, TIMED, false, START);
	for (i = 0; i < 60; i++) {
		machine_run(m, 0, i % 3 ? &a : &b, 20000, 3000000, 700);
		machine_host(m, 0, 100000, 200);
	}
	stream = machine_stream(m, 0);
	options.given = both;
	options.given_count = given ? 2 : 0;
	ck_assert_int_eq(vmpt_clocks_open(&clocks, &stream, 1, &options), 0);
}

static void split(u8 clock)
{
	struct vmpt_extract_options options = { .clock = clock, .clocks = clocks };

	extracted_free(&e);
	extract_to_memory(&e, stream, &options);
}

/* The TSC packets of @bytes; returns their number. */
static size_t tscs_of(const u8 *bytes, size_t size, u64 *tsc, size_t max)
{
	struct vmpt_pt_packet pkt;
	size_t at, n = 0;

	for (at = 0; at < size; at += pkt.size) {
		ck_assert_int_eq(vmpt_pt_decode(&pkt, bytes + at, size - at, 0), 0);
		if (pkt.kind != VMPT_PT_TSC)
			continue;
		ck_assert_uint_lt(n, max);
		tsc[n++] = pkt.tsc.tsc;
	}
	return n;
}

#define MAX 4096
static u64 host[MAX], guest[MAX], source[MAX];

static size_t stream_tscs(u64 vmcs, u64 *tsc)
{
	const struct extracted_stream *s = extracted_find(&e, vmcs);
	u64 packets;
	size_t i, n;

	ck_assert_ptr_nonnull(s);
	ck_assert_int_eq(ipt_packets_check(s->bytes, s->size, &packets), 0);
	n = tscs_of(s->bytes, s->size, tsc, MAX);
	for (i = 1; i < n; i++)
		ck_assert_msg(((tsc[i] - tsc[i - 1]) & MASK) < 1ULL << 55,
			      "VMCS %llx: TSC %zu goes back", (unsigned long long)vmcs, i);
	return n;
}

/* All of them are of the machine's time. */
static void check_range(const u64 *tsc, size_t n)
{
	size_t i;

	ck_assert_uint_gt(n, 20);
	for (i = 0; i < n; i++) {
		ck_assert_uint_ge(tsc[i] + 10, START);
		ck_assert_uint_le(tsc[i], machine_now(m));
	}
}

START_TEST(all_on_the_hosts_clock)
{
	size_t n, k;

	make(_i);
	split(VMPT_EXTRACT_CLOCK_HOST);
	n = stream_tscs(A, host);
	check_range(host, n);
	k = stream_tscs(B, host);
	check_range(host, k);
	n = stream_tscs(0, host);
	check_range(host, n);
	/* The host's stream has all TSCs of the trace, for it is out while a guest runs. */
	k = tscs_of(stream->data, stream->size, source, MAX);
	ck_assert_uint_eq(n, k);
	/* Each as in the source: the host's, A's or B's. */
	for (k = 0; k < n; k++) {
		u64 by_a = (source[k] - a.map.offset) & MASK;
		u64 by_b = (u64)((unsigned __int128)(source[k] - b.map.offset) * 4 / 5);

		ck_assert_msg(host[k] == source[k] ||
				      (u64)llabs((s64)(host[k] - by_a)) <= (_i ? 0u : 5u) ||
				      (u64)llabs((s64)(host[k] - by_b)) <= (_i ? 1u : 5u),
			      "TSC %zu: %llx of %llx", k, (unsigned long long)host[k],
			      (unsigned long long)source[k]);
	}
}
END_TEST

/* TSCs on the guest's clock equal those on the host's clock, converted by the map. */
START_TEST(there_and_back)
{
	static const struct machine_guest *const of[] = { &a, &b };
	size_t n[2], i, k;
	u64 want;

	make(true);
	for (k = 0; k < 2; k++) {
		split(VMPT_EXTRACT_CLOCK_HOST);
		n[0] = stream_tscs(of[k]->vmcs, host);
		split(VMPT_EXTRACT_CLOCK_GUEST);
		n[1] = stream_tscs(of[k]->vmcs, guest);
		ck_assert_uint_eq(n[0], n[1]);
		for (i = 0; i < n[0]; i++) {
			want = (u64)((unsigned __int128)host[i] * of[k]->map.multiplier >> 48);
			want = (want + of[k]->map.offset) & MASK;
			/* A tick of the host is 1.25 of B's. */
			ck_assert_uint_le(guest[i] - want, k);
		}
	}
}
END_TEST

/* The owner's own packets are not changed by GUEST. */
START_TEST(as_is_and_guest)
{
	size_t n, k, i, j = 0, own = 0;

	make(true);
	split(VMPT_EXTRACT_CLOCK_AS_IS);
	n = stream_tscs(A, source);
	for (i = 0; i < e.slice_count; i++) {
		ck_assert_uint_eq(e.slices[i].tscs_rewritten, 0);
		ck_assert_uint_eq(e.slices[i].others_tsc_kept, 0);
	}
	split(VMPT_EXTRACT_CLOCK_GUEST);
	k = stream_tscs(A, guest);
	ck_assert_uint_gt(k, n);
	for (i = 0; i < k && j < n; i++) {
		if (guest[i] == source[j]) {
			j++;
			own++;
		}
	}
	ck_assert_uint_eq(own, n);
	for (i = 0; i < e.slice_count; i++)
		ck_assert_uint_eq(e.slices[i].tscs_rewritten, 0);
}
END_TEST

/*
 * Without MTCs and with one host TSC only nothing is known of B: its TSCs are left out and counted.
 */
START_TEST(unmapped_packets_stay_out)
{
	struct vmpt_clocks_options options = { .rates = machine_rates(0) };
	const struct extracted_stream *s;
	u32 left_out = 0;
	size_t i, n;

	m = machine_new(1, VMPT_CTL_MTC_EN | VMPT_CTL_TSC_EN, true, START);
	machine_run(m, 0, &b, 1000, 100000, 10);
	machine_run(m, 0, &a, 1000, 100000, 10);
	machine_run(m, 0, &a, 1000, 100000, 10);
	stream = machine_stream(m, 0);
	options.decode.guest_only = VMPT_GUEST_ONLY_YES;
	ck_assert_int_eq(vmpt_clocks_open(&clocks, &stream, 1, &options), 0);
	if (vmpt_clocks_at(clocks, B, START))
		ck_abort_msg("B has a map");
	split(VMPT_EXTRACT_CLOCK_HOST);
	s = extracted_find(&e, B);
	ck_assert_ptr_nonnull(s);
	/* B ran once, before A: its stream has no TSC of its own. */
	n = tscs_of(s->bytes, s->size, host, MAX);
	ck_assert_uint_le(n, 2 * 2);
	for (i = 0; i < e.slice_count; i++)
		left_out += e.slices[i].tscs_unmapped;
	ck_assert_uint_ge(left_out, 1);
}
END_TEST

static int nothing(void *opaque, int id, const struct vmpt_owner *owner)
{
	(void)opaque;
	(void)id;
	(void)owner;
	return 0;
}

static int write_nothing(void *opaque, int id, const u8 *bytes, size_t n)
{
	(void)opaque;
	(void)id;
	(void)bytes;
	(void)n;
	return 0;
}

START_TEST(clocks_of_another_stream)
{
	static const struct vmpt_extract_ops ops = { .stream = nothing, .write = write_nothing };
	struct vmpt_extract_options options = { .clock = VMPT_EXTRACT_CLOCK_HOST };

	make(true);
	ck_assert_int_eq(vmpt_extract(stream, &options, &ops, NULL), -VMPT_E_INVAL);
	options.clocks = clocks;
	options.clock_stream = 1;
	ck_assert_int_eq(vmpt_extract(stream, &options, &ops, NULL), -VMPT_E_INVAL);
	options.clock_stream = 0;
	ck_assert_int_eq(vmpt_extract(stream, &options, &ops, NULL), 0);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("extract-clock");
	TCase *tcase = tcase_create("extract-clock");

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_loop_test(tcase, all_on_the_hosts_clock, 0, 2);
	tcase_add_test(tcase, there_and_back);
	tcase_add_test(tcase, as_is_and_guest);
	tcase_add_test(tcase, unmapped_packets_stay_out);
	tcase_add_test(tcase, clocks_of_another_stream);
	suite_add_tcase(suite, tcase);
	return suite;
}
