// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/clock/clock.c over streams of the trace unit in model/, with the host's TSC known for
 * each packet: random programs of a host and two guests with TSC offset and scaling, at all
 * MTCFreq, many ratios of TSC and crystal clock, with frequency changes, sleeps, overflows, tracing
 * turned off and on, TSC writes, lost bytes.
 */
#include <stdlib.h>

#include "decoder/clock/clock.h"
#include "tests/decoder/clock-cpu.h"
#include "util/search.h"

/* ---- the clock's results ---- */

static struct vmpt_clock clk;
static struct vmpt_epoch epochs[GUESTS];
static struct {
	u64 packets, bounded, close, between, pairs;
} said;

static const struct vmpt_epoch *find_map(void *opaque, u64 vmcs, u64 near)
{
	u64 g = (vmcs >> 12) - 1;

	(void)opaque;
	(void)near;
	return g < GUESTS ? &epochs[g] : NULL;
}

static size_t step_of(u64 offset)
{
	size_t n = vmpt_search(i, 0, cpu.steps, cpu.step[i].end <= offset);

	must(n < cpu.steps);
	return n;
}

static bool holds(const struct vmpt_time *t, u64 truth)
{
	if (t->early != VMPT_TIME_OPEN && truth < t->tsc - t->early)
		return false;
	return t->late == VMPT_TIME_OPEN || truth <= t->tsc + t->late;
}

static void on_pair(void *opaque, const struct vmpt_tsc_pair *pair)
{
	const struct vmpt_tsc_map *map = &cpu.map[(pair->vmcs >> 12) - 1];
	u64 truth = cpu.step[step_of(pair->offset)].tsc;

	(void)opaque;
	said.pairs++;
	ck_assert_uint_eq(pair->guest, vmpt_tsc_to_guest(map, truth) & vmpt_mask64(56));
	ck_assert_msg(holds(&pair->host, truth), "pair at %llx: %llx, said %llx -%x +%x",
		      (unsigned long long)pair->offset, (unsigned long long)truth,
		      (unsigned long long)pair->host.tsc, pair->host.early, pair->host.late);
}

static void check_item(const struct vmpt_batch *b, size_t i, const struct vmpt_time *t)
{
	u64 offset = b->base + b->items[i].offset, truth, off;
	u8 kind = b->items[i].kind;

	truth = cpu.step[step_of(offset)].tsc;
	said.packets++;
	/* A TNT's jumps are older than the packet that caused it, perhaps by a sleep. */
	if (kind == VMPT_ITEM_RUN && t->tsc != VMPT_TIME_NONE && truth > t->tsc)
		truth = t->tsc;
	if (t->tsc == VMPT_TIME_NONE)
		return;
	if (!holds(t, truth))
		ck_abort_msg("at %llx, kind %u: %llx, said %llx -%x +%x (off by %lld)",
			     (unsigned long long)offset, kind, (unsigned long long)truth,
			     (unsigned long long)t->tsc, t->early, t->late,
			     (long long)(truth - t->tsc));
	if (t->late == VMPT_TIME_OPEN || t->early == VMPT_TIME_OPEN)
		return;
	said.bounded++;
	off = truth > t->tsc ? truth - t->tsc : t->tsc - truth;
	if (!cpu.program.guests)
		ck_assert_uint_le(off, edge_of(1ULL << cpu.freq) + 4 * cpu.num / cpu.den + 4);
	/* A CYC has the time of the first jump of a TNT (33.3.6.2), not of the TNT. */
	if (kind == VMPT_ITEM_RUN || kind == VMPT_PT_CYC)
		return;
	said.between++;
	/* Fractions of a cycle are not known. */
	said.close += off * 100 <= edge_of(1ULL << cpu.freq) || off <= cpu.nominal / cpu.cbr + 3;
}

/* Between a TSC write and the next TSC of the host nothing can be known. */
static bool blind(u64 offset, const struct vmpt_item *item, const struct vmpt_owner *owner,
		  size_t *writes)
{
	static bool waiting;

	if (!offset)
		waiting = false;
	while (*writes < cpu.writes && cpu.written[*writes] <= offset) {
		waiting = true;
		++*writes;
	}
	if (item->kind == VMPT_PT_TSC && owner->kind == VMPT_OWNER_HOST)
		waiting = false;
	return waiting;
}

static void check_stream(void)
{
	const struct vmpt_stream stream = {
		.data = cpu.bytes, .size = cpu.size, .cpu = -1, .tid = -1
	};
	struct vmpt_clock_options options = { .pair = cpu.program.writes ? NULL : on_pair };
	struct vmpt_options decode = { 0 };
	static struct vmpt_time times[1u << 20];
	struct vmpt_decoder *dec;
	struct vmpt_batch b;
	u64 last = 0;
	size_t i, writes = 0;

	memset(&said, 0, sizeof(said));
	options.rates = (struct vmpt_rates){ .tsc_num = (u32)cpu.num,
					     .tsc_den = (u32)cpu.den,
					     .nominal = (u32)cpu.nominal,
					     .mtc_freq = (u8)cpu.freq,
					     .has_mtc_freq = true };
	options.near_tsc = cpu.step[0].tsc;
	if (cpu.program.mapped)
		options.map = find_map;
	for (i = 0; i < GUESTS; i++)
		epochs[i] = (struct vmpt_epoch){ .map = cpu.map[i], .source = VMPT_MAP_USER };
	vmpt_clock_init(&clk, &options);
	ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, &decode), 0);
	while (vmpt_batch_next(dec, &b) > 0) {
		size_t back_item = 0;
		enum vmpt_back back;

		must(b.count <= VMPT_ARRAY_SIZE(times));
		back = vmpt_clock_batch(&clk, &stream, &b, times, &back_item);
		for (i = 0; i < b.count; i++) {
			u64 offset = b.base + b.items[i].offset;

			must(b.items[i].kind != VMPT_ITEM_LOSS);
			if (times[i].tsc != VMPT_TIME_NONE) {
				must(times[i].tsc >= last || (back && i >= back_item));
				last = times[i].tsc;
			}
			if (!blind(offset, &b.items[i], &b.owner, &writes))
				check_item(&b, i, &times[i]);
		}
	}
	vmpt_clock_end(&clk);
	vmpt_decoder_close(dec);
}

/*
 * The rates from the packets themselves; unknown rather than wrong. Returns whether they are known.
 */
static int check_rates(void)
{
	const struct vmpt_stream stream = {
		.data = cpu.bytes, .size = cpu.size, .cpu = -1, .tid = -1
	};
	struct vmpt_rates rates = { 0 };
	int ret = vmpt_rates_find(&rates, &stream, NULL);
	u64 found, truth;

	ck_assert_int_ge(ret, 0);
	if (!ret)
		return 0;
	ck_assert(rates.found && rates.has_mtc_freq);
	found = rates.tsc_num * cpu.den;
	truth = cpu.num * rates.tsc_den;
	ck_assert_msg(rates.mtc_freq == cpu.freq && found * 500 <= truth * 501 &&
			      found * 501 >= truth * 500,
		      "found %u/%u, MTCFreq %u; it is %llu/%llu, %llu", rates.tsc_num,
		      rates.tsc_den, rates.mtc_freq, (unsigned long long)cpu.num,
		      (unsigned long long)cpu.den, (unsigned long long)cpu.freq);
	if (rates.nominal)
		ck_assert_msg(rates.nominal + 1 >= cpu.nominal && rates.nominal <= cpu.nominal + 1,
			      "found %u, it is %llu", rates.nominal,
			      (unsigned long long)cpu.nominal);
	return found == truth ? 2 : 1;
}

static struct vmpt_rates truth_of(void)
{
	return (struct vmpt_rates){ .tsc_num = (u32)cpu.num,
				    .tsc_den = (u32)cpu.den,
				    .mtc_freq = (u8)cpu.freq,
				    .has_mtc_freq = true };
}

/*
 * @given is the truth, except values made wrong. Returns whether the rates follow from the packets.
 */
static int check_given(const struct vmpt_rates *given, bool ratio, bool freq)
{
	const struct vmpt_stream stream = {
		.data = cpu.bytes, .size = cpu.size, .cpu = -1, .tid = -1
	};
	struct vmpt_rates_wrong wrong;
	struct vmpt_rates rates = *given;
	int ret = vmpt_rates_check(&rates, &stream, NULL, &wrong);

	ck_assert_int_ge(ret, 0);
	ck_assert(ratio || !wrong.tsc_ratio);
	ck_assert(freq || !wrong.mtc_freq);
	ck_assert(ret || (!wrong.tsc_ratio && !wrong.mtc_freq));
	if (wrong.tsc_ratio) {
		ck_assert_uint_eq(wrong.given.tsc_num, given->tsc_num);
		ck_assert_uint_le(rates.tsc_num * cpu.den * 500, cpu.num * rates.tsc_den * 501);
		ck_assert_uint_ge(rates.tsc_num * cpu.den * 501, cpu.num * rates.tsc_den * 500);
	} else {
		ck_assert_uint_eq(rates.tsc_num, given->tsc_num);
		ck_assert_uint_eq(rates.tsc_den, given->tsc_den);
	}
	ck_assert_uint_eq(rates.mtc_freq, wrong.mtc_freq ? cpu.freq : given->mtc_freq);
	ck_assert_int_eq(rates.found, wrong.tsc_ratio || wrong.mtc_freq);
	return ret && wrong.tsc_ratio == ratio && wrong.mtc_freq == freq;
}

/* True given rates are never found wrong. @enough: the rates certainly follow from the packets. */
static void check_all_given(bool enough)
{
	struct vmpt_rates given = truth_of();
	int ret;

	ret = check_given(&given, false, false);
	ck_assert(ret || !enough);
	given.tsc_num = (u32)cpu.num * 99;
	given.tsc_den = (u32)cpu.den * 100;
	ret = check_given(&given, true, false);
	ck_assert(ret || !enough);
	given.mtc_freq = (u8)((cpu.freq + 3) % 16);
	ret = check_given(&given, true, true);
	ck_assert(ret || !enough);
	given = truth_of();
	given.mtc_freq = (u8)((cpu.freq + 13) % 16);
	ret = check_given(&given, false, true);
	ck_assert(ret || !enough);
	given.tsc_num = ~0u;
	given.tsc_den = 1;
	ret = check_given(&given, true, true);
	ck_assert(ret || !enough);
}

static void follow(int seed, const struct program *program)
{
	go(seed, program, EVENTS);
	check_stream();
	if (!program->writes)
		ck_assert_uint_eq(clk.counts.contradictions, 0);
	ck_assert_uint_eq(clk.counts.tmas_bad, 0);
	check_rates();
	check_all_given(false);
}

/* MTCs come continuously. */
START_TEST(host)
{
	struct program p = { .psbs = _i & 1 };

	follow(_i, &p);
	ck_assert_uint_eq(clk.counts.backs, 0);
	ck_assert_msg(said.bounded * 10 > said.packets * 9, "of %llu items %llu have a bound",
		      (unsigned long long)said.packets, (unsigned long long)said.bounded);
}
END_TEST

START_TEST(host_with_cycles)
{
	struct program p = { .psbs = _i & 1, .cycs = true };
	u64 near;

	follow(_i, &p);
	ck_assert_uint_eq(clk.counts.backs, 0);
	/* The frequency changes after each CBR: without that all would be near. */
	near = edge_of(1ULL << cpu.freq) > 500 * cpu.nominal / cpu.cbr ? 99 : 97;
	ck_assert_msg(said.close * 100 >= said.between * near, "of %llu items %llu are near",
		      (unsigned long long)said.between, (unsigned long long)said.close);
}
END_TEST

START_TEST(everything)
{
	struct program p = { .psbs = _i & 1,
			     .cycs = _i >> 1 & 1,
			     .guests = true,
			     .sleeps = true,
			     .overflows = _i >> 2 & 1,
			     .off = _i >> 3 & 1,
			     .mapped = _i >> 4 & 1,
			     .thresh = (unsigned int)_i % 14 };

	follow(_i, &p);
	ck_assert_uint_eq(clk.counts.backs, 0);
}
END_TEST

START_TEST(tsc_writes)
{
	struct program p = { .psbs = true, .cycs = _i & 1, .sleeps = _i >> 1 & 1, .writes = true };

	follow(_i, &p);
	ck_assert_uint_le(clk.counts.backs, cpu.writes);
}
END_TEST

/* With enough TMAs P and MTCFreq are found exactly. */
START_TEST(rates)
{
	struct program p = { .psbs = true, .cycs = true, .guests = _i & 1 };

	go(_i, &p, 4 * EVENTS);
	ck_assert_int_eq(check_rates(), 2);
	check_all_given(true);
}
END_TEST

TEST_SUITE()
{
	/* The same code, several times slower. */
	int part = getenv("VMPT_SANITIZED") ? 4 : 1;
	Suite *s = suite_create("decoder/clock-model");
	TCase *t = tcase_create("model");

	tcase_add_loop_test(t, host, 0, 32 / part);
	tcase_add_loop_test(t, host_with_cycles, 0, 48 / part);
	tcase_add_loop_test(t, everything, 0, 128 / part);
	tcase_add_loop_test(t, tsc_writes, 0, 24 / part);
	/* MTCs of a higher one would be too rare, those of 16 too many. */
	tcase_add_loop_test(t, rates, 0, 13);
	tcase_add_loop_test(t, rates, 17, 29);
	suite_add_tcase(s, t);
	return s;
}
