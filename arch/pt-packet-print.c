// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A packet of Intel PT as text for people, and what is wrong with invalid bytes. Driven by the
 * table in pt-packet-table.c; no libc.
 */
#include "arch/pt-packet.h"
#include "arch/text.h"

static const char *const bbp_name[32] = {
	[0x01] = "General-Purpose Registers",
	[0x04] = "PEBS Basic",
	[0x05] = "PEBS Memory",
	[0x08] = "LBR Block 0",
	[0x09] = "LBR Block 1",
	[0x0a] = "LBR Block 2",
	[0x10] = "XMM Registers",
};

static const char *const cfe_name[32] = {
	[VMPT_CFE_INTR] = "INTR",
	[VMPT_CFE_IRET] = "IRET",
	[VMPT_CFE_SMI] = "SMI",
	[VMPT_CFE_RSM] = "RSM",
	[VMPT_CFE_SIPI] = "SIPI",
	[VMPT_CFE_INIT] = "INIT",
	[VMPT_CFE_VMENTRY] = "VMENTRY",
	[VMPT_CFE_VMEXIT] = "VMEXIT",
	[VMPT_CFE_VMEXIT_INTR] = "VMEXIT_INTR",
	[VMPT_CFE_SHUTDOWN] = "SHUTDOWN",
	[VMPT_CFE_UINTR] = "UINTR",
	[VMPT_CFE_UIRET] = "UIRET",
};

static const char *const evd_name[] = { "PFA", "VMXQ", "VMXR" };

static const char *const gpr_name[18] = {
	"R/EFLAGS", "R/EIP", "R/EAX", "R/ECX", "R/EDX", "R/EBX", "R/ESP", "R/EBP", "R/ESI",
	"R/EDI",    "R8",    "R9",    "R10",   "R11",	"R12",	 "R13",	  "R14",   "R15",
};

static const char *const pebs_basic_name[] = { "Instruction Pointer", "Applicable Counters",
					       "Timestamp" };

static const char *const pebs_memory_name[] = { "MemAccessAddress", "MemAuxInfo",
						"MemAccessLatency", "TSXAuxInfo" };

#define LBR(n)		 "LBR[TOS-" #n "]_FROM_IP", "LBR[TOS-" #n "]_TO_IP", "LBR[TOS-" #n "]_INFO"
#define LBR4(a, b, c, d) LBR(a), LBR(b), LBR(c), LBR(d)

/* Three items per entry, 32 per block: blocks 0 to 2 are one list. */
static const char *const lbr_name[3 * 32] = {
	LBR4(0, 1, 2, 3),     LBR4(4, 5, 6, 7),	    LBR4(8, 9, 10, 11),	  LBR4(12, 13, 14, 15),
	LBR4(16, 17, 18, 19), LBR4(20, 21, 22, 23), LBR4(24, 25, 26, 27), LBR4(28, 29, 30, 31),
};

#define XMM(n) "XMM" #n "_Q0", "XMM" #n "_Q1"

static const char *const xmm_name[32] = {
	XMM(0), XMM(1), XMM(2),	 XMM(3),  XMM(4),  XMM(5),  XMM(6),  XMM(7),
	XMM(8), XMM(9), XMM(10), XMM(11), XMM(12), XMM(13), XMM(14), XMM(15),
};

static const char *bip_name(u64 id, unsigned int bbp_type)
{
	if (id >= 32)
		return NULL;
	switch (bbp_type) {
	case 0x01:
		return id < VMPT_ARRAY_SIZE(gpr_name) ? gpr_name[id] : NULL;
	case 0x04:
		return id < VMPT_ARRAY_SIZE(pebs_basic_name) ? pebs_basic_name[id] : NULL;
	case 0x05:
		return id < VMPT_ARRAY_SIZE(pebs_memory_name) ? pebs_memory_name[id] : NULL;
	case 0x08:
	case 0x09:
	case 0x0a:
		return lbr_name[32 * (bbp_type - 0x08) + id];
	case 0x10:
		return xmm_name[id];
	default:
		return NULL;
	}
}

const char *vmpt_pt_value_name(const struct vmpt_pt_packet *p, unsigned int bbp_type)
{
	switch (p->kind) {
	case VMPT_PT_BBP:
		return p->bbp.type < VMPT_ARRAY_SIZE(bbp_name) ? bbp_name[p->bbp.type] : NULL;
	case VMPT_PT_BIP:
		return bip_name(p->bip.id, bbp_type);
	case VMPT_PT_CFE:
		return p->cfe.type < VMPT_ARRAY_SIZE(cfe_name) ? cfe_name[p->cfe.type] : NULL;
	case VMPT_PT_EVD:
		return p->evd.type < VMPT_ARRAY_SIZE(evd_name) ? evd_name[p->evd.type] : NULL;
	default:
		return NULL;
	}
}

static void put_taken(struct text *t, u64 bits, u64 count)
{
	while (count)
		put_char(t, bits >> --count & 1 ? 'T' : 'N');
}

static void put_field(struct text *t, const struct vmpt_pt_packet *p, unsigned int i)
{
	const struct vmpt_pt_field *f = &vmpt_pt_table[p->kind].field[i];
	const char *name;
	u64 v = p->val[i];

	if (f->coding == VMPT_PT_COUNT)
		return;
	/* A suppressed IP is no IP, not an IP of 0 (Table 33-18). */
	if (f->coding == VMPT_PT_IP && !p->ip.ipbytes)
		return;
	/* Without ICNTV there is no count, not a count of 0. */
	if (p->kind == VMPT_PT_TRIG && f->coding == VMPT_PT_ITEM && !p->trig.icntv)
		return;
	if (f->format == VMPT_PT_FLAG && !v)
		return;
	if (f->format == VMPT_PT_TAKEN && !p->tnt.count)
		return;
	put_char(t, ' ');
	if (f->format == VMPT_PT_TAKEN) {
		put_taken(t, v, p->tnt.count);
		return;
	}
	put_str(t, f->name);
	switch (f->format) {
	case VMPT_PT_FLAG:
		return;
	case VMPT_PT_DEC:
		put_char(t, '=');
		put_number(t, v, 10, 1);
		return;
	case VMPT_PT_BINARY:
		put_char(t, '=');
		put_number(t, v, 2, f->width);
		put_char(t, 'b');
		return;
	default:
		put_str(t, "=0x");
		put_number(t, v, 16, 1);
	}
	name = f->format == VMPT_PT_NAMED ? vmpt_pt_value_name(p, 0) : NULL;
	if (name) {
		put_str(t, " (");
		put_str(t, name);
		put_char(t, ')');
	}
}

size_t vmpt_pt_print(const struct vmpt_pt_packet *pkt, char *buf, size_t len)
{
	struct text t = { buf, len, 0 };
	unsigned int i;

	put_str(&t, vmpt_pt_name(pkt->kind));
	if (pkt->kind < VMPT_PT_KINDS)
		for (i = 0; i < vmpt_pt_table[pkt->kind].fields; i++)
			put_field(&t, pkt, i);
	if (pkt->flags & VMPT_PT_RESERVED)
		put_str(&t, " [reserved value]");
	return finish(&t);
}

static void put_bytes(struct text *t, const u8 *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (i)
			put_char(t, ' ');
		put_number(t, bytes[i], 16, 2);
	}
}

/* Number of bytes needed to show what is wrong. */
static size_t error_bytes(int err, const u8 *bytes, size_t n)
{
	size_t want;

	switch (err) {
	case -VMPT_E_IPBYTES:
		want = 1;
		break;
	case -VMPT_E_PSB:
	case -VMPT_E_TRUNCATED:
		want = VMPT_PT_SIZE_MAX;
		break;
	case -VMPT_E_CYC:
		want = VMPT_PT_CYC_MAX;
		break;
	case -VMPT_E_OPCODE:
		want = !n || bytes[0] != VMPT_PT_ESCAPE ? 1 : n > 1 && bytes[1] == 0xc3 ? 3 : 2;
		break;
	default:
		want = 2;
	}
	return n < want ? n : want;
}

size_t vmpt_pt_print_error(int err, const u8 *bytes, size_t n, char *buf, size_t len)
{
	struct text t = { buf, len, 0 };
	unsigned int kind;

	if (err == -VMPT_E_IPBYTES && n) {
		put_str(&t, "reserved IPBytes ");
		put_number(&t, bytes[0] >> 5, 2, 3);
		put_char(&t, 'b');
	} else if (err == -VMPT_E_PTW_SIZE && n > 1) {
		put_str(&t, "reserved PTW PayloadBytes ");
		put_number(&t, bytes[1] >> 5 & 3, 2, 2);
		put_char(&t, 'b');
	} else if (err == -VMPT_E_MODE_LEAF && n > 1) {
		put_str(&t, "unknown MODE leaf ");
		put_number(&t, bytes[1] >> 5, 10, 1);
	} else {
		put_str(&t, vmpt_strerror(err));
	}
	put_str(&t, err == -VMPT_E_OPCODE ? " " : " in ");
	put_bytes(&t, bytes, error_bytes(err, bytes, n));
	if (err == -VMPT_E_IPBYTES && n)
		for (kind = VMPT_PT_TIP; kind <= VMPT_PT_FUP; kind++)
			if ((bytes[0] & 0x1f) == vmpt_pt_table[kind].header[0]) {
				put_str(&t, " (");
				put_str(&t, vmpt_pt_name(kind));
				put_char(&t, ')');
			}
	return finish(&t);
}
