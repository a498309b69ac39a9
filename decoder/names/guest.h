/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Inside a guest's memory (vmpt-guest.h): reading it (memory.c), VMCOREINFO (vmcoreinfo.c), names
 * (kallsyms.c), structures (btf.c), and the lists that these lead to (modules.c, tasks.c, maps.c,
 * paths.c, files.c).
 */
#ifndef VMPT_DECODER_GUEST_H
#define VMPT_DECODER_GUEST_H

#include "decoder/vmpt-guest.h"
#include "util/array.h"
#include "util/hash.h"

#define GUEST_CACHE 1024 /* pages; a power of two */
#define GUEST_NONE  (~0U)

/* A symbol; the name is at an offset, as the pool may move. */
struct guest_symbol {
	u64 address;
	u32 name;
	u16 module; /* index + 1; 0: the kernel */
	char type;
};

/* A part of a module. */
struct guest_range {
	u64 start, size;
	u16 module; /* index + 1 */
};

/* Text and ids: never moves, freed as a whole. */
struct guest_text {
	char **chunk;
	size_t chunks, used;
};

/* A member's place in its structure, or whatever else BTF says; GUEST_NONE: it has none. */
enum guest_field {
	TASK_TASKS,
	TASK_PID,
	TASK_TGID,
	TASK_COMM,
	TASK_MM,
	TASK_FLAGS,
	TASK_START,
	TASK_PARENT,
	TASK_SIGNAL,
	TASK_THREAD,
	SIGNAL_THREADS,
	MM_PGD,
	MM_TREE,
	MM_LIST,
	MM_BRK,
	MM_START_BRK,
	MM_STACK,
	MM_VDSO,
	MM_PROGRAM,
	VMA_START,
	VMA_END,
	VMA_FLAGS,
	VMA_OFFSET,
	VMA_FILE,
	VMA_NEXT,
	VMA_OPS,
	VMA_PRIVATE,
	SPECIAL_NAME,
	TREE_ROOT,
	RANGE_PIVOT,
	RANGE_SLOT,
	ARANGE_PIVOT,
	ARANGE_SLOT,
	RANGE_SIZE,
	FILE_MOUNT,
	FILE_DENTRY,
	FILE_MAPPING,
	DENTRY_PARENT,
	DENTRY_NAME,
	DENTRY_HASH,
	MOUNT_MNT,
	MOUNT_PARENT,
	MOUNT_POINT,
	MNT_ROOT,
	MAPPING_PAGES,
	PAGES_HEAD,
	NODE_SHIFT,
	NODE_SLOTS,
	PAGE_INDEX,
	PAGE_SIZE,
	MODULE_LIST,
	MODULE_NAME,
	MODULE_NAME_END,
	MODULE_STATE,
	MODULE_CORE,
	MODULE_MEM,
	MODULE_KALLSYMS,
	MODULE_BUILD_ID,
	LAYOUT_BASE,
	LAYOUT_SIZE,
	LAYOUT_TEXT_SIZE,
	MEMORY_BASE,
	MEMORY_SIZE,
	MEMORY_BYTES,
	KALLSYMS_TABLE,
	KALLSYMS_COUNT,
	KALLSYMS_STRINGS,
	KALLSYMS_TYPES,
	KSYM_START,
	KSYM_END,
	KSYM_NAME,
	KSYM_LIST,
	GUEST_FIELDS
};

/* What one process has mapped. */
struct guest_maps {
	u64 mm;
	struct vmpt_guest_map *map;
	size_t count;
	bool cut;
};

struct vmpt_guest {
	struct vmpt_image *image;
	/* Pages that were read; .bytes NULL: it is not in the image. */
	struct guest_page {
		u64 cr3, at; /* at: ~0: nothing */
		struct vmpt_page page;
	} cache[GUEST_CACHE];

	struct guest_info {
		char text[2 * VMPT_PAGE];
		u64 names, count, tokens, token_index, offsets, addresses, relative, stext;
		u64 page_size;
		u8 id[64];
		bool five; /* levels of page tables */
	} info;
	struct vmpt_guest_kernel kernel;
	struct guest_text text;	  /* of what is read once … */
	struct guest_text listed; /* … and of tasks and maps */

	struct guest_symbol *symbol; /* by address */
	size_t symbols;
	char *names;
	size_t names_size, names_room;
	struct guest_range *range; /* of modules, by address */
	size_t ranges;

	u32 field[GUEST_FIELDS];
	struct vmpt_guest_module *module;
	size_t modules;
	struct vmpt_guest_task *task;
	size_t tasks;
	struct vmpt_hash task_of; /* by CR3 */
	struct guest_maps *maps;
	size_t maps_count;
	u64 page_map; /* vmemmap_base */
	/* Addresses of the symbols, which are slow to find by name; 0: there is none. */
	u64 init_task, special_ops;
};

/* ---- memory.c ---- */

bool vmpt_guest_load(struct vmpt_guest *g, u64 cr3, u64 at, void *to, size_t size);
/* By the kernel's page tables; *@value is 0 if it is not there. */
bool vmpt_guest_u64(struct vmpt_guest *g, u64 at, u64 *value);
bool vmpt_guest_u32(struct vmpt_guest *g, u64 at, u32 *value);
/* Up to @room - 1 bytes that end with a 0 in memory, or are cut. */
bool vmpt_guest_string(struct vmpt_guest *g, u64 at, char *to, size_t room);
/* Member @field of the structure at @at. */
bool vmpt_guest_field64(struct vmpt_guest *g, u64 at, enum guest_field field, u64 *value);
bool vmpt_guest_field32(struct vmpt_guest *g, u64 at, enum guest_field field, u32 *value);
/* Translations have changed. */
void vmpt_guest_forget(struct vmpt_guest *g);
/* A copy that stays; NULL: no memory. */
const void *vmpt_guest_keep(struct guest_text *text, const void *bytes, size_t size);
const char *vmpt_guest_keep_string(struct guest_text *text, const char *s);
void vmpt_guest_text_free(struct guest_text *text);

/* ---- vmcoreinfo.c ---- */

/*
 * Find the kernel: .info and .kernel. 0, or a negative error with @diag filled; symbols that do not
 * fit are no error.
 */
int vmpt_guest_find(struct vmpt_guest *g, struct vmpt_diag *diag);

/* ---- kallsyms.c ---- */

/* Read the kernel's symbols. 1, 0: they are not there, or not its own; or -VMPT_E_NOMEM. */
int vmpt_guest_read_symbols(struct vmpt_guest *g);
/* -VMPT_E_NOMEM, or -VMPT_E_SPACE beyond the limits. */
int vmpt_guest_add_symbol(struct vmpt_guest *g, u64 address, char type, const char *name,
			  unsigned int module);
void vmpt_guest_sort_symbols(struct vmpt_guest *g);

/* ---- btf.c ---- */

/* Fill .field. 1, 0: there is none, or a negative error. */
int vmpt_guest_read_types(struct vmpt_guest *g);
static inline bool guest_has(const struct vmpt_guest *g, enum guest_field field)
{
	return g->field[field] != GUEST_NONE;
}
/* The size and the members of the structures of a section .BTF in memory; for tests, too. */
int vmpt_guest_parse_types(const u8 *data, size_t size, u32 field[GUEST_FIELDS]);

/* ---- modules.c, tasks.c, maps.c ---- */

/* These fill .lacks. 0 or -VMPT_E_NOMEM. */
int vmpt_guest_read_modules(struct vmpt_guest *g);
int vmpt_guest_read_tasks(struct vmpt_guest *g);
void vmpt_guest_drop_tasks(struct vmpt_guest *g);

/* A set of addresses that were seen: 1: @at is new; 0; or -VMPT_E_NOMEM. */
struct guest_seen {
	struct vmpt_hash hash;
	u64 *at;
	size_t count;
};
int vmpt_guest_see(struct guest_seen *seen, u64 at);
void vmpt_guest_seen_free(struct guest_seen *seen);

/* ---- paths.c, files.c ---- */

/* The path of the struct file at @file. False: it is not in the image. */
bool vmpt_guest_path(struct vmpt_guest *g, u64 file, char *to, size_t room);
/* @size bytes of the file from @offset on, which are in the page cache and lie in one page. */
bool vmpt_guest_file_read(struct vmpt_guest *g, u64 file, u64 offset, void *to, size_t size);
/*
 * The build id of an ELF file in memory: by @read, which returns @size bytes of it at @offset. Its
 * size, at most 64, 0: none.
 */
typedef bool guest_read_fn(void *opaque, u64 offset, void *to, size_t size);
size_t vmpt_guest_build_id(guest_read_fn *read, void *opaque, u8 id[64]);

#endif
