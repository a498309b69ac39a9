/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* RTIT packets from a short text, for tests. */
#ifndef VMPT_TESTS_RTIT_WRITE_H
#define VMPT_TESTS_RTIT_WRITE_H

#include "arch/rtit-packet.h"

/* Starts as all 0. */
struct rtit_write {
	u8 data[4096];
	size_t size;
	struct vmpt_rtit_last_lip last;
};

/*
 * "PGE:102 TNT:TN PGD:105 TIP:983 FAR:7 OVF:8 PCC:9 PIP:cr3 STOP PSB", numbers in hex, LIPs
 * compressed; a PSB comes before the first.
 */
void rtit_write(struct rtit_write *b, const char *packets);

#endif
