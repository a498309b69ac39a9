// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A record of what is executed, independent of all packets: the library is called for each *
 * instruction before it is executed, with its bytes as they were decoded, and for events, VM *
 * entries and exits. For each processor and owner there is a file: host.truth.CPU and
 * vm-VMCS.truth.CPU, VMCS being its address in hexadecimal digits.
 *
 * An instruction that began has retired when another begins, an event comes, or the owner ends,
 * with two exceptions: execution goes on at it again, and the processor did not count it
 * (icount), so it is no jump to itself; or it is a string instruction with REP, which is one
 * instruction however often it is interrupted. VMLAUNCH and VMRESUME retire. Instructions in SMM
 * are left out: there PT is off (SDM 3 33.2.9.3).
 *
 * TraceEn, as software writes it, is in the files (TRUTH_STATE), so that a comparison knows
 * where the trace can begin: at the instruction after the WRMSR; and where it ends: before the
 * WRMSR that ends it.
 */
#include "pc.h"
#include "truth.h"

#include <map>
#include <memory>

#define HOST	   (~0ULL)
#define BLOCK_MAX  64u
#define PREFIX_MAX 14u

struct truth {
	struct pc_cpu *pc;
	truth_file *file; /* the owner's */
	u64 next;	  /* address after the last instruction that began */
	/* The current block: at, end: the instructions expected next. */
	const struct truth_code *at, *end;
	struct truth_block *block;  /* NULL: a new one */
	struct truth_block *before; /* the one that ended last */
	u64 ip;			    /* of its first instruction */
	u64 icount;		    /* when the last instruction began */
	u32 count;		    /* of a new block */
	struct truth_code code[BLOCK_MAX];
	struct truth_state origin; /* the state that the current event interrupts */
	bool on, smm;
	bool traced_only; /* only while TraceEn is 1 */
	std::map<u64, std::unique_ptr<truth_file>> files;
};

static bool writes(const struct truth *t)
{
	return t && t->on && !t->smm &&
	       !(t->traced_only && !(t->pc->unit.regs.ctl & VMPT_CTL_TRACE_EN));
}

/* ---- instructions ---- */

static bool is_prefix(u8 byte)
{
	return (byte >= 0x64 && byte <= 0x67) || (byte & 0xe7) == 0x26 || byte == 0xf0 ||
	       byte == 0xf2 || byte == 0xf3;
}

static u8 byte_of(const struct truth_code *code, u32 i)
{
	return static_cast<u8>((i < 8 ? code->lo : code->hi) >> (i % 8 * 8));
}

/* A string instruction that may be interrupted between its iterations. */
static bool is_rep(const struct truth_code *code)
{
	u8 op = byte_of(code, code->len - 1);
	bool rep = false;

	if (!((op >= 0x6c && op <= 0x6f) || (op >= 0xa4 && op <= 0xa7) ||
	      (op >= 0xaa && op <= 0xaf)))
		return false;
	for (u32 i = 0; i + 1 < code->len; i++) {
		u8 byte = byte_of(code, i);

		if (byte == 0xf2 || byte == 0xf3)
			rep = true;
		else if (!is_prefix(byte) && (byte & 0xf0) != 0x40)
			return false;
	}
	return rep;
}

/*
 * Blocks end after conditional branches, which may go the other way next time, and after MOV to
 * control registers and far transfers, which may go to the next instruction, since each block has
 * one state. The mode is unknown: it does no harm if more blocks end.
 */
static bool ends_block(const struct truth_code *code)
{
	u32 i = 0;
	u8 op;

	while (i < PREFIX_MAX && i + 1 < code->len &&
	       (is_prefix(byte_of(code, i)) || (byte_of(code, i) & 0xf0) == 0x40))
		i++;
	op = byte_of(code, i);
	if (op == 0x0f && i + 1 < code->len) {
		op = byte_of(code, i + 1);
		return (op & 0xf0) == 0x80 || op == 0x22;
	}
	if (op == 0xff && i + 1 < code->len)
		return (byte_of(code, i + 1) & 0x38) == 0x18 ||
		       (byte_of(code, i + 1) & 0x38) == 0x28;
	return (op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0 || op == 0x9a || op == 0xea ||
	       (op & 0xfe) == 0xca || op == 0xcf;
}

static u32 begun(const struct truth *t)
{
	if (!t->block)
		return t->count;
	return static_cast<u32>(t->at - t->block->code);
}

/* The last instruction that began; there must be one. */
static const struct truth_code *last_code(const struct truth *t)
{
	return t->block ? t->at - 1 : &t->code[t->count - 1];
}

/* The number of instructions that have retired if execution goes on at @ip. */
static u32 retired(const struct truth *t, u64 ip)
{
	u32 n = begun(t);

	if (n && t->next - last_code(t)->len == ip &&
	    (t->icount == t->pc->cpu->icount || is_rep(last_code(t))))
		n--;
	return n;
}

/* The current block ends: its first @n instructions have retired. */
static void finish(struct truth *t, u32 n)
{
	if (!t->block && t->count)
		t->block = t->file->define(t->ip, t->code, t->count);
	if (t->block) {
		t->file->run(t->block, n);
		if (t->before && !t->before->next)
			t->before->next = t->block;
		t->before = t->block;
	}
	t->block = nullptr;
	t->count = 0;
	t->at = t->end = nullptr;
}

static void state_now(const struct truth *t, struct truth_state *state)
{
	const struct pc_cpu *pc = t->pc;
	const BX_CPU_C *c = pc->cpu;

	*state = {};
	state->flags = c->cr0.get_PE() ? c->sregs[BX_SEG_REG_CS].selector.rpl : 0;
	if (c->cr0.get_PG())
		state->flags |= TRUTH_PAGING;
	if (c->cr4.get_PAE())
		state->flags |= TRUTH_PAE;
	if (c->efer.get_LMA())
		state->flags |= TRUTH_LONG;
	if (c->cpu_mode == BX_MODE_LONG_64)
		state->flags |= TRUTH_CS_L;
	if (c->sregs[BX_SEG_REG_CS].cache.u.segment.d_b)
		state->flags |= TRUTH_CS_D;
	state->ctl = pc->unit.regs.ctl;
	state->cr3 = c->cr3;
	if (c->in_vmx_guest && c->vmcs.vmexec_ctrls2.EPT_ENABLE())
		state->eptp = c->vmcs.eptptr;
}

static void put_state(struct truth *t, u64 ip)
{
	struct truth_state state;

	state_now(t, &state);
	t->file->state(&state, ip);
}

/* A block begins at @ip with @code. */
static void start(struct truth *t, u64 ip, const struct truth_code *code)
{
	put_state(t, ip);
	t->block = t->file->find(ip, code, t->before);
	t->ip = ip;
	t->next = ip + code->len;
	if (t->block) {
		t->at = t->block->code + 1;
		t->end = t->block->code + t->block->count;
	} else {
		t->code[0] = *code;
		t->count = 1;
	}
}

/* An instruction that is not the next one of a known block. */
static void other(struct truth *t, u64 ip, const struct truth_code *code)
{
	u32 n = begun(t);

	if (n) {
		const struct truth_code *last = last_code(t);

		if (ip == t->next - last->len && is_rep(last) &&
		    truth_same(last, code->lo, code->hi, code->len))
			return; /* more iterations */
		if (!t->block && ip == t->next && n < BLOCK_MAX && !ends_block(last)) {
			t->code[t->count++] = *code;
			t->next += code->len;
			return;
		}
		/* Execution goes on in line, but the code changed. */
		if (t->block && ip == t->next && t->at != t->end &&
		    t->block->cr3 == t->pc->cpu->cr3)
			t->file->modified(ip);
	}
	finish(t, n);
	start(t, ip, code);
}

void vmpt_truth_insn(unsigned int cpu, bxInstruction_c *i)
{
	/* Masks for an instruction of each length in 16 bytes. */
	static const u64 mask[9] = { 0,		 0xff,	       0xffff,	       0xffffff,
				     0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
				     ~0ULL };
	struct pc_cpu *pc = pc_cpus[cpu];
	struct truth *t = pc->truth;
	const BX_CPU_C *c = pc->cpu;
	struct truth_code code;
	u64 ip;

	if (pc->walk.inside) {
		pc_walk_insn(pc);
		if (!writes(t))
			return;
	}
	code.len = i->ilen();
	/* Bochs has internal instructions without bytes. */
	if (!code.len)
		return;
	ip = c->gen_reg[BX_64BIT_REG_RIP].rrx;
	if (c->cpu_mode != BX_MODE_LONG_64)
		ip = static_cast<u32>(ip + c->sregs[BX_SEG_REG_CS].cache.u.segment.base);
	memcpy(&code.lo, i->get_opcode_bytes(), 8);
	memcpy(&code.hi, i->get_opcode_bytes() + 8, 8);
	code.lo &= mask[code.len < 8 ? code.len : 8];
	code.hi &= mask[code.len > 8 ? code.len - 8 : 0];
	if (ip == t->next && t->at != t->end && truth_same(t->at, code.lo, code.hi, code.len)) {
		t->at++;
		t->next += code.len;
	} else {
		other(t, ip, &code);
	}
	t->icount = c->icount;
}

/* ---- owners ---- */

static std::string file_name(const struct truth *t, u64 owner)
{
	char name[64];

	if (owner == HOST)
		snprintf(name, sizeof(name), "host.truth.%u", t->pc->id);
	else
		snprintf(name, sizeof(name), "vm-%llx.truth.%u", (unsigned long long)owner,
			 t->pc->id);
	return name;
}

static void set_owner(struct truth *t, u64 owner)
{
	std::unique_ptr<truth_file> &file = t->files[owner];

	if (!file) {
		std::string name = file_name(t, owner);

		file.reset(new truth_file(std::string(pc_folder()) + "/" + name, name));
	}
	t->file = file.get();
	t->before = nullptr;
}

static u64 owner_now(const struct pc_cpu *pc)
{
	return pc->cpu->in_vmx_guest ? pc->cpu->vmcsptr : HOST;
}

bool pc_truth_writes(const struct pc_cpu *pc)
{
	return writes(pc->truth);
}

static void begin(struct truth *t, u64 ip)
{
	put_state(t, ip);
	t->file->begin(ip);
}

void pc_truth_start(struct pc_cpu *pc, bool traced_only)
{
	struct truth *t = pc->truth;

	if (!t) {
		t = pc->truth = new struct truth();
		t->pc = pc;
	}
	if (t->on)
		return;
	t->on = true;
	t->smm = pc->cpu->in_smm;
	t->traced_only = traced_only;
	set_owner(t, owner_now(pc));
	begin(t, pc_next(pc));
	pc_watch(pc);
}

void pc_truth_stop(struct pc_cpu *pc)
{
	struct truth *t = pc->truth;

	if (!t || !t->on)
		return;
	/* The OUT that requests this is executing: it counts as retired. */
	finish(t, begun(t));
	t->file->end(0);
	t->on = false;
	pc_watch(pc);
	for (auto &entry : t->files) {
		if (!entry.second->flush())
			pc_log("error: %s: cannot be written", entry.second->name.c_str());
	}
}

void pc_truth_report(const struct pc_cpu *pc)
{
	if (!pc->truth)
		return;
	for (auto &entry : pc->truth->files) {
		const truth_file *file = entry.second.get();

		pc_log("truth %s instructions %llu", file->name.c_str(),
		       (unsigned long long)file->insns);
		for (auto &page : file->modified_pages)
			pc_log("modified %s cr3 %llx page %llx", file->name.c_str(),
			       (unsigned long long)page.first, (unsigned long long)page.second);
	}
}

/* ---- events ---- */

void pc_truth_origin(struct pc_cpu *pc)
{
	if (writes(pc->truth))
		state_now(pc->truth, &pc->truth->origin);
}

void pc_truth_event(struct pc_cpu *pc, u64 from, u64 to)
{
	struct truth *t = pc->truth;

	if (!writes(t))
		return;
	finish(t, retired(t, from));
	/* If nothing was executed before it, the state is not written yet: a RET to user space that
	 * faults at its first fetch. */
	t->file->state(&t->origin, from);
	t->file->event(from, to);
}

void pc_truth_entry(struct pc_cpu *pc, u64 to)
{
	struct truth *t = pc->truth;

	if (!t || !t->on || t->smm)
		return;
	finish(t, begun(t));
	t->file->end(0);
	set_owner(t, owner_now(pc));
	begin(t, to);
}

void pc_truth_exit(struct pc_cpu *pc, u64 from, u64 to)
{
	struct truth *t = pc->truth;

	if (!t || !t->on || t->smm)
		return;
	finish(t, retired(t, from));
	t->file->end(from);
	set_owner(t, HOST);
	begin(t, to);
}

void pc_truth_smm(struct pc_cpu *pc, bool smm, u64 ip)
{
	struct truth *t = pc->truth;

	if (!t || !t->on || t->smm == smm)
		return;
	if (smm) {
		finish(t, retired(t, ip));
		t->file->end(ip);
	}
	t->smm = smm;
	if (!smm)
		begin(t, ip);
}

void pc_truth_reset(struct pc_cpu *pc)
{
	struct truth *t = pc->truth;

	if (!t || !t->on)
		return;
	finish(t, begun(t));
	t->file->end(0);
	t->smm = false;
	set_owner(t, HOST);
	begin(t, pc_next(pc));
}

void pc_truth_ctl(struct pc_cpu *pc, u64 old, u64 place, u64 next)
{
	struct truth *t = pc->truth;
	struct truth_code wrmsr;
	u32 n;

	if (!t || !t->on || t->smm || !((old ^ pc->unit.regs.ctl) & VMPT_CTL_TRACE_EN))
		return;
	n = begun(t);
	if (!(old & VMPT_CTL_TRACE_EN) || !n) {
		finish(t, n);
		put_state(t, old & VMPT_CTL_TRACE_EN ? place : next);
		return;
	}
	/* The WRMSR that ends the trace executes without it. */
	wrmsr = *last_code(t);
	finish(t, n - 1);
	put_state(t, place);
	if (writes(t))
		start(t, place, &wrmsr);
}
