/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A PT event of the host's perf on this thread, kernel and user.
 */
#ifndef HOST_PT_H
#define HOST_PT_H

#include "arch/types.h"

struct host_pt {
	int fd;
	void *base; /* struct perf_event_mmap_page */
	void *aux;
	size_t aux_size;
};

/* Opens it, disabled. Returns 0 or an errno. aux_pages: a power of two. */
int host_pt_open(struct host_pt *pt, size_t aux_pages);
void host_pt_enable(struct host_pt *pt, bool on);
/* Discards what was recorded, to make room; returns how many bytes it was. */
u64 host_pt_drain(struct host_pt *pt);
/* How many bytes perf has put into its buffer since it was opened. */
u64 host_pt_head(const struct host_pt *pt);
/* Is perf's buffer full? Then perf has stopped the trace. */
bool host_pt_full(const struct host_pt *pt);
void host_pt_close(struct host_pt *pt);

/* An MSR of this processor, through /dev/cpu/0/msr. Returns 0 or an errno. */
int host_rdmsr(u32 index, u64 *value);
int host_wrmsr(u32 index, u64 value);

/* Turns this processor's PT off and resets its registers: no event may be open. */
void host_pt_reset(void);

#endif
