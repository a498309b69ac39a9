// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Checks that the executed code is in a memory image.
 *
 *	image-check [--modified=FILE] IMAGE TRUTH
 *	image-check --host [--modified=FILE] IMAGE... TRUTH
 *
 * IMAGE: an image of the PC's memory. TRUTH: a truth file of the PC (model/truth-format.h); each
 * block is looked up at the address where it was first executed.
 *
 * --host: the upper half of the addresses is the kernel's, which all address spaces share. It must
 * be in each image; the space that has most of it is used, since others may be gone. Where a
 * process's own code is mapped in its own space, it must be that code, in each image. Code that no
 * image maps there belongs to a process that had ended or to a page not yet touched: it may be in
 * another space of an image, since a process that forks has a copy and a static program always has
 * the same address. The rest is missing: it belongs to a process that ended before an image was
 * taken. How much that is depends on when it ended; more must be present than missing.
 *
 * --modified: the run's log, run.log, which lists pages whose code changed while the truth was
 * recorded ("modified TRUTH cr3 CR3 page PAGE"): these may differ. Each page that does is printed.
 * Exit code 0: all others are equal, 1: some differ, 2: usage.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bochs/image.h"

#define PAGES_MAX  4096u
#define SPACES_MAX 64u
#define IMAGES_MAX 4u

enum result {
	EQUAL,
	ELSEWHERE, /* missing here, but in another address space */
	DIFFERS,
	NOT_THERE,
	RESULTS,
};

struct page {
	u64 cr3, page;
};

static struct {
	bool host;
	struct image images[IMAGES_MAX];
	unsigned int n_images;
	u64 cr3[SPACES_MAX]; /* with --host: all address spaces of the truth */
	unsigned int n_spaces;
	u64 kernel[IMAGES_MAX]; /* the address space used for the kernel */
	struct page modified[PAGES_MAX], differs[PAGES_MAX];
	unsigned int n_modified, n_differ;
	u64 n[RESULTS], user[RESULTS], excepted;
} check;

static int usage(void)
{
	fprintf(stderr, "usage: image-check [--modified=FILE] IMAGE TRUTH\n"
			"       image-check --host [--modified=FILE] IMAGE... TRUTH\n");
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

/* The pages that the log lists for the truth file @path. */
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

/* Prints each page once. Returns whether it was modified. */
static bool differs(u64 cr3, u64 page)
{
	bool excepted = has(check.modified, check.n_modified, cr3, page);

	if (has(check.differs, check.n_differ, cr3, page) || check.n_differ == PAGES_MAX)
		return excepted;
	check.differs[check.n_differ++] = (struct page){ cr3, page };
	printf("page %llx, CR3 %llx: %s\n", (unsigned long long)page, (unsigned long long)cr3,
	       excepted ? "differs, was modified" : "differs");
	return excepted;
}

static void note_space(u64 cr3)
{
	unsigned int i;

	for (i = 0; i < check.n_spaces && check.cr3[i] != cr3; i++)
		;
	if (i == check.n_spaces && i < SPACES_MAX)
		check.cr3[check.n_spaces++] = cr3;
}

/* An instruction, and the state that it was executed in. */
struct insn {
	const struct truth_now *now;
	u64 ip;
	const u8 *code;
	u8 length;
};

static enum result look(const struct image *image, const struct insn *insn, u64 cr3)
{
	struct truth_now now = *insn->now;
	u8 bytes[16];

	now.cr3 = cr3;
	if (!image_read(image, &now, insn->ip, bytes, insn->length))
		return NOT_THERE;
	return memcmp(bytes, insn->code, insn->length) ? DIFFERS : EQUAL;
}

/* The worst result of all images. */
static enum result look_kernel(const struct insn *insn)
{
	enum result worst = EQUAL, result;

	for (unsigned int i = 0; i < check.n_images; i++) {
		result = look(&check.images[i], insn,
			      check.kernel[i] ? check.kernel[i] : insn->now->cr3);
		if (result > worst)
			worst = result;
	}
	return worst;
}

static enum result look_user(const struct insn *insn)
{
	bool equal = false;
	enum result result;

	for (unsigned int i = 0; i < check.n_images; i++) {
		result = look(&check.images[i], insn, insn->now->cr3);
		if (result == DIFFERS)
			return DIFFERS;
		equal |= result == EQUAL;
	}
	if (equal)
		return EQUAL;
	for (unsigned int i = 0; i < check.n_images; i++) {
		for (unsigned int j = 0; j < check.n_spaces; j++) {
			if (look(&check.images[i], insn, check.cr3[j]) == EQUAL)
				return ELSEWHERE;
		}
	}
	return NOT_THERE;
}

static void one(const struct truth_now *now, const struct truth_block *block)
{
	struct insn insn = { .now = now, .ip = block->ip, .code = block->code };
	enum result result;
	bool user;

	for (u32 i = 0; i < block->insns; i++) {
		insn.length = block->lengths[i];
		user = check.host && !(insn.ip >> 63);
		result = user ? look_user(&insn) : look_kernel(&insn);
		if (result == DIFFERS && differs(now->cr3, insn.ip & ~0xfffull))
			check.excepted++;
		else if (user)
			check.user[result]++;
		else
			check.n[result]++;
		insn.code += insn.length;
		insn.ip += insn.length;
	}
}

static bool walk(struct truth_reader *reader,
		 void (*visit)(const struct truth_now *now, const struct truth_block *block))
{
	struct truth_item item = { .kind = TRUTH_NOTHING };
	struct truth_now now;

	while (item.kind != TRUTH_END_OF_FILE) {
		if (!truth_reader_next(reader, &item))
			return false;
		if (item.kind == TRUTH_RUN_BLOCK && item.block->runs == 1) {
			now = reader->now;
			visit(&now, item.block);
		}
	}
	return true;
}

static bool pass(const char *path,
		 void (*visit)(const struct truth_now *now, const struct truth_block *block))
{
	struct truth_reader reader;
	bool good;

	good = truth_reader_open(&reader, path) && walk(&reader, visit);
	if (!good)
		fprintf(stderr, "%s: %s\n", path, reader.error);
	truth_reader_close(&reader);
	return good;
}

static u64 tried; /* space, of image */
static const struct image *tried_in;

static void spaces(const struct truth_now *now, const struct truth_block *block)
{
	(void)block;
	note_space(now->cr3);
}

/* How many of the kernel's blocks begin with the right code. */
static void try_space(const struct truth_now *now, const struct truth_block *block)
{
	struct insn insn = { now, block->ip, block->code, block->lengths[0] };

	if (insn.ip >> 63 && look(tried_in, &insn, tried) == EQUAL)
		check.n[EQUAL]++;
}

/* For each image the address space that maps most of the kernel. */
static bool choose_spaces(const char *path)
{
	u64 most;

	if (!pass(path, spaces))
		return false;
	for (unsigned int i = 0; i < check.n_images; i++) {
		tried_in = &check.images[i];
		most = 0;
		for (unsigned int j = 0; j < check.n_spaces; j++) {
			tried = check.cr3[j];
			check.n[EQUAL] = 0;
			if (!pass(path, try_space))
				return false;
			if (check.n[EQUAL] > most) {
				most = check.n[EQUAL];
				check.kernel[i] = tried;
			}
		}
	}
	check.n[EQUAL] = 0;
	return true;
}

static bool good_user(void)
{
	u64 all = check.user[EQUAL] + check.user[ELSEWHERE] + check.user[NOT_THERE];

	printf("user code: %llu equal, %llu in another address space, %llu differ, %llu missing\n",
	       (unsigned long long)check.user[EQUAL], (unsigned long long)check.user[ELSEWHERE],
	       (unsigned long long)check.user[DIFFERS], (unsigned long long)check.user[NOT_THERE]);
	return !check.user[DIFFERS] && check.user[NOT_THERE] < all / 2 &&
	       check.user[EQUAL] > check.user[ELSEWHERE];
}

static int run(char **paths, const char *truth)
{
	bool good = true;

	for (; good && *paths != truth; paths++) {
		good = image_open(&check.images[check.n_images], *paths);
		check.n_images += good;
	}
	good = good && (!check.host || choose_spaces(truth)) && pass(truth, one);
	if (good && check.host)
		good = good_user();
	printf("%llu instructions equal, %llu differ and were modified, %llu differ, %llu missing\n",
	       (unsigned long long)check.n[EQUAL], (unsigned long long)check.excepted,
	       (unsigned long long)check.n[DIFFERS], (unsigned long long)check.n[NOT_THERE]);
	for (unsigned int i = 0; i < check.n_images; i++)
		image_close(&check.images[i]);
	good = good && check.n[EQUAL] && !check.n[DIFFERS] && !check.n[NOT_THERE];
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "host", no_argument, NULL, 'h' },
					       { "modified", required_argument, NULL, 'm' },
					       { NULL, 0, NULL, 0 } };
	const char *modified = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'h')
			check.host = true;
		else if (c == 'm')
			modified = optarg;
		else
			return usage();
	}
	if (argc - optind < 2 || argc - optind > (check.host ? (int)IMAGES_MAX + 1 : 2))
		return usage();
	if (modified && !read_modified(modified, argv[argc - 1]))
		return EXIT_FAILURE;
	return run(argv + optind, argv[argc - 1]);
}
