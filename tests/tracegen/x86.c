// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A tiny x86 encoder: the few instructions that a script's events need, so that
 * an instruction decoder can follow the flow of each owner.
 */
#include "tests/tracegen/internal.h"

struct pattern {
	u8 len;
	u8 bytes[5];
};

/* Same bytes in all modes; REX.W is included where the instruction only exists with it. */
static const struct pattern fixed[TG_KINDS] = {
	[TG_NOP] = { 1, { 0x90 } },
	[TG_ICALL] = { 2, { 0xff, 0xd0 } }, /* call rax */
	[TG_IJMP] = { 2, { 0xff, 0xe0 } },  /* jmp rax */
	[TG_RET] = { 1, { 0xc3 } },
	[TG_FAR] = { 2, { 0xff, 0x28 } }, /* jmp far [rax] */
	[TG_IRET] = { 1, { 0xcf } },
	[TG_SYSCALL] = { 2, { 0x0f, 0x05 } },
	[TG_SYSRET] = { 2, { 0x0f, 0x07 } },
	[TG_MOV_CR3] = { 3, { 0x0f, 0x22, 0xd8 } },	  /* mov cr3, rax */
	[TG_VMPTRLD] = { 3, { 0x0f, 0xc7, 0x30 } },	  /* vmptrld [rax] */
	[TG_VMCLEAR] = { 4, { 0x66, 0x0f, 0xc7, 0x30 } }, /* vmclear [rax] */
	[TG_VMRESUME] = { 3, { 0x0f, 0x01, 0xc3 } },
	[TG_VMXON] = { 4, { 0xf3, 0x0f, 0xc7, 0x30 } }, /* vmxon [rax] */
	[TG_VMXOFF] = { 3, { 0x0f, 0x01, 0xc4 } },
	[TG_WRMSR] = { 2, { 0x0f, 0x30 } },
	[TG_XEND] = { 3, { 0x0f, 0x01, 0xd5 } },
	[TG_XABORT] = { 3, { 0xc6, 0xf8, 0x01 } },
	[TG_PTWRITE4] = { 4, { 0xf3, 0x0f, 0xae, 0xe0 } }, /* ptwrite eax */
	[TG_PTWRITE8] = { 5, { 0xf3, 0x48, 0x0f, 0xae, 0xe0 } },
	[TG_MWAIT] = { 3, { 0x0f, 0x01, 0xc9 } },
	[TG_HLT] = { 1, { 0xf4 } },
	[TG_IN] = { 2, { 0xe4, 0x60 } },
	[TG_CPUID] = { 2, { 0x0f, 0xa2 } },
	[TG_VMCALL] = { 3, { 0x0f, 0x01, 0xc1 } },
	[TG_INT] = { 2, { 0xcd, 0x80 } },
	[TG_POP] = { 1, { 0x58 } },
	[TG_PUSH] = { 1, { 0x50 } },
	[TG_STI] = { 1, { 0xfb } },
	[TG_CLI] = { 1, { 0xfa } },
};

/* Those that need REX.W in 64-bit mode to work on 64 bits. */
static bool wants_rex(unsigned int kind)
{
	return kind == TG_FAR || kind == TG_IRET || kind == TG_SYSRET;
}

/* opcode bytes, then a displacement from the next instruction */
static unsigned int relative(u8 *buf, const u8 *opcode, unsigned int n, unsigned int mode, u64 ip,
			     u64 target)
{
	unsigned int i, width = mode == 16 ? 2 : 4;
	u64 rel = target - (ip + n + width);

	memcpy(buf, opcode, n);
	for (i = 0; i < width; i++)
		buf[n + i] = (u8)(rel >> (8 * i));
	return n + width;
}

unsigned int tg_x86_encode(u8 *buf, unsigned int kind, unsigned int mode, u64 ip, u64 target)
{
	static const u8 call[] = { 0xe8 }, jmp[] = { 0xe9 }, jnz[] = { 0x0f, 0x85 },
			xbegin[] = { 0xc7, 0xf8 };
	unsigned int n = 0;

	switch (kind) {
	case TG_CALL:
		return relative(buf, call, 1, mode, ip, target);
	case TG_JMP:
	case TG_LINK:
		return relative(buf, jmp, 1, mode, ip, target);
	case TG_LOOP:
		return relative(buf, jnz, 2, mode, ip, target);
	case TG_XBEGIN:
		return relative(buf, xbegin, 2, mode, ip, target);
	case TG_JCC:
		buf[0] = 0x74; /* jz */
		buf[1] = (u8)(target - (ip + 2));
		return 2;
	default:
		break;
	}
	if (wants_rex(kind) && mode == 64)
		buf[n++] = 0x48;
	memcpy(buf + n, fixed[kind].bytes, fixed[kind].len);
	return n + fixed[kind].len;
}
