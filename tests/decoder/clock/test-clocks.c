// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/clock/clocks.c: traces of machines whose guests' offsets and multipliers are known, and
 * change at known times.
 */
#include <stdlib.h>

#include "arch/pt-regs.h"
#include "tests/decoder/clock-machine.h"
#include "tests/support/support.h"

#define FREQ   9
#define TIMED  (VMPT_CTL_TSC_EN | VMPT_CTL_MTC_EN | (u64)FREQ << VMPT_CTL_MTC_FREQ_SHIFT)
#define PERIOD ((u64)MACHINE_P << FREQ)
#define START  0x7654321000ULL
#define A      0xa000
#define B      0xb000
#define JUMPS  400 /* enough for some PSB+ in a run */
#define RUN    4000000

static struct machine *m;
static struct vmpt_clocks *clocks;
static const struct vmpt_stream *stream[MACHINE_CPUS];

static void teardown(void)
{
	vmpt_clocks_close(clocks);
	clocks = NULL;
	machine_free(m);
}

static struct vmpt_clocks_options options_of(u64 ctl)
{
	return (struct vmpt_clocks_options){ .rates = machine_rates(ctl) };
}

static void open_streams(size_t count, const struct vmpt_clocks_options *options)
{
	ck_assert_int_eq(vmpt_clocks_open(&clocks, stream, count, options), 0);
}

static void open_cpus(unsigned int cpus, const struct vmpt_clocks_options *options)
{
	unsigned int i;

	for (i = 0; i < cpus; i++)
		stream[i] = machine_stream(m, i);
	open_streams(cpus, options);
}

static const struct vmpt_epoch *epochs_of(u64 vmcs, size_t want)
{
	const struct vmpt_epoch *e;
	size_t i, n;

	for (i = 0; i < vmpt_clocks_vmcs_count(clocks); i++) {
		if (vmpt_clocks_vmcs(clocks, i) != vmcs)
			continue;
		e = vmpt_clocks_epochs(clocks, i, &n);
		ck_assert_uint_eq(n, want);
		return e;
	}
	ck_assert_msg(!want, "VMCS %llx is not there", (unsigned long long)vmcs);
	return NULL;
}

/* Ticks between two guest TSCs, of 56 bits. */
static u64 apart(u64 a, u64 b)
{
	return (u64)llabs((s64)((a - b) << 8) >> 8);
}

/* The epoch has @map at host time @at, within its own error and within @limit. */
static void check_map(const struct vmpt_epoch *e, const struct vmpt_tsc_map *map, u64 at, u64 limit)
{
	u64 off = apart(vmpt_tsc_to_guest(&e->map, at), vmpt_tsc_to_guest(map, at));
	double ppm = 1e6 * ((double)e->map.multiplier / (double)map->multiplier - 1);

	ck_assert_msg(off <= limit && off <= e->offset_error + 1, "off by %llu of %llu, limit %llu",
		      (unsigned long long)off, (unsigned long long)e->offset_error,
		      (unsigned long long)limit);
	ck_assert_msg(e->multiplier_ppm < 0 ||
			      (ppm <= e->multiplier_ppm + 1e-6 && -ppm <= e->multiplier_ppm + 1e-6),
		      "%f ppm of %f", ppm, e->multiplier_ppm);
}

/* Two VMs on two CPUs, A moves between them; a second at 2.5 GHz. */
START_TEST(guests_that_move)
{
	struct machine_guest a = { A, { VMPT_TSC_UNSCALED, -(u64)(START - 12345) } };
	struct machine_guest b = { B, { VMPT_TSC_UNSCALED / 5 * 4, 99 } };
	struct vmpt_clocks_options options = options_of(TIMED);
	const struct vmpt_epoch *e;
	unsigned int i;

	options.decode.threads = _i ? 2 : 1;
	m = machine_new(2, TIMED, false, START);
	for (i = 0; i < 120; i++) {
		machine_run(m, i / 10 % 2, &a, 10000, 10000000, JUMPS);
		machine_run(m, (i / 10 + 1) % 2, &b, 10000, 10000000, JUMPS);
	}
	open_cpus(2, &options);
	ck_assert_int_eq(vmpt_clocks_base(clocks), VMPT_BASE_HOST);
	ck_assert_uint_eq(vmpt_clocks_vmcs_count(clocks), 2);
	e = epochs_of(A, 1);
	check_map(e, &a.map, START + 1000000000, 4);
	ck_assert(!e->scaled);
	ck_assert_uint_eq(e->map.multiplier, VMPT_TSC_UNSCALED);
	ck_assert(e->multiplier_ppm >= 0 && e->multiplier_ppm < 0.1);
	ck_assert_uint_ge(e->pairs, 100);
	ck_assert_uint_eq(e->outliers, 0);
	ck_assert_ptr_eq(vmpt_clocks_at(clocks, A, 0), e);
	ck_assert_ptr_eq(vmpt_clocks_at(clocks, A, ~1ULL), e);
	e = epochs_of(B, 1);
	check_map(e, &b.map, START + 1000000000, PERIOD);
	ck_assert(e->scaled);
	ck_assert(e->multiplier_ppm < 10);
	ck_assert_ptr_null(vmpt_clocks_at(clocks, 0xc000, START));
	ck_assert_uint_eq(vmpt_clocks_counts(clocks, 0)->unmapped, 0);
}
END_TEST

/* The VMM writes another offset at a VM entry; later the VM gets another multiplier. */
START_TEST(changes_at_their_transition)
{
	struct machine_guest a = { A, { VMPT_TSC_UNSCALED, 1ULL << 40 } };
	struct vmpt_clocks_options options = options_of(TIMED);
	struct vmpt_tsc_map map[3];
	const struct vmpt_epoch *e;
	u64 change[3] = { 0 };
	unsigned int i;

	m = machine_new(1, TIMED, false, START);
	for (i = 0; i < 90; i++) {
		if (i == 30)
			a.map.offset -= 5000000000;
		if (i == 60)
			a.map = (struct vmpt_tsc_map){ VMPT_TSC_UNSCALED / 8 * 9, 7 };
		map[i / 30] = a.map;
		if (i % 30 == 0)
			change[i / 30] = machine_now(m);
		machine_run(m, 0, &a, 100000, RUN, JUMPS);
	}
	open_cpus(1, &options);
	e = epochs_of(A, 3);
	for (i = 0; i < 3; i++) {
		check_map(&e[i], &map[i], change[i] + 20 * RUN, PERIOD);
		ck_assert_int_eq(e[i].scaled, i == 2);
		/* The run that begins 100000 ticks later has it, the one before does not. */
		ck_assert_uint_ge(e[i].from + PERIOD, change[i] + 100000);
		ck_assert_uint_le(e[i].from, change[i] + 100000 + PERIOD);
		if (i)
			ck_assert_uint_lt(e[i - 1].to, e[i].from);
	}
	ck_assert_ptr_eq(vmpt_clocks_at(clocks, A, change[1] + 100000 + PERIOD), &e[1]);
	ck_assert_ptr_eq(vmpt_clocks_at(clocks, A, change[1] - PERIOD), &e[0]);
}
END_TEST

static void make_two_offsets(u64 ctl)
{
	struct machine_guest a = { A, { VMPT_TSC_UNSCALED, 1ULL << 40 } };
	struct machine_guest b = { B, { VMPT_TSC_UNSCALED, 1ULL << 41 } };
	unsigned int i;

	m = machine_new(1, ctl, false, START);
	for (i = 0; i < 20; i++)
		machine_run(m, 0, i % 2 ? &a : &b, 10000, RUN, JUMPS);
}

START_TEST(given_maps)
{
	static const struct vmpt_given given[] = {
		/* true */
		{ .vmcs = A, .map = { VMPT_TSC_UNSCALED, 1ULL << 40 }, .source = VMPT_MAP_KVM },
		{ .vmcs = A, .map = { VMPT_TSC_UNSCALED, 77 }, .source = VMPT_MAP_RECORD },
		/* not true */
		{ .vmcs = B, .map = { VMPT_TSC_UNSCALED, 1ULL << 42 }, .source = VMPT_MAP_USER },
		/* never seen */
		{ .vmcs = 0xc000, .map = { 3, 4 }, .source = VMPT_MAP_USER, .from = 5 },
		{ .vmcs = 0xc000, .map = { 5, 6 }, .source = VMPT_MAP_USER },
	};
	struct vmpt_clocks_options options = options_of(TIMED);
	const struct vmpt_given_wrong *wrong;
	const struct vmpt_epoch *e;
	size_t n;

	options.given = given;
	options.given_count = VMPT_ARRAY_SIZE(given);
	make_two_offsets(TIMED);
	open_cpus(1, &options);
	e = epochs_of(A, 1);
	ck_assert_int_eq(e->source, VMPT_MAP_KVM);
	ck_assert_uint_eq(e->map.offset, 1ULL << 40);
	ck_assert_uint_eq(e->offset_error, 0);
	e = epochs_of(B, 1);
	ck_assert_int_eq(e->source, VMPT_MAP_INFERRED);
	check_map(e, &(struct vmpt_tsc_map){ VMPT_TSC_UNSCALED, 1ULL << 41 }, START + RUN, 4);
	e = epochs_of(0xc000, 2);
	ck_assert_uint_eq(e[0].map.multiplier, 5);
	ck_assert_uint_eq(e[0].to, 4);
	ck_assert_uint_eq(e[1].from, 5);
	ck_assert_uint_eq(e[1].map.offset, 4);
	wrong = vmpt_clocks_wrong(clocks, &n);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(wrong[0].vmcs, A);
	ck_assert_int_eq(wrong[0].source, VMPT_MAP_RECORD);
	ck_assert_uint_eq(wrong[0].given.offset, 77);
	ck_assert_uint_eq(wrong[1].vmcs, B);
	ck_assert_int_eq(wrong[1].source, VMPT_MAP_USER);
	ck_assert_int_eq(wrong[1].by, VMPT_MAP_INFERRED);
	ck_assert_uint_le(apart(wrong[1].found.offset, 1ULL << 41), 4);
	ck_assert_uint_ge(wrong[1].at, START);
	ck_assert_uint_lt(wrong[1].at, machine_now(m));
}
END_TEST

/* Also those after the one that is used. */
START_TEST(given_by_others)
{
	static const struct vmpt_given given[] = {
		{ .vmcs = A, .map = { VMPT_TSC_UNSCALED, 12345 }, .source = VMPT_MAP_USER },
		{ .vmcs = A, .map = { VMPT_TSC_UNSCALED, 1ULL << 40 }, .source = VMPT_MAP_RECORD },
		{ .vmcs = B, .map = { VMPT_TSC_UNSCALED, 1ULL << 41 }, .source = VMPT_MAP_KVM },
		{ .vmcs = B, .map = { VMPT_TSC_UNSCALED, 1ULL << 41 }, .source = VMPT_MAP_USER },
		/* never seen */
		{ .vmcs = 0xc000, .map = { 3, 4 }, .source = VMPT_MAP_USER },
		{ .vmcs = 0xc000, .map = { 3, 5 }, .source = VMPT_MAP_KVM },
		{ .vmcs = 0xd000, .map = { 3, 4 }, .source = VMPT_MAP_USER },
		{ .vmcs = 0xd000, .map = { 3, 4 }, .source = VMPT_MAP_KVM },
	};
	struct vmpt_clocks_options options = options_of(TIMED);
	const struct vmpt_given_wrong *wrong;
	size_t n;

	options.given = given;
	options.given_count = VMPT_ARRAY_SIZE(given);
	make_two_offsets(TIMED);
	open_cpus(1, &options);
	ck_assert_int_eq(epochs_of(A, 1)->source, VMPT_MAP_RECORD);
	ck_assert_uint_eq(epochs_of(A, 1)->outliers, 0);
	wrong = vmpt_clocks_wrong(clocks, &n);
	ck_assert_uint_eq(n, 2);
	ck_assert_uint_eq(wrong[0].vmcs, A);
	ck_assert_int_eq(wrong[0].source, VMPT_MAP_USER);
	ck_assert_int_eq(wrong[0].by, VMPT_MAP_RECORD);
	ck_assert_uint_eq(wrong[0].given.offset, 12345);
	ck_assert_uint_eq(wrong[0].found.offset, 1ULL << 40);
	ck_assert_uint_ge(wrong[0].at, START);
	ck_assert_uint_lt(wrong[0].at, machine_now(m));
	ck_assert_uint_eq(wrong[1].vmcs, 0xc000);
	ck_assert_int_eq(wrong[1].source, VMPT_MAP_USER);
	ck_assert_int_eq(wrong[1].by, VMPT_MAP_KVM);
	ck_assert_uint_eq(wrong[1].found.offset, 5);
	ck_assert_uint_eq(wrong[1].at, VMPT_TIME_NONE);
	ck_assert_uint_gt(vmpt_clocks_vmcs_tscs(clocks, 0), 0);
	ck_assert_uint_eq(vmpt_clocks_vmcs(clocks, 2), 0xc000);
	ck_assert_uint_eq(vmpt_clocks_vmcs_tscs(clocks, 2), 0);
}
END_TEST

/* The host runs long enough for PSB+ of its own. */
static void make_host_and_guests(void)
{
	struct machine_guest a = { A, { VMPT_TSC_UNSCALED, 1ULL << 40 } };
	struct machine_guest b = { B, { VMPT_TSC_UNSCALED, 1ULL << 41 } };
	unsigned int i;

	m = machine_new(1, TIMED, false, START);
	for (i = 0; i < 20; i++) {
		machine_host(m, 0, RUN, 2 * JUMPS);
		machine_run(m, 0, i % 2 ? &a : &b, 10000, RUN, JUMPS);
	}
}

/* Given rates that the packets contradict do not count against given maps. */
START_TEST(given_rates)
{
	static const struct vmpt_given given[] = {
		{ .vmcs = A, .map = { VMPT_TSC_UNSCALED, 1ULL << 40 }, .source = VMPT_MAP_KVM },
		{ .vmcs = B, .map = { VMPT_TSC_UNSCALED, 1ULL << 41 }, .source = VMPT_MAP_KVM },
	};
	static const struct vmpt_rates wrongs[] = {
		{ .tsc_num = 99, .tsc_den = 1, .mtc_freq = FREQ, .has_mtc_freq = true },
		{ .tsc_num = ~0u, .tsc_den = 1, .mtc_freq = FREQ, .has_mtc_freq = true },
		{ .tsc_num = 1, .tsc_den = ~0u },
		{ .tsc_num = MACHINE_P, .tsc_den = 1, .mtc_freq = 0, .has_mtc_freq = true },
		{ .mtc_freq = 15, .has_mtc_freq = true },
	};
	struct vmpt_clocks_options options = { .given = given, .given_count = 2 };
	const struct vmpt_rates_wrong *wrong;
	const struct vmpt_rates *r;
	size_t n;

	make_host_and_guests();
	options.rates = wrongs[_i];
	open_cpus(1, &options);
	wrong = vmpt_clocks_rates_wrong(clocks);
	ck_assert_ptr_nonnull(wrong);
	ck_assert_int_eq(wrong->tsc_ratio, _i < 3);
	ck_assert_int_eq(wrong->mtc_freq, _i > 2);
	ck_assert_uint_eq(wrong->given.tsc_num, wrongs[_i].tsc_num);
	ck_assert_uint_eq(wrong->given.mtc_freq, wrongs[_i].mtc_freq);
	r = vmpt_clocks_rates(clocks);
	ck_assert_uint_eq(r->tsc_num, (u64)MACHINE_P * r->tsc_den);
	ck_assert_uint_eq(r->mtc_freq, FREQ);
	ck_assert(r->found);
	vmpt_clocks_wrong(clocks, &n);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(epochs_of(A, 1)->source, VMPT_MAP_KVM);
	ck_assert_int_eq(epochs_of(B, 1)->source, VMPT_MAP_KVM);
	ck_assert_uint_eq(vmpt_clocks_counts(clocks, 0)->contradictions, 0);
	ck_assert_uint_eq(vmpt_clocks_counts(clocks, 0)->backs, 0);
	ck_assert_uint_eq(vmpt_clocks_counts(clocks, 0)->mtcs_lost, 0);
}
END_TEST

/* True values, and those that the packets cannot show. */
START_TEST(given_rates_stay)
{
	struct vmpt_clocks_options options = options_of(TIMED);

	make_two_offsets(_i ? VMPT_CTL_TSC_EN : TIMED);
	if (_i)
		options.rates.tsc_num = 77;
	open_cpus(1, &options);
	ck_assert_ptr_null(vmpt_clocks_rates_wrong(clocks));
	ck_assert_uint_eq(vmpt_clocks_rates(clocks)->tsc_num, options.rates.tsc_num);
	ck_assert_uint_eq(vmpt_clocks_rates(clocks)->tsc_den, 2);
	ck_assert_uint_eq(vmpt_clocks_rates(clocks)->mtc_freq, FREQ);
	ck_assert(!vmpt_clocks_rates(clocks)->found);
}
END_TEST

/* A guest's TSC may be scaled: then only impossible values are wrong. */
START_TEST(given_rates_and_guests_alone)
{
	struct machine_guest a = { A, { VMPT_TSC_UNSCALED, 1ULL << 40 } };
	struct vmpt_clocks_options options = options_of(TIMED);
	const struct vmpt_rates_wrong *wrong;
	unsigned int i;

	m = machine_new(1, TIMED, true, START);
	for (i = 0; i < 20; i++)
		machine_run(m, 0, &a, 10000, RUN, JUMPS);
	/* As if the guest ran at 5/3 of the host's ticks. */
	options.rates.tsc_num = MACHINE_P * 6 / 5;
	if (_i)
		options.rates.mtc_freq = FREQ - 4;
	if (_i == 2)
		options.rates.tsc_num = ~0u;
	open_cpus(1, &options);
	wrong = vmpt_clocks_rates_wrong(clocks);
	ck_assert_int_eq(wrong && wrong->mtc_freq, _i > 0);
	ck_assert_int_eq(wrong && wrong->tsc_ratio, _i == 2);
	ck_assert_uint_eq(vmpt_clocks_rates(clocks)->mtc_freq, FREQ);
	if (_i < 2)
		ck_assert_uint_eq(vmpt_clocks_rates(clocks)->tsc_num, MACHINE_P * 6 / 5);
	else
		ck_assert_uint_eq(vmpt_clocks_rates(clocks)->tsc_num, MACHINE_P);
}
END_TEST

START_TEST(given_is_checked)
{
	struct vmpt_given given = { .vmcs = A, .source = VMPT_MAP_USER };
	struct vmpt_clocks_options options = { .given = &given, .given_count = 1 };

	make_two_offsets(TIMED);
	stream[0] = machine_stream(m, 0);
	/* No multiplier */
	ck_assert_int_eq(vmpt_clocks_open(&clocks, stream, 1, &options), -VMPT_E_INVAL);
	given.map.multiplier = 1;
	given.source = VMPT_MAP_INFERRED;
	ck_assert_int_eq(vmpt_clocks_open(&clocks, stream, 1, &options), -VMPT_E_INVAL);
	ck_assert_int_eq(vmpt_clocks_open(&clocks, stream, 0, NULL), -VMPT_E_INVAL);
}
END_TEST

/* Without MTC the host's TSCs before and after are the bounds. */
START_TEST(no_mtc)
{
	struct vmpt_clocks_options options = options_of(VMPT_CTL_TSC_EN);
	struct machine_guest a = { A, { VMPT_TSC_UNSCALED, 1ULL << 40 } };
	const struct vmpt_epoch *e;
	unsigned int i;

	m = machine_new(1, VMPT_CTL_TSC_EN, false, START);
	for (i = 0; i < 40; i++) {
		machine_run(m, 0, &a, 10000, RUN, JUMPS);
		machine_host(m, 0, 20000, 300);
	}
	open_cpus(1, &options);
	e = epochs_of(A, 1);
	check_map(e, &a.map, START + 20 * RUN, 2 * RUN);
}
END_TEST

START_TEST(no_tsc)
{
	struct vmpt_clocks_options options = options_of(VMPT_CTL_MTC_EN);

	make_two_offsets(VMPT_CTL_MTC_EN | (u64)FREQ << VMPT_CTL_MTC_FREQ_SHIFT);
	open_cpus(1, &options);
	ck_assert_int_eq(vmpt_clocks_base(clocks), VMPT_BASE_NONE);
	ck_assert_uint_eq(vmpt_clocks_vmcs_count(clocks), 0);
	ck_assert_ptr_null(vmpt_clocks_at(clocks, A, START));
}
END_TEST

/* Guest-only tracing, no map given: A, with most TSC packets, replaces the host. */
START_TEST(guests_only)
{
	struct machine_guest a = { A, { VMPT_TSC_UNSCALED, 1000000 } };
	struct machine_guest b = { B, { VMPT_TSC_UNSCALED, 1003000 } };
	struct vmpt_clocks_options options = options_of(TIMED);
	struct vmpt_given given = { .vmcs = A, .map = a.map, .source = VMPT_MAP_USER };
	const struct vmpt_epoch *e;
	unsigned int i;

	m = machine_new(1, TIMED, true, START);
	for (i = 0; i < 60; i++)
		machine_run(m, 0, i % 3 ? &a : &b, 1000, 20 * PERIOD, 20);
	options.decode.guest_only = VMPT_GUEST_ONLY_YES;
	open_cpus(1, &options);
	ck_assert_int_eq(vmpt_clocks_base(clocks), VMPT_BASE_GUEST);
	ck_assert_uint_eq(vmpt_clocks_base_vmcs(clocks), A);
	e = epochs_of(A, 1);
	ck_assert_uint_eq(e->map.offset, 0);
	/* B is measured by A: from A's run before to the one after. */
	check_map(epochs_of(B, 1), &(struct vmpt_tsc_map){ VMPT_TSC_UNSCALED, 3000 },
		  machine_now(m) - 10 * PERIOD, 45 * PERIOD);
	/* With one of them given it is the host's time. */
	vmpt_clocks_close(clocks);
	options.given = &given;
	options.given_count = 1;
	open_cpus(1, &options);
	ck_assert_int_eq(vmpt_clocks_base(clocks), VMPT_BASE_HOST);
	e = epochs_of(A, 1);
	ck_assert_int_eq(e->source, VMPT_MAP_USER);
}
END_TEST

/* The trace of CPU 1 has no host: A, known from CPU 0, replaces it, and B is measured by A. */
START_TEST(a_cpu_is_missing)
{
	struct machine_guest a = { A, { VMPT_TSC_UNSCALED, 1000000 } };
	struct vmpt_clocks_options options = options_of(TIMED);
	unsigned int i;

	m = machine_new(2, TIMED, false, START);
	for (i = 0; i < 60; i++)
		machine_run(m, i / 10 % 2, &a, 10000, RUN, JUMPS);
	/* Only one of the two exists. */
	stream[0] = machine_stream(m, _i ? 1 : 0);
	open_streams(1, &options);
	check_map(epochs_of(A, 1), &a.map, START + 30 * RUN, 4);
}
END_TEST

/* Time of a machine that traces guests only; at the same moment as @m. */
static struct machine *other;

/* CPU 1 has no TSC of the host: A, known by CPU 0, replaces it, and B is measured by A. */
START_TEST(a_cpu_without_the_host)
{
	struct machine_guest a = { A, { VMPT_TSC_UNSCALED, 1000000 } };
	struct machine_guest b = { B, { VMPT_TSC_UNSCALED, 77000000 } };
	struct vmpt_clocks_options options = options_of(TIMED);
	const struct vmpt_epoch *e;
	unsigned int i;

	m = machine_new(1, TIMED, false, START);
	for (i = 0; i < 20; i++)
		machine_run(m, 0, &a, 10000, RUN, JUMPS);
	other = machine_new(1, TIMED, true, machine_now(m));
	for (i = 0; i < 60; i++)
		machine_run(other, 0, i % 2 ? &a : &b, 1000, 20 * PERIOD, 20);
	stream[0] = machine_stream(m, 0);
	stream[1] = machine_stream(other, 0);
	open_streams(2, &options);
	ck_assert_int_eq(vmpt_clocks_base(clocks), VMPT_BASE_HOST);
	check_map(epochs_of(A, 1), &a.map, START + 10 * RUN, 4);
	e = epochs_of(B, 1);
	check_map(e, &b.map, machine_now(other) - 10 * PERIOD, 45 * PERIOD);
	machine_free(other);
}
END_TEST

static const struct vmpt_stream rtit = { .isa = VMPT_ISA_RTIT };

START_TEST(rtit_has_the_hardwares_tsc)
{
	m = machine_new(1, TIMED, false, START);
	stream[0] = &rtit;
	open_streams(1, NULL);
	ck_assert_int_eq(vmpt_clocks_base(clocks), VMPT_BASE_HOST);
	ck_assert_uint_eq(vmpt_clocks_vmcs_count(clocks), 0);
	stream[1] = machine_stream(m, 0);
	vmpt_clocks_close(clocks);
	ck_assert_int_eq(vmpt_clocks_open(&clocks, stream, 2, NULL), -VMPT_E_INVAL);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("clocks");
	TCase *tcase = tcase_create("clocks");

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_loop_test(tcase, guests_that_move, 0, 2);
	tcase_add_test(tcase, changes_at_their_transition);
	tcase_add_test(tcase, given_maps);
	tcase_add_test(tcase, given_by_others);
	tcase_add_loop_test(tcase, given_rates, 0, 5);
	tcase_add_loop_test(tcase, given_rates_stay, 0, 2);
	tcase_add_loop_test(tcase, given_rates_and_guests_alone, 0, 3);
	tcase_add_test(tcase, given_is_checked);
	tcase_add_test(tcase, no_mtc);
	tcase_add_test(tcase, no_tsc);
	tcase_add_test(tcase, guests_only);
	tcase_add_loop_test(tcase, a_cpu_is_missing, 0, 2);
	tcase_add_test(tcase, a_cpu_without_the_host);
	tcase_add_test(tcase, rtit_has_the_hardwares_tsc);
	suite_add_tcase(suite, tcase);
	return suite;
}
