// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * PTWRITE (SDM 2, SDM 3 33.2.2): memory and register operands of both sizes, #UD, faults of the
 * operand, and a processor without PTWRITE.
 */
#include "arch/pt-packet.h"
#include "scenarios.h"
#include "trace.h"

#define PAYLOAD	      0x1122334455667788ULL
#define NON_CANONICAL 0x8000000000000000ULL
#define MOST	      16

/* @insn, with %[m] in memory, %[r] in a register, %[p], RCX, a pointer: 0, or FAULT + the vector.
 */
#define TRY(insn, value, pointer)                                                   \
	({                                                                          \
		int ret_;                                                           \
		__asm__ volatile("1:\t" insn "\n\txor %%eax, %%eax\n2:\n\t"         \
				 ".pushsection .fixups, \"a\"\n\t.quad 1b, 2b\n\t"  \
				 ".popsection"                                      \
				 : "=&a"(ret_)                                      \
				 : [m] "m"(value), [r] "r"(value), [p] "c"(pointer) \
				 : "cc", "memory");                                 \
		ret_;                                                               \
	})

struct ptws {
	unsigned int n;
	struct vmpt_pt_packet packet[MOST];
};

static void look(struct ptws *found)
{
	struct vmpt_pt_packet packet;
	size_t size = trace_size();

	found->n = 0;
	for (size_t i = 0; i < size; i += packet.size) {
		if (vmpt_pt_decode(&packet, (const u8 *)OUT + i, size - i, 0)) {
			wrong("no packet at %x", (u64)i);
			return;
		}
		if (packet.kind == VMPT_PT_PTW && found->n < MOST)
			found->packet[found->n++] = packet;
	}
}

static void want_ptw(const struct vmpt_pt_packet *packet, bool quad, u64 payload)
{
	want("PTW.PayloadBytes", quad, packet->ptw.payload_bytes);
	want("payload", payload, packet->ptw.payload);
}

static void forms(void)
{
	u64 value = PAYLOAD;
	struct ptws found;

	trace_prepare();
	msr_write(VMPT_MSR_RTIT_CTL, CTL_ON | VMPT_CTL_PTW_EN);
	want("PTWRITE r64", 0, (u64)TRY("ptwriteq %[r]", value, 0ULL));
	want("PTWRITE m64", 0, (u64)TRY("ptwriteq %[m]", value, 0ULL));
	want("PTWRITE r32", 0, (u64)TRY("ptwritel %k[r]", value, 0ULL));
	want("PTWRITE m32", 0, (u64)TRY("ptwritel %[m]", value, 0ULL));
	want("with 66H, register", FAULT_UD,
	     (u64)TRY(".byte 0x66, 0xf3, 0x0f, 0xae, 0xe0", value, 0ULL));
	want("with 66H, memory", FAULT_UD,
	     (u64)TRY(".byte 0x66, 0xf3, 0x0f, 0xae, 0x21", value, &value));
	want("with LOCK", FAULT_UD, (u64)TRY(".byte 0xf0, 0xf3, 0x0f, 0xae, 0x21", value, &value));
	want("#GP of the operand", FAULT_GP, (u64)TRY("ptwriteq (%[p])", value, NON_CANONICAL));
	msr_write(VMPT_MSR_RTIT_CTL, CTL_BASE);
	want("while nothing is traced", 0, (u64)TRY("ptwriteq %[r]", value, 0ULL));
	look(&found);
	if (!want("PTWs", 4, found.n))
		return;
	want_ptw(&found.packet[0], true, PAYLOAD);
	want_ptw(&found.packet[1], true, PAYLOAD);
	want_ptw(&found.packet[2], false, (u32)PAYLOAD);
	want_ptw(&found.packet[3], false, (u32)PAYLOAD);
}

/* #UD has priority over a fault of the operand. */
static void none(void)
{
	u64 value = PAYLOAD;

	want("leaf 14H", 0, cpuid(0x14, 0).ebx & 1 << 4);
	want("PTWRITE r64", FAULT_UD, (u64)TRY("ptwriteq %[r]", value, 0ULL));
	want("PTWRITE m32", FAULT_UD, (u64)TRY("ptwritel %[m]", value, 0ULL));
	want("a bad operand", FAULT_UD, (u64)TRY("ptwriteq (%[p])", value, NON_CANONICAL));
}

const struct scenario ptwrite_scenarios[] = { { "ptwrite-forms", forms, NEEDS_PT },
					      { "no-ptwrite", none, NEEDS_PT | NEEDS_NAME },
					      { 0 } };
