// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * VMCOREINFO, the text with which a Linux kernel describes itself to those who read its memory
 * after a crash (Documentation/admin-guide/kdump/vmcoreinfo.rst). It is in
 * memory twice, at the start of a page, and there as an ELF note: so the first bytes of each page
 * say whether it is there.
 */
#include <stdio.h>

#include "decoder/image/image.h"
#include "decoder/names/guest.h"

#define FIRST	     "OSRELEASE="
#define NOTE_HEAD    24			   /* sizes, type, "VMCOREINFO\0" and its padding */
#define CANDIDATES   64			   /* kernels before (kexec), and whatever looks like one */
#define KERNEL_MAP   0xffffffff80000000ULL /* __START_KERNEL_map */
#define KERNEL_SPACE (1ULL << 30)	   /* KERNEL_IMAGE_SIZE is at most that */

/* Where the text may begin. */
struct found {
	u64 at[CANDIDATES];
	size_t count, enough;
};

/* What follows "@name=" at the start of a line; NULL: it is not there. */
static const char *value_of(const struct guest_info *info, const char *name)
{
	const char *at = info->text;
	size_t n = strlen(name);

	while (at) {
		if (!strncmp(at, name, n) && at[n] == '=')
			return at + n + 1;
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	return NULL;
}

static u64 number_of(const struct guest_info *info, const char *name, int base)
{
	const char *value = value_of(info, name);

	return value ? strtoull(value, NULL, base) : 0;
}

static u64 symbol_of(const struct guest_info *info, const char *name)
{
	char line[64];

	snprintf(line, sizeof(line), "SYMBOL(%s)", name);
	return number_of(info, line, 16);
}

static size_t hex_bytes(const char *text, u8 *to, size_t room)
{
	unsigned int byte;
	size_t n = 0;

	while (n < room && text[2 * n] > ' ' && text[2 * n + 1] > ' ' &&
	       sscanf(text + 2 * n, "%2x", &byte) == 1)
		to[n++] = (u8)byte;
	return n;
}

static const char *keep_line(struct vmpt_guest *g, const char *value)
{
	char line[256];
	size_t n = value ? strcspn(value, "\n") : 0;

	n = n < sizeof(line) ? n : sizeof(line) - 1;
	memcpy(line, value ? value : "", n);
	line[n] = '\0';
	return vmpt_guest_keep_string(&g->text, line);
}

/* The text of the page @physical and the one after it. */
static bool read_text(struct vmpt_guest *g, u64 physical)
{
	struct guest_info *info = &g->info;
	unsigned int from = physical % VMPT_PAGE;
	struct vmpt_page page;
	size_t n = 0, i;

	memset(info, 0, sizeof(*info));
	for (i = 0; i < 2; i++) {
		if (vmpt_image_physical(g->image, physical - from + i * VMPT_PAGE, &page) <= 0 ||
		    page.valid)
			break;
		memcpy(info->text + n, page.bytes + (i ? 0 : from), VMPT_PAGE - (i ? 0 : from));
		n += VMPT_PAGE - (i ? 0 : from);
	}
	if (n >= sizeof(info->text))
		n = sizeof(info->text) - 1;
	info->text[n] = '\0';
	return !strncmp(info->text, FIRST, strlen(FIRST));
}

/* What the text at @physical says; whether its page tables are the kernel's. */
static bool read_info(struct vmpt_guest *g, u64 physical)
{
	struct guest_info *info = &g->info;
	struct vmpt_guest_kernel *k = &g->kernel;
	u64 top, at;
	struct vmpt_space space = { .exec = 64 };
	const char *id;

	if (!read_text(g, physical))
		return false;
	*k = (struct vmpt_guest_kernel){ 0 };
	info->names = symbol_of(info, "kallsyms_names");
	info->count = symbol_of(info, "kallsyms_num_syms");
	info->tokens = symbol_of(info, "kallsyms_token_table");
	info->token_index = symbol_of(info, "kallsyms_token_index");
	info->offsets = symbol_of(info, "kallsyms_offsets");
	info->relative = symbol_of(info, "kallsyms_relative_base");
	info->addresses = symbol_of(info, "kallsyms_addresses");
	info->stext = symbol_of(info, "_stext");
	info->page_size = number_of(info, "SIZE(page)", 10);
	info->five = number_of(info, "NUMBER(pgtable_l5_enabled)", 10) == 1;
	k->offset = number_of(info, "KERNELOFFSET", 16);
	k->physical = number_of(info, "NUMBER(phys_base)", 10);
	top = symbol_of(info, "init_top_pgt");
	if (!top)
		top = symbol_of(info, "swapper_pg_dir");
	if (top < KERNEL_MAP || top - KERNEL_MAP >= KERNEL_SPACE || !info->stext)
		return false;
	k->cr3 = top - KERNEL_MAP + k->physical;
	if (k->cr3 % VMPT_PAGE || k->cr3 >> 52)
		return false;
	id = value_of(info, "BUILD-ID");
	k->build_id_size = id ? hex_bytes(id, info->id, sizeof(info->id)) : 0;
	k->build_id = k->build_id_size ? info->id : NULL;
	space.cr3 = k->cr3;
	vmpt_guest_forget(g);
	if (g->image->paging_guessed)
		g->image->paging = info->five ? VMPT_PAGING_5 : VMPT_PAGING_4;
	return vmpt_image_translate(g->image, &space, info->stext, &at) == 1 &&
	       at == info->stext - KERNEL_MAP + k->physical;
}

static int take_page(void *opaque, u64 physical, const struct vmpt_page *page)
{
	struct found *f = opaque;
	unsigned int at;

	if (page->valid)
		return 0;
	if (!memcmp(page->bytes, FIRST, strlen(FIRST)))
		at = 0;
	else if (!memcmp(page->bytes + 12, "VMCOREINFO", sizeof("VMCOREINFO")) &&
		 !memcmp(page->bytes + NOTE_HEAD, FIRST, strlen(FIRST)))
		at = NOTE_HEAD;
	else
		return 0;
	f->at[f->count++] = physical + at;
	return f->count == f->enough;
}

static int choose(struct vmpt_guest *g, const struct found *f, struct vmpt_diag *diag)
{
	bool five = false;
	size_t i, best = f->count;
	int ret = 0;

	/* The one with symbols, else the first whose page tables are in memory. */
	for (i = 0; i < f->count && ret <= 0; i++) {
		if (!read_info(g, f->at[i])) {
			five |= g->info.five;
			continue;
		}
		best = best < f->count ? best : i;
		ret = vmpt_guest_read_symbols(g);
		if (ret < 0)
			return vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
	}
	if (ret > 0)
		return 0;
	g->kernel.lacks |= VMPT_GUEST_SYMBOLS_MISSING;
	if (best < f->count && read_info(g, f->at[best])) {
		g->kernel.lacks |= VMPT_GUEST_SYMBOLS_MISSING;
		return 0;
	}
	return vmpt_diag_fail(
		diag, VMPT_E_FORMAT, f->at[0],
		"a Linux kernel's VMCOREINFO is in the image, but not its page tables "
		"(a part of a guest's memory, a 32-bit kernel%s)",
		five && !g->image->paging_guessed ? ", or 5 levels that were not given" : "");
}

int vmpt_guest_find(struct vmpt_guest *g, struct vmpt_diag *diag)
{
	/* A kernel has two; what comes after them is slow to find in a compressed dump. */
	struct found found = { .enough = 2 };
	int ret = vmpt_image_scan(g->image, take_page, &found);

	if (ret == -VMPT_E_UNSUPPORTED)
		return vmpt_diag_fail(diag, VMPT_E_UNSUPPORTED, 0,
				      "the image has no guest-physical memory to be searched");
	if (ret < 0)
		return vmpt_diag_fail(diag, (enum vmpt_error) - ret, 0, "%s", vmpt_strerror(ret));
	if (!found.count)
		return vmpt_diag_fail(
			diag, VMPT_E_FORMAT, 0,
			"no Linux kernel is found in the image: it has no VMCOREINFO");
	ret = choose(g, &found, diag);
	if (found.count == found.enough && (ret || !g->symbols)) {
		found = (struct found){ .enough = CANDIDATES };
		ret = vmpt_image_scan(g->image, take_page, &found);
		if (!ret && found.count)
			ret = choose(g, &found, diag);
	}
	if (ret)
		return ret;
	g->kernel.release = keep_line(g, g->info.text + strlen(FIRST));
	return g->kernel.release ? 0 : vmpt_diag_fail(diag, VMPT_E_NOMEM, 0, "out of memory");
}
