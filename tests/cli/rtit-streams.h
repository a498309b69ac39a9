/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Streams of RTIT for the command's tests, written out by hand, and a side record for them. */
#ifndef VMPT_TESTS_CLI_RTIT_STREAMS_H
#define VMPT_TESTS_CLI_RTIT_STREAMS_H

#include <check.h>
#include <string.h>

#include "tests/cli/cli-run.h"

#define PSB 0xc0, 0, 0, 0, 0, 0, 0, 0, 0

/* By Figure 2 and 4.2; no cycle counts. */
static const u8 plain[] = {
	PSB,					  /* 0 */
	0x82, 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, /* 9 FUP.PGE ffff81001000: VM web enters */
	0xd4, 0x10, 0x00, 0x70, 0x56, 0x34, 0x12, /* 10 STS 16/16, 1234567000 */
	0xc4, 0x60,				  /* 17 MTC: the first, E7 */
	0xc4, 0xe1,				  /* 19 MTC: bits 14:7 of 1234567080 */
	0x76,					  /* 1b TNT */
	0xb0, 0x10, 0x20,			  /* 1c TIP …2010 */
	0xc3, 0x00, 0xa0, 0x07, 0x00, 0x00,	  /* 1f PIP, paging, 7a000 */
	0x88, 0x20, 0x20,			  /* 25 FUP.PGD …2020: it exits */
	0x85, 0x00, 0x10, 0x40, 0x00,		  /* 28 FUP.PGE 401000: VM db enters */
	0xb8, 0x55, 0x10,			  /* 2d FUP.Far 401055 */
	0xb2, 0x10, 0x00, 0xfe, 0x81, 0xff, 0xff, /* 30 TIP */
	0x88, 0x33, 0x00,			  /* 37 FUP.PGD */
	0x88, 0x44, 0x00,			  /* 3a FUP.PGD: one too many, E2 */
	0x80, 0x21, 0x20,			  /* 3d FUP.PGE ffff81fe2021: web enters */
	0x92, 0x40, 0x20, 0x00, 0x81, 0xff, 0xff, /* 40 FUP.BuffOvf */
	0xb0, 0x40, 0x20,			  /* 47 TIP, the same LIP: E5 */
	0xc1,					  /* 4a TraceSTOP */
};
#define WEB_1 0x09
#define DB    0x28
#define WEB_2 0x3d
#define SIZE  0x4b

/* The same with a damage and packets after it. */
static const u8 damage[] = {
	0xe3, 0x01,		      /* 4b */
	PSB,			      /* 4d */
	0xb0, 0x99, 0x99,	      /* 56 TIP, of which 16 bits are known */
	0x85, 0x00, 0x20, 0x40, 0x00, /* 59 FUP.PGE 402000 */
};
#define DAMAGED_SIZE (SIZE + sizeof(damage))

/* 16 ticks a bus clock, core at 16: a cycle is a tick. Counts are one too few (E6). */
static const u8 cycles[] = {
	PSB,						/* 0 */
	0x82, 0x00, 0x10, 0x00, 0x81, 0xff, 0xff, 0x15, /* 9 FUP.PGE +5 */
	0xd4, 0x10, 0x00, 0x70, 0x56, 0x34, 0x12, 0x1d, /* 11 STS +7 */
	0x76, 0x31,					/* 19 TNT +12: 13 ticks */
	0x06,						/* 1b TNT: not full, no count */
	0xb0, 0x10, 0x20, 0x8e, 0x01,			/* 1c TIP +99: 100 ticks */
	0xb0, 0x11, 0x20, 0x01,				/* 21 TIP +0: 0 or 1 */
};

static const char record[] = "{\"rtit\":1,\"vm\":\"web\",\"vcpu\":0,\"cpu\":0,\"offset\":\"0x9\","
			     "\"tsc_offset\":\"0x10\",\"core_offset\":\"0x20\"}\n"
			     "{\"rtit\":1,\"vm\":\"db\",\"vcpu\":1,\"cpu\":0,\"offset\":\"0x28\","
			     "\"tsc_offset\":\"0x11\",\"core_offset\":\"0x21\"}\n"
			     "\n"
			     "{\"rtit\":1,\"vm\":\"web\",\"vcpu\":0,\"cpu\":0,\"offset\":\"0x3d\","
			     "\"tsc_offset\":\"0x12\",\"core_offset\":\"0x22\"}\n";

static inline void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

static inline void write_all(void)
{
	u8 damaged[DAMAGED_SIZE];

	ck_assert_uint_eq(sizeof(plain), SIZE);
	memcpy(damaged, plain, SIZE);
	memcpy(damaged + SIZE, damage, sizeof(damage));
	write_file("x.cpu0.rtit", plain, SIZE);
	write_file("damaged.cpu0.rtit", damaged, sizeof(damaged));
	write_file("cycles.rtit", cycles, sizeof(cycles));
	write_text("vms.jsonl", record);
}

#endif
