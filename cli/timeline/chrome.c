// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt timeline --chrome: trace events as JSON for the Perfetto UI and Chrome's tracing page. A VM
 * is a process and a vCPU its thread: on it runs (complete events, "X") and between them the time
 * out of the guest with the exit's reason ("B", "E"). Process "CPUs" has a thread per CPU with all
 * spans. Written in order of time: an exit's event waits until all earlier ones are written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/timeline/internal.h"
#include "util/array.h"

#define PID_CPUS 1 /* VMs from here on */

/* An exit not written yet. */
struct waiting_exit {
	u64 at; /* ticks */
	u32 vcpu;
	struct vmpt_exit exit;
};

struct timeline_chrome {
	struct cli *cli;
	struct cli_file out;
	FILE *file;		      /* of .out */
	bool any;		      /* an event is out */
	u64 left_out;		      /* spans without times */
	struct waiting_exit *waiting; /* at most one per stream, unordered */
	size_t count;
	u64 next;   /* the earliest of them */
	bool *open; /* by vCPU: a "B" is out */
	size_t opens;
	size_t vms, vcpus; /* that have their names */
};

/* ---- JSON by hand: there are millions of events ---- */

static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', f);
		/* Names have no control characters: cli_safe_name(). */
		fputc(*s, f);
	}
	fputc('"', f);
}

/* Microseconds with 4 decimals; ticks where the frequency is not known. */
static u64 units(const struct timeline *t, u64 ticks)
{
	if (!(t->hz > 0))
		return ticks * 10000;
	return (u64)((long double)ticks * 1e10L / (long double)t->hz);
}

static void put_units(FILE *f, const char *key, u64 value)
{
	fprintf(f, ",\"%s\":%llu.%04llu", key, (unsigned long long)(value / 10000),
		(unsigned long long)(value % 10000));
}

static void event(struct timeline_chrome *c, const char *phase, u32 pid, u32 tid)
{
	fprintf(c->file, "%s{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u", c->any ? ",\n" : "\n", phase,
		pid, tid);
	c->any = true;
}

static u32 pid_of(const struct timeline *t, u32 vcpu)
{
	return PID_CPUS + 1 + t->vcpu[vcpu].vm;
}

static void put_name_of(struct timeline_chrome *c, u32 pid, u32 tid, const char *what,
			const char *name, u32 sort)
{
	event(c, "M", pid, tid);
	fprintf(c->file, ",\"name\":\"%s_name\",\"args\":{\"name\":", what);
	put_string(c->file, name);
	fprintf(c->file, "}}");
	event(c, "M", pid, tid);
	fprintf(c->file, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%u}}", what, sort);
}

/* ---- exits ---- */

static void put_exit_args(FILE *f, const struct vmpt_exit *e)
{
	fprintf(f, "\"source\":\"%s\"", timeline_reason_source(e));
	if (e->source != VMPT_REASON_NONE)
		fprintf(f, ",\"reason\":%u", e->reason);
	if (e->has_ip)
		fprintf(f, ",\"ip\":\"0x%llx\"", (unsigned long long)e->ip);
	if (e->cr3)
		fprintf(f, ",\"cr3\":\"0x%llx\"", (unsigned long long)e->cr3);
	if (e->has_qualification)
		fprintf(f, ",\"qualification\":\"0x%llx\"", (unsigned long long)e->qualification);
	if (e->halted)
		fprintf(f, ",\"halted\":true");
}

static void put_exit_name(FILE *f, const struct vmpt_exit *e)
{
	char why[96];

	timeline_why(e, why, sizeof(why), 64);
	fprintf(f, ",\"name\":");
	put_string(f, e->source == VMPT_REASON_NONE ? "exit" : why);
}

static void set_next(struct timeline_chrome *c)
{
	size_t i;

	c->next = ~0ULL;
	for (i = 0; i < c->count; i++)
		if (c->waiting[i].at < c->next)
			c->next = c->waiting[i].at;
}

static void drop(struct timeline_chrome *c, size_t i)
{
	c->waiting[i] = c->waiting[--c->count];
	set_next(c);
}

/* Exits up to @ticks: the time out begins. */
static void put_exits(struct timeline_chrome *c, const struct timeline *t, u64 ticks)
{
	while (c->next <= ticks && c->count) {
		struct waiting_exit w;
		size_t i;

		for (i = 0; c->waiting[i].at != c->next; i++)
			;
		w = c->waiting[i];
		drop(c, i);
		event(c, "B", pid_of(t, w.vcpu), w.vcpu + 1);
		put_exit_name(c->file, &w.exit);
		fprintf(c->file, ",\"cat\":\"%s\"", w.exit.halted ? "halt" : "exit");
		put_units(c->file, "ts", units(t, w.at));
		fprintf(c->file, ",\"args\":{");
		put_exit_args(c->file, &w.exit);
		fprintf(c->file, "}}");
		c->open[w.vcpu] = true;
	}
}

/*
 * The vCPU is back, or the trace ends: close the open event. @unseen: it was on a CPU that is
 * not in the trace, so the time out of the guest is unknown.
 */
static void end_exit(struct timeline_chrome *c, const struct timeline *t, u32 vcpu, u64 ticks,
		     bool unseen)
{
	size_t i;

	if (c->open[vcpu]) {
		event(c, "E", pid_of(t, vcpu), vcpu + 1);
		put_units(c->file, "ts", units(t, ticks));
		fprintf(c->file, "%s}", unseen ? ",\"args\":{\"unseen\":true}" : "");
		c->open[vcpu] = false;
		return;
	}
	/* It was shorter than the clock's resolution. */
	for (i = 0; i < c->count; i++)
		if (c->waiting[i].vcpu == vcpu) {
			drop(c, i);
			return;
		}
}

/* ---- spans ---- */

/* Names of new lines. */
static int put_names(struct timeline_chrome *c, const struct timeline *t)
{
	u32 i;

	for (; c->vms < t->vms; c->vms++) {
		i = (u32)c->vms;
		put_name_of(c, PID_CPUS + 1 + i, 0, "process", t->vm[i].name, PID_CPUS + 1 + i);
	}
	for (; c->vcpus < t->vcpus; c->vcpus++) {
		i = (u32)c->vcpus;
		put_name_of(c, pid_of(t, i), i + 1, "thread", t->vcpu[i].name,
			    t->vcpu[i].number == TIMELINE_NONE ? i : t->vcpu[i].number);
	}
	if (vmpt_reserve_zeroed(&c->open, &c->opens, t->vcpus))
		return cli_no_memory(c->cli);
	return CLI_OK;
}

static void put_span(struct timeline_chrome *c, const struct timeline *t,
		     const struct timeline_span *s, u32 pid, u32 tid, const char *name)
{
	const struct vmpt_span *span = s->span;
	u64 start = units(t, s->start);
	FILE *f = c->file;

	event(c, "X", pid, tid);
	fprintf(f, ",\"name\":");
	put_string(f, name);
	fprintf(f, ",\"cat\":\"%s\"", timeline_kind(span));
	put_units(f, "ts", start);
	put_units(f, "dur", units(t, s->end) - start);
	fprintf(f, ",\"args\":{\"cpu\":%d,\"bytes\":%llu,\"tsc\":\"0x%llx\"",
		c->cli->stream[span->stream]->cpu, (unsigned long long)span->size,
		(unsigned long long)span->start.tsc);
	if (s->bounded)
		put_units(f, t->hz > 0 ? "error_us" : "error_ticks",
			  units(t, s->early > s->late ? s->early : s->late));
	if (span->kind == VMPT_SPAN_GUEST && span->ended == VMPT_EDGE_EXIT) {
		char why[32];

		fprintf(f, ",\"exit\":");
		put_string(f, timeline_reason(&span->exit, why));
		fprintf(f, ",");
		put_exit_args(f, &span->exit);
	}
	if (span->overflows)
		fprintf(f, ",\"overflows\":%u", span->overflows);
	fprintf(f, "}}");
}

static void put_loss(struct timeline_chrome *c, const struct timeline *t,
		     const struct timeline_span *s)
{
	event(c, "i", PID_CPUS, s->span->stream + 1);
	fprintf(c->file, ",\"s\":\"t\",\"cat\":\"lost\",\"name\":");
	put_string(c->file, s->span->kind == VMPT_SPAN_LOST ? "lost" : "overflow");
	put_units(c->file, "ts", units(t, s->start));
	fprintf(c->file, ",\"args\":{\"offset\":\"0x%llx\",\"bytes\":%llu,\"why\":",
		(unsigned long long)s->span->offset, (unsigned long long)s->span->size);
	put_string(c->file, s->span->kind == VMPT_SPAN_LOST
				    ? vmpt_strerror(-(int)s->span->loss)
				    : "an OVF packet: some of it was not recorded");
	fprintf(c->file, "}}");
}

static int chrome_span(void *opaque, const struct timeline *t, const struct timeline_span *s)
{
	struct timeline_chrome *c = opaque;
	const struct vmpt_span *span = s->span;

	if (put_names(c, t))
		return CLI_FAILED;
	if (!s->timed) {
		c->left_out++;
		return CLI_OK;
	}
	put_exits(c, t, s->start);
	if (s->vcpu != TIMELINE_NONE) {
		end_exit(c, t, s->vcpu, s->start, s->unseen);
		put_span(c, t, s, pid_of(t, s->vcpu), s->vcpu + 1, "running");
		if (span->ended == VMPT_EDGE_EXIT && c->count < t->cli->streams) {
			c->waiting[c->count++] =
				(struct waiting_exit){ s->end, s->vcpu, span->exit };
			set_next(c);
		}
	}
	if (span->kind == VMPT_SPAN_LOST || span->overflows)
		put_loss(c, t, s);
	put_span(c, t, s, PID_CPUS, span->stream + 1, timeline_who(t, s));
	return CLI_OK;
}

static int chrome_begin(void *opaque, const struct timeline *t)
{
	struct timeline_chrome *c = opaque;
	char name[32];
	u32 i;

	fprintf(c->file,
		"{\"displayTimeUnit\":\"ns\",\"otherData\":{\"writer\":\"vmpt %s\","
		"\"start_tsc\":\"0x%llx\",\"unit\":\"%s\"},\"traceEvents\":[",
		VMPT_VERSION, (unsigned long long)t->zero,
		t->hz > 0 ? "us" : "TSC ticks: the frequency is not known");
	put_name_of(c, PID_CPUS, 0, "process", "CPUs", 0);
	for (i = 0; i < t->cli->streams; i++)
		put_name_of(c, PID_CPUS, i + 1, "thread", cli_stream_name(t->cli->stream[i], name),
			    i);
	return CLI_OK;
}

static int chrome_end(void *opaque, const struct timeline *t)
{
	struct timeline_chrome *c = opaque;
	char buf[32];
	u32 i;

	put_exits(c, t, ~0ULL - 1);
	for (i = 0; i < c->vcpus; i++)
		if (c->open[i])
			end_exit(c, t, i, t->last, false);
	fprintf(c->file, "\n]}\n");
	if (c->left_out)
		cli_warn(c->cli, "--chrome: %s spans without a known time are left out",
			 cli_number(c->left_out, buf));
	return cli_file_commit(c->cli, &c->out);
}

int timeline_chrome_open(struct cli *cli, const char *path, struct timeline_chrome **chrome,
			 struct timeline_sink *sink)
{
	struct timeline_chrome *c;
	int ret;

	c = calloc(1, sizeof(*c));
	if (!c)
		return cli_no_memory(cli);
	*chrome = c;
	c->cli = cli;
	c->next = ~0ULL;
	c->waiting = calloc(cli->streams, sizeof(*c->waiting));
	if (!c->waiting)
		return cli_no_memory(cli);
	ret = cli_file_create(cli, path, "\"otherData\":{\"writer\":\"vmpt ", &c->out);
	if (ret)
		return ret;
	c->file = c->out.f;
	*sink = (struct timeline_sink){ chrome_begin, chrome_span, chrome_end, c, .all = false };
	return CLI_OK;
}

void timeline_chrome_close(struct timeline_chrome *c)
{
	if (!c)
		return;
	cli_file_drop(&c->out);
	free(c->waiting);
	free(c->open);
	free(c);
}
