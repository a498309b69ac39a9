// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The section .BTF of a kernel (Documentation/bpf/btf.rst): where members are in their structures.
 * Of some sixty members the places are needed, of types that BTF has by name; so this is not
 * libbpf's reader, of which a guest's bytes would be hostile input and which every user of the
 * library would have to link.
 */
#include "decoder/names/guest.h"

#define BTF_MAX	  (64u << 20)
#define BTF_MAGIC 0xeb9fu
#define BUDGET	  (1u << 24) /* a kernel's takes some thousand */
#define DEPTH_MAX 8	     /* of structures without a name, and of const, volatile, typedef */

enum btf_kind {
	BTF_INT = 1,
	BTF_PTR,
	BTF_ARRAY,
	BTF_STRUCT,
	BTF_UNION,
	BTF_ENUM,
	BTF_FWD,
	BTF_TYPEDEF,
	BTF_VOLATILE,
	BTF_CONST,
	BTF_RESTRICT,
	BTF_FUNC,
	BTF_FUNC_PROTO,
	BTF_VAR,
	BTF_DATASEC,
	BTF_FLOAT,
	BTF_DECL_TAG,
	BTF_TYPE_TAG,
	BTF_ENUM64,
};

/* Bytes after a type's 12: in all, and for each of its parts. */
static const struct {
	u8 fixed, each;
} kinds[] = {
	[BTF_INT] = { 4, 0 },	  [BTF_ARRAY] = { 12, 0 },   [BTF_STRUCT] = { 0, 12 },
	[BTF_UNION] = { 0, 12 },  [BTF_ENUM] = { 0, 8 },     [BTF_FUNC_PROTO] = { 0, 8 },
	[BTF_VAR] = { 4, 0 },	  [BTF_DATASEC] = { 0, 12 }, [BTF_DECL_TAG] = { 4, 0 },
	[BTF_ENUM64] = { 0, 12 },
};

struct btf {
	const u8 *type; /* the section's types */
	size_t types;	/* bytes */
	const char *string;
	size_t strings; /* the last byte is 0 */
	u32 *at;	/* of type n + 1, in .type */
	size_t count;
	u32 budget; /* members that are still looked at */
};

/* A name of one structure, "member" or "member.member"; "" is its size. */
struct wanted {
	const char *type, *member, *older;
};

static const struct wanted wanted[GUEST_FIELDS] = {
	[TASK_TASKS] = { "task_struct", "tasks", NULL },
	[TASK_PID] = { "task_struct", "pid", NULL },
	[TASK_TGID] = { "task_struct", "tgid", NULL },
	[TASK_COMM] = { "task_struct", "comm", NULL },
	[TASK_MM] = { "task_struct", "mm", NULL },
	[TASK_FLAGS] = { "task_struct", "flags", NULL },
	[TASK_START] = { "task_struct", "start_time", NULL },
	[TASK_PARENT] = { "task_struct", "real_parent", NULL },
	[TASK_SIGNAL] = { "task_struct", "signal", NULL },
	[TASK_THREAD] = { "task_struct", "thread_node", NULL },
	[SIGNAL_THREADS] = { "signal_struct", "thread_head", NULL },
	[MM_PGD] = { "mm_struct", "pgd", NULL },
	[MM_TREE] = { "mm_struct", "mm_mt", NULL },
	[MM_LIST] = { "mm_struct", "mmap", NULL },
	[MM_BRK] = { "mm_struct", "brk", NULL },
	[MM_START_BRK] = { "mm_struct", "start_brk", NULL },
	[MM_STACK] = { "mm_struct", "start_stack", NULL },
	[MM_VDSO] = { "mm_struct", "context.vdso", NULL },
	[MM_PROGRAM] = { "mm_struct", "exe_file", NULL },
	[VMA_START] = { "vm_area_struct", "vm_start", NULL },
	[VMA_END] = { "vm_area_struct", "vm_end", NULL },
	[VMA_FLAGS] = { "vm_area_struct", "vm_flags", NULL },
	[VMA_OFFSET] = { "vm_area_struct", "vm_pgoff", NULL },
	[VMA_FILE] = { "vm_area_struct", "vm_file", NULL },
	[VMA_NEXT] = { "vm_area_struct", "vm_next", NULL },
	[VMA_OPS] = { "vm_area_struct", "vm_ops", NULL },
	[VMA_PRIVATE] = { "vm_area_struct", "vm_private_data", NULL },
	[SPECIAL_NAME] = { "vm_special_mapping", "name", NULL },
	[TREE_ROOT] = { "maple_tree", "ma_root", NULL },
	[RANGE_PIVOT] = { "maple_range_64", "pivot", NULL },
	[RANGE_SLOT] = { "maple_range_64", "slot", NULL },
	[ARANGE_PIVOT] = { "maple_arange_64", "pivot", NULL },
	[ARANGE_SLOT] = { "maple_arange_64", "slot", NULL },
	[RANGE_SIZE] = { "maple_range_64", "", NULL },
	[FILE_MOUNT] = { "file", "f_path.mnt", NULL },
	[FILE_DENTRY] = { "file", "f_path.dentry", NULL },
	[FILE_MAPPING] = { "file", "f_mapping", NULL },
	[DENTRY_PARENT] = { "dentry", "d_parent", NULL },
	[DENTRY_NAME] = { "dentry", "d_name.name", NULL },
	[DENTRY_HASH] = { "dentry", "d_hash.pprev", NULL },
	[MOUNT_MNT] = { "mount", "mnt", NULL },
	[MOUNT_PARENT] = { "mount", "mnt_parent", NULL },
	[MOUNT_POINT] = { "mount", "mnt_mountpoint", NULL },
	[MNT_ROOT] = { "vfsmount", "mnt_root", NULL },
	[MAPPING_PAGES] = { "address_space", "i_pages", NULL },
	[PAGES_HEAD] = { "xarray", "xa_head", NULL },
	[NODE_SHIFT] = { "xa_node", "shift", NULL },
	[NODE_SLOTS] = { "xa_node", "slots", NULL },
	[PAGE_INDEX] = { "page", "index", "__folio_index" },
	[PAGE_SIZE] = { "page", "", NULL },
	[MODULE_LIST] = { "module", "list", NULL },
	[MODULE_NAME] = { "module", "name", NULL },
	[MODULE_NAME_END] = { "module", "mkobj", NULL },
	[MODULE_STATE] = { "module", "state", NULL },
	[MODULE_CORE] = { "module", "core_layout", NULL },
	[MODULE_MEM] = { "module", "mem", NULL },
	[MODULE_KALLSYMS] = { "module", "kallsyms", NULL },
	[MODULE_BUILD_ID] = { "module", "build_id", NULL },
	[LAYOUT_BASE] = { "module_layout", "base", NULL },
	[LAYOUT_SIZE] = { "module_layout", "size", NULL },
	[LAYOUT_TEXT_SIZE] = { "module_layout", "text_size", NULL },
	[MEMORY_BASE] = { "module_memory", "base", NULL },
	[MEMORY_SIZE] = { "module_memory", "size", NULL },
	[MEMORY_BYTES] = { "module_memory", "", NULL },
	[KALLSYMS_TABLE] = { "mod_kallsyms", "symtab", NULL },
	[KALLSYMS_COUNT] = { "mod_kallsyms", "num_symtab", NULL },
	[KALLSYMS_STRINGS] = { "mod_kallsyms", "strtab", NULL },
	[KALLSYMS_TYPES] = { "mod_kallsyms", "typetab", NULL },
	[KSYM_START] = { "bpf_ksym", "start", NULL },
	[KSYM_END] = { "bpf_ksym", "end", NULL },
	[KSYM_NAME] = { "bpf_ksym", "name", NULL },
	[KSYM_LIST] = { "bpf_ksym", "lnode", NULL },
};

/* ---- types ---- */

static enum btf_kind kind_of(const u8 *type)
{
	return vmpt_load32(type + 4) >> 24 & 0x1f;
}

static u32 parts_of(const u8 *type)
{
	return vmpt_load32(type + 4) & 0xffff;
}

static const char *string_at(const struct btf *b, u32 at)
{
	return at < b->strings ? b->string + at : "";
}

/* Type @id; NULL: there is none. */
static const u8 *type_of(const struct btf *b, u32 id)
{
	return id && id <= b->count ? b->type + b->at[id - 1] : NULL;
}

/* Where each type begins, up to one of a kind that is not known. 0 or -VMPT_E_NOMEM. */
static int index_types(struct btf *b)
{
	size_t at = 0;

	while (b->types - at >= 12) {
		const u8 *type = b->type + at;
		enum btf_kind kind = kind_of(type);
		size_t size = 12;

		if (kind > BTF_ENUM64 || !kind)
			break;
		if (kind < VMPT_ARRAY_SIZE(kinds))
			size += kinds[kind].fixed + (size_t)kinds[kind].each * parts_of(type);
		if (size > b->types - at)
			break;
		if (vmpt_grow(&b->at, b->count))
			return -VMPT_E_NOMEM;
		b->at[b->count++] = (u32)at;
		at += size;
	}
	return 0;
}

/* Through names and qualifiers to a structure; NULL: it is none. */
static const u8 *structure(const struct btf *b, u32 id)
{
	const u8 *type = type_of(b, id);
	unsigned int depth;

	for (depth = 0; type && depth < DEPTH_MAX; depth++) {
		switch (kind_of(type)) {
		case BTF_STRUCT:
		case BTF_UNION:
			return type;
		case BTF_TYPEDEF:
		case BTF_VOLATILE:
		case BTF_CONST:
		case BTF_RESTRICT:
		case BTF_TYPE_TAG:
			type = type_of(b, vmpt_load32(type + 8));
			break;
		default:
			return NULL;
		}
	}
	return NULL;
}

/* ---- members ---- */

static bool is_name(const char *name, const char *want, size_t n)
{
	return !strncmp(name, want, n) && !name[n];
}

/* Member @want, @n bytes, also of the structures in @type without a name: its place and type. */
static bool find_member(struct btf *b, const u8 *type, const char *want, size_t n,
			unsigned int depth, u64 *bits, u32 *id)
{
	bool has_sizes = vmpt_load32(type + 4) >> 31;
	const u8 *m = type + 12;
	u32 i;

	for (i = 0; i < parts_of(type) && b->budget; i++, m += 12, b->budget--) {
		const char *name = string_at(b, vmpt_load32(m));
		u32 at = vmpt_load32(m + 8) & (has_sizes ? 0xffffff : 0xffffffff);
		const u8 *inner;

		if (is_name(name, want, n)) {
			*bits += at;
			*id = vmpt_load32(m + 4);
			return true;
		}
		if (*name || depth == DEPTH_MAX)
			continue;
		inner = structure(b, vmpt_load32(m + 4));
		if (inner && find_member(b, inner, want, n, depth + 1, bits, id)) {
			*bits += at;
			return true;
		}
	}
	return false;
}

/* In bytes; GUEST_NONE: there is none. */
static u32 place_of(struct btf *b, const u8 *type, const char *path)
{
	u64 bits = 0;
	u32 id;

	if (!*path)
		return vmpt_load32(type + 8);
	while (type) {
		size_t n = strcspn(path, ".");

		if (!find_member(b, type, path, n, 0, &bits, &id))
			return GUEST_NONE;
		if (!path[n])
			return bits % 8 || bits / 8 >= 1u << 24 ? GUEST_NONE : (u32)(bits / 8);
		path += n + 1;
		type = structure(b, id);
	}
	return GUEST_NONE;
}

static void find_fields(struct btf *b, u32 field[GUEST_FIELDS])
{
	size_t i, k;

	for (i = 0; i < b->count; i++) {
		const u8 *type = b->type + b->at[i];
		const char *name;

		if (kind_of(type) != BTF_STRUCT)
			continue;
		name = string_at(b, vmpt_load32(type));
		for (k = 0; k < GUEST_FIELDS; k++) {
			const struct wanted *w = &wanted[k];

			if (field[k] != GUEST_NONE || strcmp(name, w->type) != 0)
				continue;
			field[k] = place_of(b, type, w->member);
			if (field[k] == GUEST_NONE && w->older)
				field[k] = place_of(b, type, w->older);
		}
	}
}

int vmpt_guest_parse_types(const u8 *data, size_t size, u32 field[GUEST_FIELDS])
{
	struct btf b = { .budget = BUDGET };
	u32 head, type, types, string, strings;
	size_t k;
	int ret;

	for (k = 0; k < GUEST_FIELDS; k++)
		field[k] = GUEST_NONE;
	/* u16 magic, u8 version, flags; u32 hdr_len, type_off, type_len, str_off, str_len */
	if (size < 24 || (data[0] | data[1] << 8) != BTF_MAGIC || data[2] != 1)
		return 0;
	head = vmpt_load32(data + 4);
	type = vmpt_load32(data + 8);
	types = vmpt_load32(data + 12);
	string = vmpt_load32(data + 16);
	strings = vmpt_load32(data + 20);
	if (head > size || type > size - head || types > size - head - type ||
	    string > size - head || strings > size - head - string || !strings ||
	    data[head + string + strings - 1])
		return 0;
	b.type = data + head + type;
	b.types = types;
	b.string = (const char *)data + head + string;
	b.strings = strings;
	ret = index_types(&b);
	if (!ret)
		find_fields(&b, field);
	free(b.at);
	return ret ? ret : 1;
}

int vmpt_guest_read_types(struct vmpt_guest *g)
{
	u64 start, end;
	u8 *data;
	int ret = 0;
	size_t k;

	for (k = 0; k < GUEST_FIELDS; k++)
		g->field[k] = GUEST_NONE;
	if (!vmpt_guest_address(g, "__start_BTF", &start) ||
	    !vmpt_guest_address(g, "__stop_BTF", &end) || end <= start || end - start > BTF_MAX)
		return 0;
	data = malloc(end - start);
	if (!data)
		return -VMPT_E_NOMEM;
	if (vmpt_guest_load(g, g->kernel.cr3, start, data, end - start))
		ret = vmpt_guest_parse_types(data, end - start, g->field);
	free(data);
	return ret;
}
