// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Traces made to be slow. Look-ahead over a PSB+, a group or a CFE must not walk the same bytes
 * again and again: quadratic work on 8 MiB of them takes hours, linear work less than a second. The
 * time limit below is far from both.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/decoder/notation.h"
#include "decoder/vmpt-extract.h"
#include "tests/support/support.h"

#define SIZE ((unsigned int)test_rounds(8 << 20, 2 << 20))

static const struct {
	const char *name, *head, *piece;
} hostile[] = {
	{ "MODE.Exec only", "psb psbend", "exec:64" },
	{ "PIPs without a TIP", "psb psbend", "pip:2000:nr pip:1000" },
	{ "PIPs in timing", "psb psbend", "pip:2000:nr mtc:1 mtc:2 pip:1000 mtc:3" },
	{ "VMCSs only", "psb pip:2000:nr psbend", "vmcs:a000 vmcs:b000" },
	{ "one long group", "psb psbend", "pip:2000:nr exec:64 vmcs:a000 tsc:5" },
	{ "CFEs in timing", "psb psbend", "cfe:VMENTRY tsc:1 mtc:1 cfe:VMEXIT tsc:2" },
	{ "CFEs before groups", "psb psbend", "cfe:VMENTRY:ip fup:8000 exec:64 vmcs:a000" },
	{ "PSBs with FUPs before padding", "psb psbend", "psb fup:8000 pad*40" },
	{ "PSBs without PIP before padding", "psb pip:1000 psbend", "psb vmcs:a000 psbend pad*40" },
	{ "doubts", "psb pip:1000 psbend", "ovf pgd:-" },
	{ "errors", "psb psbend", "psb raw:05" },
	{ "blocks", "psb psbend", "bbp:4:0 bip:0:1" },
};

static int new_stream(void *opaque, int stream, const struct vmpt_owner *owner)
{
	(void)opaque;
	(void)stream;
	(void)owner;
	return 0;
}

static int count_write(void *opaque, int stream, const u8 *bytes, size_t n)
{
	(void)stream;
	(void)bytes;
	(void)n;
	++*(u64 *)opaque;
	return 0;
}

static const struct vmpt_extract_ops ops = { new_stream, count_write, NULL };

/* @head once, then @piece until @size is full. */
static u8 *repeat(const char *head, const char *piece, size_t size)
{
	static struct notation h, p;
	u8 *bytes = calloc(1, size);
	size_t at;

	ck_assert_ptr_nonnull(bytes);
	notation_read(&h, head);
	notation_read(&p, piece);
	memcpy(bytes, h.bytes, h.size);
	for (at = h.size; at + p.size <= size; at += p.size)
		memcpy(bytes + at, p.bytes, p.size);
	return bytes;
}

START_TEST(hostile_traces_take_linear_work)
{
	u8 *bytes = repeat(hostile[_i].head, hostile[_i].piece, SIZE);
	struct vmpt_stream stream = { .data = bytes, .size = SIZE, .tid = -1 };
	struct vmpt_splitter *split;
	struct vmpt_slice slice;
	u64 covered = 0, writes = 0;

	ck_assert_int_eq(vmpt_splitter_open(&split, &stream, NULL), 0);
	while (vmpt_split_next(split, &slice) > 0)
		covered += slice.size;
	vmpt_splitter_close(split);
	ck_assert_uint_eq(covered, SIZE);
	ck_assert_int_eq(vmpt_extract(&stream, NULL, &ops, &writes), 0);
	free(bytes);
}
END_TEST

/* Others' MTCs are buffered: not one write per MTC and stream. */
START_TEST(timing_of_others_is_written_in_pieces)
{
	enum { VMS = 100, MTCS = 20000 };
	size_t size = 64 + VMS * 64 + 2 * MTCS, at = 0;
	u8 *bytes = calloc(1, size);
	struct vmpt_stream stream = { .data = bytes, .tid = -1 };
	static struct notation n;
	char text[200];
	u64 writes = 0;
	int i;

	ck_assert_ptr_nonnull(bytes);
	for (i = 1; i <= VMS; i++) {
		snprintf(text, sizeof(text), "psb pip:2000:nr vmcs:%x000 psbend", i);
		notation_read(&n, text);
		memcpy(bytes + at, n.bytes, n.size);
		at += n.size;
	}
	notation_read(&n, "psb pip:1000 psbend");
	memcpy(bytes + at, n.bytes, n.size);
	at += n.size;
	for (i = 0; i < MTCS; i++) {
		bytes[at++] = 0x59;
		bytes[at++] = (u8)i;
	}
	stream.size = at;
	ck_assert_int_eq(vmpt_extract(&stream, NULL, &ops, &writes), 0);
	/* 40,000 bytes to each of 100 streams, in pieces of 512. */
	ck_assert_uint_lt(writes, VMS * 100);
	free(bytes);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/hostile");
	TCase *t = test_long_case(s);

	tcase_add_loop_test(t, hostile_traces_take_linear_work, 0, VMPT_ARRAY_SIZE(hostile));
	tcase_add_test(t, timing_of_others_is_written_in_pieces);
	return s;
}
