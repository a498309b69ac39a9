// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Does the flow decoder find what was executed?
 *
 *	insn-check [OPTION]... TRACE OWNER=TRUTH...
 *
 *	--code=[OWNER:]FILE[@ADDR]	an image of the code, of this owner or of all; may be
 *repeated
 *	--cpu=N			the stream of this CPU, where TRACE has several
 *	--traced		the truths are limited to what was executed with TraceEn = 1
 *	--tail=N		a truth may have N instructions that the trace does not have at its
 *end
 *	--gaps=N		print N gaps, 20 by default
 *	--altered=N		up to N instructions may have other bytes: the code does not know
 *when it changed
 *
 * OWNER: "host" or a VMCS. TRUTH: what it executed (model/truth-format.h). One stream is decoded
 * with all its owners, and each instruction is compared with the next one in the truth of its
 * owner: address, bytes, CR3 and mode. After a gap the place is searched for in the truth, and what
 * is in between is counted as missing. Instructions of an owner without a truth are counted only.
 * Exit code 0: equal, but for the gaps; 1: not; 2: usage.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/vmpt-flow.h"
#include "tests/flow/cursor.h"
#include "util/array.h"
#include "util/hash.h"

#define OWNERS 16u
#define IMAGES 32u
#define PAST   16u
#define HASH_P 0x9e3779b97f4a7c15ULL

/* This many equal instructions after a gap show that the right place was found. */
#define SURE 1000u

struct side {
	struct vmpt_owner owner;
	const char *name;
	struct truth_reader reader;
	struct cursor cursor;
	u64 insns, missing, implied, tail;
	u64 unsure; /* instructions that must still be equal after a gap */
};

struct known_block {
	struct vmpt_flow_block b;
	u64 serial; /* of the block of the truth that has its bytes, from .code on; 0: none yet */
	u32 code;
};

static struct side sides[OWNERS];
static unsigned int side_count;
static struct known_block *blocks;
static size_t block_count;
/* The owner of each address space; NULL: none that has a truth. */
static struct space {
	struct vmpt_space id;
	struct side *side;
} * spaces;
static size_t space_count;
static struct vmpt_flow *flow;
static u64 insns, unchecked, hash, gap_count, gaps_shown = 20, altered, altered_max;
static u64 past[PAST];

static bool parse_owner(struct vmpt_owner *owner, const char *text, size_t n)
{
	char *end;

	*owner = (struct vmpt_owner){ .kind = VMPT_OWNER_HOST };
	if (n == 4 && !strncmp(text, "host", 4))
		return true;
	owner->kind = VMPT_OWNER_VM;
	owner->vmcs = strtoull(text, &end, 16);
	return n && end == text + n;
}

/* ---- a difference ---- */

static bool differ(const struct side *s, const char *what, u64 ip, u64 offset)
{
	const struct cursor *c = &s->cursor;
	u64 i;

	if (*s->reader.error) {
		fprintf(stderr, "%s: %s\n", s->name, s->reader.error);
		return false;
	}
	fprintf(stderr, "%s: instruction %llu, trace offset %#llx: %s %llx\n", s->name,
		(unsigned long long)s->insns, (unsigned long long)offset, what,
		(unsigned long long)ip);
	if (cursor_in_block(c))
		fprintf(stderr, "  the truth has %llx, CR3 %llx\n", (unsigned long long)c->ip,
			(unsigned long long)c->item.cr3);
	fprintf(stderr, "  last executed:");
	for (i = c->passed > PAST ? c->passed - PAST : 0; i < c->passed; i++)
		fprintf(stderr, " %llx", (unsigned long long)c->past[i % CURSOR_PAST]);
	fprintf(stderr, "\n  last decoded: ");
	for (i = insns > PAST ? insns - PAST : 0; i < insns; i++)
		fprintf(stderr, " %llx", (unsigned long long)past[i % PAST]);
	fprintf(stderr, "\n");
	return false;
}

/* ---- instructions ---- */

/*
 * Executed, but not in the flow: the trace has only the event of an INT n, nothing of a JMP to
 * itself, and of a VM entry to what is not traced and a WRMSR that clears TraceEn only a FUP
 * (flow.c).
 */
static bool not_in_flow(const struct cursor *c)
{
	const u8 *code = cursor_code(c);
	u8 n = cursor_length(c);

	return cursor_is_soft_int(code, n) || cursor_is_self_jump(code, n) ||
	       (c->at + 1 == c->insns && (cursor_is_vmentry(code, n) || cursor_is_wrmsr(code, n)));
}

/* To the next instruction of the truth. */
static bool advance(struct side *s)
{
	struct cursor *c = &s->cursor;

	while (!cursor_in_block(c))
		if (c->item.kind == TRUTH_END_OF_FILE || !cursor_next(c))
			return false;
	return true;
}

static bool find(struct side *s, u64 ip, u64 offset)
{
	struct cursor *c = &s->cursor;
	u64 start = s->missing;

	for (; advance(s); cursor_pass(c)) {
		if (c->ip == ip)
			return true;
		if (s->unsure)
			s->missing++;
		else if (not_in_flow(c))
			s->implied++;
		else
			return differ(s, "the trace has", ip, offset);
	}
	s->missing = start;
	return differ(s,
		      s->unsure ? "after a gap the truth does not have"
				: "after the truth's end, the trace has",
		      ip, offset);
}

static unsigned int mode_of(u32 flags)
{
	return flags & TRUTH_CS_L ? 64 : flags & TRUTH_CS_D ? 32 : 16;
}

/* A truth without STATE and TIME has no state. */
static bool same_space(const struct cursor *c, const struct vmpt_space *space)
{
	return (!c->item.flags && !c->item.cr3) ||
	       (mode_of(c->item.flags) == space->exec &&
		(space->no_cr3 || (c->item.cr3 & ~0x1fULL) == space->cr3));
}

static void count_insn(u64 ip)
{
	past[insns++ % PAST] = ip;
	hash = hash * HASH_P + vmpt_mix64(ip);
}

/* The next instruction of the truth is that at @ip of block @k. @bytes: the block's, of @size. */
static bool check_insn(struct side *s, const struct known_block *k, u64 ip, u64 offset,
		       const u8 *bytes, int size)
{
	struct cursor *c = &s->cursor;
	u64 at = ip - k->b.ip;

	if ((!cursor_in_block(c) || c->ip != ip) && !find(s, ip, offset))
		return false;
	if (s->unsure)
		return true;
	if (!same_space(c, &spaces[k->b.space].id))
		return differ(s, "another CR3 or mode at", ip, offset);
	if (at + cursor_length(c) <= (u64)(size > 0 ? size : 0) &&
	    memcmp(bytes + at, cursor_code(c), cursor_length(c)) != 0 && altered++ == altered_max)
		return differ(s, "other bytes at", ip, offset);
	return true;
}

/* The first @n instructions of block @id. Its bytes are compared once with each of the truth. */
static bool check_block(struct side *s, u32 id, u32 n, u64 offset)
{
	struct known_block *k = &blocks[id];
	struct cursor *c = &s->cursor;
	u64 ip = k->b.ip, serial, was_altered = altered;
	u8 bytes[VMPT_PAGE + 16];
	bool one = true;
	int size = 0;
	u32 i, code;

	if ((!cursor_in_block(c) || c->ip != ip) && !find(s, ip, offset))
		return false;
	serial = c->item.block->serial;
	code = c->code;
	if (k->serial != serial || k->code != code)
		size = vmpt_flow_code(flow, id, bytes, sizeof(bytes));
	for (i = 0; i < n; i++) {
		if (!check_insn(s, k, ip, offset, bytes, size))
			return false;
		one &= c->item.block->serial == serial;
		count_insn(ip);
		s->insns++;
		s->unsure -= s->unsure != 0;
		if (i + 1 == k->b.instructions && ip != k->b.end_ip && !s->unsure)
			return differ(s, "the block has another end than", ip, offset);
		ip += cursor_length(c);
		cursor_pass(c);
	}
	if (one && size > 0 && n == k->b.instructions && !s->unsure && altered == was_altered) {
		k->serial = serial;
		k->code = code;
	}
	return true;
}

/* ---- batches ---- */

static struct side *side_of(const struct vmpt_owner *owner)
{
	unsigned int i;

	for (i = 0; i < side_count; i++)
		if (vmpt_owner_same(&sides[i].owner, owner))
			return &sides[i];
	return NULL;
}

static bool know_spaces(void)
{
	struct vmpt_flow_counts counts;

	while (space_count < vmpt_flow_spaces(flow)) {
		struct space *s;

		if (vmpt_grow(&spaces, space_count))
			return false;
		s = &spaces[space_count];
		vmpt_flow_space(flow, (u32)space_count++, &s->id, &counts);
		s->side = side_of(&s->id.owner);
	}
	return true;
}

static bool know_block(u32 id)
{
	while (block_count <= id) {
		if (vmpt_grow(&blocks, block_count))
			return false;
		blocks[block_count].serial = 0;
		vmpt_flow_block(flow, (u32)block_count, &blocks[block_count].b);
		block_count++;
	}
	return know_spaces();
}

static bool take_blocks(const struct vmpt_flow_batch *b)
{
	size_t i;

	for (i = 0; i < b->count; i++) {
		u32 id = b->blocks[i], n;
		struct side *s;

		if (id >= block_count && !know_block(id))
			return false;
		n = i + 1 == b->count ? b->last : blocks[id].b.instructions;
		s = spaces[blocks[id].b.space].side;
		if (!s)
			unchecked += n;
		else if (!check_block(s, id, n, b->offset))
			return false;
	}
	return true;
}

static void show_gap(const struct vmpt_flow_batch *b, const struct side *s)
{
	static const char *const why[VMPT_FLOW_REASONS] = {
		[VMPT_FLOW_NO_CODE] = "code missing",	 [VMPT_FLOW_BAD_CODE] = "no instruction",
		[VMPT_FLOW_IMPOSSIBLE] = "code differs", [VMPT_FLOW_ENDLESS] = "endless code",
		[VMPT_FLOW_OVERFLOW] = "overflow",	 [VMPT_FLOW_LOSS] = "loss",
		[VMPT_FLOW_NO_TNT] = "no TNT",
	};

	printf("gap: %s: trace offset %#llx, IP %llx, %s after %llu instructions", why[b->reason],
	       (unsigned long long)b->offset, (unsigned long long)b->ip, s ? s->name : "-",
	       (unsigned long long)(s ? s->insns : 0));
	if (b->space < space_count)
		printf(", CR3 %llx", (unsigned long long)spaces[b->space].id.cr3);
	printf("\n");
}

static bool take_gap(const struct vmpt_flow_batch *b)
{
	struct side *s;
	unsigned int i;

	if (!know_spaces())
		return false;
	s = b->space < space_count ? spaces[b->space].side : NULL;
	if (b->space < space_count && !s)
		return true;
	for (i = 0; i < side_count; i++)
		if (!s || s == &sides[i])
			sides[i].unsure = SURE;
	if (gap_count++ < gaps_shown)
		show_gap(b, s);
	return true;
}

static bool walk(void)
{
	struct vmpt_flow_batch b;
	int ret;

	while ((ret = vmpt_flow_next(flow, &b)) > 0)
		if (!(b.kind == VMPT_FLOW_GAP ? take_gap(&b) : take_blocks(&b)))
			return false;
	if (ret < 0)
		fprintf(stderr, "insn-check: %s\n", vmpt_strerror(ret));
	return !ret;
}

/* ---- the end ---- */

/* What the truth has after the trace's end. */
static bool check_tail(struct side *s, u64 tail)
{
	struct cursor *c = &s->cursor;

	for (; advance(s); cursor_pass(c))
		s->tail += !not_in_flow(c);
	if (*s->reader.error)
		fprintf(stderr, "%s: %s\n", s->name, s->reader.error);
	else if (s->tail > tail)
		fprintf(stderr,
			"%s: the trace ends after instruction %llu, the truth has %llu more\n",
			s->name, (unsigned long long)s->insns, (unsigned long long)s->tail);
	return !*s->reader.error && s->tail <= tail;
}

static bool check_totals(void)
{
	struct vmpt_flow_counts counts;
	u64 total = 0;

	vmpt_flow_total(flow, &counts, &total);
	printf("%llu instructions, hash %016llx, %llu gaps; %llu of owners without a truth, "
	       "%llu with other bytes\n",
	       (unsigned long long)counts.instructions, (unsigned long long)total,
	       (unsigned long long)gap_count, (unsigned long long)unchecked,
	       (unsigned long long)altered);
	if (counts.instructions == insns + unchecked && (unchecked || total == hash))
		return true;
	fprintf(stderr, "insn-check: %llu instructions with hash %016llx were compared\n",
		(unsigned long long)insns, (unsigned long long)hash);
	return false;
}

static bool finish(u64 tail)
{
	bool good = true;
	unsigned int i;

	for (i = 0; i < side_count; i++) {
		struct side *s = &sides[i];

		good &= check_tail(s, tail);
		printf("%s: %llu instructions equal, %llu missing, %llu not in a flow, %llu emulated, "
		       "%llu runs\n",
		       s->name, (unsigned long long)s->insns, (unsigned long long)s->missing,
		       (unsigned long long)s->implied, (unsigned long long)s->cursor.emulated,
		       (unsigned long long)s->cursor.begun);
	}
	return good & check_totals();
}

/* ---- arguments ---- */

static int usage(void)
{
	fprintf(stderr,
		"usage: insn-check [--code=[OWNER:]FILE[@ADDR]]... [--cpu=N] [--traced] [--tail=N] "
		"[--gaps=N] [--altered=N] TRACE OWNER=TRUTH...\n");
	return 2;
}

static bool add_code(struct vmpt_code *code, const char *arg)
{
	const char *colon = strchr(arg, ':'), *at = strrchr(arg, '@');
	struct vmpt_image_options options = { .has_address = at != NULL };
	char path[4096];
	struct vmpt_image *image;
	struct vmpt_owner owner;
	struct vmpt_diag diag;

	if (colon && !parse_owner(&owner, arg, (size_t)(colon - arg)))
		colon = NULL;
	if (at)
		options.address = strtoull(at + 1, NULL, 16);
	else
		at = arg + strlen(arg);
	colon = colon ? colon + 1 : arg;
	snprintf(path, sizeof(path), "%.*s", (int)(at - colon), colon);
	if (vmpt_image_open(&image, path, &options, &diag)) {
		fprintf(stderr, "insn-check: %s: %s\n", path, diag.text);
		return false;
	}
	return !vmpt_code_add(code, colon != arg ? &owner : NULL, NULL, image);
}

static bool add_side(const char *arg, bool traced)
{
	const char *equals = strchr(arg, '=');
	struct side *s = &sides[side_count];

	if (!equals || side_count == OWNERS || !parse_owner(&s->owner, arg, (size_t)(equals - arg)))
		return false;
	s->name = arg;
	side_count++;
	if (!truth_reader_open(&s->reader, equals + 1)) {
		fprintf(stderr, "%s: %s\n", arg, s->reader.error);
		return false;
	}
	s->reader.traced_only = traced;
	cursor_init(&s->cursor, &s->reader);
	return true;
}

static const struct vmpt_stream *find_stream(struct vmpt_trace *trace, int cpu)
{
	size_t i;

	for (i = 0; i < vmpt_trace_streams(trace); i++)
		if (cpu < 0 || vmpt_trace_stream(trace, i)->cpu == cpu)
			return vmpt_trace_stream(trace, i);
	fprintf(stderr, "insn-check: the trace has no CPU %d\n", cpu);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "code", required_argument, NULL, 'c' },
		{ "cpu", required_argument, NULL, 'n' },
		{ "traced", no_argument, NULL, 't' },
		{ "tail", required_argument, NULL, 'l' },
		{ "gaps", required_argument, NULL, 'g' },
		{ "altered", required_argument, NULL, 'a' },
		{ 0 },
	};
	const struct vmpt_flow_options options = { .blocks = true, .hash = true };
	const struct vmpt_stream *stream;
	struct vmpt_trace *trace;
	struct vmpt_code *code;
	struct vmpt_diag diag;
	bool traced = false, good;
	u64 tail = 0;
	int c, cpu = -1;

	if (vmpt_code_new(&code))
		return 1;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'c' && !add_code(code, optarg))
			return 1;
		if (c == 'n')
			cpu = atoi(optarg);
		if (c == 'l')
			tail = strtoull(optarg, NULL, 0);
		if (c == 'g')
			gaps_shown = strtoull(optarg, NULL, 0);
		if (c == 'a')
			altered_max = strtoull(optarg, NULL, 0);
		traced |= c == 't';
		if (c == '?')
			return usage();
	}
	if (argc - optind < 2)
		return usage();
	if (vmpt_trace_open(&trace, argv[optind], -1, &diag)) {
		fprintf(stderr, "insn-check: %s: %s\n", argv[optind], diag.text);
		return 1;
	}
	while (++optind < argc)
		if (!add_side(argv[optind], traced))
			return usage();
	stream = find_stream(trace, cpu);
	if (!stream || vmpt_flow_open(&flow, stream, code, &options))
		return 1;
	good = walk();
	good = good ? finish(tail) : false;
	vmpt_flow_close(flow);
	vmpt_trace_close(trace);
	return !good;
}
