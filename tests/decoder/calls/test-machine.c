// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Stacks against the truth of a small machine: programs and a kernel of random functions, several
 * tasks, system calls, interrupts, signals, tail calls, retpolines. It keeps the stack of each task
 * as it executes, and counts instructions by their path of callers; so must the decoder.
 */
#include <stdlib.h>
#include <string.h>

#include "decoder/vmpt-calls.h"
#include "tests/support/support.h"
#include "util/array.h"
#include "util/hash.h"

#define SIZE	64u /* bytes of a function */
#define COUNT	64u /* functions of a page */
#define PROGRAM 0x400000ULL
#define KERNEL	0xffffffff81000000ULL
#define TASKS	8
#define DEPTH	256
#define DEEP	8 /* indirect calls of deeper frames go to the last function */

/* Functions of the kernel that are not random. */
enum { K_SYSCALL, K_INTERRUPT, K_SWITCH, K_FORK, K_SCHEDULE, K_THREAD, K_THUNK, K_RANDOM };
/* Of the program; main calls functions for ever. */
enum { P_MAIN, P_RESTORER, P_THUNK, P_RETURN_THUNK, P_RANDOM };

struct truth_frame {
	u64 function, ret, path;
	u8 kind;
	bool thunk;
};

struct truth_task {
	struct truth_frame frame[DEPTH];
	unsigned int depth;
	u64 cr3, ip;
	bool kernel, started;
};

/* Instructions of one path. */
struct path {
	u64 hash, instructions, found;
};

static struct machine {
	struct test_rng rng;
	u8 program[VMPT_PAGE], kernel[VMPT_PAGE];
	struct truth_task task[TASKS];
	struct truth_task *now, *next;
	u64 ip;
	u8 *trace;
	size_t size, room;
	struct path *path;
	size_t paths;
	struct vmpt_hash path_of;
	bool signals, events;
	int switches; /* of tasks: 1: before a system call ends; 2: in any function of the kernel */
} m;

static u32 below(u32 n)
{
	return (u32)(test_random(&m.rng) % n);
}

/* ---- code ---- */

static u64 function_at(u64 ip)
{
	return ip & ~(u64)(SIZE - 1);
}

static u64 kernel_function(u32 n)
{
	return KERNEL + n * SIZE;
}

static u64 program_function(u32 n)
{
	return PROGRAM + n * SIZE;
}

/* E8 or E9 at @at of the function, which is at @ip, to @to. */
static u32 put_near(u8 *code, u32 at, u64 ip, u8 opcode, u64 to)
{
	s32 distance = (s32)(to - (ip + at + 5));

	code[at] = opcode;
	memcpy(code + at + 1, &distance, 4);
	return at + 5;
}

static u32 put_bytes(u8 *code, u32 at, const char *bytes, u32 n)
{
	memcpy(code + at, bytes, n);
	return at + n;
}

/* Direct calls go to functions further up, so that they end. */
static void make_function(u8 *page, u64 base, u32 n, u32 thunk, bool kernel)
{
	u8 *code = page + n * SIZE;
	u64 ip = base + n * SIZE;
	u32 at = 0, items = below(3), i;

	/* Where deep stacks go. */
	if (n + 1 == COUNT) {
		put_bytes(code, 0, "\x90\xc3", 2);
		return;
	}

	for (i = 0; i < items; i++)
		switch (below(kernel ? 6 : 7)) {
		case 0:
			at = put_bytes(code, at, "\x90", 1);
			break;
		case 1:
			at = put_bytes(code, at, "\x75\x00", 2);
			break;
		case 2:
			if (n + 1 < COUNT)
				at = put_near(code, at, ip, 0xe8,
					      base + (n + 1 + below(COUNT - n - 1)) * SIZE);
			break;
		case 3:
			at = put_bytes(code, at, "\xff\xd0", 2);
			break;
		case 4:
			at = put_near(code, at, ip, 0xe8, base + thunk * SIZE);
			break;
		case 5:
			if (kernel && m.switches > 1 && !below(12))
				at = put_near(code, at, ip, 0xe8, kernel_function(K_SCHEDULE));
			break;
		default:
			at = put_bytes(code, at, "\x0f\x05", 2);
			break;
		}
	i = below(12);
	if (kernel && i > 3)
		i = 12;
	if (i == 0 && n + 1 < COUNT)
		put_near(code, at, ip, 0xe9, base + (n + 1 + below(COUNT - n - 1)) * SIZE);
	else if (i == 1)
		put_bytes(code, at, "\xff\xe0", 2);
	else if (i == 4)
		put_near(code, at, ip, 0xe9, base + P_RETURN_THUNK * SIZE);
	else if (i == 5)
		put_near(code, at, ip, 0xe9, base + thunk * SIZE);
	else
		put_bytes(code, at, "\xc3", 1);
}

/* call 1f; 0: pause; jmp 0b; 1: nop; ret: as retpolines are */
static void make_thunk(u8 *code)
{
	put_bytes(code, 0, "\xe8\x04\x00\x00\x00\xf3\x90\xeb\xfc\x90\xc3", 11);
}

static void make_code(void)
{
	u64 ip = kernel_function(K_SCHEDULE);
	u8 *k = m.kernel, *p = m.program;
	u32 n;

	memset(k, 0xf4, VMPT_PAGE);
	memset(p, 0xf4, VMPT_PAGE);
	n = put_bytes(k, 0, "\x90\xff\xd0\x75\x05", 5);
	n = put_near(k, n, KERNEL, 0xe8, kernel_function(m.switches ? K_SCHEDULE : COUNT - 1));
	put_bytes(k, n, "\x48\xcf", 2);
	put_bytes(k + K_INTERRUPT * SIZE, 0, "\xff\xd0\x48\xcf", 4);
	put_bytes(k + K_SWITCH * SIZE, 0, "\x90\xc3", 2);
	put_bytes(k + K_FORK * SIZE, 0, "\xff\xd0\x48\xcf", 4);
	put_bytes(k + K_SCHEDULE * SIZE, 0, "\x0f\x22\xd8", 3);
	n = put_near(k + K_SCHEDULE * SIZE, 3, ip, 0xe8, kernel_function(K_SWITCH));
	put_bytes(k + K_SCHEDULE * SIZE, n, "\xc3", 1);
	n = put_bytes(k + K_THREAD * SIZE, 0, "\xff\xd0", 2);
	put_near(k + K_THREAD * SIZE, n, kernel_function(K_THREAD), 0xe9,
		 kernel_function(K_THREAD));
	make_thunk(k + K_THUNK * SIZE);
	n = put_bytes(p, 0, "\xff\xd0\x0f\x05", 4);
	put_near(p, n, PROGRAM, 0xe9, PROGRAM);
	put_bytes(p + P_RESTORER * SIZE, 0, "\x90\x0f\x05", 3);
	make_thunk(p + P_THUNK * SIZE);
	put_bytes(p + P_RETURN_THUNK * SIZE, 0, "\xc3", 1);
	for (n = K_RANDOM; n < COUNT; n++)
		make_function(k, KERNEL, n, K_THUNK, true);
	for (n = P_RANDOM; n < COUNT; n++)
		make_function(p, PROGRAM, n, P_THUNK, false);
}

static bool is_thunk(u64 function)
{
	return function == kernel_function(K_THUNK) || function == program_function(P_THUNK) ||
	       function == program_function(P_RETURN_THUNK);
}

/* ---- packets ---- */

static void put(u64 head, u32 head_size, u64 value, u32 size)
{
	ck_assert(!vmpt_reserve(&m.trace, &m.room, m.size + head_size + size));
	memcpy(m.trace + m.size, &head, head_size);
	memcpy(m.trace + m.size + head_size, &value, size);
	m.size += head_size + size;
}

static void put_tip(u64 ip)
{
	put(6u << 5 | 0x0d, 1, ip, 8);
}

static void put_fup(u64 ip)
{
	put(6u << 5 | 0x1d, 1, ip, 8);
}

static void put_pip(u64 cr3)
{
	put(0x4302, 2, cr3 >> 5 << 1, 6);
}

static void put_psb(void)
{
	u32 i;

	for (i = 0; i < 8; i++)
		put(0x8202, 2, 0, 0);
	put_pip(m.now->cr3);
	put(0x0199, 2, 0, 0);
	put_fup(m.ip);
	put(0x2302, 2, 0, 0);
}

/* ---- the truth ---- */

static u64 path_add(u64 path, u8 kind, u64 function)
{
	return vmpt_mix64(path + (function << 3 | kind));
}

static u64 path_root(u64 cr3)
{
	return vmpt_mix64(cr3);
}

static struct path *path_of(u64 hash)
{
	u32 i = vmpt_hash_find(&m.path_of, hash, k, m.path[k].hash == hash);

	if (i != VMPT_HASH_NONE)
		return &m.path[i];
	ck_assert(!vmpt_grow(&m.path, m.paths));
	ck_assert(!vmpt_hash_add(&m.path_of, hash, (u32)m.paths));
	m.path[m.paths] = (struct path){ .hash = hash };
	return &m.path[m.paths++];
}

static struct truth_frame *top(void)
{
	return &m.now->frame[m.now->depth - 1];
}

/* A thunk has no frame of its own: it counts for its caller. */
static void enter(u64 function, u8 kind, u64 ret)
{
	struct truth_task *t = m.now;
	bool kernel = function >> 63;
	u64 under = t->depth ? t->frame[t->depth - 1].path : path_root(kernel ? ~0ULL : t->cr3);
	bool thunk = is_thunk(function) && kind == VMPT_CALL_CALL;

	ck_assert_uint_lt(t->depth, DEPTH);
	t->frame[t->depth++] = (struct truth_frame){
		.function = function,
		.ret = ret,
		.kind = kind,
		.path = thunk ? under : path_add(under, kind, function),
		.thunk = thunk,
	};
}

static void become(u64 function)
{
	struct truth_frame old = *top();

	if (is_thunk(function))
		return;
	m.now->depth--;
	enter(function, old.kind, old.ret);
}

/* ---- execution ---- */

static u64 any_function(bool kernel)
{
	return kernel ? kernel_function(K_RANDOM + below(COUNT - K_RANDOM))
		      : program_function(P_RANDOM + below(COUNT - P_RANDOM));
}

/* Deep stacks go down. */
static u64 target(bool kernel)
{
	if (m.now->depth < DEEP)
		return any_function(kernel);
	return kernel ? kernel_function(COUNT - 1) : program_function(COUNT - 1);
}

static void jump(u64 to)
{
	put_tip(to);
	m.ip = to;
}

static void do_return(void)
{
	struct truth_frame f = *top();

	if (f.kind == VMPT_CALL_SIGNAL) {
		/* Its handler's frame ends where the kernel goes back. */
		jump(program_function(P_RESTORER));
		top()->function = m.ip;
		return;
	}
	m.now->depth--;
	jump(f.ret);
	if (!m.now->depth)
		enter(m.ip, VMPT_CALL_CALL, 0);
}

/* The handler of a signal runs first, and then comes back. */
static void do_exit(void)
{
	struct truth_frame f = *top();
	u64 to;

	m.now->depth--;
	if (!m.now->depth) {
		jump(PROGRAM);
		enter(PROGRAM, VMPT_CALL_CALL, 0);
	} else if (top()->kind == VMPT_CALL_SIGNAL &&
		   top()->function == program_function(P_RESTORER) && f.kind == VMPT_CALL_SYSTEM) {
		jump(top()->ret);
		m.now->depth--;
	} else if (m.signals && !(f.ret >> 63) && m.now->depth < DEEP && !below(8)) {
		/* A handler two bytes before is a system call that is made again. */
		do
			to = any_function(false);
		while (to == function_at(f.ret));
		jump(to);
		enter(to, VMPT_CALL_SIGNAL, f.ret);
	} else {
		jump(f.ret);
	}
}

/* "mov %rax, %cr3" of schedule(): the next task is chosen. */
static void choose_next(void)
{
	do
		m.next = &m.task[below(TASKS)];
	while (m.next == m.now);
	put_pip(m.next->kernel ? m.now->cr3 : m.next->cr3);
	if (m.next->kernel)
		m.next->cr3 = m.now->cr3;
}

static void do_switch(void)
{
	enter(kernel_function(K_SWITCH), VMPT_CALL_CALL, m.ip);
	m.now = m.next;
	if (!m.now->started) {
		m.now->started = true;
		m.now->depth = 0;
		enter(kernel_function(K_SWITCH), VMPT_CALL_CALL,
		      kernel_function(m.now->kernel ? K_THREAD : K_FORK));
	}
	m.ip = kernel_function(K_SWITCH);
}

static void do_call(u64 to, u64 ret)
{
	if (to == kernel_function(K_SWITCH)) {
		m.ip = ret;
		do_switch();
		return;
	}
	m.ip = to;
	enter(function_at(to), VMPT_CALL_CALL, ret);
}

/* The RET of a retpoline: both of its frames end, and another function runs. */
static void leave_thunk(bool kernel)
{
	bool inner = top()->ret && function_at(top()->ret) == function_at(m.ip);

	if (!inner) {
		do_return();
		return;
	}
	m.now->depth--;
	jump(target(kernel));
	become(m.ip);
}

static void step(void)
{
	bool kernel = m.ip >> 63;
	const u8 *page = kernel ? m.kernel : m.program;
	const u8 *p = page + (m.ip - (kernel ? KERNEL : PROGRAM));
	u64 at = m.ip;
	s32 distance;
	u32 taken;

	memcpy(&distance, p + 1, 4);
	if (m.events && !below(40) && at != kernel_function(K_INTERRUPT) &&
	    function_at(at) != kernel_function(K_SWITCH) && m.now->depth < DEPTH / 2) {
		put_fup(at);
		jump(kernel_function(K_INTERRUPT));
		enter(m.ip, VMPT_CALL_INTERRUPT, at);
		return;
	}
	path_of(top()->path)->instructions++;
	switch (*p) {
	case 0x90:
		m.ip++;
		break;
	case 0x75:
		taken = below(2);
		put(4 | taken << 1, 1, 0, 0);
		m.ip += 2 + (taken ? p[1] : 0);
		break;
	case 0xe8:
		do_call(at + 5 + (u64)(s64)distance, at + 5);
		break;
	case 0xe9:
		m.ip = at + 5 + (u64)(s64)distance;
		if (function_at(m.ip) != function_at(at))
			become(function_at(m.ip));
		break;
	case 0xff:
		if (p[1] == 0xd0) {
			u64 to = target(kernel);

			put_tip(to);
			do_call(to, at + 2);
		} else {
			jump(target(kernel));
			become(m.ip);
		}
		break;
	case 0xc3:
		if (is_thunk(function_at(at)))
			leave_thunk(kernel);
		else
			do_return();
		break;
	case 0x0f:
		if (p[1] == 0x22) {
			m.ip += 3;
			choose_next();
		} else {
			jump(kernel_function(K_SYSCALL));
			enter(m.ip, VMPT_CALL_SYSTEM, at + 2);
		}
		break;
	case 0x48:
		do_exit();
		break;
	default:
		ck_abort_msg("no instruction of the machine at %llx", (unsigned long long)at);
	}
}

static void run_machine(u64 seed, u32 steps)
{
	u32 i;

	m.rng.state = seed;
	make_code();
	for (i = 0; i < TASKS; i++) {
		m.task[i].cr3 = 0x1000 * (1 + i / 2);
		m.task[i].kernel = i >= TASKS - 2;
	}
	m.now = &m.task[0];
	m.now->started = true;
	m.ip = PROGRAM;
	enter(PROGRAM, VMPT_CALL_CALL, 0);
	put_psb();
	for (i = 0; i < steps; i++)
		step();
}

/* ---- the decoder ---- */

static bool function_of(void *opaque, const struct vmpt_space *space, u64 ip,
			struct vmpt_function *f)
{
	(void)opaque;
	(void)space;
	f->start = function_at(ip);
	f->role = is_thunk(f->start)			  ? VMPT_ROLE_THUNK
		  : f->start == kernel_function(K_SWITCH) ? VMPT_ROLE_SWITCH
							  : VMPT_ROLE_PLAIN;
	return true;
}

static struct vmpt_image *image_at(u64 address, const char *name, const u8 *bytes)
{
	struct vmpt_image_options options = { .kind = VMPT_IMAGE_BYTES,
					      .has_address = true,
					      .address = address };
	struct vmpt_image *image;

	ck_assert_int_eq(
		vmpt_image_open(&image, test_dir_file(name, bytes, VMPT_PAGE), &options, NULL), 0);
	return image;
}

/* Of each node its path, as the truth has it: unknown callers are none. */
static void take_tree(const struct vmpt_calls *calls)
{
	u32 i, n = vmpt_calls_nodes(calls);
	u64 *path = calloc(n, sizeof(*path));
	struct vmpt_call_node node;
	struct vmpt_space space;

	for (i = 1; i < n; i++) {
		vmpt_calls_node(calls, i, &node);
		if (node.kind == VMPT_CALL_ROOT) {
			/* The first child says whether it is the kernel's. */
			path[i] = 0;
			continue;
		}
		vmpt_calls_space(calls, node.space, &space);
		path[i] = path[node.parent];
		if (node.kind == VMPT_CALL_UNKNOWN)
			continue;
		if (!path[i])
			path[i] = path_root(node.function >> 63 ? ~0ULL : space.cr3);
		path[i] = path_add(path[i], node.kind, node.function);
		path_of(path[i])->found += node.instructions;
	}
	free(path);
}

static void compare(u64 seed, u32 steps)
{
	struct vmpt_image *program, *kernel;
	struct vmpt_calls_options o = { .function = function_of };
	const struct vmpt_stream *streams[1];
	struct vmpt_calls_counts counts;
	struct vmpt_stream stream = { .cpu = -1, .tid = -1 };
	struct vmpt_call_batch b;
	struct vmpt_calls *calls;
	struct vmpt_code *code;
	u64 wrong = 0, all = 0;
	size_t i;
	int ret;

	run_machine(seed, steps);
	test_dir_make();
	program = image_at(PROGRAM, "program", m.program);
	kernel = image_at(KERNEL, "kernel", m.kernel);
	ck_assert_int_eq(vmpt_code_new(&code), 0);
	ck_assert_int_eq(vmpt_code_add(code, NULL, NULL, program), 0);
	ck_assert_int_eq(vmpt_code_add(code, NULL, NULL, kernel), 0);
	stream.data = m.trace;
	stream.size = m.size;
	streams[0] = &stream;
	ck_assert_int_eq(vmpt_calls_open(&calls, streams, 1, NULL, code, &o), 0);
	while ((ret = vmpt_calls_next(calls, &b)) > 0)
		;
	ck_assert_int_eq(ret, 0);
	take_tree(calls);
	vmpt_calls_total(calls, &counts);
	ck_assert_uint_eq(counts.gaps, 0);
	for (i = 0; i < m.paths; i++) {
		u64 want = m.path[i].instructions, found = m.path[i].found;

		all += want;
		wrong += want > found ? want - found : 0;
	}
	/* The last node is counted up to its end. Tasks that could be others may be exchanged. */
	wrong -= wrong > 8 ? 8 : wrong;
	ck_assert_msg(wrong <= (counts.ambiguous ? all / 200 : 0),
		      "seed %llu: %llu of %llu instructions are in wrong paths",
		      (unsigned long long)seed, (unsigned long long)wrong, (unsigned long long)all);
	ck_assert_msg(counts.ambiguous || !counts.unmatched, "seed %llu: %llu returns to nowhere",
		      (unsigned long long)seed, (unsigned long long)counts.unmatched);
	/* Each task is new once. */
	ck_assert_uint_le(counts.switches - counts.resumed, TASKS + 2 * counts.ambiguous);
	vmpt_calls_close(calls);
	vmpt_code_free(code);
	vmpt_image_close(program);
	vmpt_image_close(kernel);
	test_dir_remove();
	free(m.trace);
	free(m.path);
	vmpt_hash_free(&m.path_of);
	memset(&m, 0, sizeof(m));
}

START_TEST(is_the_truth)
{
	m.events = _i % 4 > 0;
	m.signals = _i % 4 > 1;
	m.switches = _i >= 8;
	compare((u64)_i + 1, _i < 4 ? 500 : _i < 12 ? 30000 : 150000);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/calls/machine");
	TCase *tcase = test_long_case(suite);

	tcase_add_loop_test(tcase, is_the_truth, 0, test_rounds(400, 16));
	return suite;
}
