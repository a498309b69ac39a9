/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A made-up trace for the HTML page: some CPUs (four), VMs (two) and vCPUs (six) that move now
 * and then and share CPUs, exits of a few kinds, losses. What it is made of is added up on the way,
 * by simple means, for tests to compare.
 */
#ifndef VMPT_TESTS_PAGE_FAKE_H
#define VMPT_TESTS_PAGE_FAKE_H

#include "cli/page/page.h"
#include "tests/support/support.h"

#define FAKE_CPUS    4
#define FAKE_LINES   6
#define FAKE_REASONS 5
/* At most. */
#define FAKE_ALL_CPUS  16
#define FAKE_ALL_LINES 80

struct fake_shape {
	u32 cpus, lines, vms; /* vCPUs of a VM are next to each other */
};

extern const struct fake_shape fake_usual; /* FAKE_CPUS, FAKE_LINES, two VMs */

/* Of exits: reason, source, guest's IP. */
struct fake_exit {
	u16 reason;
	u8 source;
	bool halted;
	u64 ip;
	const char *name;
};

extern const struct fake_exit fake_exits[FAKE_REASONS];

struct fake_sums {
	u64 spans, end;
	u64 host[FAKE_ALL_CPUS], guest[FAKE_ALL_CPUS], lost[FAKE_ALL_CPUS];
	u64 runs[FAKE_ALL_LINES], running[FAKE_ALL_LINES], moves;
	u64 exits[FAKE_ALL_LINES][FAKE_REASONS]; /* by line and place in fake_exits */
	/* Ticks from such an exit to the next entry: the host ran, or all of a halt. */
	u64 out[FAKE_ALL_LINES][FAKE_REASONS];
	u64 timed[FAKE_ALL_LINES][FAKE_REASONS];
	u64 waits[FAKE_ALL_LINES][FAKE_ALL_LINES]; /* likewise: the other one ran */
	u64 untraced[FAKE_ALL_LINES];		   /* likewise: a loss, or after the end */
	u64 at_ip[FAKE_ALL_LINES][FAKE_REASONS];   /* exits by VM */
};

/* Index of the VM of a line. */
unsigned int fake_vm(const struct fake_shape *shape, unsigned int line);

/*
 * Give @page the spans of @rounds runs of guests. @hz of the ticks is 2 GHz. 0, or what page_add()
 * returned.
 */
int fake_spans(struct page *page, const struct fake_shape *shape, u64 seed, u64 rounds,
	       struct fake_sums *sums);

/* The page's facts on the trace; names of VMs as given, from the third on made up. */
json_t *fake_meta(const struct fake_shape *shape, const struct fake_sums *sums, const char *title,
		  const char *const vm[2]);

const char *fake_reason(const struct vmpt_exit *exit, char buf[32]);
bool fake_symbol(void *opaque, u32 vm, u64 ip, char *buf, size_t size);

#endif
