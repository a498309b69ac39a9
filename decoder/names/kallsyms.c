// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * kallsyms as it is in a kernel's memory: names one after
 * the other by address, each a length and as many tokens; a token is a text of its own; addresses
 * as 32-bit offsets to a base, before 6.x or without CONFIG_KALLSYMS_BASE_RELATIVE as they are.
 */
#include "decoder/names/guest.h"
#include "util/search.h"

#define TOKENS	    256
#define TOKEN_MAX   128 /* bytes of one token's text */
#define NAME_MAX    512 /* KSYM_NAME_LEN, with the type before and the 0 after it */
#define NAMES_BYTES (1u << 28)

struct tokens {
	char text[TOKENS][TOKEN_MAX];
};

/* How addresses are stored. */
enum form {
	FORM_ABSOLUTE, /* kallsyms_addresses */
	FORM_RELATIVE, /* base + u32 */
	FORM_PERCPU,   /* base - 1 - s32 if that is negative, else per-CPU data at that place */
	FORM_PLACE,    /* from 7.0 on: the place of the offset + s32 */
	FORMS
};

static bool read_tokens(struct vmpt_guest *g, struct tokens *t)
{
	u8 index[2 * TOKENS];
	size_t i;

	if (!vmpt_guest_load(g, g->kernel.cr3, g->info.token_index, index, sizeof(index)))
		return false;
	for (i = 0; i < TOKENS; i++)
		if (!vmpt_guest_string(g, g->info.tokens + (index[2 * i] | index[2 * i + 1] << 8),
				       t->text[i], TOKEN_MAX))
			return false;
	return true;
}

/* ---- names ---- */

static int keep_name(struct vmpt_guest *g, const char *name, u32 *at)
{
	size_t n = strlen(name) + 1;

	if (g->names_size + n > NAMES_BYTES)
		return -VMPT_E_SPACE;
	if (vmpt_reserve(&g->names, &g->names_room, g->names_size + n))
		return -VMPT_E_NOMEM;
	memcpy(g->names + g->names_size, name, n);
	*at = (u32)g->names_size;
	g->names_size += n;
	return 0;
}

int vmpt_guest_add_symbol(struct vmpt_guest *g, u64 address, char type, const char *name,
			  unsigned int module)
{
	u32 at;
	int ret;

	if (g->symbols == VMPT_GUEST_SYMBOLS)
		return -VMPT_E_SPACE;
	ret = keep_name(g, name, &at);
	if (!ret)
		ret = vmpt_grow(&g->symbol, g->symbols);
	if (ret)
		return ret;
	g->symbol[g->symbols++] = (struct guest_symbol){ address, at, (u16)module, type };
	return 0;
}

/* The tokens at *@at, which moves on: the type, and the name. False: none are there. */
static bool read_name(struct vmpt_guest *g, const struct tokens *t, u64 *at, char name[NAME_MAX])
{
	u8 bytes[0x4000];
	size_t n, i, size = 0;

	if (!vmpt_guest_load(g, g->kernel.cr3, *at, bytes, 1))
		return false;
	n = bytes[0];
	++*at;
	/* From 6.1 on: a length of two bytes. */
	if (n & 0x80) {
		if (!vmpt_guest_load(g, g->kernel.cr3, *at, bytes, 1))
			return false;
		n = (n & 0x7f) | (size_t)bytes[0] << 7;
		++*at;
	}
	if (n > NAME_MAX || !vmpt_guest_load(g, g->kernel.cr3, *at, bytes, n))
		return false;
	*at += n;
	for (i = 0; i < n; i++) {
		const char *token = t->text[bytes[i]];
		size_t length = strlen(token);

		if (length > NAME_MAX - 1 - size)
			return false;
		memcpy(name + size, token, length);
		size += length;
	}
	name[size] = '\0';
	return size > 1;
}

/* ---- addresses ---- */

static bool read_address(struct vmpt_guest *g, enum form form, u64 base, u32 i, u64 *address)
{
	const struct guest_info *info = &g->info;
	u32 offset;

	if (form == FORM_ABSOLUTE)
		return vmpt_guest_u64(g, info->addresses + 8ULL * i, address);
	if (!vmpt_guest_u32(g, info->offsets + 4ULL * i, &offset))
		return false;
	if (form == FORM_PERCPU)
		*address = (s32)offset >= 0 ? offset : base - 1 - (u64)(s64)(s32)offset;
	else if (form == FORM_PLACE)
		*address = info->offsets + 4ULL * i + (u64)(s64)(s32)offset;
	else
		*address = base + offset;
	return true;
}

/* In this form _stext is where VMCOREINFO has it. */
static bool fits(struct vmpt_guest *g, enum form form, u64 base)
{
	u64 at;
	size_t i;

	for (i = 0; i < g->symbols; i++)
		if (!strcmp(g->names + g->symbol[i].name, "_stext"))
			return read_address(g, form, base, (u32)i, &at) && at == g->info.stext;
	return false;
}

static int read_addresses(struct vmpt_guest *g)
{
	enum form form;
	u64 base = 0;
	size_t i;

	if (g->info.relative && !vmpt_guest_u64(g, g->info.relative, &base))
		return 0;
	for (form = 0; form < FORMS; form++)
		if ((form == FORM_ABSOLUTE) == !g->info.offsets &&
		    (form == FORM_PLACE || form == FORM_ABSOLUTE) == !g->info.relative &&
		    fits(g, form, base))
			break;
	if (form == FORMS)
		return 0;
	for (i = 0; i < g->symbols; i++)
		if (!read_address(g, form, base, (u32)i, &g->symbol[i].address))
			return 0;
	return 1;
}

static int read_all(struct vmpt_guest *g, const struct tokens *t, u32 count)
{
	u64 at = g->info.names;
	char name[NAME_MAX];
	u32 i;

	for (i = 0; i < count; i++) {
		int ret;

		if (!read_name(g, t, &at, name)) {
			g->kernel.lacks |= VMPT_GUEST_SYMBOLS_CUT;
			break;
		}
		ret = vmpt_guest_add_symbol(g, 0, name[0], name + 1, 0);
		if (ret)
			return ret == -VMPT_E_SPACE ? 0 : ret;
	}
	return read_addresses(g);
}

static void set_range(struct vmpt_guest *g)
{
	u64 start, end;

	if (!vmpt_guest_address(g, "_text", &start) && !vmpt_guest_address(g, "_stext", &start))
		return;
	if (!vmpt_guest_address(g, "_end", &end) && !vmpt_guest_address(g, "__bss_stop", &end) &&
	    !vmpt_guest_address(g, "_etext", &end) && !vmpt_guest_address(g, "_einittext", &end))
		return;
	g->kernel.start = start;
	g->kernel.end = end;
}

int vmpt_guest_read_symbols(struct vmpt_guest *g)
{
	const struct guest_info *info = &g->info;
	struct tokens *t;
	u32 count;
	int ret = 0;

	g->symbols = 0;
	g->names_size = 0;
	if (!info->names || !info->tokens || !info->token_index ||
	    !vmpt_guest_u32(g, info->count, &count) || count > VMPT_GUEST_SYMBOLS)
		return 0;
	t = malloc(sizeof(*t));
	if (!t)
		return -VMPT_E_NOMEM;
	if (read_tokens(g, t))
		ret = read_all(g, t, count);
	free(t);
	if (ret > 0)
		set_range(g);
	else
		g->symbols = 0;
	return ret;
}

/* ---- looking up ---- */

static int by_address(const void *x, const void *y)
{
	const struct guest_symbol *a = x, *b = y;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

void vmpt_guest_sort_symbols(struct vmpt_guest *g)
{
	if (g->symbols)
		qsort(g->symbol, g->symbols, sizeof(*g->symbol), by_address);
}

/* Where the part of the kernel or of a module that has @address ends; 0: none has it. */
static u64 end_of(const struct vmpt_guest *g, u64 address, unsigned int *module)
{
	size_t i = vmpt_search(k, 0, g->ranges, g->range[k].start <= address);

	*module = 0;
	if (address >= g->kernel.start && address < g->kernel.end)
		return g->kernel.end;
	if (!i || address - g->range[i - 1].start >= g->range[i - 1].size)
		return 0;
	*module = g->range[i - 1].module;
	return g->range[i - 1].start + g->range[i - 1].size;
}

bool vmpt_guest_symbol(const struct vmpt_guest *g, u32 n, struct vmpt_guest_symbol *symbol)
{
	const struct guest_symbol *s;
	unsigned int module;
	size_t i = n;
	u64 end;

	if (n >= g->symbols)
		return false;
	s = &g->symbol[n];
	while (++i < g->symbols && g->symbol[i].address == s->address)
		;
	end = end_of(g, s->address, &module);
	if (i < g->symbols && (!end || g->symbol[i].address < end))
		end = g->symbol[i].address;
	*symbol = (struct vmpt_guest_symbol){
		.name = g->names + s->name,
		.module = s->module ? g->module[s->module - 1].name : NULL,
		.address = s->address,
		.size = end ? end - s->address : 0,
		.type = s->type,
	};
	return true;
}

bool vmpt_guest_symbol_at(const struct vmpt_guest *g, u64 address, struct vmpt_guest_symbol *symbol)
{
	unsigned int module;
	u64 end = end_of(g, address, &module);
	size_t i = vmpt_search(k, 0, g->symbols, g->symbol[k].address <= address);

	if (!end || !i)
		return false;
	for (i--; i && g->symbol[i - 1].address == g->symbol[i].address; i--)
		;
	/* A module without symbols is not what comes before it. */
	return g->symbol[i].module == module && vmpt_guest_symbol(g, (u32)i, symbol);
}

bool vmpt_guest_address(const struct vmpt_guest *g, const char *name, u64 *address)
{
	size_t i;

	for (i = 0; i < g->symbols; i++) {
		if (g->symbol[i].module || strcmp(g->names + g->symbol[i].name, name) != 0)
			continue;
		*address = g->symbol[i].address;
		return true;
	}
	return false;
}
