// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * jitdump: the code that a just-in-time compiler made, as perf's tools/perf/Documentation/
 * jitdump-specification.txt lays it out. If its times are TSCs, code is there from its record on,
 * up to one that moves it or has other code there. Else, of two functions at one place the one
 * written last counts.
 */
#include <stdlib.h>

#include "decoder/image/patches.h"

enum {
	HEADER = 40,	   /* u32 magic, version, total_size, elf_mach, ... */
	HEADER_SIZE = 8,   /* u32 total_size */
	HEADER_FLAGS = 32, /* u64; bit 0: times are TSCs */
	RECORD = 16,	   /* u32 id, total_size, u64 timestamp */
	CODE_LOAD = 0,	   /* u32 pid, tid, u64 vma, code_addr, code_size, code_index, name, code */
	LOAD_ADDR = RECORD + 16,
	LOAD_SIZE = RECORD + 24,
	LOAD_INDEX = RECORD + 32,
	LOAD_NAME = RECORD + 40,
	CODE_MOVE =
		1, /* u32 pid, tid, u64 vma, old_code_addr, new_code_addr, code_size, code_index */
	MOVE_OLD = RECORD + 16,
	MOVE_NEW = RECORD + 24,
	MOVE_INDEX = RECORD + 40,
	MOVE_END = RECORD + 48,
};

/* Code that moves is copied: at most this many times the file's size. */
#define COPIES_MAX 16

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

/* The record of the load with @index, or NULL. */
static const u8 *find_load(const u8 *data, const struct vmpt_hash *by_index, const u64 *load,
			   u64 index)
{
	u32 i = vmpt_hash_find(by_index, vmpt_mix64(index), k,
			       vmpt_load64(data + load[k] + LOAD_INDEX) == index);

	return i == VMPT_HASH_NONE ? NULL : data + load[i];
}

static int add_load(struct vmpt_image *image, const u8 *rec, u64 time, u64 at)
{
	u64 offset = 0, size = find_code(rec, vmpt_load32(rec + 4), &offset);

	return at > ~0ULL - size
		       ? 0
		       : vmpt_patches_add(&image->patches, time, at, size, rec + offset, NULL);
}

/* The code of @load, wherever it was last, is somewhere else. */
static int add_move(struct vmpt_image *image, const u8 *rec, const u8 *load)
{
	u64 time = vmpt_load64(rec + 8), old = vmpt_load64(rec + MOVE_OLD), offset = 0;
	u64 size = find_code(load, vmpt_load32(load + 4), &offset);
	int ret = 0;

	if (old <= ~0ULL - size)
		ret = vmpt_patches_add(&image->patches, time, old, size, NULL, NULL);
	return ret ? ret : add_load(image, load, time, vmpt_load64(rec + MOVE_NEW));
}

/* @load has the @n records of code, @moves those that move it. */
static int add_timed(struct vmpt_image *image, const u64 *load, size_t n, const u64 *move,
		     size_t moves)
{
	const u8 *data = image->files[0].map.data, *of;
	struct vmpt_hash by_index = { 0 };
	int ret = 0;
	size_t i;

	for (i = 0; i < n && !ret; i++) {
		ret = add_load(image, data + load[i], vmpt_load64(data + load[i] + 8),
			       vmpt_load64(data + load[i] + LOAD_ADDR));
		if (!ret &&
		    !find_load(data, &by_index, load, vmpt_load64(data + load[i] + LOAD_INDEX)))
			ret = vmpt_hash_add(&by_index,
					    vmpt_mix64(vmpt_load64(data + load[i] + LOAD_INDEX)),
					    (u32)i);
	}
	for (i = 0; i < moves && !ret; i++) {
		of = find_load(data, &by_index, load, vmpt_load64(data + move[i] + MOVE_INDEX));
		if (of && image->patches->pool_size / COPIES_MAX < image->files[0].size)
			ret = add_move(image, data + move[i], of);
	}
	vmpt_hash_free(&by_index);
	return ret;
}

int vmpt_image_read_jitdump(struct vmpt_image *image, struct vmpt_diag *diag)
{
	const struct vmpt_map *map = &image->files[0].map;
	u64 at, unused, *load = NULL, *move = NULL;
	size_t n = 0, moves = 0;
	u32 size;
	int ret = 0;

	if (!vmpt_image_is_jitdump(map))
		return vmpt_diag_fail(diag, VMPT_E_FORMAT, 0, "not a jitdump");
	at = vmpt_load32(map->data + HEADER_SIZE);
	for (; !ret && at <= map->size && map->size - at >= RECORD; at += size) {
		size = vmpt_load32(map->data + at + 4);
		if (size < RECORD || size > map->size - at)
			break;
		if (vmpt_load32(map->data + at) == CODE_MOVE && size >= MOVE_END) {
			ret = vmpt_grow(&move, moves);
			if (!ret)
				move[moves++] = at;
			continue;
		}
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
		ret = vmpt_load64(map->data + HEADER_FLAGS) & 1
			      ? add_timed(image, load, n, move, moves)
			      : add_loads(image, load, n);
	free(load);
	free(move);
	if (ret)
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	if (!n)
		return vmpt_diag_fail(diag, VMPT_E_FORMAT, 0, "the jitdump has no code");
	return 0;
}
