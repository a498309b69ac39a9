// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Folded stacks, as FlameGraph and its relatives read them: a line for each stack, its frames from
 * the outermost on with ";" between them, a blank and how much it is. Frames are bare names.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/hot/hot.h"
#include "util/array.h"

struct line {
	char *text;
	size_t room;
};

/* A ";" in a name would begin a frame. Returns the length with @name added at @at, or 0. */
static size_t put(struct line *line, size_t at, const char *name)
{
	const size_t n = strlen(name);
	char *to;

	if (vmpt_reserve(&line->text, &line->room, at + n + 2))
		return 0;
	if (at)
		line->text[at++] = ';';
	to = memcpy(line->text + at, name, n + 1);
	while ((to = strchr(to, ';')) != NULL)
		*to = ':';
	return at + n;
}

/* Where the line of each depth ends. */
struct ends {
	size_t *at;
	size_t count;
};

static int enter(const struct hot_tree *t, u32 i, struct line *line, struct ends *ends)
{
	const struct hot_node *n = &t->node[i];
	size_t at = ends->count ? ends->at[ends->count - 1] : 0;

	if (n->parent) {
		at = put(line, at, t->function[n->what].name);
	} else {
		at = put(line, 0, t->process[n->what].vm);
		at = at ? put(line, at, t->process[n->what].name) : 0;
	}
	if (!at || vmpt_grow(&ends->at, ends->count))
		return -VMPT_E_NOMEM;
	ends->at[ends->count++] = at;
	return 0;
}

int hot_folded(const struct hot_tree *t, unsigned int by, FILE *out)
{
	struct line line = { 0 };
	struct ends ends = { 0 };
	bool entered = true;
	int ret = 0;
	u32 i = 0;

	while (!ret) {
		entered = hot_step(t, &i, entered);
		if (!entered && !i)
			break;
		if (!entered) {
			ends.count--;
			continue;
		}
		ret = enter(t, i, &line, &ends);
		if (!ret && t->node[i].self[by])
			fprintf(out, "%.*s %llu\n", (int)ends.at[ends.count - 1], line.text,
				(unsigned long long)hot_value(t, by, t->node[i].self[by]));
	}
	free(line.text);
	free(ends.at);
	return ret;
}

bool hot_is_folded(const char *head, size_t size)
{
	bool stack = false, digits = false;
	char last = '\0';
	size_t i;

	for (i = 0; i < size && head[i] != '\n'; last = head[i++]) {
		const bool digit = head[i] >= '0' && head[i] <= '9';

		stack |= head[i] == ';';
		digits = digit && (digits || last == ' ');
	}
	return i < size && stack && digits;
}
