// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The writer of code streams. Its memory is bounded: what it knows of pages and mappings is in
 * tables of a fixed size, and what had to make room there is written again when it is executed
 * next.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qemu-plugin/flow/code.h"
#include "qemu-plugin/flow/file.h"

#define WAYS	  4u
#define PAGE_SETS 8192u	 /* of WAYS pages: 128 MiB of code pages, 150 MiB of memory */
#define MAP_SETS  65536u /* of WAYS mappings: 6 MiB of memory */
/* In the file, for the chunk that says that the rest is missing. */
#define END_ROOM 64u

/* What the stream has of a physical page. */
struct code_page {
	u64 physical; /* number of the page */
	u64 epoch;
	u64 known[CODE_PAGE / 64];
	u8 bytes[CODE_PAGE];
};

struct mapping {
	u64 space, linear;
	u64 physical; /* number of the page + 1; 0: free */
};

struct code {
	struct plugin *plugin;
	const struct options *options;
	pthread_mutex_t lock; /* for what follows */
	int fd;
	int err;	 /* errno of the write that failed */
	bool ended;	 /* nothing more is written */
	bool full;	 /* because of code-limit= */
	u64 lost_blocks; /* atomic: for which there is no memory or no physical address */
	u64 size;	 /* of the file */
	u64 limit;
	u64 records; /* of bytes and mappings */
	u64 epoch;   /* the last that a page got */
	unsigned int turn;

	/* the chunk, and what the distances of its next record are from */
	u32 number;
	u32 used;
	u64 first, time, end, cr3, linear, physical;
	struct {
		struct code_head head;
		u8 records[CODE_CHUNK];
	} chunk;

	struct code_page *page[PAGE_SETS][WAYS];
	struct mapping map[MAP_SETS][WAYS];
};

/* ---- the file ---- */

/* A chunk is in the file as a whole or not at all, unless QEMU is killed. */
static int write_chunk(struct code *code)
{
	struct code_head *head = &code->chunk.head;
	size_t n = sizeof(*head) + code->used, done = 0;
	ssize_t more;

	memcpy(head->magic, CODE_MAGIC, CODE_MAGIC_SIZE);
	head->size = code->used;
	head->number = code->number;
	head->sum = code_sum(head, code->chunk.records, code->used);
	while (done < n) {
		more = pwrite(code->fd, (u8 *)head + done, n - done, (off_t)(code->size + done));
		if (more <= 0 && errno != EINTR)
			break;
		done += more > 0 ? (size_t)more : 0;
	}
	if (done < n) {
		code->err = errno ? errno : EIO;
		if (ftruncate(code->fd, (off_t)code->size))
			code->err = errno;
		return -1;
	}
	code->size += n;
	code->number++;
	return 0;
}

/* The next record begins a chunk. */
static void next_chunk(struct code *code)
{
	code->used = 0;
	code->time = code->end = code->cr3 = code->linear = code->physical = 0;
}

/* Starts a record at @time. */
static u8 *start(struct code *code, enum code_record kind, u64 time)
{
	u8 *at = code->chunk.records + code->used;

	if (!code->used)
		code->first = time;
	*at++ = (u8)kind;
	at = code_put(at, time - code->time);
	code->time = time;
	return at;
}

static void stop(struct code *code, const u8 *at)
{
	code->used = (u32)(at - code->chunk.records);
}

static void put_end(struct code *code, enum code_end why, u64 time)
{
	stop(code, code_put(start(code, CODE_END, time), why));
}

static void flush(struct code *code)
{
	u64 lost = code->first;

	if (!code->used || code->ended)
		return;
	code->full = code->size + sizeof(struct code_head) + code->used + END_ROOM > code->limit;
	if (code->full) {
		next_chunk(code);
		put_end(code, CODE_END_LIMIT, lost);
	}
	code->ended = write_chunk(code) || code->full;
	next_chunk(code);
}

/* The same as start(), at the time now; NULL: nothing is written any more. */
static u8 *record(struct code *code, enum code_record kind)
{
	struct vmpt_now now;

	if (code->used + CODE_RECORD > CODE_CHUNK)
		flush(code);
	if (code->ended)
		return NULL;
	clock_read(&code->plugin->clock, &now);
	return start(code, kind, now.tsc);
}

static void put_start(struct code *code, const char *vm)
{
	size_t n = strnlen(vm, CODE_NAME_MAX);
	u8 *at = record(code, CODE_START);

	at = code_put(at, n);
	memcpy(at, vm, n);
	stop(code, at + n);
}

static const char *open_file(struct code *code, const char *path, u64 mode)
{
	const char *why = NULL;
	struct stat st;

	code->fd = file_open(path, mode, CODE_MAGIC, &why);
	if (code->fd < 0)
		return why;
	if (flock(code->fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? "another QEMU writes to it" : strerror(errno);
	if (fstat(code->fd, &st))
		return strerror(errno);
	/* What is there is an earlier machine's. */
	code->size = (u64)st.st_size;
	return NULL;
}

struct code *code_open(struct plugin *plugin, const char *vm)
{
	const struct options *options = &plugin->options;
	struct code *code = calloc(1, sizeof(*code));
	const char *why;

	if (!code) {
		fputs("vmpt: no memory\n", stderr);
		return NULL;
	}
	pthread_mutex_init(&code->lock, NULL);
	code->plugin = plugin;
	code->options = options;
	code->limit = options->code_limit << 20;
	why = open_file(code, options->code, options->mode);
	if (!why) {
		put_start(code, vm);
		flush(code);
		why = code->err	   ? strerror(code->err)
		      : code->full ? "it is larger than code-limit= allows"
				   : NULL;
	}
	if (!why)
		return code;
	fprintf(stderr, "vmpt: code=%s: %s\n", options->code, why);
	free(code);
	return NULL;
}

/* "; lost": vmpt domain trace looks for it. */
void code_close(struct code *code)
{
	struct vmpt_now now;

	code_flush(code);
	if (!code->ended) {
		clock_read(&code->plugin->clock, &now);
		put_end(code, CODE_END_EXIT, now.tsc);
		flush(code);
	}
	if (code->err || code->full)
		fprintf(stderr,
			"vmpt: code=%s: %llu bytes; lost what was executed first later: %s\n",
			code->options->code, (unsigned long long)code->size,
			code->err ? strerror(code->err) : "it has the size of code-limit=");
	if (code->lost_blocks)
		fprintf(stderr,
			"vmpt: code=%s: %llu bytes; lost %llu blocks, which have no physical "
			"address\n",
			code->options->code, (unsigned long long)code->size,
			(unsigned long long)code->lost_blocks);
	close(code->fd);
}

/* ---- blocks ---- */

/* By the translating vCPU. */
static bool find_part(struct block_part *part, u64 linear, u64 end)
{
	u64 next = (linear | (CODE_PAGE - 1)) + 1;

	part->size = (u16)((next - linear < end - linear ? next : end) - linear);
	return !part->size || qemu_translate(linear, &part->physical);
}

void code_translated(struct block *block, const struct qemu_block *qemu)
{
	size_t n = qemu_block_insns(qemu), size = 0;
	struct block_part *part = block->part;
	struct qemu_insn insn;

	block->bytes = malloc(n * sizeof(insn.bytes));
	for (size_t i = 0; i < n && block->bytes; i++) {
		qemu_block_insn(qemu, i, &insn);
		memcpy(block->bytes + size, insn.bytes, insn.size);
		size += insn.size;
	}
	if (size && find_part(part, block->start, block->start + size) &&
	    find_part(part + 1, block->start + part->size, block->start + size))
		return;
	part[0].size = part[1].size = 0;
	__atomic_fetch_add(&block->plugin->code->lost_blocks, 1, __ATOMIC_RELAXED);
}

/* ---- what is known ---- */

/*
 * What vCPUs have seen is not what the stream has any more: a page or a mapping changed, perhaps by
 * another vCPU, or it had to make room.
 */
static void changed(struct code *code)
{
	__atomic_fetch_add(&code->plugin->code_changes, 1, __ATOMIC_RELAXED);
}

static struct code_page *find_page(struct code *code, u64 physical)
{
	struct code_page **set = code->page[vmpt_mix64(physical) % PAGE_SETS], *page;
	unsigned int way;

	for (way = 0; way < WAYS && set[way]; way++)
		if (set[way]->physical == physical)
			return set[way];
	if (way == WAYS)
		way = code->turn++ % WAYS;
	page = set[way];
	if (page)
		changed(code);
	else
		page = calloc(1, sizeof(*page));
	if (!page)
		return NULL;
	set[way] = page;
	page->physical = physical;
	memset(page->known, 0, sizeof(page->known));
	page->epoch = ++code->epoch;
	return page;
}

static bool is_known(const struct code_page *page, u64 n)
{
	return page->known[n / 64] >> n % 64 & 1;
}

static void put_bytes(struct code *code, u64 physical, const u8 *bytes, u64 n)
{
	u8 *at = record(code, CODE_BYTES);

	if (!at)
		return;
	at = code_put_signed(at, physical - code->end);
	at = code_put(at, n);
	memcpy(at, bytes, n);
	stop(code, at + n);
	code->end = physical + n;
	code->records++;
}

/* The bytes of a block that begins, or a part of it. */
static void take_bytes(struct code *code, struct code_page *page, const struct block_part *part,
		       const u8 *bytes)
{
	u64 at = part->physical % CODE_PAGE, first = part->size, last = 0;
	bool differs = false;

	for (u64 i = 0; i < part->size; i++) {
		bool known = is_known(page, at + i);

		if (known && page->bytes[at + i] == bytes[i])
			continue;
		differs |= known;
		first = first < i ? first : i;
		last = i;
		page->bytes[at + i] = bytes[i];
		page->known[(at + i) / 64] |= 1ULL << (at + i) % 64;
	}
	if (first < part->size)
		put_bytes(code, part->physical + first, bytes + first, last - first + 1);
	if (differs) {
		page->epoch = ++code->epoch;
		changed(code);
	}
}

static void put_map(struct code *code, u64 space, u64 linear, u64 physical)
{
	unsigned int kind = space & 2 ? CODE_MAP_64 : space & 1 ? CODE_MAP_32 : CODE_MAP_16;
	u8 *at = record(code, kind);

	if (!at)
		return;
	at = code_put_signed(at, (space >> 5) - code->cr3);
	at = code_put_signed(at, linear - code->linear);
	at = code_put_signed(at, physical - code->physical);
	stop(code, at);
	code->cr3 = space >> 5;
	code->linear = linear;
	code->physical = physical;
	code->records++;
}

static void take_map(struct code *code, u64 space, u64 linear, u64 physical)
{
	struct mapping *set = code->map[vmpt_mix64(space ^ vmpt_mix64(linear)) % MAP_SETS];
	unsigned int way;

	for (way = 0; way < WAYS && set[way].physical; way++)
		if (set[way].linear == linear && set[way].space == space)
			break;
	if (way == WAYS)
		way = code->turn++ % WAYS;
	else if (set[way].physical == physical + 1)
		return;
	if (set[way].physical)
		changed(code);
	set[way] = (struct mapping){ space, linear, physical + 1 };
	put_map(code, space, linear, physical);
}

static void forget(struct vcpu *vcpu)
{
	vcpu->code->changes = __atomic_load_n(&vcpu->plugin->code_changes, __ATOMIC_RELAXED);
	memset(vcpu->code->seen, 0xff, sizeof(vcpu->code->seen));
}

/* One part of a block. */
static void record_part(struct vcpu *vcpu, struct block_part *part, const u8 *bytes, u64 linear)
{
	struct code *code = vcpu->plugin->code;
	struct code_page *page = find_page(code, part->physical / CODE_PAGE);
	u64 space = code_space(vcpu);

	if (!page)
		return;
	if (part->epoch != page->epoch)
		take_bytes(code, page, part, bytes);
	part->epoch = page->epoch;
	take_map(code, space, linear, part->physical / CODE_PAGE);
	vcpu->code->seen[linear % CODE_SEEN] = (struct code_seen){ linear, space, page->epoch };
}

static bool lags(const struct vcpu *vcpu)
{
	return vcpu->code->changes !=
	       __atomic_load_n(&vcpu->plugin->code_changes, __ATOMIC_RELAXED);
}

void code_record(struct vcpu *vcpu, struct block *block, u64 ip)
{
	struct block_part *part = block->part;
	u64 linear = ip / CODE_PAGE;
	bool others = lags(vcpu), own;

	pthread_mutex_lock(&vcpu->plugin->code->lock);
	if (others)
		forget(vcpu);
	if (part[0].size)
		record_part(vcpu, part, block->bytes, linear);
	if (part[1].size)
		record_part(vcpu, part + 1, block->bytes + part[0].size, linear + 1);
	own = lags(vcpu);
	if (own)
		forget(vcpu);
	pthread_mutex_unlock(&vcpu->plugin->code->lock);
	if (others || own)
		vcpu->plugin->host_ops->code_changed(vcpu, ip);
}

/* ---- vCPUs and runs ---- */

int code_vcpu_open(struct vcpu *vcpu)
{
	vcpu->code = calloc(1, sizeof(*vcpu->code));
	if (!vcpu->code)
		return -1;
	forget(vcpu);
	return 0;
}

void code_flush(struct code *code)
{
	pthread_mutex_lock(&code->lock);
	flush(code);
	pthread_mutex_unlock(&code->lock);
}

/* Without new records the end of the run before says as much. */
void code_run(struct vcpu *vcpu, const struct code_run *run)
{
	struct code *code = vcpu->plugin->code;
	u8 *at = NULL;

	pthread_mutex_lock(&code->lock);
	if (vcpu->code->records != code->records)
		at = record(code, CODE_RUN);
	if (at) {
		at = code_put(at, vcpu->index);
		at = code_put(at, run->vmcs >> 12);
		at = code_put(at, code->time - run->end);
		at = code_put(at, run->end - run->begin);
		at = code_put(at, run->moved);
		stop(code, at);
		vcpu->code->records = code->records;
	}
	pthread_mutex_unlock(&code->lock);
}
