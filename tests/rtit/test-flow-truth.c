// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The checker itself: a program of a few bytes, its packets by hand and as a truth file, is equal;
 * with one packet, block or byte changed it is not.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/truth-format.h"
#include "tests/rtit/flow-truth.h"
#include "tests/rtit/write.h"
#include "tests/support/support.h"

/*
 *	401000	90		start: nop
 *	401001	75 0d		jne int
 *	401003	e8 f8 00 00 00	call function
 *	401008	f3 a4		rep: rep movsb
 *	40100a	ff e0		jmp *%rax, to int
 *	401010	cd 80		int: int $0x80
 *	401012	eb ec		back: jmp start
 *	401100	31 c0		function: xor %eax,%eax
 *	401102	c3		ret
 *	402000	48 cf		handler: iretq
 */
static const struct block {
	char name;
	u64 ip;
	u32 insns, size;
	u8 bytes[24]; /* lengths, then code */
} blocks[] = {
	{ 's', 0x401000, 2, 3, { 1, 2, 0x90, 0x75, 0x0d } },
	{ 'c', 0x401003, 1, 5, { 5, 0xe8, 0xf8, 0, 0, 0 } },
	{ 'r', 0x401008, 1, 2, { 2, 0xf3, 0xa4 } },
	{ 'j', 0x40100a, 1, 2, { 2, 0xff, 0xe0 } },
	{ 'i', 0x401010, 1, 2, { 2, 0xcd, 0x80 } },
	{ 'b', 0x401012, 1, 2, { 2, 0xeb, 0xec } },
	{ 'f', 0x401100, 2, 3, { 2, 1, 0x31, 0xc0, 0xc3 } },
	{ 'h', 0x402000, 1, 2, { 2, 0x48, 0xcf } },
	/* wrong: back is two NOPs; function has a longer first instruction */
	{ 'B', 0x401012, 2, 2, { 1, 1, 0x90, 0x90 } },
	{ 'F', 0x401100, 1, 3, { 3, 0x0f, 0x1f, 0x00 } },
};

/* START, CALL, FUNCTION, REP in three turns, JUMP, INT, HANDLER, BACK */
#define TURN   "s c f r r r j i E401010>402000 h b "
#define PASSED "TNT:NT TIP:401010 FAR:401012 TIP:402000 FAR:402002 TIP:401012 "

static const struct check_case {
	const char *name;
	const char *packets;
	/* Blocks; fN: part of N instructions; EFROM>TO event; +IP begin, -IP end; SFLAGS,IP,CTL,CR3
	 */
	const char *truth;
	bool equal, overflow, traced;
	u64 skip, tail, cr3;
	u64 range[2]; /* RANGE0 is the filter, if not 0 */
} cases[] = {
	{ "a turn", "PGE:401000 " PASSED "PGD:401012", TURN, .equal = false, .tail = 0 },
	{ "a turn and its tail", "PGE:401000 " PASSED "PGD:401012", TURN, .equal = true,
	  .tail = 1 },
	{ "the whole", "PGE:401000 " PASSED "PGD:401014", TURN, .equal = true },
	{ "twice", "PGE:401000 " PASSED PASSED "PGD:401012", TURN TURN, .equal = true, .tail = 1 },
	{ "another TNT", "PGE:401000 TNT:TT PGD:401012", TURN, .equal = false, .tail = 100 },
	{ "another TIP", "PGE:401000 TNT:NT TIP:401012 PGD:401014", TURN, .equal = false,
	  .tail = 100 },
	{ "another far target",
	  "PGE:401000 TNT:NT TIP:401010 FAR:401012 TIP:402001 FAR:402002 TIP:401012 PGD:401014",
	  TURN, .equal = false },
	{ "a block is missing", "PGE:401000 " PASSED "PGD:401014", "s c r j i E401010>402000 h b",
	  .equal = false },
	{ "an additional block", "PGE:401000 " PASSED "PGD:401014",
	  "s c f r r r j j i E401010>402000 h b", .equal = false },
	{ "other code", "PGE:401000 " PASSED "TNT:NT PGD:401008",
	  "s c f r j i E401010>402000 h B s c f", .equal = false },
	{ "the code of the trace", "PGE:401000 " PASSED "TNT:NT PGD:401008",
	  "s c f r j i E401010>402000 h b s c f", .equal = true },
	{ "other lengths", "PGE:401000 " PASSED "PGD:401014", "s c F r j i E401010>402000 h b",
	  .equal = false },
	{ "no event in the truth", "PGE:401000 " PASSED "PGD:401014", "s c f r j i h b",
	  .equal = true },
	{ "an event elsewhere", "PGE:401000 " PASSED "PGD:401014", "s c f r j i E401012>402000 h b",
	  .equal = true },
	{ "an event to elsewhere", "PGE:401000 " PASSED "PGD:401014",
	  "s c f r j i E401010>402002 h b", .equal = false },
	{ "an interrupt",
	  "PGE:401000 TNT:N FAR:401102 TIP:402000 FAR:402002 TIP:401102 TNT:T PGD:40100a",
	  "s c f1 E401102>402000 h E1>2", .equal = false },
	{ "an interrupt, and on",
	  "PGE:401000 TNT:N FAR:401100 TIP:402000 FAR:402002 TIP:401100 TNT:T PGD:40100a",
	  "s c E401100>402000 h f r", .equal = true },
	{ "an interrupt that the trace lacks", "PGE:401000 TNT:NT PGD:40100a",
	  "s c E401100>402000 f r", .equal = false },
	{ "an interrupt that the truth lacks",
	  "PGE:401000 TNT:N FAR:401100 TIP:402000 FAR:402002 TIP:401100 TNT:T PGD:40100a",
	  "s c f r", .equal = false },
	{ "a part", "PGE:401000 PGD:401001", "s1", .equal = true },
	{ "more than the part", "PGE:401000 PGD:401001", "s", .equal = false },
	{ "disabled and enabled", "PGE:401000 PGD:401001 PGE:401001 TNT:NT PGD:401008", "s c f",
	  .equal = true },
	{ "disabled for a while", "PGE:401000 PGD:401001 PGE:401008 PGD:40100a", "s c f r",
	  .equal = false },
	{ "disabled for a while, allowed", "PGE:401000 PGD:401001 PGE:401008 PGD:40100a", "s c f r",
	  .equal = true, .skip = 4 },
	{ "an overflow", "PGE:401000 TNT:N OVF:40100a TIP:401010 PGD:401010", "s c f r j",
	  .equal = false },
	{ "an overflow, allowed", "PGE:401000 TNT:N OVF:40100a TIP:401010 PGD:401010", "s c f r j",
	  .equal = true, .overflow = true },
	{ "an overflow that ends nowhere",
	  "PGE:401000 TNT:N OVF:402000 PGD:402000 PGE:402000 FAR:402002 TIP:401012 PGD:401012",
	  "s c f r j", .equal = false, .overflow = true },
	/* CPL 3, long mode, CS.L: 4 is paging. CTL: Trace_En, TraceActive, User. */
	{ "what is traced", "PGE:401003 TNT:T PGD:401008",
	  "S57,401000,1,0 s S57,401003,2009,0 c f S57,401008,9,0 r j", .equal = true,
	  .traced = true },
	{ "what is traced, with CR3", "PGE:401003 TNT:T PGD:401008",
	  "S57,401000,2089,3000 s S57,401003,2089,5000 c f S57,401008,2089,3000 r j", .equal = true,
	  .traced = true, .cr3 = 0x5000 },
	{ "what is traced, with another CR3", "PGE:401003 TNT:T PGD:401008",
	  "S57,401000,2089,3000 s S57,401003,2089,5000 c f S57,401008,2089,3000 r j",
	  .equal = false, .traced = true, .cr3 = 0x3000 },
	/* RANGE0: CALL and REP; or FUNCTION. */
	{ "in a range", "PGE:401003 PGD:401008 PGE:401008 PGD:40100a", TURN, .equal = true,
	  .range = { 0x401003, 0x40100a } },
	{ "in a range, the first time missing", "PGE:401008 PGD:40100a", TURN, .equal = false,
	  .skip = 100, .tail = 100, .range = { 0x401003, 0x40100a } },
	{ "the same, the range is not known", "PGE:401008 PGD:40100a", TURN, .equal = true,
	  .skip = 100, .tail = 100 },
	{ "in a range, the last time missing", "PGE:401003 PGD:401008", TURN, .equal = false,
	  .skip = 100, .tail = 100, .range = { 0x401003, 0x40100a } },
	{ "in a range, two turns",
	  "PGE:401100 TIP:401008 PGD:401103 PGE:401100 TIP:401008 PGD:401103", TURN TURN,
	  .equal = true, .range = { 0x401100, 0x401103 } },
	{ "in a range, one of two turns", "PGE:401100 TIP:401008 PGD:401103", TURN TURN,
	  .equal = false, .skip = 100, .tail = 100, .range = { 0x401100, 0x401103 } },
	{ "in a range, an interrupt there that the trace lacks", "PGE:401100 TIP:401008 PGD:401103",
	  "s c f1 E401102>402000 h j", .equal = false, .tail = 100,
	  .range = { 0x401100, 0x401103 } },
	{ "bytes that are not a packet", "PGE:401000 TNT:N", "s", .equal = false },
};

/* ---- the truth ---- */

struct truth {
	u32 words[1024];
	size_t n;
};

static void put(struct truth *t, u32 word)
{
	ck_assert_uint_lt(t->n, VMPT_ARRAY_SIZE(t->words));
	t->words[t->n++] = word;
}

static void put64(struct truth *t, u64 v)
{
	put(t, (u32)v);
	put(t, (u32)(v >> 32));
}

static void define_all(struct truth *t)
{
	u32 id, i, w;

	for (id = 0; id < VMPT_ARRAY_SIZE(blocks); id++) {
		const struct block *b = &blocks[id];

		put(t, TRUTH_DEFINE);
		put(t, id);
		put64(t, b->ip);
		put(t, b->insns);
		put(t, b->size);
		for (i = 0; i < (b->insns + b->size + 3) / 4; i++) {
			memcpy(&w, b->bytes + 4 * i, 4);
			put(t, w);
		}
	}
}

static void put_block(struct truth *t, const char *word)
{
	u32 id = 0;

	while (blocks[id].name != *word)
		ck_assert_uint_lt(++id, VMPT_ARRAY_SIZE(blocks));
	if (word[1]) {
		put(t, TRUTH_PART);
		put(t, id);
		put(t, (u32)atoi(word + 1));
	} else {
		put(t, id);
	}
}

static void put_word(struct truth *t, char *word)
{
	u64 v[4] = { 0 };
	char *at = word;
	unsigned int n;

	if (!strchr("ES", *word)) {
		put_block(t, word);
		return;
	}
	for (n = 0; n < 4 && *at; n++)
		v[n] = strtoull(at + 1, &at, 16);
	put(t, *word == 'E' ? TRUTH_EVENT : TRUTH_STATE);
	if (*word == 'S')
		put(t, (u32)v[0]);
	else
		put64(t, v[0]);
	put64(t, v[1]);
	if (*word == 'E')
		return;
	put64(t, v[2]);
	put64(t, v[3]);
	put64(t, 0);
}

static int truth_file(const char *text)
{
	struct truth t = { .n = 0 };
	char copy[256], *save, *word;
	int fd = memfd_create("truth", 0);

	ck_assert_int_ge(fd, 0);
	define_all(&t);
	put(&t, TRUTH_BEGIN);
	put64(&t, 0x401000);
	snprintf(copy, sizeof(copy), "%s", text);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		put_word(&t, word);
	ck_assert_int_eq(write(fd, TRUTH_MAGIC, 8), 8);
	ck_assert_int_eq(write(fd, t.words, 4 * t.n), (ssize_t)(4 * t.n));
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* ---- the comparison ---- */

static bool compare(const struct check_case *c, const struct rtit_write *b,
		    struct rtit_check_counts *counts)
{
	struct vmpt_rtit_regs regs = {
		.lip = { c->range[0], 0, c->range[1] },
		.events = VMPT_RTIT_EVENT_RANGE0 | VMPT_RTIT_EVENT_OFF
							   << VMPT_RTIT_EVENTS_STOP_SHIFT,
	};
	struct rtit_check_options options = { .flow.regs = c->range[0] ? &regs : NULL,
					      .allow_overflow = c->overflow,
					      .skip = c->skip,
					      .tail = c->tail };
	struct truth_reader reader;
	char path[32];
	int fd = truth_file(c->truth);
	bool equal;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ck_assert(truth_reader_open(&reader, path));
	reader.traced_only = c->traced;
	reader.trace_en = VMPT_RTIT_CTL_TRIGGER;
	reader.cr3_match = c->cr3;
	equal = rtit_flow_check(&reader, b->data, b->size, &options, counts);
	truth_reader_close(&reader);
	close(fd);
	return equal;
}

START_TEST(test_check)
{
	const struct check_case *c = &cases[_i];
	struct rtit_write b = { .size = 0 };
	struct rtit_check_counts counts;

	rtit_write(&b, c->packets);
	if (strncmp(c->name, "bytes", 5) == 0)
		b.data[b.size++] = 0xff;
	ck_assert_msg(compare(c, &b, &counts) == c->equal, "%s: %s", c->name,
		      c->equal ? "they differ" : "no difference is found");
}
END_TEST

START_TEST(test_counts)
{
	static const struct check_case c = { .truth = TURN, .tail = 1 };
	struct rtit_write b = { .size = 0 };
	struct rtit_check_counts n;

	rtit_write(&b, "PGE:401000 " PASSED "PGD:401012");
	ck_assert(compare(&c, &b, &n));
	ck_assert_uint_eq(n.flow.insns, 9);
	ck_assert_uint_eq(n.blocks, 10);
	ck_assert_uint_eq(n.merged, 2);
	ck_assert_uint_eq(n.events, 1);
	ck_assert_uint_eq(n.tail, 1);
	ck_assert_uint_eq(n.skipped, 0);
	ck_assert_uint_eq(n.flow.events[RTIT_FLOW_FAR], 2);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("rtit/flow-check");
	TCase *tc = tcase_create("flow-check");

	tcase_add_loop_test(tc, test_check, 0, VMPT_ARRAY_SIZE(cases));
	tcase_add_test(tc, test_counts);
	suite_add_tcase(suite, tc);
	return suite;
}
