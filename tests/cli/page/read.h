/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Reads an HTML page of vmpt timeline back, by docs/page.md and not by the code that wrote it. */
#ifndef VMPT_TESTS_PAGE_READ_H
#define VMPT_TESTS_PAGE_READ_H

#include <jansson.h>

#include "tests/support/support.h"

/* Of a vCPU: five, 250 reasons, and by VM (the last: others) who had its CPU. */
#define READ_WAITS  255
#define READ_STATES (READ_WAITS + 2049)
#define READ_LANES  8

/* Sums of a lane's buckets by state. */
struct read_lane {
	u64 ticks[READ_STATES], count[READ_STATES];
};

struct read_hist {
	u32 line, reason;
	u64 count, timed, ticks, waited, max, in_bins;
};

struct read_page {
	char *html;
	size_t size;
	json_t *meta;
	u8 *data;
	size_t data_size, at;
	u64 cpu_width, vcpu_width;
	size_t cpus, lines, hists;
	struct read_lane cpu[READ_LANES], line[READ_LANES];
	struct read_hist hist[64];
	/* Spans, columns as in the page. */
	size_t spans;
	u64 *kind, *stream, *flags, *length, *gap, *waited, *unknown, *start;
};

/* @html: the file, taken. The test fails if it is not as it should be. */
void read_page(struct read_page *page, char *html, size_t size);
void read_page_free(struct read_page *page);

#endif
