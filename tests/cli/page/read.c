// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Reads an HTML page of vmpt timeline back, see read.h. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/cli/page/read.h"

/* What is between the element with that id and the next "</script>"; ends it with a NUL. */
static char *element(char *html, const char *id)
{
	char *at = strstr(html, id), *end;

	ck_assert_msg(at, "no element %s", id);
	at = strchr(at, '>');
	ck_assert_ptr_nonnull(at);
	end = strstr(++at, "</script>");
	ck_assert_ptr_nonnull(end);
	*end = 0;
	return at;
}

static u8 *from_base64(const char *text, size_t *size)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t length = strlen(text), i, n = 0;
	u8 *data = malloc(length + 1);
	u32 bits = 0;

	ck_assert_uint_eq(length % 4, 0);
	for (i = 0; i < length && text[i] != '='; i++) {
		const char *at = strchr(digit, text[i]);

		if (!at)
			ck_abort_msg("no base64");
		bits = bits << 6 | (u32)(at - digit);
		if (i % 4)
			data[n++] = (u8)(bits >> (6 - i % 4 * 2));
	}
	*size = n;
	return data;
}

static u64 number(struct read_page *page)
{
	u64 value = 0;
	unsigned int shift = 0;
	u8 byte;

	do {
		/* Asserting each one would take most of the test's time. */
		if (page->at >= page->data_size)
			ck_abort_msg("the data end early");
		byte = page->data[page->at++];
		value |= (u64)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

/* One lane's buckets; in none is more time than it is wide. */
static void lane_of(struct read_page *page, struct read_lane *lane, u64 width, u64 count)
{
	u64 filled, cells, bucket = 0, state, ticks;

	for (filled = number(page); filled; filled--) {
		u64 in_bucket = 0;

		bucket += number(page);
		if (bucket >= count)
			ck_abort_msg("a bucket past the end");
		for (cells = number(page); cells; cells--) {
			state = number(page);
			if (state >= READ_STATES)
				ck_abort_msg("no such state");
			lane->count[state] += number(page);
			ticks = number(page);
			lane->ticks[state] += ticks;
			in_bucket += ticks;
		}
		if (in_bucket > width)
			ck_abort_msg("more time in a bucket than it is wide");
	}
}

static u64 grid(struct read_page *page, struct read_lane *lane, size_t *lanes)
{
	u64 width = number(page), count = number(page);
	size_t i;

	*lanes = number(page);
	ck_assert_uint_le(*lanes, READ_LANES);
	for (i = 0; i < *lanes; i++)
		lane_of(page, &lane[i], width, count);
	return width;
}

static u64 *column(struct read_page *page)
{
	u64 *all = calloc(page->spans + 1, sizeof(*all));
	size_t i;

	for (i = 0; i < page->spans; i++)
		all[i] = number(page);
	return all;
}

/* Starts are steps from the end of the span before in the same stream. */
static void starts(struct read_page *page)
{
	size_t i;

	for (i = 0; i < page->spans; i++) {
		u64 step = page->start[i], from = 0;

		if (i && page->stream[i] == page->stream[i - 1])
			from = page->start[i - 1] + page->length[i - 1];
		page->start[i] = step & 1 ? from - (step >> 1) : from + (step >> 1);
	}
}

static void spans(struct read_page *page)
{
	page->spans = number(page);
	page->stream = column(page);
	page->kind = column(page);
	free(column(page)); /* edges */
	page->flags = column(page);
	free(column(page)); /* back */
	page->start = column(page);
	free(column(page)); /* offset */
	page->length = column(page);
	free(column(page)); /* size */
	free(column(page)); /* line */
	page->gap = column(page);
	page->waited = column(page);
	page->unknown = column(page);
	starts(page);
}

void read_page(struct read_page *page, char *html, size_t size)
{
	char *meta, *text;
	size_t packed_size, i;
	u64 filled;
	uLongf room = 64u << 20;
	u8 *packed;

	memset(page, 0, sizeof(*page));
	page->html = html;
	page->size = size;
	meta = element(html, "id=\"meta\"");
	text = element(meta + strlen(meta) + 1, "id=\"data\"");
	page->meta = json_loads(meta, 0, NULL);
	ck_assert_ptr_nonnull(page->meta);
	packed = from_base64(text, &packed_size);
	page->data = malloc(room);
	ck_assert_int_eq(uncompress(page->data, &room, packed, packed_size), Z_OK);
	page->data_size = room;
	free(packed);
	page->cpu_width = grid(page, page->cpu, &page->cpus);
	page->vcpu_width = grid(page, page->line, &page->lines);
	page->hists = number(page);
	for (i = 0; i < page->hists; i++) {
		struct read_hist h = { .line = (u32)number(page) };

		h.reason = (u32)number(page);
		h.count = number(page);
		h.timed = number(page);
		h.ticks = number(page);
		h.waited = number(page);
		h.max = number(page);
		for (filled = number(page); filled; filled--) {
			number(page);
			h.in_bins += number(page);
		}
		if (i < VMPT_ARRAY_SIZE(page->hist))
			page->hist[i] = h;
	}
	spans(page);
}

void read_page_free(struct read_page *page)
{
	free(page->html);
	json_decref(page->meta);
	free(page->data);
	free(page->kind);
	free(page->stream);
	free(page->flags);
	free(page->length);
	free(page->gap);
	free(page->waited);
	free(page->unknown);
	free(page->start);
}
