// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Any bytes as a code stream. Byte 0: 0, the whole file; else the bytes are the records of chunks
 * of that many bytes with right sums, which a file from anywhere may have. Each page that it has is
 * asked for, at several times.
 */
#include <stdlib.h>

#include "decoder/image/code-stream.h"
#include "util/code-stream.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* free() it. */
static u8 *make_chunks(const u8 *data, size_t size, size_t step, size_t *made)
{
	u8 *file = calloc(1, size + (size / step + 1) * sizeof(struct code_head));
	struct code_head head = { .number = 0 };
	size_t n;

	memcpy(head.magic, CODE_MAGIC, CODE_MAGIC_SIZE);
	for (*made = 0; size; size -= n, data += n, head.number++) {
		n = size < step ? size : step;
		head.size = (u32)n;
		head.sum = code_sum(&head, data, n);
		memcpy(file + *made, &head, sizeof(head));
		memcpy(file + *made + sizeof(head), data, n);
		*made += sizeof(head) + n;
	}
	return file;
}

static void ask(struct vmpt_image *image, const struct stream_map *m, u64 tsc, bool no_cr3)
{
	struct vmpt_space space = { .owner = { .kind = VMPT_OWNER_VM, .vmcs = tsc & 0xf000 },
				    .cr3 = m->cr3,
				    .no_cr3 = no_cr3,
				    .exec = m->mode,
				    .tsc = tsc };
	struct vmpt_page page;
	unsigned int nth, i, known;

	for (nth = 0; nth < VMPT_CODE_VERSIONS &&
		      vmpt_image_page(image, &space, m->linear * VMPT_PAGE, nth, &page) > 0;
	     nth++) {
		for (i = known = 0; i < VMPT_PAGE; i++)
			known += vmpt_page_knows(&page, i) || page.bytes[i];
		require(known);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const struct vmpt_image_options options = { .kind = VMPT_IMAGE_CODE };
	struct vmpt_diag diag = { 0 };
	struct vmpt_image *image;
	struct vmpt_file file;
	size_t i, made = 0;
	u8 *chunks = NULL;

	if (size < 2)
		return 0;
	file = (struct vmpt_file){ data + 1, size - 1 };
	if (data[0]) {
		chunks = make_chunks(data + 1, size - 1, data[0], &made);
		file = (struct vmpt_file){ chunks, made };
	}
	if (vmpt_image_open_memory(&image, &file, 1, &options, &diag)) {
		require(diag.text[0]);
	} else {
		const struct code_stream *s = image->code;

		for (i = 0; i < s->map_count && i < 32; i++) {
			ask(image, &s->map[i], 0, i & 1);
			ask(image, &s->map[i], s->map[i].time, false);
			ask(image, &s->map[i], s->run_count ? s->run[i % s->run_count].end : 1,
			    i & 2);
		}
		vmpt_image_close(image);
	}
	free(chunks);
	return 0;
}
