/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Targets of compressed RETs by the manual's text (SDM 3 33.4.2.2): every near RET pops the
 * youngest address of the decoder's stack. libipt does not change its stack at a RET that is not
 * compressed, so its stack is tracked; where a compressed RET takes it elsewhere, it is given jumps
 * to the right place as code.
 */
#ifndef VMPT_TESTS_RETURNS_H
#define VMPT_TESTS_RETURNS_H

#include <intel-pt.h>

#include "arch/types.h"

#define RETURNS_DEPTH 64u
#define RETURNS_TAKEN 64u

struct returns_stack {
	u64 ip[RETURNS_DEPTH];
	unsigned int top, depth;
};

struct returns {
	struct returns_stack manual, libipt;
	/*
	 * Popped from the manual's stack by RETs that went elsewhere; level: the addresses left
	 * then.
	 */
	struct {
		u64 ip;
		unsigned int level;
	} taken[RETURNS_TAKEN];
	unsigned int n_taken;
	bool called; /* the last RET had an address on the manual's stack: */
	bool leads;  /* libipt is led */
	u64 at, to;
	u8 jump; /* bytes of a jump there */
};

/* Both stacks are empty, as is libipt's where it begins. */
void returns_init(struct returns *r);
/* No CALL before this place has a compressed RET after it. */
void returns_forget(struct returns *r);

/* After a near CALL. */
void returns_call(struct returns *r, const struct pt_insn *insn);
/* After a near RET. False: it is compressed, and there is no CALL. */
bool returns_ret(struct returns *r, const struct pt_insn *insn, bool compressed);
/*
 * After returns_ret() of a compressed RET that went to @to instead of r->to. The processor has one
 * stack for all owners: RETs of another one may have popped addresses, or its CALLs pushed some,
 * which were then popped by RETs of this owner. Corrects the stack: without the addresses above
 * @to, or with those popped in another's place. False: neither explains @to.
 */
bool returns_shared(struct returns *r, u64 to);

/* The code at @ip of a jump on the path on which libipt is led. 0: none. */
int returns_code(const struct returns *r, u64 ip, u8 *buf, size_t size);
/* Whether @insn was such a jump, which libipt has passed. */
bool returns_step(struct returns *r, const struct pt_insn *insn);

#endif
