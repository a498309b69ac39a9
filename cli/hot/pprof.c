// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * pprof's format. Messages of protobuf that follow each other are one message with all of their
 * lists, so each sample is packed and compressed by itself: memory does not grow with the tree.
 */
#include <stdlib.h>
#include <zlib.h>

#include "cli/hot/hot.h"
#include "pprof.pb-c.h" /* made of pprof.proto */
#include "util/array.h"

#define CHUNK (64u << 10)

/* Strings: these, then names and modules of functions, then VMs and names of processes. */
enum { NONE, INSTRUCTIONS, COUNT, TIME, NANOSECONDS, TICKS, VM, PROCESS, MARK, STRINGS };

static const char *const strings[STRINGS] = {
	[NONE] = "",	 [INSTRUCTIONS] = "instructions", [COUNT] = "count",
	[TIME] = "time", [NANOSECONDS] = "nanoseconds",	  [TICKS] = "ticks",
	[VM] = "vm",	 [PROCESS] = "process",		  [MARK] = HOT_PPROF_MARK,
};

struct writer {
	const struct hot_tree *t;
	FILE *out;
	z_stream zip;
	u8 *packed; /* a message */
	size_t room;
	u64 *stack; /* locations, the outermost first */
	size_t depth;
	u64 *turned; /* the other way around */
	size_t turned_room;
	int err;
};

static void deflate_all(struct writer *w, int flush)
{
	u8 buf[CHUNK] = { 0 };
	int ret;

	do {
		w->zip.next_out = buf;
		w->zip.avail_out = sizeof(buf);
		ret = deflate(&w->zip, flush);
		fwrite(buf, 1, sizeof(buf) - w->zip.avail_out, w->out);
	} while (ret == Z_OK && (w->zip.avail_in || !w->zip.avail_out || flush == Z_FINISH));
}

/* Errors of the file are seen where it is closed. */
static void put(struct writer *w, const Pprof__Profile *part)
{
	size_t size = pprof__profile__get_packed_size(part);

	if (w->err)
		return;
	w->err = vmpt_reserve(&w->packed, &w->room, size);
	if (w->err)
		return;
	pprof__profile__pack(part, w->packed);
	w->zip.next_in = w->packed;
	w->zip.avail_in = (uInt)size;
	deflate_all(w, Z_NO_FLUSH);
}

/* protobuf-c does not take const strings; it only reads them. */
static void put_string(struct writer *w, const char *text)
{
	Pprof__Profile part = PPROF__PROFILE__INIT;
	char *string = (char *)(uintptr_t)text;

	part.n_string_table = 1;
	part.string_table = &string;
	put(w, &part);
}

static void put_strings(struct writer *w)
{
	const struct hot_tree *t = w->t;
	size_t i;

	for (i = 0; i < STRINGS; i++)
		put_string(w, strings[i]);
	for (i = 0; i < t->functions; i++) {
		put_string(w, t->function[i].name);
		put_string(w, t->function[i].module);
	}
	for (i = 0; i < t->processes; i++) {
		put_string(w, t->process[i].vm);
		put_string(w, t->process[i].name);
	}
}

static void put_types(struct writer *w, unsigned int by)
{
	Pprof__ValueType counts = PPROF__VALUE_TYPE__INIT, times = PPROF__VALUE_TYPE__INIT;
	Pprof__ValueType *types[] = { &counts, &times };
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int64_t comment = MARK;

	counts.type = INSTRUCTIONS;
	counts.unit = COUNT;
	times.type = TIME;
	times.unit = w->t->hertz > 0 ? NANOSECONDS : TICKS;
	part.n_sample_type = w->t->timed ? 2 : 1;
	part.sample_type = types;
	part.default_sample_type = by == HOT_TIME ? TIME : INSTRUCTIONS;
	part.n_comment = 1;
	part.comment = &comment;
	put(w, &part);
}

static void put_function(struct writer *w, size_t i)
{
	Pprof__Function function = PPROF__FUNCTION__INIT, *functions[] = { &function };
	Pprof__Location location = PPROF__LOCATION__INIT, *locations[] = { &location };
	Pprof__Line line = PPROF__LINE__INIT, *lines[] = { &line };
	Pprof__Profile part = PPROF__PROFILE__INIT;

	function.id = location.id = line.function_id = i + 1;
	function.name = function.system_name = (int64_t)(STRINGS + 2 * i);
	function.filename = function.name + 1;
	location.n_line = 1;
	location.line = lines;
	part.n_function = part.n_location = 1;
	part.function = functions;
	part.location = locations;
	put(w, &part);
}

/* The stack without the root, which is no frame; returns its depth, or 0: no memory. What a process
 * did in no frame is [unknown]. */
static size_t turn(struct writer *w)
{
	const size_t depth = w->depth > 1 ? w->depth - 1 : 1;
	size_t i;

	w->err = vmpt_reserve(&w->turned, &w->turned_room, depth);
	for (i = 0; i < depth && !w->err; i++)
		w->turned[i] = w->stack[w->depth - 1 - i];
	return w->err ? 0 : depth;
}

static void put_sample(struct writer *w, const struct hot_node *n, u32 process)
{
	Pprof__Label vm = PPROF__LABEL__INIT, name = PPROF__LABEL__INIT;
	Pprof__Label *labels[] = { &vm, &name };
	Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples[] = { &sample };
	Pprof__Profile part = PPROF__PROFILE__INIT;
	int64_t value[HOT_BYS];
	unsigned int by;

	sample.n_location_id = turn(w);
	if (w->err)
		return;
	for (by = 0; by < HOT_BYS; by++)
		value[by] = (int64_t)hot_value(w->t, by, n->self[by]);
	vm.key = VM;
	vm.str = (int64_t)(STRINGS + 2 * w->t->functions + 2 * (size_t)process);
	name.key = PROCESS;
	name.str = vm.str + 1;
	sample.location_id = w->turned;
	sample.n_value = w->t->timed ? 2 : 1;
	sample.value = value;
	sample.n_label = 2;
	sample.label = labels;
	part.n_sample = 1;
	part.sample = samples;
	put(w, &part);
}

static void put_samples(struct writer *w)
{
	const struct hot_tree *t = w->t;
	bool entered = true;
	u32 i = 0, process = 0;

	while (!w->err) {
		entered = hot_step(t, &i, entered);
		if (!entered && !i)
			break;
		if (!entered) {
			w->depth--;
			continue;
		}
		if (!t->node[i].parent)
			process = t->node[i].what;
		w->err = vmpt_grow(&w->stack, w->depth);
		if (w->err)
			break;
		w->stack[w->depth++] = t->node[i].parent ? t->node[i].what + 1 : 1;
		if (t->node[i].self[HOT_INSTRUCTIONS] || t->node[i].self[HOT_TIME])
			put_sample(w, &t->node[i], process);
	}
}

int hot_pprof(const struct hot_tree *t, unsigned int by, FILE *out)
{
	struct writer w = { .t = t, .out = out };
	Bytef comment[] = HOT_PPROF_MARK;
	gz_header header = { .comment = comment, .os = 255 };
	size_t i;

	if (deflateInit2(&w.zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -VMPT_E_NOMEM;
	deflateSetHeader(&w.zip, &header);
	put_types(&w, by);
	put_strings(&w);
	for (i = 0; i < t->functions; i++)
		put_function(&w, i);
	put_samples(&w);
	if (!w.err)
		deflate_all(&w, Z_FINISH);
	deflateEnd(&w.zip);
	free(w.packed);
	free(w.stack);
	free(w.turned);
	return w.err;
}
