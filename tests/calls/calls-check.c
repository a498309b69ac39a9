// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Does <decoder/vmpt-calls.h> find the stacks that a Linux guest had?
 *
 *	calls-check [OPTION]... STREAM[,VMCS]... -- TRUTH...
 *	calls-check [OPTION]... -- TRUTH...		the truths alone: what is in them
 *
 *	--symbols=FILE	the kernel's System.map
 *	--code=FILE	an image of the code; may be repeated
 *	--show=N	print N differences of each kind (1)
 *	--kinds=N	print N kinds of differences (20)
 *	--allow=N	the number of states that may differ after the first program has begun (0)
 *
 * STREAM is the trace of one vCPU, TRUTH its truth with RSP, in the same order. Both say after
 *which instruction of a vCPU its stack changed. Between two changes on either side both stacks are
 * compared, frame by frame: kind and function. Tasks are compared, too: a task of the calls must
 * stay one of the truth while that lives, unless it was said to be one of several.
 * Exit code 0: no more differences than allowed; 1: more; 2: usage.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/vmpt-calls.h"
#include "tests/calls/true-stacks.h"
#include "util/array.h"

#define FRAMES 24
#define KINDS  512u /* the last one is all others */
#define ANY    (~0u)

/* When: in firmware; in the kernel before the first program; after it. */
enum side { FIRMWARE, KERNEL, PROGRAMS, SIDES };

/* Of the calls. */
struct task {
	u64 instructions;
	u32 truth; /* + 1 */
};

struct stream {
	u64 pos, offset;
	u32 task, node; /* ANY: none yet */
	bool differs, anchored;
	u32 kind; /* of the difference */
};

struct kind {
	u64 function, want;
	u8 what, want_what;
	u64 count[SIDES], states[SIDES];
};

static struct symbols symbols;
static struct true_stacks truths;
static struct vmpt_calls *calls;
static struct vmpt_code *code;
static struct vmpt_trace *trace[TRUE_CPUS];
static const struct vmpt_stream *streams[TRUE_CPUS];
static struct vmpt_given given[TRUE_CPUS];
static unsigned int stream_count;
static struct stream at[TRUE_CPUS];
static struct vmpt_call_node *nodes;
static u32 *equal_to; /* by node: of the truth, + 1 */
static size_t node_count, node_room, equal_room;
static struct task *tasks;
static size_t task_room;
static struct kind *kinds;
static size_t kind_count;
static u64 same[SIDES], different[SIDES], unknown[SIDES], wrong_task[SIDES], exchanged[SIDES],
	one_of[SIDES], items[VMPT_CALL_GAP + 1], kind_max = 20, shown_max = 1, allow;

/* ---- both trees ---- */

static const struct vmpt_call_node *node(u32 i)
{
	u32 n = vmpt_calls_nodes(calls);

	if (node_count < n) {
		if (vmpt_reserve(&nodes, &node_room, n) ||
		    vmpt_reserve_zeroed(&equal_to, &equal_room, n))
			exit(1);
		while (node_count < n) {
			vmpt_calls_node(calls, (u32)node_count, &nodes[node_count]);
			node_count++;
		}
	}
	return &nodes[i];
}

static bool is_first(const struct symbol *fn)
{
	return !strcmp(fn->name, "start_kernel") || !strcmp(fn->name, "start_secondary");
}

static bool frame_equal(const struct vmpt_call_node *d, const struct true_node *t)
{
	return d->kind == t->kind && (d->function == t->start || d->function == t->now);
}

static bool is_end(const struct vmpt_call_node *d)
{
	return d->kind == VMPT_CALL_ROOT || d->kind == VMPT_CALL_UNKNOWN;
}

/* What is below the kernel's first function: of the first vCPU, and of others. */
static bool is_firmware(const struct vmpt_call_node *d)
{
	const struct symbol *fn = symbols_find(&symbols, d->function);

	return fn && d->function == fn->at && is_first(fn);
}

/* *@hidden: the calls do not know callers that the truth has. */
static bool equal(u32 dn, u32 tn, bool *hidden)
{
	const struct vmpt_call_node *d = node(dn);
	const struct true_node *t = &truths.node[tn];
	bool is;

	if (equal_to[dn] == tn + 1)
		return true;
	if (t->kind == VMPT_CALL_ROOT)
		return is_end(d) || is_end(node(d->parent)) || is_firmware(d);
	if (d->kind == VMPT_CALL_UNKNOWN) {
		*hidden = true;
		return true;
	}
	is = d->kind != VMPT_CALL_ROOT && frame_equal(d, t) && equal(d->parent, t->parent, hidden);
	if (!is && t->optional)
		is = equal(dn, t->parent, hidden);
	if (is && !*hidden)
		equal_to[dn] = tn + 1;
	return is;
}

/* The topmost pair of frames that is not equal. */
static void first_difference(u32 *dn, u32 *tn)
{
	for (;;) {
		const struct vmpt_call_node *d = node(*dn);
		const struct true_node *t = &truths.node[*tn];

		if (t->kind != VMPT_CALL_ROOT && !is_end(d) && frame_equal(d, t)) {
			*dn = d->parent;
			*tn = t->parent;
		} else if (t->kind != VMPT_CALL_ROOT && t->optional) {
			*tn = t->parent;
		} else {
			return;
		}
	}
}

/* ---- differences ---- */

static const char letters[] = "RuCSIs";

static void show_stacks(u32 dn, u32 tn)
{
	unsigned int i;

	printf("   calls:");
	for (i = 0; i < FRAMES && node(dn)->kind != VMPT_CALL_ROOT; i++, dn = node(dn)->parent)
		printf(" %c:%s", letters[node(dn)->kind],
		       symbols_name(&symbols, node(dn)->function));
	printf("\n   truth:");
	for (i = 0; i < FRAMES; i++, tn = truths.node[tn].parent) {
		const struct true_node *t = &truths.node[tn];

		printf(" %c:%s", t->optional ? '?' : letters[t->kind],
		       symbols_name(&symbols, t->start));
		if (t->now && t->now != t->start)
			printf("(%s)", symbols_name(&symbols, t->now));
		if (t->kind == VMPT_CALL_ROOT)
			break;
	}
	printf("\n");
}

static u32 kind_of(u32 dn, u32 tn)
{
	struct kind k = { 0 };
	u32 i;

	first_difference(&dn, &tn);
	k.function = node(dn)->function;
	k.what = node(dn)->kind;
	k.want = truths.node[tn].start;
	k.want_what = truths.node[tn].kind;
	for (i = 0; i < kind_count; i++)
		if (kinds[i].function == k.function && kinds[i].want == k.want &&
		    kinds[i].what == k.what && kinds[i].want_what == k.want_what)
			return i;
	if (kind_count == KINDS)
		return KINDS - 1;
	if (vmpt_grow(&kinds, kind_count))
		exit(1);
	kinds[kind_count++] = k;
	return i;
}

static void place(unsigned int cpu, const struct true_state *s)
{
	printf("vCPU %u, instruction %llu, TSC %llx, trace offset %#llx, calls' task %u, true task %u:\n",
	       cpu, (unsigned long long)s->pos, (unsigned long long)s->tsc,
	       (unsigned long long)at[cpu].offset, at[cpu].task, s->task);
}

static void differ(unsigned int cpu, const struct true_state *s, int side)
{
	struct stream *d = &at[cpu];
	struct kind *k;
	u32 kind;

	/* It switches stacks without a function to tell. */
	if (side == FIRMWARE)
		return;
	kind = kind_of(d->node, s->node);
	k = &kinds[kind];
	k->states[side]++;
	if (d->differs && d->kind == kind)
		return;
	d->kind = kind;
	if (k->count[side]++ >= shown_max || kind >= kind_max)
		return;
	printf("kind %u%s: ", kind, side == PROGRAMS ? "" : ", before the first program");
	place(cpu, s);
	show_stacks(d->node, s->node);
}

/* ---- tasks ---- */

static struct task *task_of(u32 i)
{
	if (vmpt_reserve_zeroed(&tasks, &task_room, (size_t)i + 1))
		exit(1);
	return &tasks[i];
}

static void check_task(unsigned int cpu, const struct true_state *s, int side)
{
	struct task *d = task_of(at[cpu].task);
	struct vmpt_call_task info;

	if (d->truth == s->task + 1)
		return;
	if (d->truth && !truths.task[d->truth - 1]->dead) {
		vmpt_calls_task(calls, at[cpu].task, &info);
		if (info.one_of > 1) {
			exchanged[side]++;
		} else if (wrong_task[side]++ < shown_max && side != FIRMWARE) {
			printf("task: was %u: ", d->truth - 1);
			place(cpu, s);
		}
	}
	d->truth = s->task + 1;
}

/* ---- states ---- */

static bool in_switch(const struct true_state *s)
{
	const struct true_node *t = &truths.node[s->node];
	const struct symbol *fn = symbols_find(&symbols, t->now);

	return fn && fn->role == VMPT_ROLE_SWITCH;
}

static int side_of(const struct true_state *s)
{
	if (truths.user_tsc && s->tsc >= truths.user_tsc)
		return PROGRAMS;
	return truths.node[s->node].now ? KERNEL : FIRMWARE;
}

/*
 * The topmost frames are equal, those below are another task's: allowed where the calls say that
 * it is one of several, until a RET shows which.
 */
static bool is_one_of(unsigned int cpu, const struct true_state *s)
{
	u32 dn = at[cpu].node, tn = s->node;
	struct vmpt_call_task info;
	bool hidden;

	vmpt_calls_task(calls, at[cpu].task, &info);
	first_difference(&dn, &tn);
	if (info.one_of < 2 || tn == s->node)
		return false;
	for (size_t i = truths.tasks; i-- > 0;) {
		const struct true_task *task = truths.task[i];

		for (size_t f = task->frames; !task->dead && f-- > 0;)
			if (equal(dn, task->frame[f].node, &hidden))
				return true;
	}
	return false;
}

static void compare(unsigned int cpu, const struct true_state *s)
{
	int side = side_of(s);
	struct stream *d = &at[cpu];
	bool hidden = false;

	if (d->node == ANY || in_switch(s))
		return;
	if (!equal(d->node, s->node, &hidden)) {
		if (is_one_of(cpu, s)) {
			one_of[side]++;
			d->differs = false;
			return;
		}
		different[side]++;
		differ(cpu, s, side);
		d->differs = true;
		return;
	}
	d->differs = false;
	same[side]++;
	unknown[side] += hidden;
	check_task(cpu, s, side);
}

/* Both have no change in [pos of the stream, pos) but those of the truth. */
static bool settle(unsigned int cpu, u64 pos)
{
	struct true_cpu *c = &truths.cpu[cpu];
	struct stream *d = &at[cpu];

	if (pos <= d->pos)
		return true;
	if (!true_until(&truths, cpu, pos - 1))
		return false;
	while (c->head + 1 < c->states && c->state[c->head + 1].pos <= d->pos)
		c->head++;
	if (c->head < c->states && c->state[c->head].pos <= d->pos)
		compare(cpu, &c->state[c->head]);
	while (c->head + 1 < c->states && c->state[c->head + 1].pos < pos)
		compare(cpu, &c->state[++c->head]);
	d->pos = pos;
	return true;
}

/*
 * Firmware has threads. Where the calls find another one by a RET, no item says how much the first
 * one had executed, so the place in the truth is known from the kernel's first function on.
 */
static bool anchor(const struct vmpt_call_item *it)
{
	const struct symbol *fn = symbols_find(&symbols, node(it->node)->function);
	struct true_cpu *c = &truths.cpu[it->stream];
	struct stream *d = &at[it->stream];

	if (!fn || it->what != VMPT_CALL_ENTER || !is_first(fn))
		return true;
	for (;; c->head++) {
		while (c->head >= c->states) {
			if (c->ended || !true_until(&truths, it->stream, c->pos))
				return false;
		}
		if (truths.node[c->state[c->head].node].start == fn->start)
			break;
	}
	d->pos = c->state[c->head].pos;
	d->anchored = true;
	return true;
}

static bool take(const struct vmpt_call_item *it)
{
	struct stream *d = &at[it->stream];
	struct task *task = task_of(it->task);

	items[it->what]++;
	/* RUN of another task says what that one had executed before, elsewhere. */
	if (!d->anchored) {
		if (!anchor(it))
			return false;
	} else if ((it->what != VMPT_CALL_RUN || it->task == d->task) &&
		   !settle(it->stream, d->pos + it->instructions - task->instructions))
		return false;
	task->instructions = it->instructions;
	d->offset = it->offset;
	d->task = it->task;
	d->node = it->what == VMPT_CALL_LEAVE ? node(it->node)->parent : it->node;
	return true;
}

static bool walk(void)
{
	struct vmpt_call_batch b;
	int ret;

	while ((ret = vmpt_calls_next(calls, &b)) > 0)
		for (size_t i = 0; i < b.count; i++)
			if (!take(&b.items[i]))
				return false;
	if (ret < 0)
		fprintf(stderr, "calls-check: %s\n", vmpt_strerror(ret));
	return !ret;
}

/* ---- the end ---- */

static void show_kinds(void)
{
	for (u32 i = 0; i < kind_count && i < kind_max; i++) {
		const struct kind *k = &kinds[i];

		printf("kind %u: %llu times, %llu states (before: %llu, %llu): calls %c:%s, truth "
		       "%c:%s\n",
		       i, (unsigned long long)k->count[PROGRAMS],
		       (unsigned long long)k->states[PROGRAMS],
		       (unsigned long long)k->count[KERNEL], (unsigned long long)k->states[KERNEL],
		       letters[k->what], symbols_name(&symbols, k->function), letters[k->want_what],
		       symbols_name(&symbols, k->want));
	}
}

static void show_truths(void)
{
	const struct true_stacks *t = &truths;

	printf("truth: %llu calls, %llu returns: %llu to their call (%llu over the head of others), "
	       "%llu as jumps, %llu to callers that are not known, %llu elsewhere\n",
	       (unsigned long long)t->calls, (unsigned long long)t->returns,
	       (unsigned long long)t->fit, (unsigned long long)t->several,
	       (unsigned long long)t->jumps, (unsigned long long)t->bottom,
	       (unsigned long long)t->elsewhere);
	printf("truth: %llu switches to %zu tasks, %llu new, %llu times waited; %llu signals, %llu "
	       "ends of them, %llu programs, %llu restarts; %llu strange\n",
	       (unsigned long long)t->switches, t->tasks, (unsigned long long)t->fresh,
	       (unsigned long long)t->waits, (unsigned long long)t->signals,
	       (unsigned long long)t->sigreturns, (unsigned long long)t->execs,
	       (unsigned long long)t->restarts, (unsigned long long)t->strange);
}

static void show(void)
{
	static const char *const when[SIDES] = { "firmware", "the kernel before the first program",
						 "after it" };
	struct vmpt_calls_counts c;

	vmpt_calls_total(calls, &c);
	show_kinds();
	show_truths();
	printf("calls: %llu instructions, %llu entered, %llu left, %llu gaps, %llu switches, %llu "
	       "resumed, %llu ambiguous, %llu unmatched, %u tasks\n",
	       (unsigned long long)c.instructions, (unsigned long long)items[VMPT_CALL_ENTER],
	       (unsigned long long)items[VMPT_CALL_LEAVE], (unsigned long long)c.gaps,
	       (unsigned long long)c.switches, (unsigned long long)c.resumed,
	       (unsigned long long)c.ambiguous, (unsigned long long)c.unmatched,
	       vmpt_calls_tasks(calls));
	for (int i = 0; i < SIDES; i++)
		printf("%s: %llu stacks equal, %llu of them up to an unknown frame; %llu are one of "
		       "several; %llu differ; tasks: %llu wrong, %llu exchanged\n",
		       when[i], (unsigned long long)same[i], (unsigned long long)unknown[i],
		       (unsigned long long)one_of[i], (unsigned long long)different[i],
		       (unsigned long long)wrong_task[i], (unsigned long long)exchanged[i]);
}

/* ---- arguments ---- */

static int usage(void)
{
	fprintf(stderr, "usage: calls-check [--symbols=FILE] [--code=FILE]... [--show=N] "
			"[--kinds=N] [--allow=N] STREAM[,VMCS]... -- TRUTH...\n");
	return 2;
}

static bool function_of(void *opaque, const struct vmpt_space *space, u64 ip,
			struct vmpt_function *function)
{
	const struct symbol *s = symbols_find(opaque, ip);

	(void)space;
	if (s)
		*function = (struct vmpt_function){ .start = s->start, .role = s->role };
	return s;
}

static u32 one_vm(void *opaque, const struct vmpt_owner *owner)
{
	(void)opaque;
	(void)owner;
	return 0;
}

static bool add_code(const char *path)
{
	struct vmpt_image *image;
	struct vmpt_diag diag;

	if (vmpt_image_open(&image, path, NULL, &diag)) {
		fprintf(stderr, "calls-check: %s: %s\n", path, diag.text);
		return false;
	}
	return !vmpt_code_add(code, NULL, NULL, image);
}

static bool add_stream(char *arg)
{
	char *comma = strchr(arg, ',');
	struct vmpt_diag diag;

	if (stream_count == TRUE_CPUS)
		return false;
	if (comma) {
		*comma = '\0';
		given[stream_count] = (struct vmpt_given){
			.vmcs = strtoull(comma + 1, NULL, 16),
			.map.multiplier = VMPT_TSC_UNSCALED,
			.source = VMPT_MAP_USER,
		};
	}
	if (vmpt_trace_open(&trace[stream_count], arg, -1, &diag)) {
		fprintf(stderr, "calls-check: %s: %s\n", arg, diag.text);
		return false;
	}
	streams[stream_count] = vmpt_trace_stream(trace[stream_count], 0);
	at[stream_count++] = (struct stream){ .task = ANY, .node = ANY };
	return true;
}

/* The plugin's clock: CPUID.15H is 40/1. */
static bool check(void)
{
	const struct vmpt_clocks_options how = {
		.rates = { .tsc_num = 40, .tsc_den = 1 },
		.given = given,
		.given_count = stream_count,
	};
	const struct vmpt_calls_options options = {
		.function = function_of, .vm = one_vm, .opaque = &symbols, .items = true
	};
	struct vmpt_clocks *clocks;
	bool good;

	if (vmpt_clocks_open(&clocks, streams, stream_count, &how))
		return false;
	if (vmpt_calls_open(&calls, streams, stream_count, clocks, code, &options))
		return false;
	good = walk();
	show();
	vmpt_calls_close(calls);
	vmpt_clocks_close(clocks);
	return good && different[PROGRAMS] + wrong_task[PROGRAMS] <= allow;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "symbols", required_argument, NULL, 's' },
		{ "code", required_argument, NULL, 'c' },
		{ "show", required_argument, NULL, 'n' },
		{ "kinds", required_argument, NULL, 'k' },
		{ "allow", required_argument, NULL, 'a' },
		{ 0 },
	};
	bool good = true;
	int c, first;

	if (vmpt_code_new(&code))
		return 1;
	while ((c = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
		if (c == '?')
			return usage();
		if ((c == 's' && !symbols_open(&symbols, optarg)) ||
		    (c == 'c' && !add_code(optarg)))
			return 1;
		if (c == 'n')
			shown_max = strtoull(optarg, NULL, 0);
		if (c == 'k')
			kind_max = strtoull(optarg, NULL, 0);
		if (c == 'a')
			allow = strtoull(optarg, NULL, 0);
	}
	first = optind;
	/* getopt takes the "--" if it is the first. */
	if (strcmp(argv[first - 1], "--") != 0) {
		while (optind < argc && strcmp(argv[optind], "--") != 0)
			if (!add_stream(argv[optind++]))
				return 1;
		optind++;
	}
	if (optind >= argc || argc - optind > (int)TRUE_CPUS ||
	    (stream_count && argc - optind != (int)stream_count))
		return usage();
	if (!true_open(&truths, &symbols, argv + optind, (unsigned int)(argc - optind)))
		return 1;
	truths.show = stream_count ? 0 : shown_max;
	if (stream_count) {
		good = check();
	} else {
		for (unsigned int i = 0; good && i < truths.cpus; i++)
			good = true_until(&truths, i, ~0ULL);
		show_truths();
	}
	true_close(&truths);
	symbols_close(&symbols);
	return !good;
}
