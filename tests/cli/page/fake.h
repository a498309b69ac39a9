/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A made-up trace for the HTML page: four CPUs, two VMs with three vCPUs that move now and then,
 * exits of a few kinds, losses. What it is made of is added up on the way, by simple means, for
 * tests to compare.
 */
#ifndef VMPT_TESTS_PAGE_FAKE_H
#define VMPT_TESTS_PAGE_FAKE_H

#include "cli/page/page.h"
#include "tests/support/support.h"

#define FAKE_CPUS    4
#define FAKE_LINES   3
#define FAKE_REASONS 5

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
	u64 host[FAKE_CPUS], guest[FAKE_CPUS], lost[FAKE_CPUS];
	u64 runs[FAKE_LINES], running[FAKE_LINES], moves;
	u64 exits[FAKE_LINES][FAKE_REASONS]; /* by line and place in fake_exits */
	u64 out[FAKE_LINES][FAKE_REASONS];   /* ticks from such an exit to the next entry */
	u64 timed[FAKE_LINES][FAKE_REASONS];
	u64 at_ip[2][FAKE_REASONS]; /* exits by VM */
};

/* Index of the VM of a line. */
unsigned int fake_vm(unsigned int line);

/*
 * Give @page the spans of @rounds runs of guests. @hz of the ticks is 2 GHz. 0, or what page_add()
 * returned.
 */
int fake_spans(struct page *page, u64 seed, u64 rounds, struct fake_sums *sums);

/* The page's facts on the trace; names as given. */
json_t *fake_meta(const struct fake_sums *sums, const char *title, const char *const vm[2]);

const char *fake_reason(const struct vmpt_exit *exit, char buf[32]);
bool fake_symbol(void *opaque, u32 vm, u64 ip, char *buf, size_t size);

#endif
