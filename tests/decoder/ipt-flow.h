/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Flow by libipt's instruction decoder, the oracle for streams and slices. */
#ifndef VMPT_TESTS_IPT_FLOW_H
#define VMPT_TESTS_IPT_FLOW_H

#include <intel-pt.h>

#include "arch/types.h"

struct ipt_flow {
	u64 instructions;
	u64 hash;	 /* sum over all instructions of a hash of the IP: order does not matter */
	u64 ordered;	 /* the ordered hash of docs/insn.md */
	u64 errors;	 /* decode errors, each followed by a resync */
	int first_error; /* libipt's code, 0 if none */
};

/* An image from pages of 4 KiB: @addr little-endian u64 addresses, @pages in that order. */
struct pt_image *ipt_image_pages(const char *dump_path, const u8 *addr, size_t addr_size);

/* Decode the instructions of @bytes, of a processor with erratum BDM70, against @image. */
void ipt_flow_run(struct ipt_flow *flow, const u8 *bytes, size_t size, struct pt_image *image);

/* Decode all packets of @bytes from the first PSB on: 0, or libipt's first error. */
int ipt_packets_check(const u8 *bytes, size_t size, u64 *packets);

#endif
