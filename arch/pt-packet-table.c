// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The packets of Intel PT, one row per kind (SDM 3 33.4.2, Tables 33-16 to 33-51). Encode, decode,
 * print and the decoder's step tables follow from it. The decoder has payload masks of its own
 * where it cannot decode field by field (decoder/pt/fast-table.c, payload.h): tests compare those
 * with this table.
 *
 * TRIG (Trigger Tracing) is newer than that manual. Its row is second-hand: from what libipt 2.2
 * decodes, not from Intel's Architecture Instruction Set Extensions reference (319433-052) itself.
 * What neither says is taken as for other packets that no table of the manual names: it does not
 * end a packet block (Table 33-15), and is none of a PSB+ (33.3.7).
 *
 * A field's bit is counted from bit 0 of byte 0: byte 2 bit 7 is 23.
 */
#include "arch/pt-packet.h"

#define F(n, b, w, fmt)                                                        \
	{                                                                      \
		.name = (n), .bit = (b), .width = (w), .format = VMPT_PT_##fmt \
	}
#define FS(n, b, w, s, fmt)                                                                  \
	{                                                                                    \
		.name = (n), .bit = (b), .width = (w), .shift = (s), .format = VMPT_PT_##fmt \
	}
#define FC(n, b, w, cod, fmt)                                                   \
	{                                                                       \
		.name = (n), .bit = (b), .width = (w), .coding = VMPT_PT_##cod, \
		.format = VMPT_PT_##fmt                                         \
	}

/* TIP, TIP.PGE, TIP.PGD and FUP differ in bits 4:0 of the header only. */
#define IP_PACKET(n, t, opcode, cls, tab)                                                         \
	{                                                                                         \
		.name = (n), .title = (t), .header = { (opcode) }, .mask = { 0x1f },              \
		.header_size = 1, .size_rule = VMPT_PT_SIZE_IP, .size = 1,                        \
		.classes = VMPT_PT_HAS_IP | (cls), .fields = 2,                                   \
		.field = { F("ipbytes", 5, 3, BINARY), FC("ip", 8, 64, IP, HEX) }, .table = (tab) \
	}

const struct vmpt_pt_desc vmpt_pt_table[VMPT_PT_KINDS] = {
	[VMPT_PT_PAD] = {
		.name = "PAD", .title = "Padding", .table = "33-39",
		.header = { 0x00 }, .mask = { 0xff }, .header_size = 1, .size = 1,
		.classes = VMPT_PT_IN_PSB,
	},
	[VMPT_PT_BIP] = {
		.name = "BIP", .title = "Block Item", .table = "33-46",
		.header = { 0x04 }, .mask = { 0x07 }, .header_size = 1,
		.size_rule = VMPT_PT_SIZE_BIP, .size = 5, .fields = 2,
		.field = { F("id", 3, 5, HEX), FC("payload", 8, 64, ITEM, HEX) },
	},
	[VMPT_PT_TNT_8] = {
		/* 00H is PAD and 02H the escape: both have no stop bit above bit 1. */
		.name = "TNT-8", .title = "Taken/Not-taken, short", .table = "33-16",
		.header = { 0x00 }, .mask = { 0x01 }, .header_size = 1, .size = 1,
		.classes = VMPT_PT_ENDS_BLOCK, .fields = 2,
		.field = { FC("bits", 1, 7, STOP_BIT, TAKEN), FC("count", 1, 7, COUNT, DEC) },
	},
	[VMPT_PT_TIP] = IP_PACKET("TIP", "Target IP", 0x0d, VMPT_PT_ENDS_BLOCK, "33-17"),
	[VMPT_PT_TIP_PGE] = IP_PACKET("TIP.PGE", "Packet Generation Enable", 0x11,
				      VMPT_PT_ENDS_BLOCK | VMPT_PT_TIME_BREAK, "33-20"),
	[VMPT_PT_TIP_PGD] = IP_PACKET("TIP.PGD", "Packet Generation Disable", 0x01,
				      VMPT_PT_ENDS_BLOCK | VMPT_PT_TIME_BREAK, "33-21"),
	[VMPT_PT_FUP] = IP_PACKET("FUP", "Flow Update", 0x1d, VMPT_PT_IN_PSB, "33-22"),
	[VMPT_PT_CYC] = {
		.name = "CYC", .title = "Cycle Count", .table = "33-33",
		.header = { 0x03 }, .mask = { 0x03 }, .header_size = 1,
		.size_rule = VMPT_PT_SIZE_CYC, .size = 1,
		.classes = VMPT_PT_TIMING | VMPT_PT_IN_PSB, .fields = 1,
		.field = { FC("cycles", 3, 64, CYCLES, DEC) },
	},
	[VMPT_PT_MTC] = {
		.name = "MTC", .title = "Mini Time Counter", .table = "33-31",
		.header = { 0x59 }, .mask = { 0xff }, .header_size = 1, .size = 2,
		.classes = VMPT_PT_TIMING | VMPT_PT_IN_PSB, .fields = 1,
		.field = { F("ctc", 8, 8, HEX) },
	},
	[VMPT_PT_TSC] = {
		.name = "TSC", .title = "Timestamp Counter", .table = "33-30",
		.header = { 0x19 }, .mask = { 0xff }, .header_size = 1, .size = 8,
		.classes = VMPT_PT_TIMING | VMPT_PT_IN_PSB, .fields = 1,
		.field = { F("tsc", 8, 56, HEX) },
	},
	[VMPT_PT_MODE_EXEC] = {
		.name = "MODE.Exec", .title = "Execution mode", .table = "33-26",
		.header = { 0x99, 0x00 }, .mask = { 0xff, 0xe0 }, .header_size = 2, .size = 2,
		.classes = VMPT_PT_GROUP | VMPT_PT_ENDS_BLOCK | VMPT_PT_IN_PSB, .fields = 3,
		.field = { F("cs.l", 8, 1, FLAG), F("cs.d", 9, 1, FLAG), F("if", 10, 1, FLAG) },
	},
	[VMPT_PT_MODE_TSX] = {
		.name = "MODE.TSX", .title = "Transactional state", .table = "33-27",
		.header = { 0x99, 0x20 }, .mask = { 0xff, 0xe0 }, .header_size = 2, .size = 2,
		.classes = VMPT_PT_ENDS_BLOCK | VMPT_PT_IN_PSB, .fields = 2,
		.field = { F("intx", 8, 1, FLAG), F("txabort", 9, 1, FLAG) },
	},
	[VMPT_PT_TRIG] = {
		/* Not in the manual, see above. Byte 1 bits 4:0 are reserved. */
		.name = "TRIG", .title = "Trigger",
		.header = { 0xd9 }, .mask = { 0xff }, .header_size = 1,
		.size_rule = VMPT_PT_SIZE_TRIG, .size = 3, .fields = 5,
		.field = { F("ip", 15, 1, FLAG), F("icntv", 14, 1, FLAG), F("mult", 13, 1, FLAG),
			   F("trbv", 16, 8, HEX), FC("icnt", 24, 16, ITEM, DEC) },
	},
	[VMPT_PT_TNT_64] = {
		.name = "TNT-64", .title = "Taken/Not-taken, long", .table = "33-16",
		.header = { 0x02, 0xa3 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 8,
		.classes = VMPT_PT_ENDS_BLOCK, .fields = 2,
		.field = { FC("bits", 16, 48, STOP_BIT, TAKEN), FC("count", 16, 48, COUNT, DEC) },
	},
	[VMPT_PT_PIP] = {
		.name = "PIP", .title = "Paging Information", .table = "33-24",
		.header = { 0x02, 0x43 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 8,
		.classes = VMPT_PT_GROUP | VMPT_PT_ENDS_BLOCK | VMPT_PT_IN_PSB, .fields = 2,
		.field = { FS("cr3", 17, 47, 5, HEX), F("nr", 16, 1, FLAG) },
	},
	[VMPT_PT_TRACESTOP] = {
		.name = "TraceStop", .title = "TraceStop region entered", .table = "33-28",
		.header = { 0x02, 0x83 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 2,
		.classes = VMPT_PT_ENDS_BLOCK | VMPT_PT_TIME_BREAK,
	},
	[VMPT_PT_CBR] = {
		.name = "CBR", .title = "Core:Bus Ratio", .table = "33-29",
		.header = { 0x02, 0x03 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 4,
		.classes = VMPT_PT_TIMING | VMPT_PT_IN_PSB, .fields = 1,
		.field = { F("ratio", 16, 8, DEC) },
	},
	[VMPT_PT_TMA] = {
		.name = "TMA", .title = "TSC/MTC Alignment", .table = "33-32",
		.header = { 0x02, 0x73 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 7,
		.classes = VMPT_PT_TIMING | VMPT_PT_IN_PSB, .fields = 2,
		.field = { F("ctc", 16, 16, HEX), F("fc", 40, 9, HEX) },
	},
	[VMPT_PT_VMCS] = {
		.name = "VMCS", .title = "VMCS pointer", .table = "33-34",
		.header = { 0x02, 0xc8 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 7,
		.classes = VMPT_PT_GROUP | VMPT_PT_ENDS_BLOCK | VMPT_PT_IN_PSB, .fields = 1,
		.field = { FS("pointer", 16, 40, 12, HEX) },
	},
	[VMPT_PT_OVF] = {
		.name = "OVF", .title = "Overflow", .table = "33-35",
		.header = { 0x02, 0xf3 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 2,
		.classes = VMPT_PT_ENDS_BLOCK | VMPT_PT_TIME_BREAK,
	},
	[VMPT_PT_PSB] = {
		/* The header is repeated to 16 bytes; decode checks them all. */
		.name = "PSB", .title = "Packet Stream Boundary", .table = "33-36",
		.header = { 0x02, 0x82 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 16,
		.classes = VMPT_PT_ENDS_BLOCK | VMPT_PT_TIME_BREAK,
	},
	[VMPT_PT_PSBEND] = {
		.name = "PSBEND", .title = "End of PSB+", .table = "33-37",
		.header = { 0x02, 0x23 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 2,
		.classes = VMPT_PT_ENDS_BLOCK | VMPT_PT_TIME_BREAK,
	},
	[VMPT_PT_MNT] = {
		.name = "MNT", .title = "Maintenance", .table = "33-38",
		.header = { 0x02, 0xc3, 0x88 }, .mask = { 0xff, 0xff, 0xff }, .header_size = 3,
		.size = 11, .classes = VMPT_PT_IN_PSB, .fields = 1,
		.field = { F("payload", 24, 64, HEX) },
	},
	[VMPT_PT_PTW] = {
		.name = "PTW", .title = "PTWRITE", .table = "33-40",
		.header = { 0x02, 0x12 }, .mask = { 0xff, 0x1f }, .header_size = 2,
		.size_rule = VMPT_PT_SIZE_PTW, .size = 6, .classes = VMPT_PT_ENDS_BLOCK,
		.fields = 3,
		.field = { F("payloadbytes", 13, 2, BINARY), F("ip", 15, 1, FLAG),
			   FC("payload", 16, 64, ITEM, HEX) },
	},
	[VMPT_PT_EXSTOP] = {
		.name = "EXSTOP", .title = "Execution Stop", .table = "33-41",
		.header = { 0x02, 0x62 }, .mask = { 0xff, 0x7f }, .header_size = 2, .size = 2,
		.classes = VMPT_PT_TIME_BREAK, .fields = 1, .field = { F("ip", 15, 1, FLAG) },
	},
	[VMPT_PT_MWAIT] = {
		.name = "MWAIT", .title = "MWAIT", .table = "33-42",
		.header = { 0x02, 0xc2 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 10,
		.classes = VMPT_PT_ENDS_BLOCK, .fields = 2,
		.field = { F("hints", 16, 8, HEX), F("ext", 48, 2, HEX) },
	},
	[VMPT_PT_PWRE] = {
		.name = "PWRE", .title = "Power Entry", .table = "33-43",
		.header = { 0x02, 0x22 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 4,
		.classes = VMPT_PT_TIME_BREAK, .fields = 3,
		.field = { F("hw", 23, 1, FLAG), F("state", 28, 4, DEC), F("sub", 24, 4, DEC) },
	},
	[VMPT_PT_PWRX] = {
		.name = "PWRX", .title = "Power Exit", .table = "33-44",
		.header = { 0x02, 0xa2 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 7,
		.fields = 3,
		.field = { F("last", 20, 4, DEC), F("deepest", 16, 4, DEC),
			   F("wake", 24, 4, HEX) },
	},
	[VMPT_PT_BBP] = {
		.name = "BBP", .title = "Block Begin", .table = "33-45",
		.header = { 0x02, 0x63 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 3,
		.fields = 2,
		.field = { F("sz", 23, 1, DEC), F("type", 16, 5, NAMED) },
	},
	[VMPT_PT_BEP] = {
		.name = "BEP", .title = "Block End", .table = "33-48",
		.header = { 0x02, 0x33 }, .mask = { 0xff, 0x7f }, .header_size = 2, .size = 2,
		.classes = VMPT_PT_ENDS_BLOCK, .fields = 1, .field = { F("ip", 15, 1, FLAG) },
	},
	[VMPT_PT_CFE] = {
		.name = "CFE", .title = "Control Flow Event", .table = "33-49",
		.header = { 0x02, 0x13 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 4,
		.fields = 3,
		.field = { F("ip", 23, 1, FLAG), F("type", 16, 5, NAMED),
			   F("vector", 24, 8, HEX) },
	},
	[VMPT_PT_EVD] = {
		.name = "EVD", .title = "Event Data", .table = "33-51",
		.header = { 0x02, 0x53 }, .mask = { 0xff, 0xff }, .header_size = 2, .size = 11,
		.fields = 2,
		.field = { F("type", 16, 6, NAMED), F("payload", 24, 64, HEX) },
	},
};
