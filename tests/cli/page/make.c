// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Make an HTML page of made-up spans, for the test in a browser:
 * page-make FILE ROUNDS [SPANS [CPUS LINES VMS [CLOCK ZERO]]].
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cli/page/fake.h"

/* Calls: one window of vCPU 0 in the middle of @end ticks, and a graph of the first VM. */
static void add_flames(struct page *page, u64 end)
{
	static char *names[] = { "init 1",	    "main",	    "leaf",
				 "vmx_handle_exit", "</script><b>", "web01" };
	static struct page_frame frame[] = {
		{ 0, 1000, 0, 0, PAGE_FRAME_ROOT },   { 0, 1000, 1, 1, PAGE_FRAME_GUEST },
		{ 100, 300, 2, 2, PAGE_FRAME_GUEST }, { 400, 900, 3, 2, PAGE_FRAME_HOST },
		{ 500, 600, 4, 3, PAGE_FRAME_HOST },
	};
	static struct page_graph_node node[] = { { 0, 5, 1000 }, { 0, 0, 900 }, { 1, 1, 900 },
						 { 2, 2, 300 },	 { 2, 4, 200 }, { 0, 4, 100 } };
	static struct page_flames flames = {
		.name = names,
		.names = VMPT_ARRAY_SIZE(names),
		.windows = 1,
		.window = { { .frame = frame, .frames = VMPT_ARRAY_SIZE(frame), .left_out = 7 } },
		.graphs = 1,
		.timed = true,
	};
	size_t i;

	flames.graph[0] = (struct page_graph){ names[5], node, VMPT_ARRAY_SIZE(node) };
	flames.window[0].start = end / 2;
	flames.window[0].end = end / 2 + 1000;
	for (i = 0; i < VMPT_ARRAY_SIZE(frame); i++) {
		frame[i].start += end / 2;
		frame[i].end += end / 2;
	}
	page_set_flames(page, &flames);
}

int main(int argc, char **argv)
{
	static struct fake_sums sums;
	static const char *const vm[] = { "web01", "</script><img src=x onerror=alert(1)>" };
	struct page_options options = { .reason_name = fake_reason, .symbol = fake_symbol };
	struct fake_shape shape = fake_usual;
	struct page *page;
	json_t *meta;
	FILE *out;
	int ret, i;

	if (argc < 3)
		return 2;
	if (argc > 3)
		options.max_spans = (u32)strtoul(argv[3], NULL, 0);
	if (argc > 6) {
		shape.cpus = (u32)strtoul(argv[4], NULL, 0);
		shape.lines = (u32)strtoul(argv[5], NULL, 0);
		shape.vms = (u32)strtoul(argv[6], NULL, 0);
	}
	options.streams = shape.cpus;
	page = page_new(&options);
	if (!page || fake_spans(page, &shape, 1, strtoull(argv[2], NULL, 0), &sums))
		return 1;
	if (argc == 3)
		add_flames(page, sums.end);
	meta = fake_meta(&shape, &sums, "host.perf.data", vm);
	if (argc > 8)
		json_object_set_new(meta, "clock",
				    json_pack("{s:s, s:s, s:i}", "name", argv[7], "zero", argv[8],
					      "utc", 3600));
	out = fopen(argv[1], "w");
	ret = out ? page_write(page, meta, out) : -1;
	if (out && (ferror(out) | fclose(out)))
		ret = -1;
	json_decref(meta);
	page_free(page);
	printf("%llu spans, %llu ticks\n", (unsigned long long)sums.spans,
	       (unsigned long long)sums.end);
	for (i = 0; i < FAKE_REASONS; i++)
		printf("exits %llu 0x%llx %s\n",
		       (unsigned long long)sums.at_ip[0][i] + (unsigned long long)sums.at_ip[1][i],
		       (unsigned long long)fake_exits[i].ip, fake_exits[i].name);
	return ret ? 1 : 0;
}
