// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The page as a file: HTML, style and script of cli/page/, embedded when vmpt was built, and
 * between them the facts as JSON and everything large as packed bytes (deflate, which
 * browsers read; base64). Names come from guests and users: in JSON every character that could end
 * the script element is escaped.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cli/page/parts.h"
#include "cli/page/page.h"
#include "cli/base/base.h"
#include "util/array.h"
#include "page-files.h" /* made by cli/page/embed.py */

static void put_bytes(struct page_bytes *bytes, const u8 *data, size_t size)
{
	if (bytes->failed)
		return;
	if (vmpt_reserve(&bytes->data, &bytes->room, bytes->size + size)) {
		bytes->failed = true;
		return;
	}
	memcpy(bytes->data + bytes->size, data, size);
	bytes->size += size;
}

void page_put(struct page_bytes *bytes, u64 value)
{
	u8 buf[10];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		buf[n++] = (u8)(value | 0x80);
	buf[n++] = (u8)value;
	put_bytes(bytes, buf, n);
}

void page_put_step(struct page_bytes *bytes, u64 from, u64 to)
{
	page_put(bytes, to >= from ? (to - from) << 1 : (from - to) << 1 | 1);
}

void page_put_raw64(struct page_bytes *bytes, u64 value)
{
	u8 buf[8];
	int i;

	for (i = 0; i < 8; i++)
		buf[i] = (u8)(value >> 8 * i);
	put_bytes(bytes, buf, sizeof(buf));
}

json_t *page_string(const char *text)
{
	char *clean = malloc(strlen(text) * CLI_SAFE_CHAR + 1), *to = clean;
	json_t *string;

	if (!clean)
		return NULL;
	while (*text)
		to += cli_safe_char(&text, to);
	string = json_stringn(clean, (size_t)(to - clean));
	free(clean);
	return string;
}

static void put_grid(const struct page_grid *grid, size_t lanes, struct page_bytes *bytes)
{
	page_put(bytes, grid->width);
	page_put(bytes, grid->count);
	page_put(bytes, lanes);
	page_grid_put(grid, lanes, bytes);
}

static void put_grids(const struct page_parts *parts, struct page_bytes *bytes)
{
	put_grid(parts->cpus, parts->streams, bytes);
	put_grid(parts->vcpus, parts->lines, bytes);
}

/* Bytes before packing. */
struct plain_sizes {
	size_t grids, spans, all;
};

/* The packed data: the sizes of the sections, then the sections. */
static int pack(const struct page_parts *parts, struct page_bytes *packed,
		struct plain_sizes *sizes)
{
	struct page_bytes plain = { 0 };
	uLongf size;
	int ret = -1;

	put_grids(parts, &plain);
	sizes->grids = plain.size;
	page_exits_put(parts->exits, &plain);
	sizes->spans = plain.size;
	page_spans_put(parts->spans, &plain);
	sizes->spans = plain.size - sizes->spans;
	if (parts->flames)
		page_flames_put(parts->flames, &plain);
	sizes->all = plain.size;
	size = compressBound(plain.size);
	packed->data = malloc(size);
	if (!plain.failed && packed->data &&
	    compress2(packed->data, &size, plain.data, plain.size, 6) == Z_OK) {
		packed->size = size;
		ret = 0;
	}
	free(plain.data);
	return ret;
}

static bool widen(const struct page_parts *parts)
{
	struct page_grid *wide = parts->cpus;

	if (parts->vcpus->count > wide->count)
		wide = parts->vcpus;
	if (wide->count <= 16)
		return false;
	page_grid_widen(wide, true);
	return true;
}

/*
 * @parts, of @sizes before packing, took @packed bytes: reduce them until they will about fit.
 * Packing is slow, so it is not repeated for each step: the ratio is assumed constant.
 * Shares of time may use a third of the room.
 */
static void lessen(const struct page_parts *parts, const struct plain_sizes *sizes, size_t packed,
		   size_t room)
{
	double ratio = (double)packed / (double)sizes->all, share, others;
	bool few = parts->spans->count < 64, widened = false;
	struct page_bytes grids = { .size = sizes->grids };

	while ((few && !widened) || (double)grids.size * ratio > (double)room / 3) {
		if (!widen(parts))
			break;
		widened = true;
		free(grids.data);
		grids = (struct page_bytes){ 0 };
		put_grids(parts, &grids);
	}
	free(grids.data);
	if (few && widened)
		return;
	others = (double)(sizes->all - sizes->grids - sizes->spans + grids.size) * ratio;
	share = (0.98 * (double)room - others) / ((double)sizes->spans * ratio + 1);
	if (share >= 1 && widened)
		return;
	share = share < 0.25 ? 0.25 : share > 0.98 ? 0.98 : share;
	page_spans_trim(parts->spans, (size_t)((double)parts->spans->count * share));
}

static int fit(const struct page_parts *parts, size_t room, struct page_bytes *packed)
{
	struct plain_sizes sizes;
	int tries;

	for (tries = 0;; tries++) {
		if (pack(parts, packed, &sizes)) {
			free(packed->data);
			return -1;
		}
		if (packed->size <= room || tries == 40)
			return 0;
		free(packed->data);
		lessen(parts, &sizes, packed->size, room);
	}
}

static void write_base64(const struct page_bytes *bytes, FILE *out)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t i;

	for (i = 0; i < bytes->size; i += 3) {
		size_t left = bytes->size - i;
		u32 v = (u32)bytes->data[i] << 16 | (left > 1 ? (u32)bytes->data[i + 1] << 8 : 0) |
			(left > 2 ? bytes->data[i + 2] : 0u);

		fputc(digit[v >> 18], out);
		fputc(digit[v >> 12 & 63], out);
		fputc(left > 1 ? digit[v >> 6 & 63] : '=', out);
		fputc(left > 2 ? digit[v & 63] : '=', out);
	}
}

/* JSON that cannot end the script element: these characters are only in strings. */
static void write_json(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (*text == '<' || *text == '>' || *text == '&')
			fprintf(out, "\\u%04x", (unsigned int)*text);
		else
			fputc(*text, out);
	}
}

int page_parts_write(const struct page_parts *parts, json_t *meta, FILE *out)
{
	const size_t fixed = sizeof(page_head) + sizeof(page_middle) + sizeof(page_tail);
	struct page_bytes packed = { 0 };
	size_t room = parts->options->max_bytes, used;
	char *text = NULL;
	int ret = -1;

	if (page_exits_json(parts->exits, parts->options, meta) ||
	    json_object_set_new(meta, "spans", json_integer((json_int_t)parts->spans->total)))
		return -1;
	text = json_dumps(meta, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (!text)
		return -1;
	/* A character of the JSON may take six. */
	used = fixed + strlen(text) + strlen(text) / 8;
	room = room > used + 65536 ? room - used : 65536;
	if (!fit(parts, room / 4 * 3 - 8, &packed)) {
		fwrite(page_head, 1, sizeof(page_head), out);
		write_json(text, out);
		fwrite(page_middle, 1, sizeof(page_middle), out);
		write_base64(&packed, out);
		fwrite(page_tail, 1, sizeof(page_tail), out);
		free(packed.data);
		ret = 0;
	}
	free(text);
	return ret;
}
