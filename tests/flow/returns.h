/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Where compressed RETs go, by the manual's text (SDM 3 33.4.2.2): every near RET takes the
 * youngest address off the decoder's stack. libipt leaves its own stack alone at a RET that was not
 * compressed, so it is watched; where a compressed RET takes it elsewhere, it is given jumps to the
 * right place for code.
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
	/* Taken off the manual's by RETs that went elsewhere; level: the addresses left then. */
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

/* Both stacks are empty, as libipt's is where it begins. */
void returns_init(struct returns *r);
/* No CALL before this place has a compressed RET behind it. */
void returns_forget(struct returns *r);

/* Behind a near CALL. */
void returns_call(struct returns *r, const struct pt_insn *insn);
/* Behind a near RET. False: it is compressed, and there is no CALL. */
bool returns_ret(struct returns *r, const struct pt_insn *insn, bool compressed);
/*
 * Behind returns_ret() of a compressed RET that went to @to, and that is not r->to. The processor
 * has one stack for all owners: another one's RETs may have taken addresses off it, or its CALLs
 * put some on, which then went at RETs of this owner. Puts the stack in order: without what is
 * above @to, or with what was taken off it in another's stead. False: neither explains @to.
 */
bool returns_shared(struct returns *r, u64 to);

/* The code at @ip of a jump on the way on which libipt is led. 0: it is not there. */
int returns_code(const struct returns *r, u64 ip, u8 *buf, size_t size);
/* Whether @insn was such a jump; libipt is behind it. */
bool returns_step(struct returns *r, const struct pt_insn *insn);

#endif
