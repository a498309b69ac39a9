// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The list of hand-written packets. Bytes come from the bit layouts of SDM 3
 * 33.4.2, table by table, TRIG's from libipt 2.2, never from the encoder. All reserved bits are 0
 * here.
 */
#include <stdio.h>

#include "tests/arch/pt-cases.h"

#define K(k)	  .kind = VMPT_PT_##k
#define WIRE(...) .wire = { __VA_ARGS__ }, .size = sizeof((const u8[]){ __VA_ARGS__ })
#define VAL(...)  .val = { __VA_ARGS__ }
#define TEXT(t)	  .text = (t)
#define RSVD	  .flags = VMPT_PT_RESERVED
#define IN(sz, t) .block = VMPT_PT_BLOCK(sz, t)

/* Tables 33-17, 33-20, 33-21, 33-22: the six headers of a kind, IPBytes 000b to 110b. */
#define IP_CASES(k, name, h0, h1, h2, h3, h4, h6)                                                \
	{ K(k), WIRE(h0), VAL(0), TEXT(name " ipbytes=000b") },                                  \
		{ K(k), WIRE(h1, 0x01, 0x02), VAL(1, 0x0201),                                    \
		  TEXT(name " ipbytes=001b ip=0x201") },                                         \
		{ K(k), WIRE(h1, 0xff, 0xff), VAL(1, 0xffff) },                                  \
		{ K(k), WIRE(h2, 0x01, 0x02, 0x03, 0x84), VAL(2, 0x84030201),                    \
		  TEXT(name " ipbytes=010b ip=0x84030201") },                                    \
		{ K(k), WIRE(h2, 0xff, 0xff, 0xff, 0xff), VAL(2, 0xffffffff) },                  \
		{ K(k), WIRE(h3, 0x01, 0x02, 0x03, 0x04, 0x05, 0x86), VAL(3, 0x860504030201),    \
		  TEXT(name " ipbytes=011b ip=0x860504030201") },                                \
		{ K(k), WIRE(h3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), VAL(3, 0xffffffffffff) },  \
		{ K(k), WIRE(h4, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80), VAL(4, 0x800000000000),    \
		  TEXT(name " ipbytes=100b ip=0x800000000000") },                                \
		{ K(k), WIRE(h4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), VAL(4, 0xffffffffffff) },  \
		{ K(k), WIRE(h6, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08),                \
		  VAL(6, 0x0807060504030201), TEXT(name " ipbytes=110b ip=0x807060504030201") }, \
	{                                                                                        \
		K(k), WIRE(h6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),                  \
			VAL(6, 0xffffffffffffffff)                                               \
	}

/* clang-format off */
const struct pt_case pt_cases[] = {
	/* 33-39 */
	{ K(PAD), WIRE(0x00), TEXT("PAD") },

	/* 33-16, short: 0, the branches with the youngest in bit 1, a one above the oldest */
	{ K(TNT_8), WIRE(0x04), VAL(0, 1), TEXT("TNT-8 N") },
	{ K(TNT_8), WIRE(0x06), VAL(1, 1), TEXT("TNT-8 T") },
	{ K(TNT_8), WIRE(0x08), VAL(0, 2), TEXT("TNT-8 NN") },
	{ K(TNT_8), WIRE(0x0e), VAL(3, 2), TEXT("TNT-8 TT") },
	{ K(TNT_8), WIRE(0x16), VAL(3, 3), TEXT("TNT-8 NTT") },
	{ K(TNT_8), WIRE(0x38), VAL(12, 4), TEXT("TNT-8 TTNN") },
	{ K(TNT_8), WIRE(0x7c), VAL(30, 5), TEXT("TNT-8 TTTTN") },
	{ K(TNT_8), WIRE(0x80), VAL(0, 6), TEXT("TNT-8 NNNNNN") },
	{ K(TNT_8), WIRE(0xca), VAL(0x25, 6), TEXT("TNT-8 TNNTNT") },
	{ K(TNT_8), WIRE(0xfe), VAL(0x3f, 6), TEXT("TNT-8 TTTTTT") },

	/* 33-16, long: the same over bytes 2 to 7 */
	{ K(TNT_64), WIRE(0x02, 0xa3, 0x02, 0, 0, 0, 0, 0), VAL(0, 1), TEXT("TNT-64 N") },
	{ K(TNT_64), WIRE(0x02, 0xa3, 0x03, 0, 0, 0, 0, 0), VAL(1, 1), TEXT("TNT-64 T") },
	{ K(TNT_64), WIRE(0x02, 0xa3, 0x78, 0x56, 0x34, 0x92, 0, 0), VAL(0x12345678, 31),
	  TEXT("TNT-64 " "NNT" "NNTN" "NNTT" "NTNN" "NTNT" "NTTN" "NTTT" "TNNN") },
	{ K(TNT_64), WIRE(0x02, 0xa3, 0, 0, 0, 0, 0, 0x80), VAL(0, 47) },
	{ K(TNT_64), WIRE(0x02, 0xa3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	  VAL(0x7fffffffffff, 47) },
	{ K(TNT_64), RSVD, WIRE(0x02, 0xa3, 0, 0, 0, 0, 0, 0), VAL(0, 0),
	  TEXT("TNT-64 [reserved value]") },

	IP_CASES(TIP, "TIP", 0x0d, 0x2d, 0x4d, 0x6d, 0x8d, 0xcd),
	IP_CASES(TIP_PGE, "TIP.PGE", 0x11, 0x31, 0x51, 0x71, 0x91, 0xd1),
	IP_CASES(TIP_PGD, "TIP.PGD", 0x01, 0x21, 0x41, 0x61, 0x81, 0xc1),
	IP_CASES(FUP, "FUP", 0x1d, 0x3d, 0x5d, 0x7d, 0x9d, 0xdd),

	/* 33-24: CR3[11:5] in bits 7:1 of byte 2, NR in bit 0 */
	{ K(PIP), WIRE(0x02, 0x43, 0, 0, 0, 0, 0, 0), VAL(0, 0), TEXT("PIP cr3=0x0") },
	{ K(PIP), WIRE(0x02, 0x43, 0x01, 0, 0, 0, 0, 0), VAL(0, 1), TEXT("PIP cr3=0x0 nr") },
	{ K(PIP), WIRE(0x02, 0x43, 0x02, 0, 0, 0, 0, 0), VAL(0x20, 0), TEXT("PIP cr3=0x20") },
	{ K(PIP), WIRE(0x02, 0x43, 0x01, 0x8b, 0x62, 0x01, 0, 0), VAL(0x1628b000, 1),
	  TEXT("PIP cr3=0x1628b000 nr") },
	{ K(PIP), WIRE(0x02, 0x43, 0, 0, 0, 0, 0, 0x80), VAL(0x8000000000000, 0) },
	{ K(PIP), WIRE(0x02, 0x43, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff), VAL(0xfffffffffffe0, 0) },
	{ K(PIP), WIRE(0x02, 0x43, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), VAL(0xfffffffffffe0, 1) },

	/* 33-26 */
	{ K(MODE_EXEC), WIRE(0x99, 0x00), VAL(0, 0, 0), TEXT("MODE.Exec") },
	{ K(MODE_EXEC), WIRE(0x99, 0x01), VAL(1, 0, 0), TEXT("MODE.Exec cs.l") },
	{ K(MODE_EXEC), WIRE(0x99, 0x02), VAL(0, 1, 0), TEXT("MODE.Exec cs.d") },
	{ K(MODE_EXEC), WIRE(0x99, 0x04), VAL(0, 0, 1), TEXT("MODE.Exec if") },
	{ K(MODE_EXEC), WIRE(0x99, 0x05), VAL(1, 0, 1), TEXT("MODE.Exec cs.l if") },
	{ K(MODE_EXEC), WIRE(0x99, 0x06), VAL(0, 1, 1), TEXT("MODE.Exec cs.d if") },
	{ K(MODE_EXEC), RSVD, WIRE(0x99, 0x03), VAL(1, 1, 0),
	  TEXT("MODE.Exec cs.l cs.d [reserved value]") },
	{ K(MODE_EXEC), RSVD, WIRE(0x99, 0x07), VAL(1, 1, 1) },
	/* 33-27; both bits: "N/A" */
	{ K(MODE_TSX), WIRE(0x99, 0x20), VAL(0, 0), TEXT("MODE.TSX") },
	{ K(MODE_TSX), WIRE(0x99, 0x21), VAL(1, 0), TEXT("MODE.TSX intx") },
	{ K(MODE_TSX), WIRE(0x99, 0x22), VAL(0, 1), TEXT("MODE.TSX txabort") },
	{ K(MODE_TSX), RSVD, WIRE(0x99, 0x23), VAL(1, 1),
	  TEXT("MODE.TSX intx txabort [reserved value]") },

	/* 33-28, 33-29, 33-30, 33-31 */
	{ K(TRACESTOP), WIRE(0x02, 0x83), TEXT("TraceStop") },
	{ K(CBR), WIRE(0x02, 0x03, 0x00, 0), VAL(0), TEXT("CBR ratio=0") },
	{ K(CBR), WIRE(0x02, 0x03, 0xff, 0), VAL(255), TEXT("CBR ratio=255") },
	{ K(TSC), WIRE(0x19, 0, 0, 0, 0, 0, 0, 0), VAL(0), TEXT("TSC tsc=0x0") },
	{ K(TSC), WIRE(0x19, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07), VAL(0x07060504030201),
	  TEXT("TSC tsc=0x7060504030201") },
	{ K(TSC), WIRE(0x19, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), VAL(0xffffffffffffff) },
	{ K(MTC), WIRE(0x59, 0x00), VAL(0), TEXT("MTC ctc=0x0") },
	{ K(MTC), WIRE(0x59, 0xff), VAL(0xff), TEXT("MTC ctc=0xff") },

	/* 33-32: FastCounter[8] is bit 0 of byte 6 */
	{ K(TMA), WIRE(0x02, 0x73, 0, 0, 0, 0, 0), VAL(0, 0), TEXT("TMA ctc=0x0 fc=0x0") },
	{ K(TMA), WIRE(0x02, 0x73, 0x34, 0x12, 0, 0x56, 0), VAL(0x1234, 0x56),
	  TEXT("TMA ctc=0x1234 fc=0x56") },
	{ K(TMA), WIRE(0x02, 0x73, 0, 0, 0, 0, 0x01), VAL(0, 0x100) },
	{ K(TMA), WIRE(0x02, 0x73, 0xff, 0xff, 0, 0xff, 0x01), VAL(0xffff, 0x1ff),
	  TEXT("TMA ctc=0xffff fc=0x1ff") },

	/* 33-33: 5 bits in byte 0, 7 in each further one; Exp is bit 2, then bit 0 */
	{ K(CYC), WIRE(0x03), VAL(0), TEXT("CYC cycles=0") },
	{ K(CYC), WIRE(0x0b), VAL(1), TEXT("CYC cycles=1") },
	{ K(CYC), WIRE(0xfb), VAL(31), TEXT("CYC cycles=31") },
	{ K(CYC), WIRE(0x07, 0x02), VAL(32), TEXT("CYC cycles=32") },
	{ K(CYC), WIRE(0xff, 0xfe), VAL(4095), TEXT("CYC cycles=4095") },
	{ K(CYC), WIRE(0x07, 1, 0x02), VAL(1ULL << 12), TEXT("CYC cycles=4096") },
	{ K(CYC), WIRE(0xff, 0xff, 0xfe), VAL((1ULL << 19) - 1) },
	{ K(CYC), WIRE(0x07, 1, 1, 0x02), VAL(1ULL << 19) },
	{ K(CYC), WIRE(0xff, 0xff, 0xff, 0xfe), VAL((1ULL << 26) - 1) },
	{ K(CYC), WIRE(0x07, 1, 1, 1, 0x02), VAL(1ULL << 26) },
	{ K(CYC), WIRE(0xff, 0xff, 0xff, 0xff, 0xfe), VAL((1ULL << 33) - 1) },
	{ K(CYC), WIRE(0x07, 1, 1, 1, 1, 0x02), VAL(1ULL << 33) },
	{ K(CYC), WIRE(0xff, 0xff, 0xff, 0xff, 0xff, 0xfe), VAL((1ULL << 40) - 1) },
	{ K(CYC), WIRE(0x07, 1, 1, 1, 1, 1, 0x02), VAL(1ULL << 40) },
	{ K(CYC), WIRE(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe), VAL((1ULL << 47) - 1) },
	{ K(CYC), WIRE(0x07, 1, 1, 1, 1, 1, 1, 0x02), VAL(1ULL << 47) },
	{ K(CYC), WIRE(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe), VAL((1ULL << 54) - 1) },
	{ K(CYC), WIRE(0x07, 1, 1, 1, 1, 1, 1, 1, 0x02), VAL(1ULL << 54) },
	{ K(CYC), WIRE(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe),
	  VAL((1ULL << 61) - 1) },
	{ K(CYC), WIRE(0x07, 1, 1, 1, 1, 1, 1, 1, 1, 0x02), VAL(1ULL << 61) },
	{ K(CYC), WIRE(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0e),
	  VAL(0xffffffffffffffff), TEXT("CYC cycles=18446744073709551615") },

	/* 33-34: pointer[19:12] is byte 2 */
	{ K(VMCS), WIRE(0x02, 0xc8, 0, 0, 0, 0, 0), VAL(0), TEXT("VMCS pointer=0x0") },
	{ K(VMCS), WIRE(0x02, 0xc8, 0x01, 0, 0, 0, 0), VAL(0x1000) },
	{ K(VMCS), WIRE(0x02, 0xc8, 0x20, 0xd0, 0x48, 0, 0), VAL(0x48d020000),
	  TEXT("VMCS pointer=0x48d020000") },
	{ K(VMCS), WIRE(0x02, 0xc8, 0, 0, 0, 0, 0x80), VAL(0x8000000000000) },
	{ K(VMCS), WIRE(0x02, 0xc8, 0xff, 0xff, 0xff, 0xff, 0xff), VAL(0xffffffffff000),
	  TEXT("VMCS pointer=0xffffffffff000") },

	/* 33-35, 33-36, 33-37 */
	{ K(OVF), WIRE(0x02, 0xf3), TEXT("OVF") },
	{ K(OVF), IN(1, 4), WIRE(0x02, 0xf3) },
	{ K(PSB), WIRE(0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
		       0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82), TEXT("PSB") },
	{ K(PSBEND), WIRE(0x02, 0x23), TEXT("PSBEND") },
	/* 33-38 */
	{ K(MNT), WIRE(0x02, 0xc3, 0x88, 1, 2, 3, 4, 5, 6, 7, 8), VAL(0x0807060504030201),
	  TEXT("MNT payload=0x807060504030201") },
	{ K(MNT), WIRE(0x02, 0xc3, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	  VAL(0xffffffffffffffff) },

	/* 33-40: IP, PayloadBytes, 12H */
	{ K(PTW), WIRE(0x02, 0x12, 1, 2, 3, 0x84), VAL(0, 0, 0x84030201),
	  TEXT("PTW payloadbytes=00b payload=0x84030201") },
	{ K(PTW), WIRE(0x02, 0x92, 0xff, 0xff, 0xff, 0xff), VAL(0, 1, 0xffffffff),
	  TEXT("PTW payloadbytes=00b ip payload=0xffffffff") },
	{ K(PTW), WIRE(0x02, 0x32, 1, 2, 3, 4, 5, 6, 7, 8), VAL(1, 0, 0x0807060504030201),
	  TEXT("PTW payloadbytes=01b payload=0x807060504030201") },
	{ K(PTW), WIRE(0x02, 0xb2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	  VAL(1, 1, 0xffffffffffffffff) },

	/* 33-41, 33-42, 33-43, 33-44 */
	{ K(EXSTOP), WIRE(0x02, 0x62), VAL(0), TEXT("EXSTOP") },
	{ K(EXSTOP), WIRE(0x02, 0xe2), VAL(1), TEXT("EXSTOP ip") },
	{ K(MWAIT), WIRE(0x02, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0), VAL(0, 0),
	  TEXT("MWAIT hints=0x0 ext=0x0") },
	{ K(MWAIT), WIRE(0x02, 0xc2, 0xff, 0, 0, 0, 0x03, 0, 0, 0), VAL(0xff, 3),
	  TEXT("MWAIT hints=0xff ext=0x3") },
	{ K(PWRE), WIRE(0x02, 0x22, 0x00, 0x00), VAL(0, 0, 0), TEXT("PWRE state=0 sub=0") },
	{ K(PWRE), WIRE(0x02, 0x22, 0x80, 0xa5), VAL(1, 10, 5), TEXT("PWRE hw state=10 sub=5") },
	{ K(PWRE), WIRE(0x02, 0x22, 0x80, 0xff), VAL(1, 15, 15) },
	{ K(PWRX), WIRE(0x02, 0xa2, 0, 0, 0, 0, 0), VAL(0, 0, 0),
	  TEXT("PWRX last=0 deepest=0 wake=0x0") },
	{ K(PWRX), WIRE(0x02, 0xa2, 0xa5, 0x0c, 0, 0, 0), VAL(10, 5, 0xc),
	  TEXT("PWRX last=10 deepest=5 wake=0xc") },
	{ K(PWRX), WIRE(0x02, 0xa2, 0xff, 0x0f, 0, 0, 0), VAL(15, 15, 15) },

	/* 33-45: SZ is bit 7 */
	{ K(BBP), WIRE(0x02, 0x63, 0x01), VAL(0, 1),
	  TEXT("BBP sz=0 type=0x1 (General-Purpose Registers)") },
	{ K(BBP), WIRE(0x02, 0x63, 0x90), VAL(1, 0x10),
	  TEXT("BBP sz=1 type=0x10 (XMM Registers)") },
	{ K(BBP), RSVD, WIRE(0x02, 0x63, 0x9f), VAL(1, 0x1f),
	  TEXT("BBP sz=1 type=0x1f [reserved value]") },
	/* A block may follow a block without BEP. */
	{ K(BBP), IN(0, 1), WIRE(0x02, 0x63, 0x84), VAL(1, 4) },

	/* 33-46: ID above 100b */
	{ K(BIP), IN(1, 0x01), WIRE(0x04, 1, 2, 3, 0x84), VAL(0, 0x84030201),
	  TEXT("BIP id=0x0 payload=0x84030201") },
	{ K(BIP), IN(0, 0x01), WIRE(0x8c, 1, 2, 3, 4, 5, 6, 7, 8), VAL(0x11, 0x0807060504030201),
	  TEXT("BIP id=0x11 payload=0x807060504030201") },
	{ K(BIP), IN(1, 0x10), WIRE(0xfc, 0xff, 0xff, 0xff, 0xff), VAL(0x1f, 0xffffffff) },
	{ K(BIP), IN(0, 0x10), WIRE(0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	  VAL(0x1f, 0xffffffffffffffff) },
	{ K(BIP), RSVD, IN(1, 0x01), WIRE(0x94, 0, 0, 0, 0), VAL(0x12, 0),
	  TEXT("BIP id=0x12 payload=0x0 [reserved value]") },
	/* Other packets keep their meaning in a block. */
	{ K(PAD), IN(1, 0x01), WIRE(0x00) },
	{ K(TNT_8), IN(1, 0x01), WIRE(0x06), VAL(1, 1) },
	{ K(MTC), IN(0, 0x01), WIRE(0x59, 0x12), VAL(0x12) },
	{ K(CYC), IN(0, 0x01), WIRE(0x07, 0x02), VAL(32) },
	{ K(FUP), IN(0, 0x01), WIRE(0x3d, 0x01, 0x02), VAL(1, 0x0201) },

	/* 33-48 */
	{ K(BEP), IN(0, 0x01), WIRE(0x02, 0x33), VAL(0), TEXT("BEP") },
	{ K(BEP), IN(1, 0x01), WIRE(0x02, 0xb3), VAL(1), TEXT("BEP ip") },

	/* 33-49, 33-51 */
	{ K(CFE), WIRE(0x02, 0x13, 0x01, 0x0e), VAL(0, 1, 0x0e),
	  TEXT("CFE type=0x1 (INTR) vector=0xe") },
	{ K(CFE), WIRE(0x02, 0x13, 0x8d, 0xff), VAL(1, 0xd, 0xff),
	  TEXT("CFE ip type=0xd (UIRET) vector=0xff") },
	{ K(CFE), RSVD, WIRE(0x02, 0x13, 0x9f, 0xff), VAL(1, 0x1f, 0xff),
	  TEXT("CFE ip type=0x1f vector=0xff [reserved value]") },
	{ K(EVD), WIRE(0x02, 0x53, 0x00, 1, 2, 3, 4, 5, 6, 7, 8), VAL(0, 0x0807060504030201),
	  TEXT("EVD type=0x0 (PFA) payload=0x807060504030201") },
	{ K(EVD), WIRE(0x02, 0x53, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	  VAL(2, 0xffffffffffffffff) },
	{ K(EVD), RSVD, WIRE(0x02, 0x53, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0), VAL(0x3f, 0),
	  TEXT("EVD type=0x3f payload=0x0 [reserved value]") },

	/*
	 * TRIG, in no table of this manual; the layout is libipt 2.2's: byte 1 IP, ICNTV, MULT from
	 * bit 7 down, byte 2 TRBV, with ICNTV a count of 16 bits, little-endian.
	 */
	{ K(TRIG), WIRE(0xd9, 0x00, 0x01), VAL(0, 0, 0, 1), TEXT("TRIG trbv=0x1") },
	{ K(TRIG), WIRE(0xd9, 0x80, 0x40), VAL(1, 0, 0, 0x40), TEXT("TRIG ip trbv=0x40") },
	{ K(TRIG), WIRE(0xd9, 0x20, 0xff), VAL(0, 0, 1, 0xff), TEXT("TRIG mult trbv=0xff") },
	{ K(TRIG), WIRE(0xd9, 0xa0, 0x00), VAL(1, 0, 1, 0), TEXT("TRIG ip mult trbv=0x0") },
	{ K(TRIG), WIRE(0xd9, 0x40, 0x02, 0x34, 0x12), VAL(0, 1, 0, 2, 0x1234),
	  TEXT("TRIG icntv trbv=0x2 icnt=4660") },
	{ K(TRIG), WIRE(0xd9, 0xe0, 0x80, 0xff, 0xff), VAL(1, 1, 1, 0x80, 0xffff),
	  TEXT("TRIG ip icntv mult trbv=0x80 icnt=65535") },
	{ K(TRIG), WIRE(0xd9, 0x40, 0x01, 0x00, 0x00), VAL(0, 1, 0, 1, 0),
	  TEXT("TRIG icntv trbv=0x1 icnt=0") },
	{ K(TRIG), IN(1, 0x01), WIRE(0xd9, 0x40, 0x01, 0x19, 0x04), VAL(0, 1, 0, 1, 0x0419) },
};
/* clang-format on */

const size_t pt_case_count = VMPT_ARRAY_SIZE(pt_cases);

const char *pt_case_name(const struct pt_case *c)
{
	static char name[80];
	int n = snprintf(name, sizeof(name), "%s", vmpt_pt_name(c->kind));
	int i;

	for (i = 0; i < c->size; i++)
		n += snprintf(name + n, sizeof(name) - (size_t)n, " %02x", c->wire[i]);
	return name;
}
