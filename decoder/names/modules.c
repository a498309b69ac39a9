// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Modules, with their symbols (struct mod_kallsyms: an ELF symbol table), and the code that the
 * kernel made of BPF programs, each of which is one symbol of the module "bpf".
 */
#include <elf.h>

#include "decoder/names/guest.h"

#define NAME_BYTES	 512
#define MODULE_NAME_MAX	 64
#define STATE_UNFORMED	 3u
#define SYMBOLS_AT_ONCE	 64
#define MOD_PARTS	 4 /* MOD_TEXT, MOD_DATA, MOD_RODATA, MOD_RO_AFTER_INIT: those that stay */
#define MODULE_BYTES_MAX (1ULL << 30)

static int add_range(struct vmpt_guest *g, u64 start, u64 size)
{
	/* All in the upper half; nothing in the kernel's own place. */
	if (!size || size > MODULE_BYTES_MAX || !(start >> 63) || start + size < start ||
	    (start < g->kernel.end && start + size > g->kernel.start))
		return 0;
	if (vmpt_grow(&g->range, g->ranges))
		return -VMPT_E_NOMEM;
	g->range[g->ranges++] = (struct guest_range){ start, size, (u16)g->modules };
	return 0;
}

/* ---- symbols of a module ---- */

/* Its type as nm has it, as the kernel found out when it loaded the module. */
static char type_at(struct vmpt_guest *g, u64 types, u64 i, const Elf64_Sym *s)
{
	u8 type;

	if (types && vmpt_guest_load(g, g->kernel.cr3, types + i, &type, 1) && type > ' ' &&
	    type < 0x7f)
		return (char)type;
	return ELF64_ST_TYPE(s->st_info) == STT_FUNC ? 't' : 'd';
}

static int add_symbol(struct vmpt_guest *g, u64 strings, u64 types, u64 i, const Elf64_Sym *s)
{
	char name[NAME_BYTES];

	if (s->st_shndx == SHN_UNDEF || !s->st_name ||
	    !vmpt_guest_string(g, strings + s->st_name, name, sizeof(name)) || !*name)
		return 0;
	return vmpt_guest_add_symbol(g, s->st_value, type_at(g, types, i, s), name,
				     (unsigned int)g->modules);
}

static int read_symbols(struct vmpt_guest *g, u64 module)
{
	Elf64_Sym s[SYMBOLS_AT_ONCE];
	u64 k, table, strings, types, i, n;
	u32 count;
	int ret = 0;

	if (!vmpt_guest_field64(g, module, MODULE_KALLSYMS, &k) || !k)
		return 0;
	if (!vmpt_guest_field64(g, k, KALLSYMS_TABLE, &table) ||
	    !vmpt_guest_field32(g, k, KALLSYMS_COUNT, &count) ||
	    !vmpt_guest_field64(g, k, KALLSYMS_STRINGS, &strings)) {
		g->kernel.lacks |= VMPT_GUEST_MODULES_CUT;
		return 0;
	}
	vmpt_guest_field64(g, k, KALLSYMS_TYPES, &types);
	/* Number 0 is none. */
	for (i = 1; i < count && !ret; i += n) {
		u64 j;

		n = count - i < SYMBOLS_AT_ONCE ? count - i : SYMBOLS_AT_ONCE;
		if (!vmpt_guest_load(g, g->kernel.cr3, table + i * sizeof(*s), s, n * sizeof(*s))) {
			g->kernel.lacks |= VMPT_GUEST_MODULES_CUT;
			return 0;
		}
		for (j = 0; j < n && !ret; j++)
			ret = add_symbol(g, strings, types, i + j, &s[j]);
	}
	return ret;
}

/* ---- a module ---- */

/* Up to 6.3: struct module_layout core_layout. */
static int read_layout(struct vmpt_guest *g, u64 at, struct vmpt_guest_module *m)
{
	u32 size, text;

	at += g->field[MODULE_CORE];
	if (!vmpt_guest_field64(g, at, LAYOUT_BASE, &m->text) ||
	    !vmpt_guest_field32(g, at, LAYOUT_SIZE, &size) ||
	    !vmpt_guest_field32(g, at, LAYOUT_TEXT_SIZE, &text))
		return 0;
	m->size = size;
	m->text_size = text;
	return add_range(g, m->text, size);
}

/* From 6.4 on: struct module_memory mem[]. */
static int read_memory(struct vmpt_guest *g, u64 at, struct vmpt_guest_module *m)
{
	unsigned int i;
	int ret = 0;

	at += g->field[MODULE_MEM];
	for (i = 0; i < MOD_PARTS && !ret; i++, at += g->field[MEMORY_BYTES]) {
		u64 base;
		u32 size;

		if (!vmpt_guest_field64(g, at, MEMORY_BASE, &base) ||
		    !vmpt_guest_field32(g, at, MEMORY_SIZE, &size))
			continue;
		if (!i) {
			m->text = base;
			m->text_size = size;
		}
		m->size += size;
		ret = add_range(g, base, size);
	}
	return ret;
}

static int new_module(struct vmpt_guest *g, const char *name)
{
	if (vmpt_grow(&g->module, g->modules))
		return -VMPT_E_NOMEM;
	g->module[g->modules] =
		(struct vmpt_guest_module){ .name = vmpt_guest_keep_string(&g->text, name) };
	return g->module[g->modules++].name ? 0 : -VMPT_E_NOMEM;
}

static int read_module(struct vmpt_guest *g, u64 at)
{
	struct vmpt_guest_module *m;
	char name[MODULE_NAME_MAX];
	u8 id[20];
	u32 state;
	int ret;

	if (vmpt_guest_field32(g, at, MODULE_STATE, &state) && state == STATE_UNFORMED)
		return 0;
	if (!guest_has(g, MODULE_NAME) ||
	    !vmpt_guest_string(g, at + g->field[MODULE_NAME], name, sizeof(name)))
		return 0;
	ret = new_module(g, name);
	if (ret)
		return ret;
	m = &g->module[g->modules - 1];
	if (guest_has(g, MODULE_BUILD_ID) &&
	    vmpt_guest_load(g, g->kernel.cr3, at + g->field[MODULE_BUILD_ID], id, sizeof(id)) &&
	    memcmp(id, (u8[sizeof(id)]){ 0 }, sizeof(id)) != 0) {
		m->build_id = vmpt_guest_keep(&g->text, id, sizeof(id));
		m->build_id_size = m->build_id ? sizeof(id) : 0;
	}
	ret = guest_has(g, MODULE_MEM) && guest_has(g, MEMORY_BYTES) ? read_memory(g, at, m)
	      : guest_has(g, MODULE_CORE)			     ? read_layout(g, at, m)
								     : 0;
	return ret ? ret : read_symbols(g, at);
}

/* ---- BPF ---- */

static int read_bpf(struct vmpt_guest *g, u64 at)
{
	char name[NAME_BYTES];
	u64 start, end;
	int ret;

	if (!vmpt_guest_field64(g, at, KSYM_START, &start) ||
	    !vmpt_guest_field64(g, at, KSYM_END, &end) || end <= start ||
	    !vmpt_guest_string(g, at + g->field[KSYM_NAME], name, sizeof(name)))
		return 0;
	if (!g->modules || strcmp(g->module[g->modules - 1].name, "bpf") != 0) {
		ret = new_module(g, "bpf");
		if (ret)
			return ret;
		g->module[g->modules - 1].text = start;
	}
	g->module[g->modules - 1].text_size += end - start;
	ret = add_range(g, start, end - start);
	return ret ? ret : vmpt_guest_add_symbol(g, start, 't', name, (unsigned int)g->modules);
}

/* ---- lists ---- */

static int walk_list(struct vmpt_guest *g, const char *list, u32 member,
		     int (*take)(struct vmpt_guest *g, u64 at))
{
	struct guest_seen seen = { 0 };
	u64 head, at;
	int ret = 0;
	bool known;

	if (member == GUEST_NONE || !vmpt_guest_address(g, list, &head))
		return 0;
	known = vmpt_guest_u64(g, head, &at);
	while (!ret && known && at != head && g->modules < VMPT_GUEST_MODULES) {
		ret = vmpt_guest_see(&seen, at);
		if (ret <= 0)
			break;
		ret = take(g, at - member);
		known = !ret && vmpt_guest_u64(g, at, &at);
	}
	if (!known || at != head)
		g->kernel.lacks |= VMPT_GUEST_MODULES_CUT;
	vmpt_guest_seen_free(&seen);
	return ret == -VMPT_E_SPACE ? 0 : ret;
}

static int by_start(const void *x, const void *y)
{
	const struct guest_range *a = x, *b = y;

	return a->start < b->start ? -1 : a->start > b->start;
}

int vmpt_guest_read_modules(struct vmpt_guest *g)
{
	int ret = walk_list(g, "modules", g->field[MODULE_LIST], read_module);

	if (!ret)
		ret = walk_list(g, "bpf_kallsyms", g->field[KSYM_LIST], read_bpf);
	if (g->ranges)
		qsort(g->range, g->ranges, sizeof(*g->range), by_start);
	g->kernel.modules = (u32)g->modules;
	return ret;
}

const struct vmpt_guest_module *vmpt_guest_module(const struct vmpt_guest *g, u32 n)
{
	return n < g->modules ? &g->module[n] : NULL;
}
