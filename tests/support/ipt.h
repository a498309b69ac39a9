/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* libipt's instruction decoder, the same in all versions. */
#ifndef VMPT_TESTS_SUPPORT_IPT_H
#define VMPT_TESTS_SUPPORT_IPT_H

#include <intel-pt.h>

/*
 * The next instruction. From 2.2 on an event before it may be found only now, for which
 * pt_insn_next() returns an error: here it becomes a pending event, and @insn has size 0. 2.2 also
 * reports a mismatch where the trace has ended.
 */
static inline int ipt_insn_next(struct pt_insn_decoder *decoder, struct pt_insn *insn)
{
	const struct pt_config *config = pt_insn_get_config(decoder);
	int status = pt_insn_next(decoder, insn, sizeof(*insn));
	uint64_t at = 0;

	if (status == -pte_event_ignored) {
		insn->size = 0;
		return pts_event_pending;
	}
	if (status == -pte_bad_query && pt_insn_get_offset(decoder, &at) >= 0 &&
	    at == (uint64_t)(config->end - config->begin))
		return -pte_eos;
	return status;
}

#endif
