/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A program of a few bytes and its truth, word by word, for tests of what reads truths. */
#ifndef VMPT_TESTS_FLOW_PROGRAM_H
#define VMPT_TESTS_FLOW_PROGRAM_H

#include "model/truth-format.h"
#include "tests/support/support.h"

/*
 *	401000	90		start: nop
 *	401001	75 0d		jne int
 *	401003	e8 f8 00 00 00	call function
 *	401008	f3 a4		rep: rep movsb
 *	40100a	ff e0		jmp *%rax, to int
 *	401010	cd 80		int: int $0x80
 *	401012	eb ec		back: jmp start
 *	401100	31 c0		function: xor %eax,%eax
 *	401102	c3		ret
 *	402000	48 cf		handler: iretq
 */
enum { START, CALL, REP, JUMP, INT, BACK, FUNCTION, HANDLER, OTHER, BLOCKS };

#define START_IP    0x401000u
#define CALL_IP	    0x401003u
#define REP_IP	    0x401008u
#define JUMP_IP	    0x40100au
#define INT_IP	    0x401010u
#define BACK_IP	    0x401012u
#define FUNCTION_IP 0x401100u
#define HANDLER_IP  0x402000u

struct code {
	u64 ip;
	u32 insns, size;
	u8 bytes[24]; /* lengths, then code */
};

static const struct code blocks[BLOCKS] = {
	[START] = { START_IP, 2, 3, { 1, 2, 0x90, 0x75, 0x0d } },
	[CALL] = { CALL_IP, 1, 5, { 5, 0xe8, 0xf8, 0, 0, 0 } },
	[REP] = { REP_IP, 1, 2, { 2, 0xf3, 0xa4 } },
	[JUMP] = { JUMP_IP, 1, 2, { 2, 0xff, 0xe0 } },
	[INT] = { INT_IP, 1, 2, { 2, 0xcd, 0x80 } },
	[BACK] = { BACK_IP, 1, 2, { 2, 0xeb, 0xec } },
	[FUNCTION] = { FUNCTION_IP, 2, 3, { 2, 1, 0x31, 0xc0, 0xc3 } },
	[HANDLER] = { HANDLER_IP, 1, 2, { 2, 0x48, 0xcf } },
	/* Later in place of BACK: two NOPs and a jump to handler. */
	[OTHER] = { BACK_IP, 3, 7, { 1, 1, 5, 0x90, 0x90, 0xe9, 0xe7, 0x0f, 0, 0 } },
};

static struct {
	u32 words[1 << 16];
	size_t n;
} truth;

static inline void put(u32 word)
{
	ck_assert_uint_lt(truth.n, VMPT_ARRAY_SIZE(truth.words));
	truth.words[truth.n++] = word;
}

static inline void put64(u64 v)
{
	put((u32)v);
	put((u32)(v >> 32));
}

static inline void define(u32 id, const struct code *code)
{
	u32 i, n = (code->insns + code->size + 3) / 4, w;

	put(TRUTH_DEFINE);
	put(id);
	put64(code->ip);
	put(code->insns);
	put(code->size);
	for (i = 0; i < n; i++) {
		memcpy(&w, code->bytes + 4 * i, 4);
		put(w);
	}
}

static inline void event(u64 from, u64 to)
{
	put(TRUTH_EVENT);
	put64(from);
	put64(to);
}

static inline void place(u32 what, u64 ip)
{
	put(what);
	put64(ip);
}

static inline void start(void)
{
	u32 id;

	truth.n = 0;
	put(0x54504d56); /* "VMPT" */
	put(0x31555254); /* "TRU1" */
	for (id = 0; id < OTHER; id++)
		define(id, &blocks[id]);
}

#endif
