// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/clock.c over streams of the trace unit in model/, which are told the host's TSC when
 * each packet was made: random programs of a host and two guests with TSC offset and scaling, at
 * all MTCFreq, many ratios of TSC and crystal clock, with frequency changes, sleeps, overflows,
 * tracing turned off and on, TSC writes, lost bytes.
 */
#include "decoder/clock.h"
#include "model/vmpt-model.h"
#include "tests/support/support.h"

#define BYTES  (1u << 22)
#define EVENTS 2500
#define STEPS  (1u << 20)
#define GUESTS 2

/* Without a message to Check each time */
#define must(what)                           \
	do {                                 \
		if (!(what))                 \
			ck_abort_msg(#what); \
	} while (0)

/* Bytes up to @end were made at tick @tsc. */
struct step {
	size_t end;
	u64 tsc;
};

struct program {
	bool cycs, sleeps, overflows, off, guests, writes, psbs;
	bool mapped;
	unsigned int thresh;
};

static struct cpu {
	struct test_rng rng;
	struct vmpt_unit unit;
	struct vmpt_sink sink;
	struct program program;
	u64 num, den, freq, nominal; /* P, MTCFreq */
	u64 shift;		     /* TSC is that much ahead of the crystal clock's */
	u64 line;		     /* ticks since the crystal clock began */
	u64 part, cycles, cbr;
	u64 changed; /* .line when cbr did last */
	struct vmpt_tsc_map map[GUESTS];
	size_t size, steps, writes;
	u64 written[64]; /* offsets at which the TSC was written */
	u8 bytes[BYTES];
	struct step step[STEPS];
} cpu;

static u64 below(u64 n)
{
	return test_random(&cpu.rng) % n;
}

static int take(void *opaque, const u8 *bytes, size_t len)
{
	(void)opaque;
	must(cpu.size + len <= BYTES);
	memcpy(cpu.bytes + cpu.size, bytes, len);
	cpu.size += len;
	return 0;
}

/* What the unit has made, it made now. */
static void note(void)
{
	must(!vmpt_unit_flush(&cpu.unit));
	if (cpu.size == (cpu.steps ? cpu.step[cpu.steps - 1].end : 0))
		return;
	must(cpu.steps < STEPS);
	cpu.step[cpu.steps++] = (struct step){ cpu.size, cpu.line + cpu.shift };
}

/* The tick at which the crystal clock becomes @art: TSC = ART * P (33.8.3.1), rounded up. */
static u64 edge_of(u64 art)
{
	return (u64)(((unsigned __int128)art * cpu.num + cpu.den - 1) / cpu.den);
}

static u64 art_now(void)
{
	return (u64)((unsigned __int128)cpu.line * cpu.den / cpu.num);
}

static struct vmpt_clocks clocks(void)
{
	struct vmpt_clocks now = { .tsc = cpu.line + cpu.shift,
				   .art = art_now(),
				   .cycles = cpu.cycles,
				   .cbr = (u8)cpu.cbr };

	now.fast = (u32)(cpu.line - edge_of(now.art));
	return now;
}

static void push(void)
{
	struct vmpt_clocks now = clocks();

	vmpt_unit_time(&cpu.unit, &now);
	note();
}

/* Cycles until tick @line is reached. */
static u64 cycles_to(u64 line)
{
	u64 parts = (line - cpu.line) * cpu.cbr - cpu.part;

	return line <= cpu.line ? 0 : (parts + cpu.nominal - 1) / cpu.nominal;
}

static void pass(u64 cycles)
{
	u64 parts = cpu.part + cycles * cpu.nominal;

	cpu.cycles += cycles;
	cpu.line += parts / cpu.cbr;
	cpu.part = parts % cpu.cbr;
}

/* Each MTC is pushed in the cycle in which it is due. */
static void run(u64 cycles)
{
	u64 due, n;

	while (cycles) {
		due = edge_of(((art_now() >> cpu.freq) + 1) << cpu.freq);
		n = cycles_to(due);
		if (!n)
			n = 1;
		if (n > cycles)
			n = cycles;
		pass(n);
		cycles -= n;
		push();
	}
}

static void frequency(void)
{
	/* Some ms apart, in MTCs: what cycles were before a CBR is not told (33.4.2.10). */
	if (cpu.line - cpu.changed < edge_of(100ULL << cpu.freq) && cpu.changed)
		return;
	cpu.changed = cpu.line;
	cpu.cbr = 4 + below(40);
	cpu.part = 0;
	vmpt_unit_frequency(&cpu.unit, (u8)cpu.cbr);
	note();
}

static void tick_on(u64 ticks)
{
	cpu.line += ticks;
	cpu.part = 0;
}

/* Clocks stand still; TSC and crystal clock do not. */
static void doze(void)
{
	bool told = below(2);
	struct vmpt_clocks now;

	if (told)
		vmpt_unit_mwait(&cpu.unit, 0x400000, 0x20, 0, 2, 0);
	note();
	tick_on(below(1ULL << (8 + below(22))));
	now = clocks();
	cpu.unit.now = now;
	if (told)
		vmpt_unit_wake(&cpu.unit, 2, 2, 1);
	else
		vmpt_unit_clock_resumed(&cpu.unit);
	note();
}

static void overflow(void)
{
	u64 step = edge_of(1ULL << cpu.freq), mtcs = below(below(4) ? 3 : 250);
	u64 end = cpu.line + mtcs * step;

	vmpt_unit_overflow(&cpu.unit);
	note();
	/* Only so many cycles that the test stays short. */
	if (mtcs * step > 4000000)
		end = cpu.line + step / 3;
	while (cpu.line < end)
		run(1 + below(cycles_to(end) + 2));
	run(1 + below(50));
	vmpt_unit_overflow_resolve(&cpu.unit, 0x400000);
	note();
}

static void off_and_on(void)
{
	u64 ctl = cpu.unit.regs.ctl;
	struct vmpt_clocks now;

	ck_assert_int_eq(vmpt_unit_wrmsr(&cpu.unit, VMPT_MSR_RTIT_CTL, ctl & ~VMPT_CTL_TRACE_EN,
					 0x400000, 0x400002),
			 0);
	note();
	tick_on(below(1ULL << (8 + below(20))));
	now = clocks();
	vmpt_unit_time(&cpu.unit, &now);
	ck_assert_int_eq(vmpt_unit_wrmsr(&cpu.unit, VMPT_MSR_RTIT_CTL, ctl, 0x400000, 0x400002), 0);
	note();
}

static void write_tsc(void)
{
	if (cpu.unit.vmx.nonroot || cpu.writes == VMPT_ARRAY_SIZE(cpu.written))
		return;
	cpu.written[cpu.writes++] = cpu.size;
	cpu.shift = below(1ULL << 44);
}

static void enter_or_exit(void)
{
	if (!cpu.unit.vmx.nonroot) {
		unsigned int g = (unsigned int)below(GUESTS);
		struct vmpt_unit_entry entry = { .vmx = cpu.unit.vmx,
						 .ip = 0x500000,
						 .target = 0x600000,
						 .mode = cpu.unit.mode };

		/* A PIP right before would be taken for one of the entry (docs/vm-tracking.md). */
		vmpt_unit_jmp_indirect(&cpu.unit, 0x4ff000);
		note();
		vmpt_unit_vmptrld(&cpu.unit, (g + 1) << 12);
		entry.vmx.vmcs = (g + 1) << 12;
		entry.vmx.tsc_offset = cpu.map[g].offset;
		entry.vmx.tsc_multiplier = cpu.map[g].multiplier;
		vmpt_unit_vmentry(&cpu.unit, &entry);
	} else {
		struct vmpt_unit_exit exit = { .ip = 0x600010,
					       .target = 0x500010,
					       .mode = cpu.unit.mode };

		vmpt_unit_vmexit(&cpu.unit, &exit);
	}
	note();
}

static void branch(void)
{
	struct vmpt_mode mode = cpu.unit.mode;

	switch (below(8)) {
	case 0:
	case 1:
		vmpt_unit_jmp_indirect(&cpu.unit, 0x400000 + below(0x100000));
		break;
	case 2:
		mode.cr3 = below(0x100) << 12;
		vmpt_unit_mov_cr3(&cpu.unit, 0x400000, &mode);
		break;
	default:
		vmpt_unit_jcc(&cpu.unit, below(2), 0x400000);
	}
	note();
}

static void event(void)
{
	const struct program *p = &cpu.program;
	u64 what = below(600);

	run(1 + below(1ULL << below(12)));
	if (what < 560)
		branch();
	else if (what < 564)
		frequency();
	else if (what < 568 && p->sleeps)
		doze();
	else if (what < 570 && p->overflows)
		overflow();
	else if (what < 572 && p->off)
		off_and_on();
	else if (what < 596 && p->guests)
		enter_or_exit();
	else if (what == 599 && p->writes)
		write_tsc();
}

static void wr(u32 msr, u64 value)
{
	ck_assert_int_eq(vmpt_unit_wrmsr(&cpu.unit, msr, value, 0x400000, 0x400002), 0);
}

static void capabilities(struct vmpt_pt_cpuid *cpuid)
{
	unsigned int cap;

	cpuid->present = 1;
	cpuid->maxphyaddr = 46;
	cpuid->linear_bits = 48;
	for (cap = 0; cap < VMPT_CAPS; cap++)
		vmpt_pt_cap_set(cpuid, cap, ~0u);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_MAX_SUBLEAF, 1);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_RANGES, 4);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_FABRIC, 0);
}

static void choose_rates(int seed)
{
	/* Of real leaf 15H, and some where FastCounter saturates */
	static const u32 ratio[][2] = { { 84, 2 },   { 176, 2 }, { 216, 2 }, { 250, 3 }, { 151, 1 },
					{ 1250, 2 }, { 334, 3 }, { 7, 3 },   { 1500, 7 } };
	size_t i = (size_t)seed % VMPT_ARRAY_SIZE(ratio), g;

	cpu.num = ratio[i][0];
	cpu.den = ratio[i][1];
	cpu.freq = (u64)seed % 16;
	cpu.nominal = 10 + below(30);
	cpu.cbr = 4 + below(40);
	cpu.line = below(1ULL << 44);
	cpu.shift = below(2) ? 0 : below(1ULL << 45);
	/* Over the end of the 56 bits of a TSC packet */
	if (seed % 5 == 0 && !cpu.program.writes)
		cpu.shift = (1ULL << 56) - 500000 - cpu.line;
	cpu.cycles = below(1u << 30);
	for (g = 0; g < GUESTS; g++) {
		cpu.map[g].offset = test_random(&cpu.rng);
		cpu.map[g].multiplier = VMPT_TSC_UNSCALED;
		if (below(2))
			cpu.map[g].multiplier += below(VMPT_TSC_UNSCALED) - (VMPT_TSC_UNSCALED / 2);
	}
}

static void begin(int seed, const struct program *program)
{
	struct vmpt_unit_config config = { .sink = &cpu.sink };
	struct vmpt_clocks now;
	u64 ctl = VMPT_CTL_TRACE_EN | VMPT_CTL_OS | VMPT_CTL_USER | VMPT_CTL_MTC_EN |
		  VMPT_CTL_TSC_EN | VMPT_CTL_BRANCH_EN | VMPT_CTL_PWR_EVT_EN;

	memset(&cpu, 0, offsetof(struct cpu, bytes));
	cpu.program = *program;
	cpu.rng.state = (u64)seed * 1000003 + 29;
	cpu.sink.write = take;
	choose_rates(seed);
	capabilities(&config.cpuid);
	ck_assert_int_eq(vmpt_unit_init(&cpu.unit, &config), 0);
	cpu.unit.mode = (struct vmpt_mode){ .cs_l = true, .cr3 = 0x1000 };
	now = clocks();
	vmpt_unit_time(&cpu.unit, &now);
	vmpt_unit_vmxon(&cpu.unit, true, 0x400000);
	ctl |= cpu.freq << VMPT_CTL_MTC_FREQ_SHIFT;
	if (program->cycs)
		ctl |= VMPT_CTL_CYC_EN | (u64)program->thresh << VMPT_CTL_CYC_THRESH_SHIFT;
	if (!program->psbs)
		ctl |= 5ULL << VMPT_CTL_PSB_FREQ_SHIFT;
	wr(VMPT_MSR_RTIT_CTL, ctl);
	note();
	frequency();
}

/* ---- what the clock says ---- */

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
	size_t low = 0, high = cpu.steps, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (cpu.step[mid].end <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	must(low < cpu.steps);
	return low;
}

static void on_pair(void *opaque, const struct vmpt_tsc_pair *pair)
{
	const struct vmpt_tsc_map *map = &cpu.map[(pair->vmcs >> 12) - 1];
	u64 truth = cpu.step[step_of(pair->offset)].tsc;

	(void)opaque;
	said.pairs++;
	ck_assert_uint_eq(pair->guest, vmpt_tsc_to_guest(map, truth) & vmpt_mask64(56));
	ck_assert_msg(pair->host.tsc - pair->host.early <= truth &&
			      pair->host.tsc + pair->host.late >= truth,
		      "pair at %llx: %llx, said %llx -%x +%x", (unsigned long long)pair->offset,
		      (unsigned long long)truth, (unsigned long long)pair->host.tsc,
		      pair->host.early, pair->host.late);
}

static bool holds(const struct vmpt_time *t, u64 truth)
{
	if (t->early != VMPT_TIME_OPEN && truth < t->tsc - t->early)
		return false;
	return t->late == VMPT_TIME_OPEN || truth <= t->tsc + t->late;
}

static void check_item(const struct vmpt_batch *b, size_t i, const struct vmpt_time *t)
{
	u64 offset = b->base + b->items[i].offset, truth, off;
	u8 kind = b->items[i].kind;

	truth = cpu.step[step_of(offset)].tsc;
	said.packets++;
	/* A TNT's jumps are older than the packet that made it go out, perhaps by a sleep. */
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
	/* A CYC says when the first jump of a TNT was (33.3.6.2), not when the TNT was sent. */
	if (kind == VMPT_ITEM_RUN || kind == VMPT_PT_CYC)
		return;
	said.between++;
	/* Nothing is known of the parts of a cycle. */
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

/* What the packets themselves tell; nothing rather than something wrong. Returns what they do. */
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

static void go(int seed, const struct program *program, unsigned int events)
{
	unsigned int i;

	begin(seed, program);
	for (i = 0; i < events; i++)
		event();
}

static void follow(int seed, const struct program *program)
{
	go(seed, program, EVENTS);
	check_stream();
	if (!program->writes)
		ck_assert_uint_eq(clk.counts.contradictions, 0);
	ck_assert_uint_eq(clk.counts.tmas_bad, 0);
	check_rates();
}

/* MTCs come all the time. */
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
	/* The frequency is another behind each CBR: without that it is all. */
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

/* With enough TMAs P and MTCFreq are found, and exactly. */
START_TEST(rates)
{
	struct program p = { .psbs = true, .cycs = true, .guests = _i & 1 };

	go(_i, &p, 4 * EVENTS);
	ck_assert_int_eq(check_rates(), 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("decoder/clock-model");
	TCase *t = tcase_create("model");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, host, 0, 64);
	tcase_add_loop_test(t, host_with_cycles, 0, 64);
	tcase_add_loop_test(t, everything, 0, 192);
	tcase_add_loop_test(t, tsc_writes, 0, 48);
	/* MTCs of more would be too seldom, those of 16 too many. */
	tcase_add_loop_test(t, rates, 0, 13);
	tcase_add_loop_test(t, rates, 17, 29);
	suite_add_tcase(s, t);
	return test_main(s);
}
