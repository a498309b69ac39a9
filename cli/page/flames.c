// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Flame charts and flame graphs of the page: the names as JSON, frames and nodes packed. What there
 * is of them is limited by who adds them (PAGE_FRAMES, PAGE_NODES).
 */
#include "cli/page/parts.h"

int page_flames_json(const struct page_flames *flames, u64 begin, json_t *meta)
{
	json_t *names = json_array(), *windows = json_array(), *graphs = json_array();
	json_t *all =
		json_pack("{s:s, s:o, s:o, s:o}", "unit", flames->timed ? "ticks" : "instructions",
			  "names", names, "windows", windows, "graphs", graphs);
	size_t i;
	int ret = all ? 0 : -1;

	for (i = 0; i < flames->names && !ret; i++)
		ret |= json_array_append_new(names, page_string(flames->name[i]));
	for (i = 0; i < flames->windows && !ret; i++) {
		const struct page_window *w = &flames->window[i];

		ret |= json_array_append_new(windows, json_pack("{s:I, s:I, s:I, s:I, s:I}", "line",
								(json_int_t)w->line, "stream",
								(json_int_t)w->stream, "from",
								(json_int_t)(w->start - begin),
								"to", (json_int_t)(w->end - begin),
								"left", (json_int_t)w->left_out));
	}
	for (i = 0; i < flames->graphs && !ret; i++)
		ret |= json_array_append_new(
			graphs, json_pack("{s:o}", "name", page_string(flames->graph[i].name)));
	return ret | json_object_set_new(meta, "flames", all) ? -1 : 0;
}

void page_flames_put(const struct page_flames *flames, struct page_bytes *bytes)
{
	size_t i, k;

	for (i = 0; i < flames->windows; i++) {
		const struct page_window *w = &flames->window[i];

		page_put(bytes, w->frames);
		for (k = 0; k < w->frames; k++) {
			const struct page_frame *f = &w->frame[k];

			page_put_step(bytes, k ? f[-1].start : w->start, f->start);
			page_put(bytes, f->end - f->start);
			page_put(bytes, f->depth);
			page_put(bytes, f->name);
			page_put(bytes, f->kind);
		}
	}
	for (i = 0; i < flames->graphs; i++) {
		const struct page_graph *g = &flames->graph[i];

		page_put(bytes, g->nodes);
		for (k = 0; k < g->nodes; k++) {
			page_put(bytes, k ? k - g->node[k].parent : 0);
			page_put(bytes, g->node[k].name);
			page_put(bytes, g->node[k].total);
		}
	}
}
