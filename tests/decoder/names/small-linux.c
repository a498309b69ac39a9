// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A Linux guest's memory, made; see small-linux.h. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/decoder/names/small-linux.h"
#include "tests/support/support.h"

/* ---- members, and the section .BTF that says where they are ---- */

struct member {
	const char *type, *name, *inner; /* inner: the structure that it is */
	u32 at;
};

static const struct member members[] = {
	{ "list_head", "next", NULL, 0 },
	{ "task_struct", "flags", NULL, 44 },
	{ "task_struct", "tasks", "list_head", 0x70 },
	{ "task_struct", "mm", NULL, 0x80 },
	{ "task_struct", "pid", NULL, 0x98 },
	{ "task_struct", "tgid", NULL, 0x9c },
	{ "task_struct", "real_parent", NULL, 0xa8 },
	{ "task_struct", "thread_node", "list_head", 0xb0 },
	{ "task_struct", "start_time", NULL, 0xc0 },
	{ "task_struct", "comm", NULL, 0xd0 },
	{ "task_struct", "signal", NULL, 0xe8 },
	{ "signal_struct", "thread_head", "list_head", 0x10 },
	{ "maple_tree", "ma_root", NULL, 8 },
	{ "mm_struct", "mm_mt", "maple_tree", 0x40 },
	{ "mm_struct", "pgd", NULL, 0x68 },
	{ "mm_struct", "start_brk", NULL, 0x70 },
	{ "mm_struct", "brk", NULL, 0x78 },
	{ "mm_struct", "start_stack", NULL, 0x80 },
	{ "mm_struct", "exe_file", NULL, 0x88 },
	{ "vm_area_struct", "vm_start", NULL, 0 },
	{ "vm_area_struct", "vm_end", NULL, 8 },
	{ "vm_area_struct", "vm_flags", NULL, 0x20 },
	{ "vm_area_struct", "vm_pgoff", NULL, 0x28 },
	{ "vm_area_struct", "vm_file", NULL, 0x30 },
	{ "path", "mnt", NULL, 0 },
	{ "path", "dentry", NULL, 8 },
	{ "file", "f_path", "path", 0x98 },
	{ "qstr", "name", NULL, 8 },
	{ "hlist_bl_node", "pprev", NULL, 8 },
	{ "dentry", "d_hash", "hlist_bl_node", 8 },
	{ "dentry", "d_parent", NULL, 0x18 },
	{ "dentry", "d_name", "qstr", 0x20 },
	{ "vfsmount", "mnt_root", NULL, 8 },
	{ "mount", "mnt_parent", NULL, 0x10 },
	{ "mount", "mnt_mountpoint", NULL, 0x18 },
	{ "mount", "mnt", "vfsmount", 0x20 },
	{ "module", "state", NULL, 0 },
	{ "module", "list", "list_head", 8 },
	{ "module", "name", NULL, 0x18 },
	{ "module", "kallsyms", NULL, 0x60 },
	{ "mod_kallsyms", "symtab", NULL, 0 },
	{ "mod_kallsyms", "num_symtab", NULL, 8 },
	{ "mod_kallsyms", "strtab", NULL, 0x10 },
	{ "mod_kallsyms", "typetab", NULL, 0x18 },
	{ "module_layout", "base", NULL, 0 },
	{ "module_layout", "size", NULL, 8 },
	{ "module_layout", "text_size", NULL, 12 },
	{ "module_memory", "base", NULL, 0 },
	{ "module_memory", "size", NULL, 0x18 },
};

/* The areas are in a list, or in a tree; modules have one part, or several. */
static const struct member older[] = { { "mm_struct", "mmap", NULL, 0x40 },
				       { "vm_area_struct", "vm_next", NULL, 0x38 } };
static const struct member newer[] = {
	{ "maple_range_64", "pivot", NULL, 8 },
	{ "maple_range_64", "slot", NULL, 128 },
	{ "maple_arange_64", "pivot", NULL, 8 },
	{ "maple_arange_64", "slot", NULL, 80 },
};
static const struct member layout = { "module", "core_layout", "module_layout", 0x80 };
static const struct member memory = { "module", "mem", NULL, 0x80 };

static const struct {
	const char *type;
	u32 size;
} sizes[] = { { "maple_range_64", 256 }, { "module_memory", 0x30 } };

u32 small_member(const char *type, const char *member)
{
	const struct member *const lists[] = { members, older, newer };
	const size_t counts[] = { VMPT_ARRAY_SIZE(members), VMPT_ARRAY_SIZE(older),
				  VMPT_ARRAY_SIZE(newer) };
	size_t i, k;

	for (k = 0; k < 3; k++)
		for (i = 0; i < counts[k]; i++)
			if (!strcmp(lists[k][i].type, type) && !strcmp(lists[k][i].name, member))
				return lists[k][i].at;
	ck_abort_msg("no member %s.%s", type, member);
	return 0;
}

struct btf {
	u8 type[16384];
	char string[8192];
	size_t types, strings, count;
};

static void put32(u8 *to, u32 v)
{
	memcpy(to, &v, sizeof(v));
}

static u32 add_string(struct btf *b, const char *s)
{
	size_t at = b->strings;

	memcpy(b->string + at, s, strlen(s) + 1);
	b->strings += strlen(s) + 1;
	return (u32)at;
}

/* All members of @type, as one structure; every second one in a union without a name. */
static u32 add_struct(struct btf *b, const char *type, const struct member *list, size_t count,
		      u32 ids[], const char *names[], size_t *known)
{
	size_t head = b->types, i, n = 0;
	u32 size = 0x400;

	for (i = 0; i < VMPT_ARRAY_SIZE(sizes); i++)
		if (!strcmp(sizes[i].type, type))
			size = sizes[i].size;
	b->types += 12;
	for (i = 0; i < count; i++) {
		u32 id = 1;
		size_t k;

		if (strcmp(list[i].type, type) != 0)
			continue;
		for (k = 0; list[i].inner && k < *known; k++)
			if (!strcmp(names[k], list[i].inner))
				id = ids[k];
		put32(b->type + b->types, add_string(b, list[i].name));
		put32(b->type + b->types + 4, id);
		put32(b->type + b->types + 8, list[i].at * 8);
		b->types += 12;
		n++;
	}
	put32(b->type + head, add_string(b, type));
	put32(b->type + head + 4, 4u << 24 | (u32)n);
	put32(b->type + head + 8, size);
	names[*known] = type;
	ids[(*known)++] = (u32)++b->count;
	return (u32)b->count;
}

static void add_types(struct btf *b, const struct small_options *o)
{
	struct member list[VMPT_ARRAY_SIZE(members) + 8];
	const char *names[64];
	size_t n = 0, i, k, known = 0;
	u32 ids[64];

	for (i = 0; i < VMPT_ARRAY_SIZE(members); i++)
		if (!o->list || strcmp(members[i].name, "mm_mt") != 0)
			list[n++] = members[i];
	for (i = 0; i < VMPT_ARRAY_SIZE(older) && o->list; i++)
		list[n++] = older[i];
	for (i = 0; i < VMPT_ARRAY_SIZE(newer) && !o->list; i++)
		list[n++] = newer[i];
	list[n++] = o->parts ? memory : layout;
	b->strings = 1;
	/* int: type 1 */
	put32(b->type, add_string(b, "int"));
	put32(b->type + 4, 1u << 24);
	put32(b->type + 8, 4);
	b->types = 16;
	b->count = 1;
	/* Structures without others first. */
	for (k = 0; k < 2; k++)
		for (i = 0; i < n; i++) {
			bool has_inner = false, made = false;
			size_t j;

			for (j = 0; j < n; j++)
				has_inner |= !strcmp(list[j].type, list[i].type) && list[j].inner;
			for (j = 0; j < known; j++)
				made |= !strcmp(names[j], list[i].type);
			if (!made && has_inner == (k == 1))
				add_struct(b, list[i].type, list, n, ids, names, &known);
		}
}

/* ---- memory ---- */

u8 *small_at(const struct small_linux *s, u64 at)
{
	ck_assert(at >= SMALL_KERNEL && at < SMALL_KERNEL + SMALL_SIZE);
	return s->m.ram + SMALL_PHYSICAL + (at - SMALL_KERNEL);
}

void small_put64(const struct small_linux *s, u64 at, u64 value)
{
	memcpy(small_at(s, at), &value, sizeof(value));
}

static void small_put32(const struct small_linux *s, u64 at, u32 value)
{
	memcpy(small_at(s, at), &value, sizeof(value));
}

static u64 take(struct small_linux *s, size_t size)
{
	u64 at = s->free;

	s->free = (s->free + size + 0xff) & ~0xffULL;
	memset(small_at(s, at), 0, size);
	return at;
}

static u64 take_string(struct small_linux *s, const char *text)
{
	u64 at = take(s, strlen(text) + 1);

	memcpy(small_at(s, at), text, strlen(text) + 1);
	return at;
}

static void set(struct small_linux *s, u64 at, const char *type, const char *member, u64 value)
{
	small_put64(s, at + small_member(type, member), value);
}

static void set32(struct small_linux *s, u64 at, const char *type, const char *member, u32 value)
{
	small_put32(s, at + small_member(type, member), value);
}

/* ---- symbols ---- */

/* Of the kernel: data at fixed places. */
static const struct {
	const char *name;
	u64 at; /* from SMALL_KERNEL */
} symbols[] = {
	{ "T_text", 0 },
	{ "T_stext", 0 },
	{ "tfirst", 0x100 },
	{ "Tsecond", 0x1c0 },
	{ "T_etext", 0x1000 },
	{ "Rlinux_banner", 0x2000 },
	{ "Dmodules", 0x2100 },
	{ "Dinit_task", 0x3000 },
	{ "R__start_BTF", 0x100000 },
	{ "R__stop_BTF", 0x110000 },
	{ "B_end", 0x120000 },
};
#define SYMBOLS VMPT_ARRAY_SIZE(symbols)
#define BASE	(SMALL_KERNEL - 0x100)

const char *small_symbol(const struct small_linux *s, size_t i, u64 *address)
{
	/* Data of each CPU: at low addresses. */
	if (s->o.form == SMALL_PERCPU && !i--) {
		*address = 0x1234;
		return "Apercpu";
	}
	if (i >= SYMBOLS)
		return NULL;
	*address = SMALL_KERNEL + symbols[i].at;
	return symbols[i].name;
}

/* A name as tokens: two letters are one where a token has both. */
static size_t compress(const char *name, u8 *to)
{
	size_t n = 0;

	while (*name) {
		if (!strncmp(name, "st", 2)) {
			to[n++] = 1;
			name += 2;
		} else {
			to[n++] = (u8)*name++;
		}
	}
	return n;
}

static u64 add_tokens(struct small_linux *s, u64 *index)
{
	char text[2048];
	size_t n = 0, i;
	u64 at;

	*index = take(s, 512);
	for (i = 0; i < 256; i++) {
		u16 place = (u16)n;

		memcpy(small_at(s, *index + 2 * i), &place, 2);
		n += (size_t)sprintf(text + n, "%s",
				     i == 1		    ? "st"
				     : i >= ' ' && i < 0x7f ? (char[2]){ (char)i, '\0' }
							    : "") +
		     1;
	}
	at = take(s, n);
	memcpy(small_at(s, at), text, n);
	return at;
}

static u32 offset_of(const struct small_linux *s, u64 place, u64 address)
{
	if (s->o.form == SMALL_PLACE)
		return (u32)(address - place);
	if (s->o.form == SMALL_PERCPU)
		return address >> 63 ? (u32)(BASE - 1 - address) : (u32)address;
	return (u32)(address - BASE);
}

static size_t add_symbols(struct small_linux *s, char *info)
{
	u64 index, tokens = add_tokens(s, &index), names = take(s, 0x1000),
		   offsets = take(s, 0x400);
	u64 count = take(s, 4), base = take(s, 8), address;
	size_t i, at = 0, n = 0;
	const char *name;

	for (i = 0; (name = small_symbol(s, i, &address)) != NULL; i++) {
		u8 bytes[64];
		size_t size = compress(name, bytes);

		*small_at(s, names + at++) = (u8)size;
		memcpy(small_at(s, names + at), bytes, size);
		at += size;
		if (s->o.form == SMALL_ABSOLUTE)
			small_put64(s, offsets + 8 * i, address);
		else
			small_put32(s, offsets + 4 * i, offset_of(s, offsets + 4 * i, address));
	}
	small_put32(s, count, (u32)i);
	small_put64(s, base, BASE);
	n += (size_t)sprintf(info + n, "SYMBOL(kallsyms_names)=%llx\n", (unsigned long long)names);
	n += (size_t)sprintf(info + n, "SYMBOL(kallsyms_num_syms)=%llx\n",
			     (unsigned long long)count);
	n += (size_t)sprintf(info + n, "SYMBOL(kallsyms_token_table)=%llx\n",
			     (unsigned long long)tokens);
	n += (size_t)sprintf(info + n, "SYMBOL(kallsyms_token_index)=%llx\n",
			     (unsigned long long)index);
	n += (size_t)sprintf(info + n, "SYMBOL(kallsyms_%s)=%llx\n",
			     s->o.form == SMALL_ABSOLUTE ? "addresses" : "offsets",
			     (unsigned long long)offsets);
	if (s->o.form == SMALL_RELATIVE || s->o.form == SMALL_PERCPU)
		n += (size_t)sprintf(info + n, "SYMBOL(kallsyms_relative_base)=%llx\n",
				     (unsigned long long)base);
	return n;
}

static void add_info(struct small_linux *s)
{
	/* The page tables are where their symbol would be if the kernel had them. */
	const u64 physical = SMALL_PHYSICAL - 0x1000000;
	char info[2048];
	size_t n;

	n = (size_t)sprintf(
		info,
		"OSRELEASE=6.1-small\nBUILD-ID=00112233445566778899aabbccddeeff01234567\n"
		"PAGESIZE=4096\nSYMBOL(_stext)=%llx\nSYMBOL(init_top_pgt)=%llx\n"
		"NUMBER(phys_base)=%lld\nNUMBER(pgtable_l5_enabled)=%d\n"
		"KERNELOFFSET=1200000\n",
		SMALL_KERNEL, (unsigned long long)(0xffffffff80000000ULL + s->cr3 - physical),
		(long long)physical, s->o.five);
	if (!s->o.no_symbols)
		n += add_symbols(s, info + n);
	/* The page after the symbols' data. */
	s->free = (s->free + VMPT_PAGE - 1) & ~(u64)(VMPT_PAGE - 1);
	s->text = take(s, VMPT_PAGE) - SMALL_KERNEL + SMALL_PHYSICAL;
	if (s->o.note) {
		const Elf64_Nhdr note = { .n_namesz = 11, .n_descsz = (u32)n };

		memcpy(s->m.ram + s->text, &note, sizeof(note));
		memcpy(s->m.ram + s->text + sizeof(note), "VMCOREINFO", 11);
		s->text += 24;
	}
	memcpy(s->m.ram + s->text, info, n);
}

static void add_btf(struct small_linux *s)
{
	struct btf *b = calloc(1, sizeof(*b));
	u8 *at = small_at(s, SMALL_KERNEL + 0x100000);

	ck_assert_ptr_nonnull(b);
	add_types(b, &s->o);
	memset(at, 0, 0x10000);
	put32(at, 0x0001eb9f);
	put32(at + 4, 24);
	put32(at + 12, (u32)b->types);
	put32(at + 16, (u32)b->types);
	put32(at + 20, (u32)b->strings);
	memcpy(at + 24, b->type, b->types);
	memcpy(at + 24 + b->types, b->string, b->strings);
	if (s->o.no_types)
		memset(at, 0, 24);
	free(b);
}

/* ---- files: /bin/app, which is in a mount at /bin ---- */

static u64 add_dentry(struct small_linux *s, u64 parent, const char *name)
{
	u64 at = take(s, 0x100);

	set(s, at, "dentry", "d_parent", parent ? parent : at);
	small_put64(s, at + small_member("dentry", "d_name") + small_member("qstr", "name"),
		    take_string(s, name));
	small_put64(s, at + small_member("dentry", "d_hash") + 8, at);
	return at;
}

static u64 add_file(struct small_linux *s)
{
	u64 root = add_dentry(s, 0, "/"), bin = add_dentry(s, root, "bin");
	u64 top = add_dentry(s, 0, "/"), app = add_dentry(s, top, "app");
	u64 first = take(s, 0x100), second = take(s, 0x100), file = take(s, 0x100);
	u32 mnt = small_member("mount", "mnt");

	set(s, first, "mount", "mnt_parent", first);
	small_put64(s, first + mnt + small_member("vfsmount", "mnt_root"), root);
	set(s, second, "mount", "mnt_parent", first);
	set(s, second, "mount", "mnt_mountpoint", bin);
	small_put64(s, second + mnt + small_member("vfsmount", "mnt_root"), top);
	small_put64(s, file + small_member("file", "f_path"), second + mnt);
	small_put64(s, file + small_member("file", "f_path") + 8, app);
	return file;
}

/* ---- processes ---- */

/* Areas of two pages with a hole after each; every second one of the file. */
static void add_areas(struct small_linux *s, u64 mm, u64 file)
{
	u64 area[SMALL_MAPS], root, leaf = 0;
	size_t i, number;

	for (i = 0; i < SMALL_MAPS; i++) {
		area[i] = take(s, 0x100);
		set(s, area[i], "vm_area_struct", "vm_start", SMALL_USER + i * 0x3000);
		set(s, area[i], "vm_area_struct", "vm_end", SMALL_USER + i * 0x3000 + 0x2000);
		set(s, area[i], "vm_area_struct", "vm_flags", i % 2 ? 3 : 5);
		set(s, area[i], "vm_area_struct", "vm_pgoff", i);
		set(s, area[i], "vm_area_struct", "vm_file", i % 2 ? 0 : file);
	}
	if (s->o.list) {
		set(s, mm, "mm_struct", "mmap", area[0]);
		for (i = 0; i + 1 < SMALL_MAPS; i++)
			set(s, area[i], "vm_area_struct", "vm_next", area[i + 1]);
		return;
	}
	/* A leaf has at most 7 of them, with the holes before. */
	root = take(s, 256);
	for (i = 0; i < SMALL_MAPS; i++) {
		size_t k = i % 7;
		u64 end = SMALL_USER + i * 0x3000;

		if (!k) {
			leaf = take(s, 256);
			number = i / 7;
			/* arange: 9 pivots at 8, 10 slots at 80; a leaf is of type 1. */
			small_put64(s, root + 80 + 8 * number, leaf | 1 << 3);
			small_put64(s, root + 8 + 8 * number,
				    i / 7 == (SMALL_MAPS - 1) / 7
					    ? ~0ULL
					    : SMALL_USER + (i + 6) * 0x3000 + 0x1fff);
		}
		/* The hole before it, and the area: 15 pivots at 8, 16 slots at 128. */
		small_put64(s, leaf + 8 + 8 * (2 * k), end - 1);
		small_put64(s, leaf + 8 + 8 * (2 * k + 1), end + 0x1fff);
		small_put64(s, leaf + 128 + 8 * (2 * k + 1), area[i]);
	}
	small_put64(s, mm + small_member("mm_struct", "mm_mt") + 8, root | 3 << 3 | 2);
}

static void link_ring(struct small_linux *s, const u64 *at, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		small_put64(s, at[i], at[(i + 1) % n]);
		small_put64(s, at[i] + 8, at[(i + n - 1) % n]);
	}
}

/* pid, process, of which mm (2: none), name */
static const struct {
	u32 pid, tgid, mm;
	const char *comm;
} tasks[SMALL_TASKS] = {
	{ 1, 1, 0, "init" },   { 2, 2, 2, "kthreadd" }, { 10, 10, 1, "app" },
	{ 11, 10, 1, "app1" }, { 12, 10, 1, "app2" },
};

static void add_task(struct small_linux *s, size_t i)
{
	u64 at = s->task[i];

	set32(s, at, "task_struct", "pid", tasks[i].pid);
	set32(s, at, "task_struct", "tgid", tasks[i].tgid);
	set32(s, at, "task_struct", "flags", tasks[i].mm == 2 ? 0x200000 : 0);
	set(s, at, "task_struct", "mm", tasks[i].mm < 2 ? s->mm[tasks[i].mm] : 0);
	set(s, at, "task_struct", "real_parent", tasks[i].tgid == 10 ? s->task[0] : s->init_task);
	set(s, at, "task_struct", "start_time", 1000000000ULL * tasks[i].pid);
	memcpy(small_at(s, at + small_member("task_struct", "comm")), tasks[i].comm,
	       strlen(tasks[i].comm) + 1);
}

static void add_tasks(struct small_linux *s)
{
	const u32 list = small_member("task_struct", "tasks");
	const u32 node = small_member("task_struct", "thread_node");
	const u32 head = small_member("signal_struct", "thread_head");
	u64 ring[8], signal, file = add_file(s);
	size_t i;

	s->init_task = SMALL_KERNEL + 0x3000;
	memset(small_at(s, s->init_task), 0, 0x200);
	for (i = 0; i < 2; i++) {
		s->mm[i] = take(s, 0x200);
		s->free = (s->free + 0x1fff) & ~0x1fffULL;
		s->pgd[i] = take(s, 0x2000);
		set(s, s->mm[i], "mm_struct", "pgd", s->pgd[i]);
		set(s, s->mm[i], "mm_struct", "exe_file", file);
		add_areas(s, s->mm[i], file);
	}
	for (i = 0; i < SMALL_TASKS; i++) {
		s->task[i] = take(s, 0x200);
		add_task(s, i);
	}
	ring[0] = s->init_task + list;
	for (i = 0; i < 3; i++)
		ring[i + 1] = s->task[i] + list;
	link_ring(s, ring, 4);
	for (i = 0; i < 3; i++) {
		signal = take(s, 0x100);
		ring[0] = signal + head;
		ring[1] = s->task[i] + node;
		ring[2] = s->task[3] + node;
		ring[3] = s->task[4] + node;
		link_ring(s, ring, i == 2 ? 4 : 2);
		set(s, s->task[i], "task_struct", "signal", signal);
	}
}

/* ---- a module: "mod" with one function ---- */

static void add_module(struct small_linux *s)
{
	const u32 list = small_member("module", "list");
	u64 at = take(s, 0x200), k = take(s, 0x40), table = take(s, 2 * sizeof(Elf64_Sym));
	u64 strings = take(s, 0x20), types = take(s, 8), text = take(s, 0x100);
	const u64 ring[] = { SMALL_KERNEL + 0x2100, at + list };
	const Elf64_Sym symbol = { .st_name = 1, .st_shndx = 1, .st_value = text + 0x10 };

	link_ring(s, ring, 2);
	memcpy(small_at(s, at + small_member("module", "name")), "mod", 4);
	set(s, at, "module", "kallsyms", k);
	small_put64(s, k, table);
	small_put32(s, k + 8, 2);
	small_put64(s, k + 0x10, strings);
	small_put64(s, k + 0x18, types);
	memcpy(small_at(s, table + sizeof(symbol)), &symbol, sizeof(symbol));
	memcpy(small_at(s, strings + 1), "mod_function", 13);
	memcpy(small_at(s, types), "?t", 2);
	/* struct module_layout, or the first struct module_memory */
	small_put64(s, at + 0x80, text);
	small_put32(s, at + 0x80 + (s->o.parts ? 0x18 : 8), 0x100);
	if (!s->o.parts)
		small_put32(s, at + 0x80 + 12, 0x80);
}

void small_make(struct small_linux *s, const struct small_options *o)
{
	u8 paging = o->five ? VMPT_PAGING_5 : VMPT_PAGING_4;
	u64 i;

	*s = (struct small_linux){ .o = *o, .free = SMALL_KERNEL + 0x120000 };
	guest_memory_make(&s->m);
	s->cr3 = guest_root(&s->m, paging);
	for (i = 0; i < SMALL_SIZE; i += 2 << 20)
		guest_map(&s->m, paging, s->cr3, SMALL_KERNEL + i, SMALL_PHYSICAL + i, 2 << 20,
			  true);
	strcpy((char *)small_at(s, SMALL_KERNEL + 0x2000), "Linux version 6.1-small\n");
	add_info(s);
	add_btf(s);
	add_tasks(s);
	add_module(s);
}

void small_free(struct small_linux *s)
{
	guest_memory_free(&s->m);
}
