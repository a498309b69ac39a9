// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * msrcost: a guest that exits often but never to user space, so that the PC can count KVM's RDMSR
 * and WRMSR between an exit and the next entry (bochs/instrument/msr-count.cc).
 *
 *	msrcost none|idle|trace [host]
 *
 * none: its CPUID has no PT; idle: it has, but does not trace; trace: it traces with ToPA. host: an
 * event of the host's perf traces this thread. Prints how the guest ended and how often it exited;
 * exit status 0 if it finished, 1 if not.
 */
#include <stdio.h>

#include "scene.h"

#define EXITS	  200
#define LEAF7_PT  (1u << 25)
#define AUX_PAGES 256

static struct host_pt pt;
static bool host, on;

/*
 * The host's trace begins after the guest's and ends before it: stock KVM cannot enter any other.
 */
static void toggle(struct scene *s, u32 word)
{
	(void)s;
	(void)word;
	on = !on;
	if (host)
		host_pt_enable(&pt, on);
}

int main(int argc, char **argv)
{
	static struct scene scene;
	struct scene *s = &scene;
	bool trace = argc > 1 && !strcmp(argv[1], "trace");
	enum scene_end end;
	int i;

	host = argc > 2 && !strcmp(argv[2], "host");
	if (argc < 2 || (argc > 2 && !host))
		die("usage: msrcost none|idle|trace [host]");
	scene_open(s, false);
	if (!strcmp(argv[1], "none"))
		scene_leaf(s, 7, 0)->ebx &= ~LEAF7_PT;
	else if (!(scene_leaf(s, 7, 0)->ebx & LEAF7_PT))
		die("msrcost: KVM offers guests no PT");
	scene_topa(s, 4, 0);
	if (trace) {
		scene_op_start(s, CTL_TRACE);
		scene_op(s, OP_OUT, 0, 0);
	}
	for (i = 0; i < EXITS; i++)
		scene_op(s, OP_CPUID, 0, 0);
	if (trace) {
		scene_op(s, OP_OUT, 0, 0);
		scene_op_stop(s, CTL_TRACE);
	}
	s->on_out = toggle;
	scene_load(s);
	if (host && host_pt_open(&pt, AUX_PAGES))
		die("msrcost: no PT event of the host");
	if (!trace)
		toggle(s, 0);
	end = scene_run(s);
	if (on)
		toggle(s, 0);
	printf("msrcost %s%s: %s %#llx, exits %llu", argv[1], host ? " host" : "",
	       scene_end_name(end), (unsigned long long)s->reason,
	       (unsigned long long)vcpu_stat(&s->vcpu, "exits"));
	if (trace)
		printf(", guest's bytes %llu", (unsigned long long)scene_output(s));
	if (host)
		printf(", host's bytes %llu", (unsigned long long)host_pt_head(&pt));
	printf("\n");
	return end != SCENE_DONE;
}
