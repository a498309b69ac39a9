// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * speedscope's file format (https://www.speedscope.app/file-format-schema.json), evented: a profile
 * for each process, in which each stack is one span as long as what it counts. So the file grows
 * with the tree, not with the depth of each stack.
 */
#include "cli/hot/hot.h"

/* A JSON string, with what precedes it. */
static void put_string(struct cli *cli, FILE *out, const char *before, const char *text)
{
	json_t *string = json_string(text);

	fputs(before, out);
	/* Errors of the file are seen where it is closed. */
	if (!string || (json_dumpf(string, out, JSON_ENCODE_ANY) && !ferror(out)))
		cli->out_of_memory = true;
	json_decref(string);
}

static void put_frames(struct cli *cli, const struct hot_tree *t, FILE *out)
{
	size_t i;

	fputs("\"shared\":{\"frames\":[", out);
	for (i = 0; i < t->functions; i++) {
		put_string(cli, out, i ? ",\n{\"name\":" : "\n{\"name\":", t->function[i].name);
		if (*t->function[i].module)
			put_string(cli, out, ",\"file\":", t->function[i].module);
		fputs("}", out);
	}
	fputs("]}", out);
}

/* A profile that is being written. */
struct events {
	const struct hot_tree *t;
	FILE *out;
	unsigned int by;
	u64 at; /* not in its unit yet: rounded once */
	bool any;
};

static void put_event(struct events *e, char type, u32 frame)
{
	fprintf(e->out, "%s\n{\"type\":\"%c\",\"frame\":%u,\"at\":%llu}", e->any ? "," : "", type,
		frame, (unsigned long long)hot_value(e->t, e->by, e->at));
	e->any = true;
}

static void enter(struct events *e, u32 i)
{
	const struct hot_node *n = &e->t->node[i];
	const u32 frame = n->parent ? n->what : 0;

	/* What a process did in no frame is [unknown]. */
	if (n->parent || n->self[e->by])
		put_event(e, 'O', frame);
	e->at += n->self[e->by];
	if (!n->parent && n->self[e->by])
		put_event(e, 'C', frame);
}

static void put_root(struct cli *cli, const struct hot_tree *t, unsigned int by, u32 root,
		     FILE *out)
{
	const struct hot_process *p = &t->process[t->node[root].what];
	struct events e = { .t = t, .out = out, .by = by };
	char name[2 * CLI_WHO];
	bool entered = true;
	u32 i = root;

	snprintf(name, sizeof(name), "%s: %s", p->vm, p->name);
	put_string(cli, out, "{\"type\":\"evented\",\"name\":", name);
	fprintf(out, ",\"unit\":\"%s\",\"startValue\":0,\"events\":[",
		by == HOT_TIME && t->hertz > 0 ? "nanoseconds" : "none");
	enter(&e, root);
	for (;;) {
		entered = hot_step(t, &i, entered);
		if (entered) {
			enter(&e, i);
			continue;
		}
		if (i == root)
			break;
		put_event(&e, 'C', t->node[i].what);
	}
	fprintf(out, "],\"endValue\":%llu}", (unsigned long long)hot_value(t, by, e.at));
}

void hot_speedscope(struct cli *cli, const struct hot_tree *t, unsigned int by, FILE *out)
{
	bool first = true;
	u32 root;

	fputs("{" HOT_SPEEDSCOPE_MARK VMPT_VERSION "\",\n"
	      "\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n",
	      out);
	put_string(cli, out, "\"name\":", cli->files ? cli->file[0] : "vmpt");
	fputs(",\"activeProfileIndex\":0,\n", out);
	put_frames(cli, t, out);
	fputs(",\n\"profiles\":[", out);
	for (root = t->first[0]; root; root = t->next[root]) {
		if (!t->first[root] && !t->node[root].self[by])
			continue;
		fputs(first ? "\n" : ",\n", out);
		first = false;
		put_root(cli, t, by, root, out);
	}
	fputs("]}\n", out);
}
