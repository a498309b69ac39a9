// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * jitdump: the code that a just-in-time compiler made, as perf's tools/perf/Documentation/
 * jitdump-specification.txt lays it out. Of two functions at one place the one written last counts.
 */
#include <stdlib.h>

#include "decoder/image/image.h"

enum {
	HEADER = 40,	 /* u32 magic, version, total_size, elf_mach, ... */
	HEADER_SIZE = 8, /* u32 total_size */
	RECORD = 16,	 /* u32 id, total_size, u64 timestamp */
	CODE_LOAD = 0,	 /* u32 pid, tid, u64 vma, code_addr, code_size, code_index, name, code */
	LOAD_ADDR = RECORD + 16,
	LOAD_SIZE = RECORD + 24,
	LOAD_NAME = RECORD + 40,
};

#define MAGIC 0x4a695444u

bool vmpt_image_is_jitdump(const struct vmpt_map *map)
{
	return map->size >= HEADER && vmpt_load32(map->data) == MAGIC;
}

/* The code of a JIT_CODE_LOAD record of @size bytes; its length, 0: there is none. */
static u64 find_code(const u8 *rec, u32 size, u64 *offset)
{
	u64 code_size;
	const u8 *end;

	if (vmpt_load32(rec) != CODE_LOAD || size <= LOAD_NAME)
		return 0;
	end = memchr(rec + LOAD_NAME, 0, size - LOAD_NAME);
	if (!end)
		return 0;
	*offset = (u64)(end + 1 - rec);
	code_size = vmpt_load64(rec + LOAD_SIZE);
	return code_size > size - *offset ? 0 : code_size;
}

/* From the last record on, so that it comes first among those of one address. */
static int add_loads(struct vmpt_image *image, const u64 *load, size_t n)
{
	const u8 *data = image->files[0].map.data;

	while (n) {
		const u8 *rec = data + load[--n];
		u64 offset = 0, size = find_code(rec, vmpt_load32(rec + 4), &offset);

		if (vmpt_extents_add(&image->linear, vmpt_load64(rec + LOAD_ADDR), size, 0,
				     load[n] + offset))
			return -VMPT_E_NOMEM;
	}
	return 0;
}

int vmpt_image_read_jitdump(struct vmpt_image *image, struct vmpt_diag *diag)
{
	const struct vmpt_map *map = &image->files[0].map;
	u64 at, unused, *load = NULL;
	size_t n = 0;
	u32 size;
	int ret = 0;

	if (!vmpt_image_is_jitdump(map))
		return vmpt_diag_fail(diag, VMPT_E_FORMAT, 0, "not a jitdump");
	at = vmpt_load32(map->data + HEADER_SIZE);
	for (; !ret && at <= map->size && map->size - at >= RECORD; at += size) {
		size = vmpt_load32(map->data + at + 4);
		if (size < RECORD || size > map->size - at)
			break;
		if (!find_code(map->data + at, size, &unused))
			continue;
		ret = vmpt_grow(&load, n);
		if (!ret)
			load[n++] = at;
	}
	if (!ret && at != map->size)
		vmpt_diag_fail(diag, VMPT_E_TRUNCATED, at,
			       "the jitdump is damaged, or was cut: what comes after is not known");
	if (!ret)
		ret = add_loads(image, load, n);
	free(load);
	if (ret)
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	if (!n)
		return vmpt_diag_fail(diag, VMPT_E_FORMAT, 0, "the jitdump has no code");
	return 0;
}
