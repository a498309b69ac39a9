/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A trace against the truth by libipt's instruction decoder: it must walk exactly the
 * instructions that were executed, one after the other.
 */
#ifndef VMPT_TRACEGEN_FLOW_H
#define VMPT_TRACEGEN_FLOW_H

#include "tests/tracegen/tracegen.h"

#define FLOW_ALL_OWNERS (-3)

/*
 * @bytes hold the flow of @owner (TRACEGEN_HOST, a VM, or FLOW_ALL_OWNERS) of @s: the
 * decoder sees that owner's code only. The test fails where they differ; @name is for
 * the message.
 */
void flow_check(const char *name, const struct tracegen *g, const struct tracegen_stream *s,
		int owner, const u8 *bytes, size_t size);

#endif
