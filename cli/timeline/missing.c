// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * CPUs that perf recorded, by its header and events, but whose trace is missing. What a vCPU did on
 * such a CPU is unknown, but that it ran there may be known: by kvm:kvm_entry of its thread, or, in
 * a recording without it, because the thread was switched in there.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/timeline/internal.h"
#include "util/search.h"

#define CPU_MAX	  65536
#define CPUS_TOLD 8

static bool has_stream(const struct cli *cli, int cpu)
{
	size_t i;

	for (i = 0; i < cli->streams; i++)
		if (cli->stream[i]->cpu == cpu)
			return true;
	return false;
}

/* Whether the trace has it, selected by --cpu or not. */
static bool has_trace(const struct cli *cli, int cpu)
{
	size_t i, n = vmpt_trace_streams(cli->trace);

	for (i = 0; i < n; i++)
		if (vmpt_trace_stream(cli->trace, i)->cpu == cpu)
			return true;
	return false;
}

static bool is_of_cpu(const struct vmpt_event *e)
{
	switch (e->kind) {
	case VMPT_EVENT_SWITCH_IN:
	case VMPT_EVENT_SWITCH_OUT:
	case VMPT_EVENT_KVM_ENTRY:
	case VMPT_EVENT_KVM_EXIT:
	case VMPT_EVENT_ITRACE_START:
	case VMPT_EVENT_RECORDED:
		return e->cpu >= 0 && e->cpu < CPU_MAX;
	}
	return false;
}

/* By CPU: it has events, but no stream. NULL: no memory. */
static bool *find_cpus(const struct cli *cli, const struct vmpt_event *event, size_t count)
{
	bool *missing = calloc(CPU_MAX, sizeof(*missing));
	size_t i;
	int cpu;

	for (i = 0; missing && i < count; i++)
		if (is_of_cpu(&event[i]))
			missing[event[i].cpu] = true;
	for (cpu = 0; missing && cpu < CPU_MAX; cpu++)
		missing[cpu] = missing[cpu] && !has_stream(cli, cpu);
	return missing;
}

/* The number of CPUs named in the warning. */
static size_t warn(const struct cli *cli, const bool *missing)
{
	char list[CPUS_TOLD * 8 + 32] = "";
	size_t n = 0, used = 0;
	int cpu;

	for (cpu = 0; cpu < CPU_MAX; cpu++) {
		if (!missing[cpu] || has_trace(cli, cpu))
			continue;
		if (n++ < CPUS_TOLD)
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%d",
						 used ? ", " : "", cpu);
	}
	if (n > CPUS_TOLD)
		snprintf(list + used, sizeof(list) - used, " and %zu more", n - CPUS_TOLD);
	if (n)
		cli_warn(cli,
			 "%s: CPU%s %s %s recorded, but there is no trace: what ran there is not "
			 "known",
			 cli->file[0], n == 1 ? "" : "s", list, n == 1 ? "was" : "were");
	return n;
}

/* Of others only their number may be known. */
static void warn_count(const struct cli *cli, const struct cli_recording *rec)
{
	size_t n = vmpt_trace_streams(cli->trace);

	if (rec && n < rec->cpus)
		cli_warn(cli,
			 "%s: vmpt record saw %u CPUs, but the trace has %zu: what ran on the "
			 "others is not known",
			 cli->file[0], rec->cpus, n);
}

static int by_thread(const void *a, const void *b)
{
	const struct timeline_seen *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->tsc < y->tsc ? -1 : x->tsc > y->tsc;
}

static bool has_kvm(const struct vmpt_event *event, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (event[i].kind == VMPT_EVENT_KVM_ENTRY)
			return true;
	return false;
}

/* The times at which threads were seen there. */
static int add_seen(struct timeline_missing *m, const struct vmpt_event *event, size_t count,
		    const bool *missing)
{
	u8 kind = has_kvm(event, count) ? VMPT_EVENT_KVM_ENTRY : VMPT_EVENT_SWITCH_IN;
	size_t i, n = 0;

	for (i = 0; i < count; i++)
		n += event[i].kind == kind && is_of_cpu(&event[i]) && missing[event[i].cpu];
	if (!n)
		return 0;
	m->seen = calloc(n, sizeof(*m->seen));
	if (!m->seen)
		return -1;
	for (i = 0; i < count; i++) {
		const struct vmpt_event *e = &event[i];

		if (e->kind == kind && is_of_cpu(e) && missing[e->cpu] && e->tsc && e->tid > 0)
			m->seen[m->seens++] = (struct timeline_seen){ e->tsc, e->tid };
	}
	qsort(m->seen, m->seens, sizeof(*m->seen), by_thread);
	return 0;
}

int timeline_missing_open(struct cli *cli, struct timeline_missing *m,
			  const struct cli_clocks *clocks, const struct vmpt_event *event,
			  size_t count)
{
	bool *missing;
	size_t i;
	int ret;

	memset(m, 0, sizeof(*m));
	m->names = clocks->names;
	/* With perf -t or -p, CPUs without a trace had none of the threads. */
	if (vmpt_trace_info(cli->trace)->threads)
		return CLI_OK;
	/* Of a thread's stream no CPU is known. */
	for (i = 0; i < cli->streams; i++)
		if (cli->stream[i]->cpu < 0)
			return CLI_OK;
	missing = find_cpus(cli, event, count);
	ret = missing ? add_seen(m, event, count, missing) : -1;
	if (!ret && !warn(cli, missing))
		warn_count(cli, clocks->rec);
	free(missing);
	return ret ? cli_no_memory(cli) : CLI_OK;
}

void timeline_missing_close(struct timeline_missing *m)
{
	free(m->seen);
	memset(m, 0, sizeof(*m));
}

bool timeline_missing_ran(const struct timeline_missing *m, u64 vmcs, u64 from, u64 to)
{
	const struct vmpt_vm_name *name;
	struct timeline_seen key;
	size_t n;

	name = m->seens && m->names ? vmpt_names_at(m->names, vmcs, to) : NULL;
	if (!name || name->tid <= 0)
		return false;
	key = (struct timeline_seen){ from, name->tid };
	n = vmpt_search(i, 0, m->seens, by_thread(&m->seen[i], &key) < 0);
	return n < m->seens && m->seen[n].tid == name->tid && m->seen[n].tsc < to;
}
