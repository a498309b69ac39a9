// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Is the code that was executed in an image of the memory?
 *
 *	image-check [--kernel] [--modified=FILE] IMAGE TRUTH
 *
 * IMAGE: of the PC's memory. TRUTH: a truth file of the PC (model/truth-format.h); its blocks are
 * looked up where they were when they were first executed. --kernel: only those in the upper half
 * of the addresses, which all address spaces share; the one that has most of them is taken, for
 * others may be gone. --modified: the run's log, run.log, which lists pages whose code changed
 *while it was written down ("modified TRUTH cr3 CR3 page PAGE"): there it may differ. Each page
 *that does is printed. Exit code 0: all others are equal, 1: not, 2: usage.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bochs/image.h"

#define PAGES_MAX  4096u
#define SPACES_MAX 64u

struct page {
	u64 cr3, page;
};

static struct {
	bool kernel, quiet;
	u64 cr3[SPACES_MAX]; /* with --kernel: all that the truth has */
	unsigned int n_spaces;
	u64 space; /* the one that is taken */
	struct page modified[PAGES_MAX], differs[PAGES_MAX];
	unsigned int n_modified, n_differ;
	u64 equal, excepted, wrong, unmapped, left_out;
} check;

static int usage(void)
{
	fprintf(stderr, "usage: image-check [--kernel] [--modified=FILE] IMAGE TRUTH\n");
	return 2;
}

static bool has(const struct page *pages, unsigned int n, u64 cr3, u64 page)
{
	for (unsigned int i = 0; i < n; i++) {
		if (pages[i].cr3 == cr3 && pages[i].page == page)
			return true;
	}
	return false;
}

/* The pages that the log lists of the truth file @path. */
static bool read_modified(const char *log, const char *path)
{
	const char *slash = strrchr(path, '/');
	unsigned long long cr3, page;
	char line[256], name[128];
	FILE *file = fopen(log, "re");

	if (!file) {
		fprintf(stderr, "%s: %s\n", log, strerror(errno));
		return false;
	}
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*u modified %127s cr3 %llx page %llx", name, &cr3, &page) != 3 ||
		    strcmp(name, slash ? slash + 1 : path) || check.n_modified == PAGES_MAX)
			continue;
		check.modified[check.n_modified++] = (struct page){ cr3, page };
	}
	fclose(file);
	return true;
}

static void differs(u64 cr3, u64 page)
{
	bool excepted = has(check.modified, check.n_modified, cr3, page);

	if (excepted)
		check.excepted++;
	else
		check.wrong++;
	if (has(check.differs, check.n_differ, cr3, page) || check.n_differ == PAGES_MAX)
		return;
	if (check.quiet)
		return;
	check.differs[check.n_differ++] = (struct page){ cr3, page };
	printf("page %llx, CR3 %llx: %s\n", (unsigned long long)page, (unsigned long long)cr3,
	       excepted ? "differs, was modified" : "differs");
}

static void note_space(u64 cr3)
{
	unsigned int i;

	for (i = 0; i < check.n_spaces && check.cr3[i] != cr3; i++)
		;
	if (i == check.n_spaces && i < SPACES_MAX)
		check.cr3[check.n_spaces++] = cr3;
}

static void one(const struct image *image, struct truth_now *now, const struct truth_block *block)
{
	const u8 *code = block->code;
	u64 ip = block->ip;
	u8 bytes[16];

	note_space(now->cr3);
	if (check.kernel && check.space)
		now->cr3 = check.space;
	for (u32 i = 0; i < block->insns; i++) {
		u8 length = block->lengths[i];

		if (check.kernel && !(ip >> 63))
			check.left_out++;
		else if (!image_read(image, now, ip, bytes, length))
			check.unmapped++;
		else if (!memcmp(bytes, code, length))
			check.equal++;
		else
			differs(now->cr3, ip & ~0xfffull);
		code += length;
		ip += length;
	}
}

static bool walk(const struct image *image, struct truth_reader *reader)
{
	struct truth_item item = { .kind = TRUTH_NOTHING };
	struct truth_now now;

	check.equal = check.excepted = check.wrong = check.unmapped = check.left_out = 0;
	while (item.kind != TRUTH_END_OF_FILE) {
		if (!truth_reader_next(reader, &item))
			return false;
		if (item.kind == TRUTH_RUN_BLOCK && item.block->runs == 1) {
			now = reader->now;
			one(image, &now, item.block);
		}
	}
	return true;
}

static bool pass(const struct image *image, const char *path)
{
	struct truth_reader reader;
	bool good;

	good = truth_reader_open(&reader, path) && walk(image, &reader);
	if (!good)
		fprintf(stderr, "%s: %s\n", path, reader.error);
	truth_reader_close(&reader);
	return good;
}

/* The address space in which most of the kernel is there. */
static bool choose_space(const struct image *image, const char *path)
{
	u64 best = 0, most = 0;

	check.quiet = true;
	if (!pass(image, path))
		return false;
	for (unsigned int i = 0; i < check.n_spaces; i++) {
		check.space = check.cr3[i];
		if (!pass(image, path))
			return false;
		if (check.equal > most) {
			most = check.equal;
			best = check.space;
		}
	}
	check.space = best;
	check.quiet = false;
	return true;
}

static int run(const char *image_path, const char *truth_path)
{
	struct image image;
	bool good;

	if (!image_open(&image, image_path))
		return EXIT_FAILURE;
	good = !check.kernel || choose_space(&image, truth_path);
	good = good && pass(&image, truth_path);
	printf("%llu instructions equal, %llu differ and were modified, %llu differ, %llu not there, "
	       "%llu left out\n",
	       (unsigned long long)check.equal, (unsigned long long)check.excepted,
	       (unsigned long long)check.wrong, (unsigned long long)check.unmapped,
	       (unsigned long long)check.left_out);
	image_close(&image);
	return good && check.equal && !check.wrong && !check.unmapped ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "kernel", no_argument, NULL, 'k' },
					       { "modified", required_argument, NULL, 'm' },
					       { NULL, 0, NULL, 0 } };
	const char *modified = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'k')
			check.kernel = true;
		else if (c == 'm')
			modified = optarg;
		else
			return usage();
	}
	if (argc - optind != 2)
		return usage();
	if (modified && !read_modified(modified, argv[optind + 1]))
		return EXIT_FAILURE;
	return run(argv[optind], argv[optind + 1]);
}
