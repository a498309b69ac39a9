// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * "PT uses guest physical addresses" (SDM 3 26.5.3): output and tables go through EPT. A page
 * missing in EPT causes a VM exit at an instruction boundary, and nothing is lost.
 */
#include "arch/pt-packet.h"
#include "gpa.h"

#define MAX_EXITS 64

extern const char guest_fill_to[], guest_fill_end[];

void gpa_count(struct gpa_tally *t, size_t size)
{
	struct vmpt_pt_packet packet;

	memset(t, 0, sizeof(*t));
	for (size_t i = 0; i < size; i += packet.size) {
		if (vmpt_pt_decode(&packet, (const u8 *)OUT + i, size - i, 0)) {
			wrong("no packet at %x", (u64)i);
			return;
		}
		t->tips += packet.kind == VMPT_PT_TIP;
		t->overflows += packet.kind == VMPT_PT_OVF;
		t->on += packet.kind == VMPT_PT_TIP_PGE;
		t->pwre += packet.kind == VMPT_PT_PWRE;
		t->pwrx += packet.kind == VMPT_PT_PWRX;
		t->off += packet.kind == VMPT_PT_TIP_PGD;
		if (packet.kind == VMPT_PT_TNT_8 || packet.kind == VMPT_PT_TNT_64)
			t->tnt_bits += packet.tnt.count;
	}
}

void gpa_map(u64 rights)
{
	for (u64 i = 0; i < PAGES; i++)
		ept_page(G_OUT + 0x1000 * i, OUT + 0x1000 * i, rights);
	ept_page(G_TABLE, OUT_TABLE, rights);
	ept_flush();
}

void gpa_prepare(struct vm *vm, enum gpa_output output)
{
	u64 *table = (u64 *)OUT_TABLE;

	trace_prepare();
	table[0] = G_OUT | 4ULL << VMPT_TOPA_SIZE_SHIFT; /* 64 KiB */
	table[1] = G_TABLE | VMPT_TOPA_END;
	msr_write(VMPT_MSR_RTIT_OUTPUT_BASE, output == TOPA ? G_TABLE : G_OUT);
	msr_write(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, output == TOPA ? 0x7f : 0xffff);
	vm_default(vm, guest_fill);
	vm->secondary |= SECONDARY_PT_USES_GPA;
	vm->entry |= ENTRY_LOAD_RTIT_CTL;
	vm->exit |= EXIT_CLEAR_RTIT_CTL;
	vm->rtit_ctl = CTL_ON & ~(output == TOPA ? 0 : VMPT_CTL_TOPA);
	vm->regs.rcx = ROUNDS;
	vm_load(vm);
}

void gpa_mend(const struct vm *vm)
{
	u64 page = vm->physical & ~0xfffULL;

	ept_page(page, page == G_TABLE ? OUT_TABLE : OUT + (page - G_OUT), EPT_RWX);
	ept_flush();
}

/* Checks an exit of the output, its RIP and its qualification; then maps the page. */
static void answer(const struct vm *vm, u32 reason)
{
	u64 page = vm->physical & ~0xfffULL, at = vmread(F_GUEST_RIP) - (uintptr_t)guest_fill;
	bool table = page == G_TABLE;

	want("exit reason", reason, vm->reason);
	if (reason == REASON_EPT_VIOLATION) {
		want("qualification: asynchronous", ASYNCHRONOUS, vm->qualification & ASYNCHRONOUS);
		if (table)
			want("qualification: a read", 1, vm->qualification & 7);
		else
			want("qualification: a write", 2, vm->qualification & 2);
		want("qualification: no linear address", 0, vm->qualification & 0x180);
	}
	if (!table && (page < G_OUT || page >= G_OUT + 0x1000 * PAGES))
		wrong("guest-physical address: %x", vm->physical);
	/* LEA, JMP, DEC, JNZ, VMCALL */
	if (at != 0 && at != 7 && at != 9 && at != 12 && at != 14)
		wrong("not at an instruction boundary: %x", at);
	want("TraceEn was saved", 1, vmread(F_GUEST_RTIT_CTL) & VMPT_CTL_TRACE_EN);
	gpa_mend(vm);
}

/* Runs to the VMCALL; returns how many exits of the output there were. */
static unsigned int run(struct vm *vm, u32 reason)
{
	unsigned int exits = 0;

	for (;;) {
		vm_run(vm);
		if (vm_failed(vm)) {
			wrong("VM entry fails early, error %u", vm->error);
			return exits;
		}
		if (vm->reason == REASON_VMCALL)
			return exits;
		answer(vm, reason);
		if (++exits == MAX_EXITS) {
			wrong("too many exits");
			return exits;
		}
		/* Only at the first exit is the guest still where the entry put it. */
		if (exits == 1)
			want("the exit is at the entry", (uintptr_t)guest_fill,
			     vmread(F_GUEST_RIP));
	}
}

static void check(const char *name, unsigned int exits, unsigned int least)
{
	size_t size = trace_size();
	struct gpa_tally t;

	if (exits < least)
		wrong("exits of the output: want at least %x, got %x", (u64)least, (u64)exits);
	gpa_count(&t, size);
	want("TIPs", ROUNDS, t.tips);
	want("TNT bits", ROUNDS, t.tnt_bits);
	want("overflows", 0, t.overflows);
	want("as many ends as beginnings", t.on, t.off);
	host_file(name, (const void *)OUT, size);
}

static void one(const char *name, enum gpa_output output, u64 rights, u32 reason)
{
	unsigned int exits;
	struct vm vm;

	gpa_map(rights);
	gpa_prepare(&vm, output);
	exits = run(&vm, reason);
	/* 8000 rounds of four bytes: at least eight pages, and the table */
	check(name, exits, rights == EPT_RWX ? 0 : output == TOPA ? 9 : 8);
	if (rights == EPT_RWX)
		want("exits with all pages there", 0, exits);
}

static void mapped(void)
{
	one("gpa-topa.pt", TOPA, EPT_RWX, 0);
	one("gpa-range.pt", RANGE, EPT_RWX, 0);
}

static void holes(void)
{
	one("gpa-topa-holes.pt", TOPA, 0, REASON_EPT_VIOLATION);
	one("gpa-range-holes.pt", RANGE, 0, REASON_EPT_VIOLATION);
	/* Readable: the table may be read, output may not be written. */
	gpa_map(1);
	one("gpa-range-read-only.pt", RANGE, 1, REASON_EPT_VIOLATION);
}

/* Writable but not readable is a misconfiguration. */
static void misconfigured(void)
{
	one("gpa-topa-misconfigured.pt", TOPA, 2, REASON_EPT_MISCONFIG);
	one("gpa-range-misconfigured.pt", RANGE, 2, REASON_EPT_MISCONFIG);
}

/* Output goes where EPT maps it, not to the same host-physical address. */
static void elsewhere(void)
{
	struct vm vm;

	gpa_map(EPT_RWX);
	memset((void *)G_OUT, 0x5a, 0x1000);
	gpa_prepare(&vm, RANGE);
	run(&vm, 0);
	want("memory at that address as the host sees it", 0x5a5a5a5a5a5a5a5a, *(u64 *)G_OUT);
	want("PSB where EPT says", 0x8202820282028202, *(u64 *)OUT);
}

const struct scenario gpa_scenarios[] = { { "gpa-mapped", mapped, GPA_NEEDS },
					  { "gpa-holes", holes, GPA_NEEDS },
					  { "gpa-misconfigured", misconfigured, GPA_NEEDS },
					  { "gpa-elsewhere", elsewhere, GPA_NEEDS },
					  { 0 } };
