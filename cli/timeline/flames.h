/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt timeline --flames: the calls in the windows of the page, and of the whole. */
#ifndef VMPT_CLI_TIMELINE_FLAMES_H
#define VMPT_CLI_TIMELINE_FLAMES_H

#include "cli/calls/calls.h"
#include "cli/page/page.h"
#include "cli/timeline/timeline.h"

struct flames_stream;

struct timeline_flames {
	struct calls_source source; /* its options are set before */
	struct page_flames page;
	/* Of .page.window, the time out that it is about; 0: all that was chosen */
	u64 out[PAGE_WINDOWS];
	struct calls_spread spread;
	bool whole; /* --from and --to: each window is all of it */

	/* While calls are read */
	struct cli *cli;
	struct flames_stream *stream;
	struct flames_node *node;
	size_t nodes;
	struct vmpt_hash name_of;
};

/* The next span of the time line: choose windows, note entries and exits. 0, or -1: no memory. */
int timeline_flames_span(struct timeline_flames *f, const struct timeline *t,
			 const struct timeline_span *s);
/* All spans were passed: read the calls into .page. 0, or an exit code after a message. */
int timeline_flames_read(struct cli *cli, struct timeline_flames *f, u64 zero);
/* The graphs, of the tree of all calls. 0, or an exit code after a message. */
int timeline_flames_graphs(struct timeline_flames *f);
/* The number of @name; 0 if there is no memory: cli->out_of_memory is set then. */
u32 timeline_flames_name(struct timeline_flames *f, const char *name);
void timeline_flames_close(struct timeline_flames *f);

#endif
