// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * perf.data as a source of code: it does not have the code itself, but names the files that
 * processes mapped to execute, and where. The names may come from anyone: only regular files are
 * opened, only ELF files used, and a file whose build id perf recorded has to have it.
 */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "decoder/image/patches.h"
#include "decoder/vmpt-events.h"

/* The kernel's and perf's headers may be older than the file. */
#define MISC_MMAP_BUILD_ID (1u << 14)
#define BUILD_ID_MAX	   20

#define FILES_MAX 4096u /* open at a time */

enum {
	MMAP_ADDR = 16, /* u32 pid, tid */
	MMAP_NAME = 40, /* u64 addr, len, pgoff */
	/* MMAP2: device and inode, or u8 size, 3 bytes, build id; u32 prot, flags */
	MMAP2_BUILD_ID = 40,
	MMAP2_PROT = 64,
	MMAP2_NAME = 72,
	/* KSYMBOL: u64 addr, u32 len, u16 type, flags, name */
	KSYMBOL_LEN = 16,
	KSYMBOL_TYPE = 20,
	KSYMBOL_FLAGS = 22,
	KSYMBOL_NAME = 24,
	/* TEXT_POKE: u64 addr, u16 old_len, new_len, old bytes, new bytes */
	POKE_OLD_LEN = 16,
	POKE_NEW_LEN = 18,
	POKE_BYTES = 20,
};

/* Kprobes' and ftrace's code out of line is not longer; only that is unregistered here. */
#define OOL_MAX (1u << 20)

struct mapped {
	u64 addr, size, offset;
	u32 name; /* index */
};

/* A file that was mapped. */
struct name {
	char *path;
	int file; /* index in the image; negative: cannot be used */
	u8 build_id[BUILD_ID_MAX];
	u8 build_id_size; /* 0: not recorded */
};

/* What the kernel wrote to its code. */
struct poke {
	u64 addr, time; /* ns of perf's clock */
	size_t bytes;	/* of maps.bytes: old, then new ones */
	u32 old_len, new_len;
	u32 gone; /* bytes that are not code any more */
};

struct maps {
	bool one; /* process only: .pid */
	struct poke *poke;
	size_t poke_count;
	u8 *bytes;
	size_t byte_count, byte_room;
	u64 pid;
	struct mapped *list;
	size_t count;
	struct name *names;
	size_t name_count;
	struct vmpt_hash by_name;
};

/* The name of a record, ended by a zero in it; its build id is part of which file it is. */
static int find_name(struct maps *m, const char *path, const u8 *id, u8 id_size, u32 *found)
{
	u64 hash = vmpt_mix64(vmpt_fnv1a(vmpt_fnv1a(VMPT_FNV1A, path, strlen(path)), id, id_size));
	struct name *name;

	*found = vmpt_hash_find(&m->by_name, hash, i,
				!strcmp(m->names[i].path, path) &&
					m->names[i].build_id_size == id_size &&
					!memcmp(m->names[i].build_id, id, id_size));
	if (*found != VMPT_HASH_NONE)
		return 0;
	*found = (u32)m->name_count;
	if (vmpt_grow(&m->names, m->name_count))
		return -VMPT_E_NOMEM;
	name = &m->names[m->name_count];
	*name = (struct name){ .path = strdup(path), .file = -1, .build_id_size = id_size };
	if (!name->path)
		return -VMPT_E_NOMEM;
	memcpy(name->build_id, id, id_size);
	m->name_count++;
	return vmpt_hash_add(&m->by_name, hash, *found);
}

static int take_poke(struct maps *m, const struct vmpt_perf_record *r)
{
	struct poke p = { .time = r->time };
	u32 n;

	if (r->size < POKE_BYTES)
		return 0;
	p.addr = vmpt_load64(r->rec + 8);
	p.old_len = vmpt_load16(r->rec + POKE_OLD_LEN);
	p.new_len = vmpt_load16(r->rec + POKE_NEW_LEN);
	p.bytes = m->byte_count;
	n = p.old_len + p.new_len;
	if (n > r->size - POKE_BYTES || !n || p.addr > ~0ULL - n)
		return 0;
	if (vmpt_grow(&m->poke, m->poke_count) ||
	    vmpt_reserve(&m->bytes, &m->byte_room, m->byte_count + n))
		return -VMPT_E_NOMEM;
	memcpy(m->bytes + m->byte_count, r->rec + POKE_BYTES, n);
	m->byte_count += n;
	m->poke[m->poke_count++] = p;
	return 0;
}

/* A trampoline or a probe's copy that goes; its bytes came by a TEXT_POKE. */
static int take_ksymbol(struct maps *m, const struct vmpt_perf_record *r)
{
	struct poke p = { .time = r->time };

	if (r->size < KSYMBOL_NAME ||
	    vmpt_load16(r->rec + KSYMBOL_TYPE) != PERF_RECORD_KSYMBOL_TYPE_OOL ||
	    !(vmpt_load16(r->rec + KSYMBOL_FLAGS) & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER))
		return 0;
	p.addr = vmpt_load64(r->rec + 8);
	p.gone = vmpt_load32(r->rec + KSYMBOL_LEN);
	if (!p.gone || p.gone > OOL_MAX || p.addr > ~0ULL - p.gone)
		return 0;
	if (vmpt_grow(&m->poke, m->poke_count))
		return -VMPT_E_NOMEM;
	m->poke[m->poke_count++] = p;
	return 0;
}

static int add_poke(struct vmpt_image *image, const struct maps *m, const struct poke *p, u64 tsc)
{
	const u8 *old = m->bytes + p->bytes, *new = old + p->old_len;
	u32 both = p->old_len < p->new_len ? p->old_len : p->new_len;
	int ret = 0;

	if (p->gone)
		return vmpt_patches_add(&image->patches, tsc, p->addr, p->gone, NULL, NULL);
	ret = vmpt_patches_add(&image->patches, tsc, p->addr, both, new, old);
	if (!ret && p->new_len > both)
		ret = vmpt_patches_add(&image->patches, tsc, p->addr + both, p->new_len - both,
				       new + both, NULL);
	if (!ret && p->old_len > both)
		ret = vmpt_patches_add(&image->patches, tsc, p->addr + both, p->old_len - both,
				       NULL, old + both);
	return ret;
}

static int add_pokes(struct vmpt_image *image, const struct maps *m,
		     const struct vmpt_trace_info *info)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < m->poke_count && !ret && info->has_time_conv; i++)
		if (m->poke[i].time)
			ret = add_poke(image, m, &m->poke[i],
				       vmpt_perf_time_to_tsc(info, m->poke[i].time));
	return ret;
}

static int take_record(void *opaque, const struct vmpt_perf_record *r)
{
	const u8 *rec = r->rec;
	const u32 size = r->size;
	const u32 type = vmpt_load32(rec), misc = vmpt_load16(rec + 4);
	const u32 at = type == PERF_RECORD_MMAP2 ? MMAP2_NAME : MMAP_NAME;
	struct maps *m = opaque;
	const char *path = (const char *)rec + at;
	struct mapped map;
	u8 id_size = 0;
	int ret;

	if (type == PERF_RECORD_TEXT_POKE)
		return take_poke(m, r);
	if (type == PERF_RECORD_KSYMBOL)
		return take_ksymbol(m, r);
	if ((type != PERF_RECORD_MMAP && type != PERF_RECORD_MMAP2) || size <= at)
		return 0;
	if (type == PERF_RECORD_MMAP ? misc & PERF_RECORD_MISC_MMAP_DATA
				     : !(vmpt_load32(rec + MMAP2_PROT) & PROT_EXEC))
		return 0;
	/* Of the kernel it names no file; "//anon", "[vdso]" are none. */
	if (path[0] != '/' || path[1] == '/' || !memchr(path, 0, size - at) ||
	    (m->one && vmpt_load32(rec + 8) != m->pid) || (int)vmpt_load32(rec + 8) == -1)
		return 0;
	if (type == PERF_RECORD_MMAP2 && misc & MISC_MMAP_BUILD_ID)
		id_size = rec[MMAP2_BUILD_ID] < BUILD_ID_MAX ? rec[MMAP2_BUILD_ID] : BUILD_ID_MAX;
	map = (struct mapped){ vmpt_load64(rec + MMAP_ADDR), vmpt_load64(rec + MMAP_ADDR + 8),
			       vmpt_load64(rec + MMAP_ADDR + 16), 0 };
	ret = find_name(m, path, rec + MMAP2_BUILD_ID + 4, id_size, &map.name);
	if (ret || vmpt_grow(&m->list, m->count))
		return -VMPT_E_NOMEM;
	m->list[m->count++] = map;
	return 0;
}

static bool is_that(const struct vmpt_map *map, const struct name *name)
{
	const u8 *id;

	return vmpt_image_is_elf(map) &&
	       (!name->build_id_size || (vmpt_image_build_id(map, &id) == name->build_id_size &&
					 !memcmp(id, name->build_id, name->build_id_size)));
}

/* 0, also if it cannot be used, or -VMPT_E_NOMEM. */
static int open_file(struct vmpt_image *image, struct name *name)
{
	struct stat st;
	int file;

	if (image->file_count >= FILES_MAX || stat(name->path, &st) || !S_ISREG(st.st_mode))
		return 0;
	file = vmpt_image_add_file(image, name->path, false, NULL);
	if (file < 0)
		return file == -VMPT_E_NOMEM ? file : 0;
	if (is_that(&image->files[file].map, name))
		name->file = file;
	else
		vmpt_image_file_close(&image->files[--image->file_count]);
	return 0;
}

/* The one that was mapped last is added first: of two that begin at one place it has the bytes. */
static int add_extents(struct vmpt_image *image, const struct maps *m)
{
	size_t i;

	for (i = m->count; i > 0; i--) {
		const struct mapped *map = &m->list[i - 1];
		int file = m->names[map->name].file;
		u64 size = map->size, end;

		if (file < 0)
			continue;
		end = image->files[file].size;
		if (map->offset >= end)
			continue;
		if (size > end - map->offset)
			size = end - map->offset;
		if (vmpt_extents_add(&image->linear, map->addr, size, (u32)file, map->offset))
			return -VMPT_E_NOMEM;
	}
	return 0;
}

static int open_files(struct vmpt_image *image, struct maps *m, struct vmpt_diag *diag)
{
	size_t i, lacking = 0;
	const char *first = "";
	int ret = 0;

	for (i = 0; i < m->name_count && !ret; i++) {
		ret = open_file(image, &m->names[i]);
		if (m->names[i].file < 0 && !lacking++)
			first = m->names[i].path;
	}
	if (ret || add_extents(image, m))
		return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	if (!image->linear.count && !image->patches)
		return vmpt_diag_fail(diag, VMPT_E_FORMAT, 0,
				      "none of the %zu files that were executed is here as it was; "
				      "first %.100s",
				      m->name_count, first);
	if (lacking)
		vmpt_diag_fail(diag, VMPT_E_FORMAT, 0,
			       "of the %zu files that were executed %zu are not here as they were; "
			       "first %.100s",
			       m->name_count, lacking, first);
	return 0;
}

int vmpt_image_read_perf(struct vmpt_image *image, const struct vmpt_image_options *options,
			 struct vmpt_diag *diag)
{
	struct maps m = { .one = options->has_address, .pid = options->address };
	struct vmpt_trace_info info;
	int ret = vmpt_perf_read_kernel(image->files[0].map.data, image->files[0].map.size,
					take_record, &m, &info, diag);

	if (!ret)
		ret = add_pokes(image, &m, &info);
	if (!ret && m.count)
		ret = open_files(image, &m, diag);
	else if (!ret && !image->patches)
		ret = vmpt_diag_fail(diag, VMPT_E_FORMAT, 0, "it names no files that %s executed",
				     m.one ? "this process" : "processes");
	else if (ret == -VMPT_E_NOMEM)
		vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	while (m.name_count)
		free(m.names[--m.name_count].path);
	free(m.names);
	free(m.list);
	free(m.poke);
	free(m.bytes);
	vmpt_hash_free(&m.by_name);
	return ret;
}
