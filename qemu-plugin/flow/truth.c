// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes truth files. Errors are reported at the end, so that the guest continues.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qemu-plugin/flow/block.h"
#include "qemu-plugin/flow/file.h"
#include "qemu-plugin/flow/options.h"
#include "qemu-plugin/flow/truth.h"

struct truth {
	FILE *file;
	int err;
	u32 ids;
	unsigned int index;
	/* the block that began last, not written yet; id 0: none */
	const struct block_code *code;
	u32 id;
	u64 ip, last; /* of its first and last instruction */
	u8 kind;      /* enum insn_kind of the last */
	struct truth_state state;
	bool has_state;
	u64 tsc; /* of the last TIME, which .state is of, too */
};

static void put(struct truth *truth, const void *bytes, size_t n)
{
	if (!truth->err && fwrite(bytes, 1, n, truth->file) != n)
		truth->err = errno ? -errno : -EIO;
}

static void put_word(struct truth *truth, u32 word)
{
	put(truth, &word, sizeof(word));
}

static void put_address(struct truth *truth, u32 word, u64 ip)
{
	put_word(truth, word);
	put(truth, &ip, sizeof(ip));
}

/* A FIFO that a process reads, or -1. */
static int open_fifo(const char *path)
{
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && S_ISFIFO(st.st_mode) && !fcntl(fd, F_SETFL, O_WRONLY)))
		return fd;
	close(fd);
	return -1;
}

static FILE *open_file(const char *path, u64 mode, const char **why)
{
	int fd = open_fifo(path);
	FILE *file;

	if (fd < 0) {
		fd = file_open(path, mode, TRUTH_MAGIC, why);
		if (fd >= 0 && ftruncate(fd, 0))
			*why = strerror(errno);
	}
	file = fd < 0 || *why ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

struct truth *truth_open(const struct options *options, unsigned int index)
{
	struct truth *truth = calloc(1, sizeof(*truth));
	const char *prefix = options->truth, *why = NULL;
	char path[4096];

	if (!truth) {
		fputs("vmpt: no memory\n", stderr);
		return NULL;
	}
	snprintf(path, sizeof(path), "%s.%u", prefix, index);
	truth->file = open_file(path, options->mode, &why);
	if (!truth->file) {
		fprintf(stderr, "vmpt: truth=%s: %s: %s\n", prefix, path,
			why ? why : strerror(errno));
		free(truth);
		return NULL;
	}
	truth->index = index;
	setvbuf(truth->file, NULL, _IOFBF, 1 << 20);
	put(truth, TRUTH_MAGIC, 8);
	return truth;
}

int truth_close(struct truth *truth)
{
	int err;

	if (fclose(truth->file) && !truth->err)
		truth->err = -errno;
	err = truth->err;
	free(truth);
	return err;
}

static void define(struct truth *truth, const struct block_code *code, struct block_name *name,
		   u64 ip)
{
	u32 n = code->count + code->size;

	if (!name->id)
		name->id = ++truth->ids;
	name->ip = ip;
	put_word(truth, TRUTH_DEFINE);
	put_word(truth, name->id);
	put(truth, &ip, sizeof(ip));
	put_word(truth, code->count);
	put_word(truth, code->size);
	put(truth, code->lengths, code->count);
	put(truth, code->bytes, code->size);
	put(truth, "\0\0\0", (4 - n % 4) % 4);
}

/* Writes the block that began last, of which @retired instructions have retired. */
static void finish(struct truth *truth, u64 retired)
{
	if (!truth->id)
		return;
	if (retired >= truth->code->count) {
		put_word(truth, truth->id);
	} else if (retired) {
		put_word(truth, TRUTH_PART);
		put_word(truth, truth->id);
		put_word(truth, (u32)retired);
	}
	truth->id = 0;
}

/* Address of the instruction that began last. */
static u64 begun(const struct truth *truth, u64 progress)
{
	u64 ip = truth->ip;

	if (progress >= truth->code->count)
		return truth->last;
	for (u64 i = 0; i + 1 < progress; i++)
		ip += truth->code->lengths[i];
	return ip;
}

/*
 * How many instructions have retired if @progress have begun and execution is at @ip. If that is
 * the address of the last one, it has not retired, unless it is @left. QEMU restarts an access to a
 * device in a block of its own, and a string instruction for its next iteration.
 */
static u64 retired(const struct truth *truth, u64 progress, u64 ip, bool left)
{
	bool again = truth->id && progress && begun(truth, progress) == ip &&
		     !(left && progress >= truth->code->count);

	return progress - again;
}

void truth_block(struct truth *truth, const struct block *block, u64 ip, u64 progress)
{
	struct block_name *name = &block->code->name[truth->index];

	finish(truth, retired(truth, progress, ip, insn_repeats(truth->kind)));
	/* The same code may run at several addresses; it is defined again for each. */
	if (!name->id || name->ip != ip)
		define(truth, block->code, name, ip);
	truth->code = block->code;
	truth->id = name->id;
	truth->ip = ip;
	truth->last = ip + (block->last - block->start);
	truth->kind = block->kind;
}

void truth_state(struct truth *truth, const struct truth_state *state, u64 ip)
{
	const u64 eptp = 0, *const words[] = { &ip, &state->ctl, &state->cr3, &eptp };
	const struct truth_state *old = &truth->state;

	if (truth->has_state && old->flags == state->flags && old->ctl == state->ctl &&
	    old->cr3 == state->cr3 && !memcmp(old->ranges, state->ranges, sizeof(old->ranges)))
		return;
	if (!truth->has_state)
		truth_begin(truth, ip);
	for (u32 i = 0; i < TRUTH_RANGES; i++) {
		if (!memcmp(old->ranges + 2 * i, state->ranges + 2 * i, 2 * sizeof(u64)))
			continue;
		put_word(truth, TRUTH_RANGE);
		put_word(truth, i);
		put(truth, state->ranges + 2 * i, 2 * sizeof(u64));
	}
	truth->has_state = true;
	truth->state = *state;
	put_word(truth, TRUTH_STATE);
	put_word(truth, state->flags);
	for (unsigned int i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		put(truth, words[i], sizeof(u64));
}

void truth_time(struct truth *truth, const struct truth_state *state, u64 tsc)
{
	if (tsc - truth->tsc < TRUTH_TIME_MAX && truth->state.flags == state->flags &&
	    truth->state.cr3 == state->cr3)
		return;
	truth->tsc = tsc;
	truth->state = *state;
	put_word(truth, TRUTH_TIME);
	put_word(truth, state->flags);
	put(truth, &tsc, sizeof(tsc));
	put(truth, &state->cr3, sizeof(state->cr3));
}

void truth_stop_at(struct truth *truth, u64 progress, u64 from)
{
	/* A direct jump cannot fault; INT n has executed, though its event has its address. */
	bool left =
		truth->kind == INSN_JCC || truth->kind == INSN_JMP || truth->kind == INSN_SOFT_INT;

	finish(truth, retired(truth, progress, from, left));
}

void truth_event(struct truth *truth, const struct truth_state *state, u64 from, u64 to)
{
	if (state)
		truth_state(truth, state, from);
	put_address(truth, TRUTH_EVENT, from);
	put(truth, &to, sizeof(to));
}

void truth_sp(struct truth *truth, u64 sp)
{
	put_address(truth, TRUTH_SP, sp);
}

void truth_begin(struct truth *truth, u64 ip)
{
	put_address(truth, TRUTH_BEGIN, ip);
}

void truth_end(struct truth *truth, u64 ip)
{
	put_address(truth, TRUTH_END, ip);
}

bool truth_holds(const struct truth *truth, const struct block_code *code)
{
	return truth->id && truth->code == code;
}

void truth_stop(struct truth *truth, u64 ip)
{
	u64 at = truth->ip;
	u32 n = 0;

	for (; truth->id && n < truth->code->count && at < ip; n++)
		at += truth->code->lengths[n];
	finish(truth, n);
}
