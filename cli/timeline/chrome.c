// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt timeline --chrome: trace events as JSON for the Perfetto UI and Chrome's tracing page. A VM
 * is a process and a vCPU its thread: on it is the time out of the guest, with the exit's reason;
 * between that it runs. Process "CPUs" has a thread per CPU with what ran there; between that the
 * host runs. All are complete events ("X"), which viewers sort: each fact is written once, and
 * nothing that has no length, as there are millions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/timeline/internal.h"
#include "util/array.h"

#define PID_CPUS 1 /* VMs from here on */

/* An exit that is not written yet: its vCPU is not back. */
struct waiting_exit {
	bool open;
	u64 at; /* ticks */
	struct vmpt_exit exit;
};

struct timeline_chrome {
	struct cli *cli;
	struct cli_file out;
	FILE *file;		      /* of .out */
	bool any;		      /* an event is out */
	u64 left_out;		      /* spans without times */
	struct waiting_exit *waiting; /* by vCPU */
	size_t waitings;
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

/* Microseconds with 3 decimals; ticks where the frequency is not known. */
static u64 units(const struct timeline *t, u64 ticks)
{
	if (!(t->hz > 0))
		return ticks * 1000;
	return (u64)((long double)ticks * 1e9L / (long double)t->hz);
}

static void put_units(FILE *f, const char *key, u64 value)
{
	unsigned int digits = 3, rest = (unsigned int)(value % 1000);

	fprintf(f, ",\"%s\":%llu", key, (unsigned long long)(value / 1000));
	for (; rest && rest % 10 == 0; rest /= 10)
		digits--;
	if (rest)
		fprintf(f, ".%0*u", (int)digits, rest);
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

/* A complete event from @start to @end, ticks; nothing, and false, if that is no time. */
static bool put_complete(struct timeline_chrome *c, const struct timeline *t, u32 pid, u32 tid,
			 u64 start, u64 end, const char *name)
{
	u64 from = units(t, start), to = units(t, end);

	if (to <= from)
		return false;
	event(c, "X", pid, tid);
	put_units(c->file, "ts", from);
	put_units(c->file, "dur", to - from);
	fprintf(c->file, ",\"name\":");
	put_string(c->file, name);
	return true;
}

/*
 * The vCPU is back, or the trace ends: write its time out of the guest. @unseen: it was on a CPU
 * that is not in the trace, so for how long is unknown.
 */
static void end_exit(struct timeline_chrome *c, const struct timeline *t, u32 vcpu, u64 ticks,
		     bool unseen)
{
	struct waiting_exit *w = &c->waiting[vcpu];
	const struct vmpt_exit *e = &w->exit;
	const char *sep = "";
	char why[96];

	if (!w->open)
		return;
	w->open = false;
	timeline_why(e, why, sizeof(why), 64);
	if (!put_complete(c, t, pid_of(t, vcpu), vcpu + 1, w->at, ticks,
			  e->source == VMPT_REASON_NONE ? "exit" : why))
		return;
	if (e->halted)
		fprintf(c->file, ",\"cat\":\"halt\"");
	if (e->has_ip || e->qualification || unseen)
		fprintf(c->file, ",\"args\":{");
	if (e->has_ip) {
		fprintf(c->file, "\"ip\":\"0x%llx\"", (unsigned long long)e->ip);
		sep = ",";
	}
	if (e->qualification) {
		fprintf(c->file, "%s\"qualification\":\"0x%llx\"", sep,
			(unsigned long long)e->qualification);
		sep = ",";
	}
	if (unseen)
		fprintf(c->file, "%s\"unseen\":true", sep);
	fputs(e->has_ip || e->qualification || unseen ? "}}" : "}", c->file);
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
	if (vmpt_reserve_zeroed(&c->waiting, &c->waitings, t->vcpus))
		return cli_no_memory(c->cli);
	return CLI_OK;
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
	if (s->vcpu != TIMELINE_NONE) {
		end_exit(c, t, s->vcpu, s->start, s->unseen);
		if (span->ended == VMPT_EDGE_EXIT)
			c->waiting[s->vcpu] = (struct waiting_exit){ true, s->end, span->exit };
	}
	if (span->kind == VMPT_SPAN_LOST || span->overflows)
		put_loss(c, t, s);
	if (span->kind != VMPT_SPAN_HOST &&
	    put_complete(c, t, PID_CPUS, span->stream + 1, s->start, s->end, timeline_who(t, s)))
		fputc('}', c->file);
	return CLI_OK;
}

static int chrome_begin(void *opaque, const struct timeline *t)
{
	struct timeline_chrome *c = opaque;
	char name[32], start[CLI_WHEN];
	u32 i;

	fprintf(c->file,
		"{\"displayTimeUnit\":\"ns\",\"otherData\":{\"writer\":\"vmpt %s\","
		"\"start_tsc\":\"0x%llx\",\"unit\":\"%s\",\"clock\":\"%s\",\"start\":\"%s\"},"
		"\"traceEvents\":[",
		VMPT_VERSION, (unsigned long long)t->zero,
		t->hz > 0 ? "us" : "TSC ticks: the frequency is not known",
		cli_when_name(t->times.clock), cli_when_whole(&t->times, t->zero, start));
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

	for (i = 0; i < c->vcpus; i++)
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
	free(c);
}
