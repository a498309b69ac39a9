// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Does a code stream have what was executed, when it was executed?
 *
 *	code-check [--vmcs=ADDR] CODE [TRUTH]
 *
 * TRUTH: the truth of one vCPU with TIME records (model/truth-format.h), a file, a FIFO, or - for
 * stdin. Of each block that it has the pages are asked for in its address space at its time; all
 * bytes of the instructions that retired must be known there, and equal. TIME is up to
 * TRUTH_TIME_MAX ticks early: if a page was changed within these, the next version will do, too.
 * --vmcs: the times are asked for as those of this VMCS in the trace, whose runs must not have been
 * moved. Without TRUTH it prints what the stream has. Exit code 0: it has all, 1: not, 2: usage.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/image/code-stream.h"
#include "tests/flow/truth-reader.h"

#define CHECKED (1U << 18)

/* A block that was found; good for times before .to. */
struct checked {
	const struct truth_block *block;
	u64 cr3, to;
	u32 flags, insns;
};

static struct checked checked[CHECKED];
static u64 blocks, insns, questions, edges;

static bool has(const struct vmpt_page *page, u64 at, const u8 *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!vmpt_page_knows(page, (unsigned int)(at + i)) ||
		    page->bytes[at + i] != bytes[i])
			return false;
	return true;
}

/* @n bytes in one page. *@to: up to when they are known to be there. */
static bool find(struct vmpt_image *image, struct vmpt_space *space, u64 ip, const u8 *bytes,
		 size_t n, u64 *to)
{
	struct vmpt_page page;
	u64 at = ip % VMPT_PAGE;

	questions++;
	if (vmpt_image_page(image, space, ip - at, 0, &page) <= 0)
		return false;
	if (has(&page, at, bytes, n)) {
		*to = *to < page.to ? *to : page.to;
		return true;
	}
	if (page.to - space->tsc > TRUTH_TIME_MAX)
		return false;
	edges++;
	*to = 0;
	return vmpt_image_page(image, space, ip - at, 1, &page) > 0 &&
	       page.from - space->tsc <= TRUTH_TIME_MAX && has(&page, at, bytes, n);
}

static bool check(struct vmpt_image *image, const struct truth_now *now,
		  const struct truth_item *item, struct vmpt_space *space)
{
	const struct truth_block *b = item->block;
	struct checked *c = &checked[vmpt_mix64(b->ip ^ now->cr3) % CHECKED];
	u64 ip = b->ip, to = ~0ULL;
	size_t size = 0, done = 0;
	u32 i;

	blocks++;
	insns += item->insns;
	if (c->block == b && b->runs > 1 && c->cr3 == now->cr3 && c->flags == now->flags &&
	    c->insns >= item->insns && now->tsc < c->to)
		return true;
	for (i = 0; i < item->insns; i++)
		size += b->lengths[i];
	space->cr3 = now->cr3 & ~0x1fULL;
	space->exec = now->flags & TRUTH_CS_L ? 64 : now->flags & TRUTH_CS_D ? 32 : 16;
	space->tsc = now->tsc;
	while (done < size) {
		size_t n = VMPT_PAGE - (ip + done) % VMPT_PAGE;

		n = n < size - done ? n : size - done;
		if (!find(image, space, ip + done, b->code + done, n, &to))
			return false;
		done += n;
	}
	*c = (struct checked){ b, now->cr3, to, now->flags, item->insns };
	return true;
}

static bool check_all(struct vmpt_image *image, struct truth_reader *r, struct vmpt_space *space)
{
	struct truth_item item;

	do {
		if (!truth_reader_next(r, &item)) {
			fprintf(stderr, "code-check: %s\n", r->error);
			return false;
		}
		if (item.kind != TRUTH_RUN_BLOCK)
			continue;
		if (!r->now.tsc) {
			fprintf(stderr, "code-check: the truth has no times\n");
			return false;
		}
		if (!check(image, &r->now, &item, space)) {
			fprintf(stderr,
				"code-check: block %llu at %#llx, CR3 %#llx, TSC %#llx: the stream "
				"has other bytes, or none\n",
				(unsigned long long)blocks, (unsigned long long)item.block->ip,
				(unsigned long long)r->now.cr3, (unsigned long long)r->now.tsc);
			return false;
		}
	} while (item.kind != TRUTH_END_OF_FILE);
	printf("%llu instructions, %llu blocks, %llu questions, %llu at the edge of a version\n",
	       (unsigned long long)insns, (unsigned long long)blocks, (unsigned long long)questions,
	       (unsigned long long)edges);
	return true;
}

static void show(const struct vmpt_image *image)
{
	const struct code_stream *s = image->code;
	u64 bytes = 0;
	size_t i;

	for (i = 0; i < s->bytes_count; i++)
		bytes += s->bytes[i].size;
	printf("%zu records of %llu bytes on %zu pages, %zu mappings, %zu runs, %zu machines, "
	       "%llu bytes of file\n",
	       s->bytes_count, (unsigned long long)bytes, s->page_count, s->map_count, s->run_count,
	       s->starts, (unsigned long long)image->files[0].map.size);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "vmcs", required_argument, NULL, 'v' }, { 0 } };
	struct vmpt_space space = { 0 };
	struct truth_reader reader;
	struct vmpt_image *image;
	struct vmpt_diag diag;
	bool good = true;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) == 'v')
		space.owner = (struct vmpt_owner){ .kind = VMPT_OWNER_VM,
						   .vmcs = strtoull(optarg, NULL, 16) };
	if (c != -1 || argc - optind < 1 || argc - optind > 2) {
		fprintf(stderr, "usage: code-check [--vmcs=ADDR] CODE [TRUTH]\n");
		return 2;
	}
	/* The FIFO first: QEMU does not start without a reader. */
	if (argc - optind == 2 && !truth_reader_open(&reader, argv[optind + 1])) {
		fprintf(stderr, "code-check: %s\n", reader.error);
		return 1;
	}
	if (vmpt_image_open(&image, argv[optind], NULL, &diag) || !image->code) {
		fprintf(stderr, "code-check: %s: %s\n", argv[optind], diag.text);
		return 1;
	}
	if (diag.text[0])
		printf("%s\n", diag.text);
	if (argc - optind == 2) {
		good = check_all(image, &reader, &space);
		truth_reader_close(&reader);
	} else {
		show(image);
	}
	vmpt_image_close(image);
	return !good;
}
