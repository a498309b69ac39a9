// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "decoder/flow/insn.h"
#include "tests/decoder/flow/machine.h"
#include "tests/support/support.h"
#include "util/array.h"

struct machine machine;
struct stream machine_code;

u32 flow_machine_below(u32 n)
{
	return (u32)(test_random(&machine.rng) % n);
}

/* ---- packets ---- */

static void put(const void *bytes, size_t n)
{
	ck_assert(!vmpt_reserve(&machine.trace, &machine.room, machine.size + n));
	memcpy(machine.trace + machine.size, bytes, n);
	machine.size += n;
}

#define TIP 0x0d
#define FUP 0x1d

/* The bits, and after them the TIPs that were deferred (SDM 3 33.4.2.3) */
static void flush_bits(void)
{
	u64 tnt = 1ULL << machine.bit_count | machine.bits;
	u8 tip = 6u << 5 | TIP;
	unsigned int i;

	if (machine.long_tnt)
		tnt = tnt << 16 | 0xa302;
	else
		tnt <<= 1;
	if (machine.bit_count)
		put(&tnt, machine.long_tnt ? 8 : 1);
	for (i = 0; i < machine.deferred_count; i++) {
		put(&tip, 1);
		put(&machine.deferred[i], 8);
	}
	machine.bits = machine.bit_count = 0;
	machine.deferred_count = 0;
}

static void put_bit(unsigned int bit)
{
	machine.bits = machine.bits << 1 | bit;
	if (++machine.bit_count == (machine.long_tnt ? 47 : 6))
		flush_bits();
}

static void put_value(u64 head, unsigned int head_size, u64 value, unsigned int size)
{
	flush_bits();
	put(&head, head_size);
	put(&value, size);
}

static void put_tsc(void)
{
	put_value(0x19, 1, machine.time, 7);
}

static void put_pip(void)
{
	put_value(0x4302, 2, (machine.space + 1) * 0x1000 >> 5 << 1, 6);
}

static void put_ip(u8 kind, u64 ip)
{
	put_value(6u << 5 | kind, 1, ip, 8);
}

/* An indirect branch to @ip. The bit after a RET would be that of a compressed one. */
static void put_target(u64 ip, bool ret)
{
	if (machine.long_tnt && machine.fixed && machine.bit_count && !ret &&
	    machine.deferred_count < DEFERRED)
		machine.deferred[machine.deferred_count++] = ip;
	else
		put_ip(TIP, ip);
}

static void put_psb(void)
{
	unsigned int i;

	flush_bits();
	if (machine.psbs < VMPT_ARRAY_SIZE(machine.psb))
		machine.psb[machine.psbs++] = machine.size;
	for (i = 0; i < 8; i++)
		put_value(0x8202, 2, 0, 0);
	put_tsc();
	put_pip();
	put_value(machine.exec == 32 ? 0x0299 : 0x0199, 2, 0, 0);
	put_value(0x2099, 2, 0, 0);
	put_ip(FUP, machine.ip);
	put_value(0x2302, 2, 0, 0);
	machine.depth = 0;
}

/* ---- code ---- */

static u64 any_cell(void)
{
	if (machine.keys)
		return FIRST + flow_machine_below(machine.keys) * KEY_SIZE;
	return FIRST + (flow_machine_below(16) ? flow_machine_below(6) * CELLS / 4
					       : flow_machine_below(TARGETS)) *
			       CELL;
}

/* After @ip: so direct jumps and calls come to an end. The last cell is for that. */
static u64 later_cell(u64 ip)
{
	u32 from = (u32)((ip - FIRST) / CELL) + 1;

	return FIRST + (from + flow_machine_below(TARGETS - from)) * CELL;
}

static unsigned int put_near(u8 *to, u64 head, unsigned int head_size, u64 ip, u64 target)
{
	u32 distance = (u32)(target - (ip + head_size + 4));

	memcpy(to, &head, head_size);
	memcpy(to + head_size, &distance, 4);
	return head_size + 4;
}

static void make_site(u8 *to, u64 ip)
{
	static const u8 nop[SITE] = { 0x0f, 0x1f, 0x44, 0, 0 };
	u32 kind = flow_machine_below(3);

	if (kind && ip < FIRST + (TARGETS - 1) * CELL)
		put_near(to, kind == 1 ? 0xe9 : 0xe8, 1, ip, later_cell(ip));
	else
		memcpy(to, nop, SITE);
}

/* Its code's size. */
static unsigned int make_cell(u8 *to, u64 ip)
{
	bool last = ip == FIRST + (TARGETS - 1) * CELL;
	u32 kind = flow_machine_below(last ? 4 : 6);
	unsigned int n = SITE;

	make_site(to, ip);
	if (kind == 4)
		n += put_near(to + n, 0xe8, 1, ip + n, later_cell(ip));
	if (kind == 5) {
		to[n++] = 0xff;
		to[n++] = 0xd0;
	}
	if (kind != 2 && kind != 3)
		n += put_near(to + n, 0x850f, 2, ip + n, any_cell());
	if (kind == 1 || kind == 3) {
		to[n++] = 0xff;
		to[n++] = 0xe0;
	} else {
		to[n++] = 0xc3;
	}
	return n;
}

/* Page 2 has instructions where page 1 has them: a RET may come from the other one. */
static void make_other(unsigned int cell)
{
	u8 *to = machine.memory[2] + cell * CELL;

	memcpy(to, machine.memory[1] + cell * CELL, CELL);
	make_site(to, FIRST + VMPT_PAGE + cell * CELL);
}

static void put_code(unsigned int page, unsigned int at, unsigned int n)
{
	unsigned int i;

	stream_record(&machine_code, 2, machine.time);
	stream_signed(&machine_code, machine_code.end, page * VMPT_PAGE + at);
	stream_number(&machine_code, n);
	machine_code.end = page * VMPT_PAGE + at + n;
	for (i = 0; i < n; i++)
		stream_byte(&machine_code, machine.memory[page][at + i]);
	stream_done(&machine_code);
}

/* Page 0 is the first linear page, 1 and 2 are the second. */
static u64 linear_of(unsigned int page, unsigned int cell)
{
	return FIRST + (page ? VMPT_PAGE : 0) + cell * CELL;
}

static void map(unsigned int space, unsigned int linear, unsigned int page)
{
	machine.map[space][linear] = (u8)page;
	put_map(&machine_code, machine.time, machine.exec, (space + 1) * 0x1000,
		FIRST / VMPT_PAGE + linear, page);
}

void flow_machine_make(u64 seed)
{
	unsigned int page, cell, space, linear, n;

	bool no_maps = machine.no_maps, long_tnt = machine.long_tnt, fixed = machine.fixed;
	u8 exec = machine.exec;

	memset(&machine, 0, sizeof(machine));
	memset(&machine_code, 0, sizeof(machine_code));
	machine.no_maps = no_maps;
	machine.long_tnt = long_tnt;
	machine.fixed = fixed;
	machine.exec = exec ? exec : 64;
	machine.rng.state = seed;
	machine.ip = FIRST;
	machine.time = 1000;
	machine.spaces = 2;
	put_start(&machine_code, machine.time, "vm");
	for (page = 0; page < PAGES; page++)
		for (cell = 0; cell < CELLS; cell++) {
			n = CELL;
			if (page < 2)
				n = make_cell(machine.memory[page] + cell * CELL,
					      linear_of(page, cell));
			else
				make_other(cell);
			put_code(page, cell * CELL, n);
		}
	for (space = 0; space < 2; space++)
		for (linear = 0; linear < 2; linear++)
			map(space, linear, linear);
}

/* ---- execution ---- */

static u8 *bytes_at(u64 ip)
{
	return machine.memory[machine.map[machine.space][(ip - FIRST) / VMPT_PAGE]] +
	       ip % VMPT_PAGE;
}

static void read_insn(u64 ip, struct vmpt_insn *insn)
{
	ck_assert_int_eq(vmpt_insn_ask(insn, bytes_at(ip), 15, ip, machine.exec), VMPT_INSN_OK);
}

static void push(u64 ip)
{
	if (machine.depth == STACK)
		memmove(machine.stack, machine.stack + 1, --machine.depth * sizeof(*machine.stack));
	machine.stack[machine.depth++] = ip;
}

static bool waits(u8 class)
{
	return class != VMPT_INSN_OTHER && class != VMPT_INSN_JMP && class != VMPT_INSN_CALL;
}

static void execute(void)
{
	struct vmpt_insn insn;
	u64 next;

	read_insn(machine.ip, &insn);
	ck_assert(!vmpt_grow(&machine.truth, machine.executed));
	machine.truth[machine.executed++] = machine.ip;
	next = machine.ip + insn.size;
	if (insn.class == VMPT_INSN_CALL || insn.class == VMPT_INSN_CALL_IND)
		push(next);
	if (insn.class == VMPT_INSN_JMP || insn.class == VMPT_INSN_CALL) {
		next = insn.target;
	} else if (insn.class == VMPT_INSN_COND) {
		u32 taken = !!flow_machine_below(16);

		put_bit(taken);
		next = taken ? insn.target : next;
	} else if (insn.class == VMPT_INSN_RET && machine.depth && machine.compressed &&
		   flow_machine_below(16)) {
		next = machine.stack[--machine.depth];
		put_bit(1);
	} else if (waits(insn.class)) {
		if (insn.class == VMPT_INSN_RET && machine.depth)
			machine.depth--;
		next = any_cell();
		put_target(next, insn.class == VMPT_INSN_RET);
	}
	machine.ip = next;
}

/* Whether @ip is executed before the next packet. */
static bool is_next(u64 from, u64 to)
{
	struct vmpt_insn insn;
	u64 ip = machine.ip;

	for (;; ip = insn.class == VMPT_INSN_OTHER ? ip + insn.size : insn.target) {
		if (ip >= from && ip < to)
			return true;
		read_insn(ip, &insn);
		if (waits(insn.class))
			return false;
	}
}

/* At the next TSC packet the code is another one. */
static void patch(void)
{
	unsigned int page = flow_machine_below(PAGES),
		     cell = flow_machine_below(8) ? flow_machine_below(3) * CELLS / 4
						  : flow_machine_below(CELLS);
	u64 ip = linear_of(page, cell);
	bool soon = is_next(ip, ip + SITE);

	machine.time += 1 + flow_machine_below(50);
	flush_bits();
	make_site(machine.memory[page] + cell * CELL, ip);
	put_code(page, cell * CELL, SITE);
	if (soon || !flow_machine_below(8))
		put_psb();
	else
		put_tsc();
}

static void remap(void)
{
	machine.time += 1 + flow_machine_below(50);
	flush_bits();
	if (!machine.no_maps)
		map(flow_machine_below(2), 1, 1 + flow_machine_below(2));
	put_psb();
}

static void interrupt(void)
{
	put_ip(FUP, machine.ip);
	if (flow_machine_below(2)) {
		machine.space ^= 1;
		put_pip();
	}
	machine.ip = any_cell();
	put_ip(TIP, machine.ip);
}

/* What runs up to the next branch that waits; the branch does not count. */
static void end(void)
{
	struct vmpt_insn insn;

	flush_bits();
	for (;; execute()) {
		read_insn(machine.ip, &insn);
		if (waits(insn.class))
			break;
	}
}

void flow_machine_run(u64 seed, unsigned int steps, unsigned int rare)
{
	flow_machine_make(seed);
	put_psb();
	while (steps--) {
		u32 what = flow_machine_below(rare);

		/* Where it begins late, the stack is made from a PSB before changes. */
		machine.compressed |= steps == (seed % 2 ? 20000 : 10000);
		if (what == 9 || (what < 5 && machine.fixed))
			put_psb();
		else if (what < 4 && flow_machine_below(16))
			patch();
		else if (what == 4)
			remap();
		else if (what < 8)
			interrupt();
		else if (what == 8) {
			machine.time += flow_machine_below(5);
			put_tsc();
		} else {
			execute();
		}
	}
	end();
	put_end(&machine_code, machine.time, 0);
}

/* ---- static keys ---- */

void flow_machine_keys(u8 *page, bool on)
{
	static const u8 nop[SITE] = { 0x0f, 0x1f, 0x44, 0, 0 }, jmp[SITE] = { 0xe9, 0x1b };
	static const u8 jmp_rax[] = { 0xff, 0xe0 };
	static const u8 at_20[] = { 0x75, 6, 0x75, 4, 0xff, 0xe0 }; /* jne +28; jne +28; jmp rax */
	static const u8 at_28[] = { 0xe8, 3, 0, 0, 0, 0xff, 0xd0 }; /* call +30; call rax */
	static const u8 at_30[] = { 0x75, 0, 0xc3 };		    /* jne +32; ret */
	u8 *at = page;
	unsigned int k;

	for (k = 0; k < KEYS; k++, at += KEY_SIZE) {
		memcpy(at, on ? jmp : nop, SITE);
		memcpy(at + 5, jmp_rax, sizeof(jmp_rax));
		memcpy(at + 0x20, at_20, sizeof(at_20));
		memcpy(at + 0x28, at_28, sizeof(at_28));
		memcpy(at + 0x30, at_30, sizeof(at_30));
	}
}

void flow_machine_run_keys(u64 seed, unsigned int steps)
{
	static u8 pages[2][VMPT_PAGE];
	unsigned int k;

	memset(&machine, 0, sizeof(machine));
	machine.rng.state = seed;
	machine.exec = 64;
	machine.ip = FIRST;
	machine.compressed = true;
	machine.keys = KEYS;
	flow_machine_keys(pages[0], false);
	flow_machine_keys(pages[1], true);
	memcpy(machine.memory[0], pages[0], VMPT_PAGE);
	put_psb();
	while (steps--) {
		u32 what = flow_machine_below(40);

		k = flow_machine_below(KEYS) * KEY_SIZE;
		if (!what && machine.ip != FIRST + k)
			memcpy(machine.memory[0] + k, pages[flow_machine_below(2)] + k, SITE);
		else if (what == 1 && !flow_machine_below(8))
			put_psb();
		else
			execute();
		/* What waits for a TIP gets one to a key. */
		if (machine.ip >= FIRST + KEYS * KEY_SIZE)
			ck_abort_msg("left the keys");
	}
	end();
}
