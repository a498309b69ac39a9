// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * handover: the host's perf and a guest trace at once, and performance-monitoring interrupts arrive
 * at every instruction of the host between the guest's exit and its next entry. See usage(). Both
 * traces go into files, for a comparison with what was executed.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "scene.h"
#include "trace.h"
#include "walk.h"

#define FIXED_CYCLES (1ull << 33) /* its bit in IA32_PERF_GLOBAL_STATUS */
#define MSR_LVTPC    0x834
#define LOOK_EVERY   64
#define CYCLES	     1000 /* until an interrupt */
#define FILTER	     "filter 0xffffffff81000000/0x1000000"
#define BEGIN	     1 /* the guest's signal */
#define END	     2

static struct {
	u32 begin, first, stride, flags;
	u64 status;
	u32 rounds, pages, int_every;
	size_t aux;
	bool io, idle, no_pt, fill, whole;
	const char *filter;
} options = { .stride = 1, .rounds = 3000, .pages = 128, .aux = 8192 };

static struct trace trace;
static bool host_on;
static u32 looks, wrong, wrong_msr, stuck, full;
static u64 wrong_value, right_value;

static const struct option words[] = {
	{ "walk", required_argument, NULL, 'w' },
	{ "first", required_argument, NULL, 'f' },
	{ "stride", required_argument, NULL, 's' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "pmi", no_argument, NULL, 'p' },
	{ "late", no_argument, NULL, 'l' },
	{ "sample", no_argument, NULL, 'S' },
	{ "idle", no_argument, NULL, 'i' },
	{ "no-pt", no_argument, NULL, 'n' },
	{ "int", required_argument, NULL, 'I' },
	{ "aux", required_argument, NULL, 'a' },
	{ "filter", no_argument, NULL, 'F' },
	{ "fill", no_argument, NULL, 'x' },
	{ "pages", required_argument, NULL, 'P' },
	{ "io", no_argument, NULL, 'o' },
	{ "whole", no_argument, NULL, 'W' },
	{ NULL, 0, NULL, 0 },
};

static int usage(void)
{
	printf("handover [options]: host and guest trace at once, and interrupts come\n"
	       "  --walk=exit|stop     from the guest's exit on; from where the host stops its trace on\n"
	       "  --first=N --stride=N instructions: the first, and from one interrupt to the next\n"
	       "  --pmi                a region of the host's fills then, if it traces\n"
	       "  --late               a region, of host or guest, filled just before\n"
	       "  --sample             a counter overflows; its samples have the trace's end\n"
	       "  --rounds=N           exits of the guest\n"
	       "  --io                 exits to user space; default: those that KVM handles\n"
	       "  --idle, --no-pt      the guest does not trace; it has no PT\n"
	       "  --int=N --pages=N    INT in each N-th of the guest's --pages output pages\n"
	       "  --aux=PAGES          perf's buffer\n"
	       "  --filter             perf's event traces kernel addresses only\n"
	       "  --fill               let perf's buffer fill up: its event stops\n"
	       "  --whole              the host also traces before and after the guest\n");
	return 2;
}

static const u32 kept[] = {
	VMPT_MSR_RTIT_CTL,	   VMPT_MSR_RTIT_CR3_MATCH,   VMPT_MSR_RTIT_ADDR0_A,
	VMPT_MSR_RTIT_ADDR0_A + 1, VMPT_MSR_RTIT_ADDR0_A + 2, VMPT_MSR_RTIT_ADDR0_A + 3,
};

/* Checks the host's registers that perf does not change while its event runs. */
static void look(void)
{
	static u64 before[VMPT_ARRAY_SIZE(kept)];
	u64 now;
	u32 i;

	for (i = 0; i < VMPT_ARRAY_SIZE(kept); i++) {
		if (host_rdmsr(kept[i], &now))
			continue;
		if (looks && now != before[i] && !wrong++) {
			wrong_msr = kept[i];
			wrong_value = now;
			right_value = before[i];
		}
		before[i] = now;
	}
	looks++;
}

/* Checks that the processor does not trace while perf's buffer is full and its event stopped. */
static void look_full(void)
{
	u64 ctl = 0;

	if (!trace_full(&trace))
		return;
	full++;
	if (!host_rdmsr(VMPT_MSR_RTIT_CTL, &ctl) && ctl & VMPT_CTL_TRACE_EN)
		stuck++;
	trace_enable(&trace, false);
	trace_drain(&trace);
	trace_enable(&trace, true);
}

static void switch_host(bool on)
{
	if (on == host_on)
		return;
	host_on = on;
	trace_enable(&trace, on);
}

static void on_out(struct scene *s, u32 word)
{
	if (word == BEGIN) {
		switch_host(true);
		if (options.begin)
			walk_set(options.begin, options.first, options.stride, options.flags,
				 options.status);
	} else if (word == END) {
		walk_set(0, 0, 0, 0, 0);
		if (!options.whole)
			switch_host(false);
	} else if (options.fill) {
		look_full();
	} else if (s->outs % LOOK_EVERY == 2) {
		look();
	}
}

static void command(const char *text)
{
	if (system(text))
		die("%s fails", text);
}

/* Kernel messages that must not appear. */
static u32 complaints(struct scene *s)
{
	static const char *const bad[] = {
		"unknown reason", "unchecked MSR",   "WARNING",	     "BUG",
		"Call Trace",	  "VM-Entry failed", "invalid VMCS",
	};
	u32 i, n = 0;

	for (i = 0; i < VMPT_ARRAY_SIZE(bad); i++) {
		if (scene_said(s, bad[i])) {
			printf("handover: the kernel said: %s\n", s->line);
			n++;
		}
	}
	return n;
}

/* Returns 0, or 1 if the trace cannot be complete. */
static int save(const char *path, const void *bytes, u64 size, u64 room)
{
	int fd;

	if (size >= room) {
		printf("handover: %s has %llu bytes, with room for %llu\n", path,
		       (unsigned long long)size, (unsigned long long)room);
		return 1;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd))
		die("%s: %s", path, strerror(errno));
	return 0;
}

/* The guest: its trace begins, then the host's, then the exits; the traces end in reverse order. */
static u32 script(struct scene *s)
{
	u32 irqs;

	if (options.no_pt)
		scene_leaf(s, 7, 0)->ebx &= ~(1u << 25);
	scene_topa(s, options.pages, options.int_every);
	/*
	 * Touch all that delivery reads and writes: on an EPT violation there, Bochs reports vector
	 * 0 in the IDT-vectoring information of a virtual interrupt.
	 */
	if (options.int_every) {
		scene_op(s, OP_READ, 0, GUEST_TABLES);
		scene_op(s, OP_READ, 0, GUEST_TABLES + PAGE_SIZE);
		scene_op(s, OP_CPUID, 0, 0);
		scene_op(s, OP_WRMSR, MSR_LVTPC, GUEST_VECTOR_IRQ);
	}
	if (!options.idle && !options.no_pt)
		scene_op_start(s, CTL_TRACE | VMPT_CTL_DIS_RETC | VMPT_CTL_TSC_EN);
	scene_op(s, OP_OUT, 0, BEGIN);
	scene_op(s, options.io ? OP_EXITS : OP_TRAPS, options.rounds, 0);
	scene_op(s, OP_OUT, 0, END);
	irqs = scene_op(s, OP_AWAIT, options.int_every ? CYCLES : 1, 0);
	if (!options.idle && !options.no_pt)
		scene_op_stop(s, CTL_TRACE | VMPT_CTL_DIS_RETC | VMPT_CTL_TSC_EN);
	scene_load(s);
	return irqs;
}

static int judge(struct scene *s, enum scene_end end)
{
	struct trace_records n;
	int bad = 0;

	trace_read(&trace, &n);
	printf("handover: %s %#llx after %u exits to user space\n", scene_end_name(end),
	       (unsigned long long)s->reason, s->outs);
	printf("handover: host: %llu bytes in %u records, flags %#llx, gap %d, lost %u, samples %u\n",
	       (unsigned long long)n.bytes, n.aux, (unsigned long long)n.flags, n.gap, n.lost,
	       n.samples);
	if (looks)
		printf("handover: %u looks at the host's registers, %u differ\n", looks, wrong);
	if (wrong)
		printf("handover: MSR %#x is %#llx, was %#llx\n", wrong_msr,
		       (unsigned long long)wrong_value, (unsigned long long)right_value);
	if (options.fill)
		printf("handover: the buffer was full %u times, the trace went on %u times\n", full,
		       stuck);
	bad += end != SCENE_DONE || n.lost || wrong || stuck;
	/* A trace that was overwritten or discarded has no order. */
	if (!options.fill && !options.status)
		bad += n.gap || n.flags & (PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL);
	bad += complaints(s) != 0;
	return bad;
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt_long(argc, argv, "", words, NULL)) != -1) {
		switch (c) {
		case 'w':
			options.begin = strcmp(optarg, "stop") ? WALK_CPUID : WALK_STOP;
			break;
		case 'f':
			options.first = (u32)atoi(optarg);
			break;
		case 's':
			options.stride = (u32)atoi(optarg);
			break;
		case 'r':
			options.rounds = (u32)atoi(optarg);
			break;
		case 'p':
			options.flags |= WALK_PMI;
			break;
		case 'l':
			options.flags |= WALK_LATE;
			break;
		case 'S':
			options.status |= FIXED_CYCLES;
			break;
		case 'i':
			options.idle = true;
			break;
		case 'n':
			options.no_pt = true;
			break;
		case 'I':
			options.int_every = (u32)atoi(optarg);
			break;
		case 'P':
			options.pages = (u32)atoi(optarg);
			break;
		case 'a':
			options.aux = (size_t)atoi(optarg);
			break;
		case 'F':
			options.filter = FILTER;
			break;
		case 'x':
			options.fill = true;
			break;
		case 'o':
			options.io = true;
			break;
		case 'W':
			options.whole = true;
			break;
		default:
			exit(usage());
		}
	}
	if (options.begin == WALK_CPUID && options.io)
		options.begin = WALK_IO;
}

int main(int argc, char **argv)
{
	static struct scene scene;
	struct scene *s = &scene;
	enum scene_end end;
	u32 irqs;
	int bad;

	parse(argc, argv);
	scene_open(s, options.int_every != 0);
	trace_open(&trace, options.aux, options.status != 0, options.filter);
	irqs = script(s);
	s->on_out = on_out;
	command("to-host --truth traced");
	if (options.whole)
		switch_host(true);
	end = scene_run(s);
	switch_host(false);
	walk_set(0, 0, 0, 0, 0);
	command("to-host --truth off");
	bad = judge(s, end);
	if (options.int_every) {
		printf("handover: %u interrupts in the guest\n", (u32)s->ops[irqs].result);
		bad += !s->ops[irqs].result;
	}
	if (!options.fill)
		bad += save("host.pt", trace.aux, trace_size(&trace), trace.aux_size);
	if (!options.idle && !options.no_pt)
		bad += save("guest.pt", s->vm.memory + TOPA_PAGES, scene_output(s),
			    options.pages * (u64)PAGE_SIZE);
	printf("handover: %s\n", bad ? "not right" : "right");
	return bad != 0;
}
