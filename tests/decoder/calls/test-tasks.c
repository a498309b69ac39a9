// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Short traces of tasks that change: what a task is, where several could be it, and what ends a
 * signal. Each is written by hand, with what it must come to.
 */
#include <string.h>

#include "decoder/vmpt-calls.h"
#include "tests/support/support.h"

#define SIZE	64u /* bytes of a function */
#define PROGRAM 0x400000ULL
#define KERNEL	0xffffffff81000000ULL
#define CR3	0x1000ULL

/* Functions, and what they are. */
enum {
	ENTRY = 0,  /* iret */
	EVENT = 1,  /* call SCHEDULE; iret */
	SWITCH = 2, /* nop; ret */
	/* 1: call SWITCH; jnz 1b; ret */
	SCHEDULE = 3,
	/* Four threads. 1: call SCHEDULE; jmp 1b */
	THREAD = 4,
};
#define AT(function) (KERNEL + (function)*SIZE)
#define AFTER_CALL   5

/* syscall; int3; int $0x80; jmp *%rax */
#define MAIN	   PROGRAM
#define MAIN_INT3  (MAIN + 2)
#define MAIN_INT80 (MAIN + 3)
#define MAIN_JUMP  (MAIN + 5)
#define HANDLER	   (PROGRAM + SIZE)	/* ret */
#define RESTORER   (PROGRAM + 2 * SIZE) /* syscall */
#define STREAMS	   2

static struct packets {
	u8 bytes[4096];
	size_t size;
} packets[STREAMS], *to;
static u8 program[VMPT_PAGE], kernel[VMPT_PAGE];

/* ---- packets ---- */

static void put(u64 head, u32 head_size, u64 value, u32 size)
{
	ck_assert_uint_le(to->size + head_size + size, sizeof(to->bytes));
	memcpy(to->bytes + to->size, &head, head_size);
	memcpy(to->bytes + to->size + head_size, &value, size);
	to->size += head_size + size;
}

static void tip(u64 ip)
{
	put(6u << 5 | 0x0d, 1, ip, 8);
}

static void fup(u64 ip)
{
	put(6u << 5 | 0x1d, 1, ip, 8);
}

static void tnt(u32 taken)
{
	put(4 | taken << 1, 1, 0, 0);
}

/* Stream @i, of a vCPU, begins at @ip. */
static void begin(u32 i, u64 cr3, u64 ip)
{
	u32 k;

	to = &packets[i];
	to->size = 0;
	for (k = 0; k < 8; k++)
		put(0x8202, 2, 0, 0);
	put(0x4302, 2, cr3 >> 5 << 1 | 1, 6);
	put(0xc802, 2, i + 1, 5);
	put(0x0199, 2, 0, 0);
	fup(ip);
	put(0x2302, 2, 0, 0);
}

/* ---- code ---- */

static void put_call(u32 function, u32 at, u64 where)
{
	const s32 distance = (s32)(where - (AT(function) + at + AFTER_CALL));

	kernel[function * SIZE + at] = 0xe8;
	memcpy(kernel + function * SIZE + at + 1, &distance, 4);
}

static void put_bytes(u8 *to, const char *bytes, size_t n)
{
	memcpy(to, bytes, n);
}

static void make_code(void)
{
	u32 i;

	memset(program, 0xf4, sizeof(program));
	memset(kernel, 0xf4, sizeof(kernel));
	put_bytes(program, "\x0f\x05\xcc\xcd\x80\xff\xe0", 7);
	put_bytes(program + SIZE, "\xc3", 1);
	put_bytes(program + 2 * SIZE, "\x0f\x05", 2);
	put_bytes(kernel + ENTRY * SIZE, "\x48\xcf", 2);
	put_call(EVENT, 0, AT(SCHEDULE));
	put_bytes(kernel + EVENT * SIZE + AFTER_CALL, "\x48\xcf", 2);
	put_bytes(kernel + SWITCH * SIZE, "\x90\xc3", 2);
	put_call(SCHEDULE, 0, AT(SWITCH));
	put_bytes(kernel + SCHEDULE * SIZE + AFTER_CALL, "\x75\xf9\xc3", 3);
	for (i = THREAD; i < THREAD + 4; i++) {
		put_call(i, 0, AT(SCHEDULE));
		put_bytes(kernel + i * SIZE + AFTER_CALL, "\xeb\xf9", 2);
	}
}

/* ---- the decoder ---- */

static bool function_of(void *opaque, const struct vmpt_space *space, u64 ip,
			struct vmpt_function *f)
{
	(void)opaque;
	(void)space;
	f->start = ip & ~(u64)(SIZE - 1);
	f->role = f->start == AT(SWITCH) ? VMPT_ROLE_SWITCH : VMPT_ROLE_PLAIN;
	return true;
}

static u32 one_vm(void *opaque, const struct vmpt_owner *owner)
{
	(void)opaque;
	(void)owner;
	return 1;
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

static struct result {
	struct vmpt_calls_counts counts;
	u32 tasks;
	u64 calls[VMPT_CALL_KINDS], in_main; /* system calls that MAIN made */
	u64 root;			     /* of the first thread */
} r;

static void take_tree(const struct vmpt_calls *calls)
{
	struct vmpt_call_node n, up;
	u32 i;

	for (i = 1; i < vmpt_calls_nodes(calls); i++) {
		vmpt_calls_node(calls, i, &n);
		vmpt_calls_node(calls, n.parent, &up);
		r.calls[n.kind] += n.calls;
		if (n.kind == VMPT_CALL_SYSTEM && up.kind == VMPT_CALL_CALL && up.function == MAIN)
			r.in_main += n.calls;
		if (n.function != AT(THREAD))
			continue;
		while (up.kind != VMPT_CALL_ROOT)
			vmpt_calls_node(calls, up.parent, &up);
		r.root = up.function;
	}
}

static void decode(size_t count)
{
	const struct vmpt_calls_options o = { .function = function_of, .vm = one_vm };
	struct vmpt_stream stream[STREAMS];
	const struct vmpt_stream *streams[STREAMS];
	struct vmpt_image *low, *high;
	struct vmpt_call_batch b;
	struct vmpt_calls *calls;
	struct vmpt_code *code;
	size_t i;
	int ret;

	memset(&r, 0, sizeof(r));
	make_code();
	test_dir_make();
	low = image_at(PROGRAM, "program", program);
	high = image_at(KERNEL, "kernel", kernel);
	ck_assert_int_eq(vmpt_code_new(&code), 0);
	ck_assert_int_eq(vmpt_code_add(code, NULL, NULL, low), 0);
	ck_assert_int_eq(vmpt_code_add(code, NULL, NULL, high), 0);
	for (i = 0; i < count; i++) {
		stream[i] = (struct vmpt_stream){
			.cpu = -1, .tid = -1, .data = packets[i].bytes, .size = packets[i].size
		};
		streams[i] = &stream[i];
	}
	ck_assert_int_eq(vmpt_calls_open(&calls, streams, count, NULL, code, &o), 0);
	while ((ret = vmpt_calls_next(calls, &b)) > 0)
		;
	ck_assert_int_eq(ret, 0);
	take_tree(calls);
	vmpt_calls_total(calls, &r.counts);
	r.tasks = vmpt_calls_tasks(calls);
	ck_assert_uint_eq(r.counts.gaps, 0);
	ck_assert_uint_eq(r.counts.unmatched, 0);
	vmpt_calls_close(calls);
	vmpt_code_free(code);
	vmpt_image_close(low);
	vmpt_image_close(high);
	test_dir_remove();
}

/* ---- traces ---- */

/* After a SWITCH: back in @caller, from SCHEDULE. */
static void go_on_in(u64 caller)
{
	tip(AT(SCHEDULE) + AFTER_CALL);
	tnt(0);
	tip(caller);
}

/* The program is interrupted at @ip, and its task left. */
static void interrupt(u64 ip)
{
	fup(ip);
	tip(AT(EVENT));
}

/* A signal, and an interrupt at the first instruction of its handler that switches. */
START_TEST(signal_interrupted)
{
	begin(0, CR3, MAIN);
	interrupt(MAIN);
	tip(AT(THREAD));
	tip(AT(THREAD + 1));
	/* The program's task, or the first thread: it is the thread. */
	tip(AT(SCHEDULE) + AFTER_CALL);
	tnt(1);
	go_on_in(AT(EVENT) + AFTER_CALL);
	tip(MAIN);
	tip(AT(ENTRY));
	tip(HANDLER);
	interrupt(HANDLER);
	go_on_in(AT(THREAD + 1) + AFTER_CALL);
	go_on_in(AT(EVENT) + AFTER_CALL);
	tip(HANDLER);
	tip(RESTORER);
	tip(AT(ENTRY));
	tip(MAIN_INT3);
	fup(MAIN_INT3);
	tip(AT(ENTRY));
	tip(MAIN_INT80);
	decode(1);
	ck_assert_uint_eq(r.tasks, 3);
	ck_assert_uint_eq(r.calls[VMPT_CALL_INTERRUPT], 2);
	ck_assert_uint_eq(r.calls[VMPT_CALL_SIGNAL], 1);
	ck_assert_uint_eq(r.in_main, 2);
}
END_TEST

/* INT3 and INT 80H are system calls that return after them: no signal. */
START_TEST(soft_interrupts)
{
	begin(0, CR3, MAIN);
	tip(AT(ENTRY));
	tip(MAIN_INT3);
	fup(MAIN_INT3);
	tip(AT(ENTRY));
	tip(MAIN_INT80);
	fup(MAIN_INT80);
	tip(AT(ENTRY));
	tip(MAIN_JUMP);
	tip(MAIN);
	tip(AT(ENTRY));
	tip(MAIN_INT3);
	decode(1);
	ck_assert_uint_eq(r.in_main, 4);
	ck_assert_uint_eq(r.calls[VMPT_CALL_SYSTEM], 4);
	ck_assert_uint_eq(r.calls[VMPT_CALL_INTERRUPT], 0);
	ck_assert_uint_eq(r.calls[VMPT_CALL_SIGNAL], 0);
}
END_TEST

/* The handler goes on after the instruction that made the signal. */
START_TEST(signal_skips)
{
	begin(0, CR3, MAIN);
	interrupt(MAIN_INT80 - 3);
	tip(AT(THREAD));
	go_on_in(AT(EVENT) + AFTER_CALL);
	tip(HANDLER);
	tip(RESTORER);
	tip(AT(ENTRY));
	tip(MAIN_INT80);
	fup(MAIN_INT80);
	tip(AT(ENTRY));
	tip(MAIN_JUMP);
	decode(1);
	ck_assert_uint_eq(r.calls[VMPT_CALL_SIGNAL], 1);
	ck_assert_uint_eq(r.in_main, 1);
}
END_TEST

/* Which of two threads the first vCPU runs is not known before the second one runs the other. */
START_TEST(exchanged_with_running)
{
	begin(0, CR3, AT(THREAD));
	tip(AT(THREAD + 1));
	tip(AT(THREAD + 2));
	tip(AT(SCHEDULE) + AFTER_CALL);
	begin(1, CR3, AT(THREAD + 3));
	go_on_in(AT(THREAD) + AFTER_CALL);
	tip(AT(SCHEDULE) + AFTER_CALL);
	decode(2);
	ck_assert_uint_eq(r.tasks, 4);
}
END_TEST

/* What the firmware's stack becomes is the kernel's. */
START_TEST(boots)
{
	begin(0, 0, MAIN_JUMP);
	tip(AT(THREAD));
	tip(AT(THREAD + 1));
	decode(1);
	ck_assert_uint_eq(r.root, ~0ULL);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/calls/tasks");
	TCase *tcase = tcase_create("tasks");

	tcase_add_test(tcase, signal_interrupted);
	tcase_add_test(tcase, soft_interrupts);
	tcase_add_test(tcase, signal_skips);
	tcase_add_test(tcase, exchanged_with_running);
	tcase_add_test(tcase, boots);
	suite_add_tcase(suite, tcase);
	return suite;
}
