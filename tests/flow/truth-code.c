// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The code of an owner's truth as a code stream (docs/qemu-plugin/code-stream.md), for decoders of
 * traces whose owner has none: the Bochs PC, hosts.
 *
 *	truth-code CODE TRUTH...
 *
 * TRUTH: what one host or VMCS executed, a file for each processor, with STATE records. Each linear
 * page of each CR3 gets a physical page of its own. A truth has no times: those in the stream are
 * before any trace, and only order the versions of a page. So the last one counts, unless a decoder
 * tries the others. It prints how many bytes changed. Exit code 0, 1: an error, 2: usage.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/flow/truth-reader.h"
#include "util/array.h"
#include "util/code-stream.h"
#include "util/hash.h"

struct code_page {
	u64 cr3, linear; /* >> 5, number */
	u8 mode;
	u64 known[CODE_PAGE / 64];
	u8 bytes[CODE_PAGE];
};

static struct code_page *pages;
static size_t page_count;
static struct vmpt_hash page_of;
static u64 bytes_written, bytes_changed;

/* ---- the file ---- */

static struct {
	FILE *file;
	u32 used, number;
	u64 now, time, end, cr3, linear, physical;
	u8 records[CODE_CHUNK];
} out;

static void flush(void)
{
	struct code_head head = { .size = out.used, .number = out.number++ };

	memcpy(head.magic, CODE_MAGIC, CODE_MAGIC_SIZE);
	head.sum = code_sum(&head, out.records, out.used);
	fwrite(&head, sizeof(head), 1, out.file);
	fwrite(out.records, 1, out.used, out.file);
	out.used = 0;
	out.time = out.end = out.cr3 = out.linear = out.physical = 0;
}

static u8 *record(enum code_record kind)
{
	u8 *at;

	if (out.used + CODE_RECORD > CODE_CHUNK)
		flush();
	at = out.records + out.used;
	*at++ = (u8)kind;
	at = code_put(at, out.now - out.time);
	out.time = out.now;
	return at;
}

static void stop(const u8 *at)
{
	out.used = (u32)(at - out.records);
}

static void put_bytes(u64 physical, const u8 *bytes, size_t n)
{
	u8 *at = record(CODE_BYTES);

	at = code_put_signed(at, physical - out.end);
	at = code_put(at, n);
	memcpy(at, bytes, n);
	stop(at + n);
	out.end = physical + n;
	bytes_written += n;
}

static void put_map(const struct code_page *p, u64 physical)
{
	u8 *at = record(p->mode == 64 ? CODE_MAP_64 : p->mode == 32 ? CODE_MAP_32 : CODE_MAP_16);

	at = code_put_signed(at, p->cr3 - out.cr3);
	at = code_put_signed(at, p->linear - out.linear);
	stop(code_put_signed(at, physical - out.physical));
	out.cr3 = p->cr3;
	out.linear = p->linear;
	out.physical = physical;
}

/* ---- pages ---- */

/* Its index, which is the number of its physical page less one; -1: no memory. */
static s64 find_page(u64 cr3, u8 mode, u64 linear)
{
	u64 hash = vmpt_mix64(linear ^ vmpt_mix64(cr3 ^ mode));
	u32 n = vmpt_hash_find(&page_of, hash, i,
			       pages[i].cr3 == cr3 && pages[i].linear == linear &&
				       pages[i].mode == mode);

	if (n != VMPT_HASH_NONE)
		return n;
	if (vmpt_grow(&pages, page_count) || vmpt_hash_add(&page_of, hash, (u32)page_count))
		return -1;
	memset(&pages[page_count], 0, sizeof(pages[0]));
	pages[page_count].cr3 = cr3;
	pages[page_count].linear = linear;
	pages[page_count].mode = mode;
	put_map(&pages[page_count], page_count + 1);
	return (s64)page_count++;
}

/* @n bytes in one page. */
static bool take_bytes(u64 cr3, u8 mode, u64 ip, const u8 *bytes, size_t n)
{
	s64 i = find_page(cr3, mode, ip / CODE_PAGE);
	size_t at = ip % CODE_PAGE, k, first = n, last = 0;
	struct code_page *p;
	bool changes = false;

	if (i < 0)
		return false;
	p = &pages[i];
	for (k = 0; k < n; k++) {
		u64 bit = 1ULL << (at + k) % 64;
		bool known = p->known[(at + k) / 64] & bit;

		if (known && p->bytes[at + k] == bytes[k])
			continue;
		bytes_changed += known;
		changes |= known;
		first = first < k ? first : k;
		last = k;
		p->bytes[at + k] = bytes[k];
		p->known[(at + k) / 64] |= bit;
	}
	out.now += changes;
	if (first < n)
		put_bytes(((u64)i + 1) * CODE_PAGE + at + first, bytes + first, last - first + 1);
	return true;
}

static bool take_block(const struct truth_item *item)
{
	const struct truth_block *b = item->block;
	u8 mode = item->flags & TRUTH_CS_L ? 64 : item->flags & TRUTH_CS_D ? 32 : 16;
	size_t size = 0, done = 0, n;
	u32 i;

	for (i = 0; i < item->insns; i++)
		size += b->lengths[i];
	for (; done < size; done += n) {
		n = CODE_PAGE - (b->ip + done) % CODE_PAGE;
		n = n < size - done ? n : size - done;
		if (!take_bytes(item->cr3 >> 5, mode, b->ip + done, b->code + done, n))
			return false;
	}
	return true;
}

/* ---- truths ---- */

#define TAKEN (1U << 18)

/* Blocks that were taken last; most come again and again. */
static struct taken {
	const struct truth_block *block;
	u64 cr3;
	u32 flags, insns;
} taken[TAKEN];

static bool take_truth(const char *path)
{
	struct truth_reader r;
	struct truth_item item;
	bool good = truth_reader_open(&r, path);

	memset(taken, 0, sizeof(taken));
	while (good && (good = truth_reader_next(&r, &item)) && item.kind != TRUTH_END_OF_FILE) {
		struct taken *t;

		if (item.kind != TRUTH_RUN_BLOCK)
			continue;
		t = &taken[vmpt_mix64(item.block->ip ^ item.cr3) % TAKEN];
		if (t->block == item.block && item.block->runs > 1 && t->cr3 == item.cr3 &&
		    t->flags == item.flags && t->insns >= item.insns)
			continue;
		good = take_block(&item);
		*t = (struct taken){ item.block, item.cr3, item.flags, item.insns };
	}
	if (!good)
		fprintf(stderr, "truth-code: %s: %s\n", path, *r.error ? r.error : "no memory");
	truth_reader_close(&r);
	return good;
}

int main(int argc, char **argv)
{
	int i;

	if (argc < 3) {
		fprintf(stderr, "usage: truth-code CODE TRUTH...\n");
		return 2;
	}
	out.file = fopen(argv[1], "we");
	if (!out.file) {
		perror(argv[1]);
		return 1;
	}
	out.now = 1;
	stop(code_put(record(CODE_START), 0));
	for (i = 2; i < argc; i++)
		if (!take_truth(argv[i]))
			return 1;
	stop(code_put(record(CODE_END), CODE_END_EXIT));
	flush();
	if (fclose(out.file)) {
		perror(argv[1]);
		return 1;
	}
	printf("%llu bytes on %zu pages, %llu changed\n", (unsigned long long)bytes_written,
	       page_count, (unsigned long long)bytes_changed);
	return 0;
}
