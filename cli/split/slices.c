// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * slices.gz: blocks of slices, column by column, each value as its difference from a prediction in
 * a varint, all of it in gzip. What is predicted well costs next to nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "cli/split/slices.h"
#include "util/array.h"

#define MAGIC	   "vmptslc1"
#define BLOCK	   8192 /* slices */
#define VARINT	   10	/* bytes */
#define RECENT	   64	/* CR3s */
#define COLUMN_MAX (BLOCK * VMPT_SLICE_CR3S * 2 * VARINT)

static const char *const counts[] = {
	"overflows",	 "failed_entries",    "doubts",		 "enables",
	"disables",	 "others_mtc",	      "others_cbr",	 "others_cyc",
	"others_cycles", "others_tsc",	      "others_tsc_kept", "tscs_rewritten",
	"tscs_unmapped", "fups_dropped",      "ips_reencoded",	 "flow_dropped",
	"tips_enabling", "concealed_packets", "dropped_packets", "lips_unknown",
};

_Static_assert(VMPT_ARRAY_SIZE(counts) == SLICES_ERRATA - SLICES_COUNTS, "columns");

const char *slices_count_name(unsigned int i)
{
	return i < VMPT_ARRAY_SIZE(counts) ? counts[i] : NULL;
}

const char *slices_flag_name(unsigned int bit)
{
	static const char *const name[] = { "head", "returned", "enabled", "left",
					    "returns_may_lack_calls" };

	bit -= SLICES_FLAG_NAMES;
	return bit < VMPT_ARRAY_SIZE(name) ? name[bit] : NULL;
}

struct of_owner {
	u64 tsc, file;
};

struct slices {
	gzFile gz;
	bool write, begun, ended;
	struct slices_row *row; /* a block */
	size_t rows, at;
	u8 *bytes;
	/* For predictions: */
	struct slices_row last;
	struct of_owner *owner;
	u64 *end; /* of each file */
	size_t owner_room, end_room;
	u64 recent[RECENT]; /* CR3s, the last one first */
};

/* ---- predictions: of what both sides know ---- */

static u64 predict(const struct slices *s, const struct slices_row *row, unsigned int column)
{
	switch (column) {
	case SLICES_CPU:
		return s->last.v[SLICES_CPU];
	case SLICES_OFFSET:
		return row->v[SLICES_CPU] == s->last.v[SLICES_CPU]
			       ? s->last.v[SLICES_OFFSET] + s->last.v[SLICES_SIZE]
			       : 0;
	case SLICES_FIRST_TSC:
		return row->v[SLICES_FLAGS] & SLICES_HAS_TSC ? s->owner[row->v[SLICES_OWNER]].tsc
							     : 0;
	case SLICES_LAST_TSC:
		return row->v[SLICES_FIRST_TSC];
	case SLICES_FILE_NUMBER:
		return s->owner[row->v[SLICES_OWNER]].file;
	case SLICES_OUT_OFFSET:
		return row->v[SLICES_FILE_NUMBER] ? s->end[row->v[SLICES_FILE_NUMBER]] : 0;
	case SLICES_OUT_SIZE:
		return row->v[SLICES_FILE_NUMBER] ? row->v[SLICES_SIZE] : 0;
	default:
		return 0;
	}
}

static int make_room(struct slices *s, u64 owner, u64 file)
{
	return vmpt_reserve_zeroed(&s->owner, &s->owner_room, owner + 1) ||
	       vmpt_reserve_zeroed(&s->end, &s->end_room, file + 1);
}

static void learn(struct slices *s, const struct slices_row *row)
{
	struct of_owner *owner = &s->owner[row->v[SLICES_OWNER]];
	u64 file = row->v[SLICES_FILE_NUMBER];

	if (row->v[SLICES_FLAGS] & SLICES_HAS_TSC)
		owner->tsc = row->v[SLICES_LAST_TSC];
	owner->file = file;
	if (file)
		s->end[file] = row->v[SLICES_OUT_OFFSET] + row->v[SLICES_OUT_SIZE];
	s->last = *row;
}

/* The place of @cr3 among the recent ones, RECENT if it is none; it becomes the first. */
static unsigned int recall(struct slices *s, u64 cr3)
{
	unsigned int at = 0, last;

	while (at < RECENT && s->recent[at] != cr3)
		at++;
	last = at < RECENT ? at : RECENT - 1;
	memmove(s->recent + 1, s->recent, last * sizeof(*s->recent));
	s->recent[0] = cr3;
	return at;
}

/* ---- varints: 7 bits a byte, the lowest first; the sign is bit 0 ---- */

static u64 zigzag(u64 x)
{
	return x << 1 ^ (u64) - (s64)(x >> 63);
}

static u64 unzigzag(u64 x)
{
	return x >> 1 ^ (u64) - (s64)(x & 1);
}

static u8 *put(u8 *at, u64 x)
{
	for (; x >= 0x80; x >>= 7)
		*at++ = (u8)(x | 0x80);
	*at++ = (u8)x;
	return at;
}

/* NULL: @end is before its end. */
static const u8 *get(const u8 *at, const u8 *end, u64 *x)
{
	unsigned int shift = 0;

	*x = 0;
	for (; at < end && shift < 64; shift += 7) {
		*x |= (u64)(*at & 0x7f) << shift;
		if (!(*at++ & 0x80))
			return at;
	}
	return NULL;
}

/* ---- writing ---- */

static int put_bytes(struct slices *s, const u8 *bytes, size_t n)
{
	return !n || gzwrite(s->gz, bytes, (unsigned int)n) == (int)n ? 0 : -1;
}

static int put_number(struct slices *s, u64 x)
{
	u8 bytes[VARINT];

	return put_bytes(s, bytes, (size_t)(put(bytes, x) - bytes));
}

static int put_column(struct slices *s, const u8 *end)
{
	size_t n = (size_t)(end - s->bytes);

	return put_number(s, n) || put_bytes(s, s->bytes, n) ? -1 : 0;
}

static int put_cr3s(struct slices *s)
{
	u8 *at = s->bytes;
	unsigned int place;
	size_t i, k;

	for (i = 0; i < s->rows; i++)
		for (k = 0; k < s->row[i].v[SLICES_CR3S]; k++) {
			place = recall(s, s->row[i].cr3[k]);
			at = put(at, place);
			if (place == RECENT)
				at = put(at, s->row[i].cr3[k]);
		}
	return put_column(s, at);
}

/* The block's values become differences, row by row, as they are read. */
static int put_block(struct slices *s)
{
	struct slices_row whole;
	unsigned int c;
	size_t i;
	u8 *at;

	for (i = 0; i < s->rows; i++) {
		whole = s->row[i];
		if (make_room(s, whole.v[SLICES_OWNER], whole.v[SLICES_FILE_NUMBER]))
			return -1;
		for (c = 0; c < SLICES_COLUMNS; c++)
			if (c != SLICES_CR3S)
				s->row[i].v[c] = zigzag(whole.v[c] - predict(s, &whole, c));
		learn(s, &whole);
	}
	if (put_number(s, s->rows))
		return -1;
	for (c = 0; c < SLICES_COLUMNS; c++) {
		for (i = 0, at = s->bytes; i < s->rows; i++)
			at = put(at, s->row[i].v[c]);
		if (put_column(s, at))
			return -1;
	}
	if (put_cr3s(s))
		return -1;
	s->rows = 0;
	return 0;
}

int slices_write(struct slices *s, const struct slices_row *row)
{
	s->row[s->rows++] = *row;
	return s->rows == BLOCK ? put_block(s) : 0;
}

/* ---- reading ---- */

static int get_number(struct slices *s, u64 *x)
{
	u8 bytes[VARINT];
	size_t n = 0;

	do {
		if (n == VARINT || gzread(s->gz, bytes + n, 1) != 1)
			return -EINVAL;
	} while (bytes[n++] & 0x80);
	return get(bytes, bytes + n, x) ? 0 : -EINVAL;
}

/* The end of a column's bytes; NULL: there are fewer. */
static const u8 *get_column(struct slices *s)
{
	u64 n;

	if (get_number(s, &n) || n > COLUMN_MAX ||
	    gzread(s->gz, s->bytes, (unsigned int)n) != (int)n)
		return NULL;
	return s->bytes + n;
}

static int get_cr3s(struct slices *s)
{
	const u8 *end = get_column(s), *at = s->bytes;
	u64 place, cr3;
	size_t i, k;

	if (!end)
		return -EINVAL;
	for (i = 0; i < s->rows; i++)
		for (k = 0; k < s->row[i].v[SLICES_CR3S]; k++) {
			at = get(at, end, &place);
			if (!at || place > RECENT)
				return -EINVAL;
			if (place < RECENT)
				cr3 = s->recent[place];
			else
				at = get(at, end, &cr3);
			if (!at)
				return -EINVAL;
			recall(s, cr3);
			s->row[i].cr3[k] = cr3;
		}
	return 0;
}

static int restore(struct slices *s, size_t owners, size_t files, struct slices_row *row)
{
	unsigned int c;

	for (c = 0; c < SLICES_COLUMNS; c++) {
		if (c == SLICES_CR3S)
			continue;
		row->v[c] = unzigzag(row->v[c]);
		/* These are what predictions are made by. */
		row->v[c] += c == SLICES_OWNER ? 0 : predict(s, row, c);
		if ((c == SLICES_OWNER && row->v[c] >= owners) ||
		    (c == SLICES_FILE_NUMBER && row->v[c] > files))
			return -EINVAL;
	}
	learn(s, row);
	return 0;
}

static int get_block(struct slices *s, size_t owners, size_t files)
{
	const u8 *end, *at;
	unsigned int c;
	size_t i;
	u64 n;

	if (get_number(s, &n) || n > BLOCK)
		return -EINVAL;
	s->at = 0;
	s->rows = n;
	for (c = 0; n && c < SLICES_COLUMNS; c++) {
		end = get_column(s);
		for (i = 0, at = s->bytes; end && i < n; i++) {
			at = get(at, end, &s->row[i].v[c]);
			if (!at || (c == SLICES_CR3S && s->row[i].v[c] > VMPT_SLICE_CR3S))
				return -EINVAL;
		}
		if (!end)
			return -EINVAL;
	}
	for (i = 0; i < n; i++)
		if (restore(s, owners, files, &s->row[i]))
			return -EINVAL;
	return n ? get_cr3s(s) : 0;
}

/* Nothing follows, and the checksum is right. */
static bool ends_well(struct slices *s)
{
	int err = Z_OK;
	u8 more;

	if (gzread(s->gz, &more, 1))
		return false;
	gzerror(s->gz, &err);
	return err == Z_OK || err == Z_STREAM_END;
}

int slices_read(struct slices *s, size_t owners, size_t files, struct slices_row *row)
{
	char magic[sizeof(MAGIC) - 1];
	int ret;

	if (!s->begun) {
		if (!owners || make_room(s, owners, files))
			return owners ? -ENOMEM : -EINVAL;
		if (gzread(s->gz, magic, sizeof(magic)) != sizeof(magic) ||
		    memcmp(magic, MAGIC, sizeof(magic)))
			return -EINVAL;
		s->begun = true;
	}
	if (s->at == s->rows && !s->ended) {
		ret = get_block(s, owners, files);
		s->ended = !s->rows;
		if (ret || (s->ended && !ends_well(s)))
			return -EINVAL;
	}
	if (s->ended)
		return 0;
	*row = s->row[s->at++];
	return 1;
}

/* ---- the file ---- */

struct slices *slices_open(int fd, bool write)
{
	struct slices *s = calloc(1, sizeof(*s));

	if (s) {
		s->write = write;
		s->row = calloc(BLOCK, sizeof(*s->row));
		s->bytes = malloc(COLUMN_MAX);
		s->gz = gzdopen(fd, write ? "wb9" : "rb");
	}
	if (!s || !s->row || !s->bytes || !s->gz ||
	    (write && (make_room(s, 0, 0) || gzwrite(s->gz, MAGIC, sizeof(MAGIC) - 1) <= 0))) {
		if (!s || !s->gz)
			close(fd);
		slices_close(s);
		return NULL;
	}
	return s;
}

int slices_close(struct slices *s)
{
	int ret = 0;

	if (!s)
		return 0;
	if (s->write && s->gz && s->row)
		ret = (s->rows && put_block(s)) || put_number(s, 0) ? -1 : 0;
	if (s->gz && gzclose(s->gz) != Z_OK)
		ret = -1;
	free(s->row);
	free(s->bytes);
	free(s->owner);
	free(s->end);
	free(s);
	return ret;
}
