// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt timeline --flames: a flame graph of each VM, of the tree of all calls. */
#include <stdlib.h>
#include <string.h>

#include "cli/timeline/flames.h"
#include "util/array.h"

/* A node of all graphs: those with one parent and name are one. */
struct node {
	u32 parent, name;
	u64 total;
	u32 kept; /* number in its graph */
};

struct graphs {
	struct timeline_flames *f;
	struct node *node;
	size_t nodes;
	struct vmpt_hash of;
	u32 *to; /* by number in the tree of calls */
};

/* Not kept; no memory. */
#define NONE (~0u)

static u32 find(struct graphs *g, u32 parent, u32 name)
{
	const u64 hash = vmpt_mix64((u64)parent << 32 | name);
	u32 i = vmpt_hash_find(&g->of, hash, k,
			       g->node[k].parent == parent && g->node[k].name == name);

	if (i != VMPT_HASH_NONE)
		return i;
	if (vmpt_grow(&g->node, g->nodes) || vmpt_hash_add(&g->of, hash, (u32)g->nodes))
		return NONE;
	g->node[g->nodes] = (struct node){ .parent = parent, .name = name };
	return (u32)g->nodes++;
}

/* All of a VM, then its process. */
static u32 find_root(struct graphs *g, const struct vmpt_call_node *root)
{
	struct calls_source *s = &g->f->source;
	const u32 number = calls_root_process(s, root);
	const struct calls_process *p;
	u32 vm;

	if (number >= s->processes)
		return NONE;
	p = &s->process[number];
	if (!calls_wanted(s, number))
		return 0;
	vm = find(g, 0, timeline_flames_name(g->f, s->vm[p->vm].name));
	return vm == NONE ? NONE : find(g, vm, timeline_flames_name(g->f, p->name));
}

/* The tree, by names; a node comes after its parent in both. 0, or -1. */
static int merge(struct graphs *g)
{
	struct calls_source *s = &g->f->source;
	const u32 n = vmpt_calls_nodes(s->calls);
	struct vmpt_call_node node;
	u32 i, function;

	g->to = calloc(n + 1ULL, sizeof(*g->to));
	if (!g->to || find(g, NONE, 0) == NONE)
		return -1;
	for (i = 1; i < n; i++) {
		vmpt_calls_node(s->calls, i, &node);
		if (node.kind == VMPT_CALL_ROOT) {
			g->to[i] = find_root(g, &node);
		} else if (g->to[node.parent]) {
			function = calls_function(s, &node);
			if (function >= s->functions)
				return -1;
			g->to[i] = find(g, g->to[node.parent],
					timeline_flames_name(g->f, s->function[function].text));
		}
		if (g->to[i] == NONE)
			return -1;
		if (g->to[i])
			g->node[g->to[i]].total += g->f->page.timed ? node.time : node.instructions;
	}
	for (i = (u32)g->nodes; i-- > 1;)
		g->node[g->node[i].parent].total += g->node[i].total;
	return 0;
}

/* Nodes of the graph of @root that are at least @least. */
static size_t mark(struct graphs *g, u32 root, u64 least)
{
	size_t n = 0;
	u32 i;

	for (i = root; i < g->nodes; i++) {
		struct node *node = &g->node[i];

		node->kept = NONE;
		if (node->total < least ||
		    (i != root && (node->parent < root || g->node[node->parent].kept == NONE)))
			continue;
		node->kept = (u32)n++;
	}
	return n;
}

/* The graph of a VM, without what is too small to be seen. */
static int add_graph(struct graphs *g, u32 root)
{
	struct page_flames *page = &g->f->page;
	struct page_graph *graph = &page->graph[page->graphs];
	u64 least = g->node[root].total / 4000 + 1;
	u32 i;

	while ((graph->nodes = mark(g, root, least)) > PAGE_NODES)
		least += least / 4 + 1;
	graph->node = calloc(graph->nodes + 1, sizeof(*graph->node));
	graph->name = strdup(page->name[g->node[root].name]);
	page->graphs++;
	if (!graph->node || !graph->name)
		return -1;
	for (i = root; i < g->nodes; i++) {
		const struct node *n = &g->node[i];

		if (n->kept != NONE)
			graph->node[n->kept] = (struct page_graph_node){
				.parent = i == root ? 0 : g->node[n->parent].kept,
				.name = n->name,
				.total = n->total,
			};
	}
	return 0;
}

int timeline_flames_graphs(struct timeline_flames *f)
{
	struct graphs g = { .f = f };
	int err;
	u32 i;

	f->page.timed = f->source.t.timed;
	err = merge(&g);
	for (i = 1; i < g.nodes && !err && f->page.graphs < PAGE_GRAPHS; i++)
		if (!g.node[i].parent && g.node[i].total)
			err = add_graph(&g, i);
	free(g.node);
	free(g.to);
	vmpt_hash_free(&g.of);
	return err || f->cli->out_of_memory ? cli_no_memory(f->cli) : CLI_OK;
}
