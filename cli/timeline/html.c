// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt timeline --html: the sink that makes the HTML page (docs/page.md), and the page's notes on
 * the trace as a whole: files, clock, losses, and contradictions.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/page/page.h"
#include "cli/timeline/flames.h"
#include "cli/timeline/internal.h"

struct timeline_page {
	struct cli *cli;
	struct cli_file out;
	struct page *page;
	json_t *notes;
	timeline_page_symbol *symbol;
	void *symbol_opaque;
	bool by_bytes;			/* the trace has no times at all */
	struct timeline_flames *flames; /* NULL: none */
	json_t *meta;
	u64 zero;
	char **vm; /* names, when the time line is gone */
	size_t vms;
};

static void note(struct timeline_page *p, const char *level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void note(struct timeline_page *p, const char *level, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;
	int ret;

	va_start(args, fmt);
	ret = vasprintf(&text, fmt, args);
	va_end(args);
	if (ret < 0) {
		p->cli->out_of_memory = true;
		return;
	}
	cli_json_add(p->cli, p->notes,
		     json_pack("{s:s, s:o}", "level", level, "text", page_string(text)));
	free(text);
}

static bool find_symbol(void *opaque, u32 vm, u64 ip, char *buf, size_t size)
{
	struct timeline_page *p = opaque;

	return p->symbol && vm < p->vms && p->symbol(p->symbol_opaque, p->vm[vm], ip, buf, size);
}

void timeline_page_symbols(struct timeline_page *page, timeline_page_symbol *symbol, void *opaque)
{
	page->symbol = symbol;
	page->symbol_opaque = opaque;
}

/* The page also shows the warnings. */
static void note_warnings(struct timeline_page *p)
{
	size_t i;

	for (i = 0; i < json_array_size(p->cli->warnings); i++)
		note(p, "warning", "%s", json_string_value(json_array_get(p->cli->warnings, i)));
}

static void note_clocks(struct timeline_page *p, const struct timeline *t)
{
	if (vmpt_clocks_rates(t->clocks)->found)
		note(p, "note",
		     "the ratio of TSC and crystal clock, or MTCFreq, was found from the packets");
}

/* --time: the page counts from the start. */
static void note_start(struct timeline_page *p, const struct timeline *t)
{
	char buf[CLI_WHEN];

	if (t->timed && t->times.clock != CLI_WHEN_START)
		note(p, "note", "time 0 is %s", cli_when_whole(&t->times, t->zero, buf));
}

static void note_vcpus(struct timeline_page *p, const struct timeline *t)
{
	u64 guesses = 0;
	size_t i;

	for (i = 0; i < t->vcpus; i++)
		guesses += t->vcpu[i].totals.guessed;
	if (guesses)
		note(p, "note", "the reasons of %llu exits are guesses, marked with ?",
		     (unsigned long long)guesses);
}

static const char *base_text(const struct timeline *t, char *buf, size_t len)
{
	switch (vmpt_clocks_base(t->clocks)) {
	case VMPT_BASE_HOST:
		return "host TSC";
	case VMPT_BASE_GUEST:
		snprintf(buf, len, "TSC of guest VMCS %llx: no other is known",
			 (unsigned long long)vmpt_clocks_base_vmcs(t->clocks));
		return buf;
	default:
		return "no TSC packet";
	}
}

/* The command line, to make a page of a shorter time. */
static json_t *command_json(const struct timeline_page *p)
{
	char *text = NULL;
	json_t *string;

	if (asprintf(&text, "vmpt timeline --html FILE %s%s", p->cli->file[0],
		     p->cli->files > 1 ? " ..." : "") < 0)
		return NULL;
	string = page_string(text);
	free(text);
	return string;
}

/* Short names keep the page small. */
static json_t *name_json(const char *name)
{
	char buf[80];

	snprintf(buf, sizeof(buf), "%s", name);
	return page_string(buf);
}

static json_t *lists_json(struct timeline_page *p, const struct timeline *t, json_t *meta)
{
	json_t *streams = json_array(), *vms = json_array(), *lines = json_array();
	char name[32];
	size_t i;

	for (i = 0; i < t->cli->streams; i++)
		cli_json_add(p->cli, streams,
			     json_pack("{s:o}", "name",
				       page_string(cli_stream_name(t->cli->stream[i], name))));
	for (i = 0; i < t->vms && i < PAGE_LINES; i++)
		cli_json_add(p->cli, vms, json_pack("{s:o}", "name", name_json(t->vm[i].name)));
	for (i = 0; i < t->vcpus && i < PAGE_LINES; i++) {
		json_t *line = json_pack("{s:o, s:I}", "name", name_json(t->vcpu[i].name), "vm",
					 (json_int_t)t->vcpu[i].vm);

		if (!t->vcpu[i].is_any)
			cli_json_hex(p->cli, line, "vmcs", t->vcpu[i].vmcs);
		cli_json_add(p->cli, lines, line);
	}
	cli_json_set(p->cli, meta, "streams", streams);
	cli_json_set(p->cli, meta, "vms", vms);
	cli_json_set(p->cli, meta, "lines", lines);
	return meta;
}

static json_t *meta_json(struct timeline_page *p, const struct timeline *t)
{
	json_t *meta = json_object(), *totals = json_object();
	u64 exits = 0, losses = 0;
	char buf[80];
	size_t i;

	for (i = 0; i < t->vcpus; i++)
		exits += t->vcpu[i].totals.exits;
	for (i = 0; i < t->cli->streams; i++)
		losses += t->cpu[i].losses;
	cli_json_number(p->cli, totals, "exits", exits);
	cli_json_number(p->cli, totals, "losses", losses);
	cli_json_set(p->cli, meta, "totals", totals);
	snprintf(buf, sizeof(buf), " and %d more", p->cli->files - 1);
	cli_json_set(p->cli, meta, "title", page_string(p->cli->file[0]));
	if (p->cli->files > 1)
		cli_json_string(p->cli, meta, "more", buf);
	cli_json_set(p->cli, meta, "command", command_json(p));
	cli_json_hex(p->cli, meta, "zero", t->zero == VMPT_TIME_NONE ? 0 : t->zero);
	cli_json_set(p->cli, meta, "hz", json_real(t->hz > 0 && t->hz < 1e15 ? t->hz : 0));
	cli_json_string(p->cli, meta, "base", base_text(t, buf, sizeof(buf)));
	cli_json_string(p->cli, meta, "unit", p->by_bytes ? "bytes" : "ticks");
	note_warnings(p);
	note_clocks(p, t);
	note_start(p, t);
	note_vcpus(p, t);
	cli_json_set(p->cli, meta, "notes", json_incref(p->notes));
	return lists_json(p, t, meta);
}

/* Without times, the bytes of each stream at least show the order. */
static int page_sink_begin(void *opaque, const struct timeline *t)
{
	struct timeline_page *p = opaque;

	p->zero = t->zero;
	p->by_bytes = !t->timed;
	if (p->by_bytes)
		note(p, "warning",
		     "no packet has a time: lanes count bytes of each CPU's trace, and the order "
		     "between CPUs is not known");
	return CLI_OK;
}

static int page_sink_span(void *opaque, const struct timeline *t, const struct timeline_span *s)
{
	struct timeline_page *p = opaque;
	u32 vm = s->vcpu < t->vcpus ? t->vcpu[s->vcpu].vm : TIMELINE_NONE;
	struct timeline_span by_bytes = *s;

	by_bytes.start = s->span->offset;
	by_bytes.end = s->span->offset + s->span->size;
	if (p->flames && !p->by_bytes && timeline_flames_span(p->flames, t, s))
		return cli_no_memory(p->cli);
	return page_add(p->page, p->by_bytes ? &by_bytes : s, vm) ? cli_no_memory(p->cli) : CLI_OK;
}

static int page_sink_end(void *opaque, const struct timeline *t)
{
	struct timeline_page *p = opaque;

	p->meta = meta_json(p, t);
	p->vm = calloc(t->vms + 1, sizeof(*p->vm));
	if (!p->vm)
		return cli_no_memory(p->cli);
	for (; p->vms < t->vms; p->vms++) {
		p->vm[p->vms] = strdup(t->vm[p->vms].name);
		if (!p->vm[p->vms])
			return cli_no_memory(p->cli);
	}
	return CLI_OK;
}

u64 timeline_page_zero(const struct timeline_page *page)
{
	return page->zero;
}

int timeline_page_write(struct timeline_page *p)
{
	int ret = -1;

	if (p->flames)
		page_set_flames(p->page, &p->flames->page);
	if (!p->cli->out_of_memory)
		ret = page_write(p->page, p->meta, p->out.f);
	return ret ? cli_no_memory(p->cli) : cli_file_commit(p->cli, &p->out);
}

int timeline_page_open(struct cli *cli, const char *path, struct timeline_flames *flames,
		       struct timeline_page **page, struct timeline_sink *sink)
{
	struct page_options options = { .streams = cli->streams,
					.reason_name = timeline_reason,
					.symbol = find_symbol };
	struct timeline_page *p;
	int ret;

	p = calloc(1, sizeof(*p));
	if (!p)
		return cli_no_memory(cli);
	*page = p;
	p->cli = cli;
	p->flames = flames;
	options.opaque = p;
	p->page = page_new(&options);
	p->notes = json_array();
	if (!p->page || !p->notes)
		return cli_no_memory(cli);
	ret = cli_file_create(cli, path, "<title>vmpt timeline</title>", &p->out);
	if (ret)
		return ret;
	*sink = (struct timeline_sink){
		.begin = page_sink_begin, .span = page_sink_span, .end = page_sink_end, .opaque = p
	};
	return CLI_OK;
}

void timeline_page_close(struct timeline_page *p)
{
	if (!p)
		return;
	cli_file_drop(&p->out);
	while (p->vms)
		free(p->vm[--p->vms]);
	free(p->vm);
	json_decref(p->meta);
	json_decref(p->notes);
	page_free(p->page);
	free(p);
}
