// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The individual spans of the page: first those with a loss or something else notable, then the
 * longest, by their own time or the host's time of their exit. Among equal ones the choice is
 * pseudo-random, but reproducible.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/page/parts.h"
#include "util/array.h"

static int by_key(const void *va, const void *vb)
{
	const struct page_kept *a = va, *b = vb;

	return (a->key < b->key) - (a->key > b->key);
}

static int by_time(const void *va, const void *vb)
{
	const struct page_kept *a = va, *b = vb;

	if (a->stream != b->stream)
		return a->stream < b->stream ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

/* Bit 63: notable; then the length, then a pseudo-random value. */
static u64 key_of(struct page_spans *spans, const struct page_kept *kept, bool notable)
{
	u64 length = kept->gap > kept->length ? kept->gap : kept->length;

	spans->seed = spans->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	if (length >= 1ULL << 47)
		length = (1ULL << 47) - 1;
	return (u64)notable << 63 | length << 16 | spans->seed >> 48;
}

void page_spans_trim(struct page_spans *spans, size_t count)
{
	if (spans->count <= count)
		return;
	qsort(spans->kept, spans->count, sizeof(*spans->kept), by_key);
	spans->count = count;
	spans->least = count ? spans->kept[count - 1].key : ~0ULL;
}

int page_spans_add(struct page_spans *spans, struct page_kept *kept, bool notable)
{
	spans->total++;
	kept->key = key_of(spans, kept, notable);
	if (kept->key < spans->least)
		return 0;
	if (spans->count == 2 * spans->max)
		page_spans_trim(spans, spans->max);
	if (vmpt_reserve(&spans->kept, &spans->room, spans->count + 1))
		return -1;
	spans->kept[spans->count++] = *kept;
	return 0;
}

static int by_value(const void *va, const void *vb)
{
	const u64 *a = va, *b = vb;

	return (*a > *b) - (*a < *b);
}

/* A column of large values, few of them different: a table of them, then indices. */
static void put_values(const struct page_spans *spans, size_t place, u8 flag,
		       struct page_bytes *bytes)
{
	u64 *value = calloc(spans->count + 1, sizeof(*value)), *at;
	size_t i, n = 0, k = 0;

	if (!value) {
		bytes->failed = true;
		return;
	}
	for (i = 0; i < spans->count; i++)
		if (!flag || spans->kept[i].flags & flag)
			memcpy(&value[n++], (const u8 *)&spans->kept[i] + place, sizeof(u64));
	qsort(value, n, sizeof(*value), by_value);
	for (i = 0; i < n; i++)
		if (!k || value[k - 1] != value[i])
			value[k++] = value[i];
	page_put(bytes, k);
	for (i = 0; i < k; i++)
		page_put_raw64(bytes, value[i]);
	for (i = 0; i < spans->count; i++) {
		u64 key;

		if (flag && !(spans->kept[i].flags & flag))
			continue;
		memcpy(&key, (const u8 *)&spans->kept[i] + place, sizeof(key));
		at = bsearch(&key, value, k, sizeof(*value), by_value);
		page_put(bytes, (u64)(at - value));
	}
	free(value);
}

/* Starts and offsets usually continue where the previous span ended. */
static void put_steps(const struct page_spans *spans, struct page_bytes *bytes)
{
	const struct page_kept *kept = spans->kept;
	size_t i;

	for (i = 0; i < spans->count; i++) {
		bool first = !i || kept[i].stream != kept[i - 1].stream;

		page_put_step(bytes, first ? 0 : kept[i - 1].start + kept[i - 1].length,
			      kept[i].start);
	}
	for (i = 0; i < spans->count; i++) {
		bool first = !i || kept[i].stream != kept[i - 1].stream;

		page_put_step(bytes, first ? 0 : kept[i - 1].offset + kept[i - 1].size,
			      kept[i].offset);
	}
}

#define PUT(expr)                                                    \
	do {                                                         \
		for (i = 0; i < spans->count; i++) {                 \
			const struct page_kept *k = &spans->kept[i]; \
			page_put(bytes, expr);                       \
		}                                                    \
	} while (0)

/* Column by column: similar values compress best next to each other. */
void page_spans_put(struct page_spans *spans, struct page_bytes *bytes)
{
	size_t i;
	int b;

	if (spans->count)
		qsort(spans->kept, spans->count, sizeof(*spans->kept), by_time);
	page_put(bytes, spans->count);
	PUT(k->stream);
	PUT(k->kind | (u64)k->sure << 3);
	PUT(k->began | (u64)k->ended << 3);
	PUT(k->flags);
	PUT(k->back);
	put_steps(spans, bytes);
	PUT(k->length);
	PUT(k->size);
	PUT(k->line + 1u);
	PUT(k->gap);
	PUT(k->waited);
	PUT(k->unknown);
	PUT(k->reason);
	PUT(k->flags & PAGE_KEPT_MOVED ? k->moved_from + 1ULL : 0);
	PUT(k->overflows);
	PUT(k->failed_entries);
	for (b = 0; b < 4; b++)
		PUT(k->bound[b] == VMPT_TIME_OPEN ? 0 : k->bound[b] + 1ULL);
	put_values(spans, offsetof(struct page_kept, ip), PAGE_KEPT_IP, bytes);
	put_values(spans, offsetof(struct page_kept, cr3), PAGE_KEPT_IP, bytes);
	put_values(spans, offsetof(struct page_kept, qualification), PAGE_KEPT_QUAL, bytes);
}
