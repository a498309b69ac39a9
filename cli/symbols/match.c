// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Programs by their code, where no build id says which they are: a page of code that was traced is
 * compared with the pages of code of the files in the folders, at the same place in a page. A file
 * is taken if it is the only one that has all bytes that are known of the page, and these are
 * enough and not all alike.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/symbols/file.h"
#include "cli/symbols/names.h"
#include "util/array.h"
#include "util/hash.h"

#define BYTES_MIN  64u /* that agree */
#define VALUES_MIN 16u /* different ones among them */
#define TEXT_MAX   (1ULL << 30)
#define STEPS_MAX  (100ULL << 20) /* pages that are compared in all */
#define PAGES_MAX  (1u << 20)	  /* whose result is kept */
#define RECENT	   16u
#define PAGE_MASK  (VMPT_PAGE - 1)

/* Code of a file. */
struct text {
	size_t program;
	u64 address, size;
	u8 *bytes;
};

/* Where the code of a page is from. */
struct match {
	size_t program; /* SIZE_MAX: not known */
	u64 bias;	/* linear - address in the file */
};

struct page {
	struct vmpt_owner owner;
	u64 cr3, linear;
	struct match match;
};

struct names_match {
	struct vmpt_code *code;
	bool read;
	struct text *text;
	size_t texts;
	u64 bytes, steps;
	struct page *page;
	size_t pages;
	struct vmpt_hash of;
	struct match recent[RECENT]; /* the next page is mostly of one of them */
	unsigned int recents;
};

int code_names_by_code(struct cli *cli, struct code_names *n, struct vmpt_code *code)
{
	if (!n->programs || !code)
		return CLI_OK;
	n->match = calloc(1, sizeof(*n->match));
	if (!n->match)
		return cli_no_memory(cli);
	n->match->code = code;
	return CLI_OK;
}

void names_match_free(struct code_names *n)
{
	struct names_match *m = n->match;

	if (!m)
		return;
	while (m->texts)
		free(m->text[--m->texts].bytes);
	free(m->text);
	free(m->page);
	vmpt_hash_free(&m->of);
	free(m);
}

/* ---- the files' code ---- */

static void add_text(struct names_match *m, const struct elf_file *f, size_t program,
		     const GElf_Phdr *s)
{
	struct text t = { program, s->p_vaddr, s->p_filesz, NULL };

	if (s->p_offset > f->size || t.size > f->size - s->p_offset ||
	    t.size > TEXT_MAX - m->bytes || t.address > ~0ULL - t.size ||
	    vmpt_grow(&m->text, m->texts))
		return;
	t.bytes = malloc(t.size);
	if (t.bytes && pread(f->fd, t.bytes, t.size, (off_t)s->p_offset) == (ssize_t)t.size) {
		m->text[m->texts++] = t;
		m->bytes += t.size;
	} else {
		free(t.bytes);
	}
}

static void read_texts(struct cli *cli, const struct code_names *n)
{
	struct names_match *m = n->match;
	size_t i, k;

	m->read = true;
	for (i = 0; i < n->programs; i++) {
		const struct code_given given = { .path = names_program_path(n, i) };
		struct elf_file f;
		GElf_Phdr s;

		if (!elf_file_open_named(cli, &given, &f))
			for (k = 0; k < f.segments; k++)
				if (elf_file_loaded(&f, k, &s) && s.p_flags & PF_X && s.p_filesz)
					add_text(m, &f, i, &s);
		elf_file_close(&f);
	}
}

/* ---- comparing ---- */

/* Whether all known bytes of @page are those of @t, whose address @address has its first one. */
static bool same(const struct vmpt_page *page, const struct text *t, u64 address)
{
	u64 values[4] = { 0 };
	unsigned int i, known = 0, different = 0;

	for (i = 0; i < VMPT_PAGE; i++) {
		const u64 at = address + i - t->address;

		/* Of the rest of a page the file says nothing. */
		if (at >= t->size || !vmpt_page_knows(page, i))
			continue;
		if (page->bytes[i] != t->bytes[at])
			return false;
		known++;
		values[page->bytes[i] / 64] |= 1ULL << page->bytes[i] % 64;
	}
	for (i = 0; i < 4; i++)
		different += (unsigned int)__builtin_popcountll(values[i]);
	return known >= BYTES_MIN && different >= VALUES_MIN;
}

static bool same_at(const struct names_match *m, const struct match *match,
		    const struct vmpt_page *page, u64 linear)
{
	size_t i;

	for (i = 0; i < m->texts; i++)
		if (m->text[i].program == match->program &&
		    same(page, &m->text[i], linear - match->bias))
			return true;
	return false;
}

/* Look in the pages of @t for @page. False: it is in more than one place. */
static bool search(const struct code_names *n, const struct text *t, const struct vmpt_page *page,
		   u64 linear, unsigned int at, struct match *found)
{
	struct names_match *m = n->match;
	const u8 byte = page->bytes[at];
	/* The first one may begin within its page. */
	u64 address = (t->address & ~(u64)PAGE_MASK), end = t->address + t->size;

	for (; address < end && m->steps < STEPS_MAX; address += VMPT_PAGE, m->steps++) {
		const u64 in = address + at - t->address;

		if (in >= t->size || t->bytes[in] != byte || !same(page, t, address))
			continue;
		/* The same program in two files is no other. */
		if (found->program != SIZE_MAX &&
		    (!names_programs_same(n, found->program, t->program) ||
		     found->bias != linear - address))
			return false;
		if (found->program == SIZE_MAX)
			*found = (struct match){ t->program, linear - address };
	}
	return true;
}

static struct match match_page(struct cli *cli, const struct code_names *n,
			       const struct vmpt_space *space, u64 ip)
{
	const u64 linear = ip & ~(u64)PAGE_MASK;
	struct names_match *m = n->match;
	struct match found = { .program = SIZE_MAX };
	struct vmpt_page page;
	size_t i;

	if (vmpt_code_page(m->code, space, linear, 0, &page) != 1 ||
	    !vmpt_page_knows(&page, ip & PAGE_MASK))
		return found;
	if (!m->read)
		read_texts(cli, n);
	for (i = 0; i < RECENT && i < m->recents; i++)
		if (same_at(m, &m->recent[i], &page, linear))
			return m->recent[i];
	for (i = 0; i < m->texts; i++)
		if (!search(n, &m->text[i], &page, linear, ip & PAGE_MASK, &found))
			return (struct match){ .program = SIZE_MAX };
	if (found.program != SIZE_MAX)
		m->recent[m->recents++ % RECENT] = found;
	return found;
}

/* ---- finding ---- */

void code_names_in(struct names_space *space, const struct vmpt_space *in)
{
	space->known = true;
	space->in = *in;
}

static struct match match_of(struct cli *cli, const struct code_names *n,
			     const struct names_space *space, u64 ip)
{
	const u64 linear = ip & ~(u64)PAGE_MASK;
	const struct vmpt_space *in = &space->in;
	const u64 hash = vmpt_mix64(linear ^ vmpt_mix64(in->cr3 ^ vmpt_mix64(in->owner.vmcs)));
	struct names_match *m = n->match;
	struct match found;
	u32 i = vmpt_hash_find(&m->of, hash, k,
			       m->page[k].linear == linear && m->page[k].cr3 == in->cr3 &&
				       vmpt_owner_same(&m->page[k].owner, &in->owner));

	if (i != VMPT_HASH_NONE)
		return m->page[i].match;
	found = match_page(cli, n, in, ip);
	if (m->pages < PAGES_MAX && !vmpt_grow(&m->page, m->pages) &&
	    !vmpt_hash_add(&m->of, hash, (u32)m->pages))
		m->page[m->pages++] = (struct page){ in->owner, in->cr3, linear, found };
	return found;
}

bool names_match_find(struct cli *cli, const struct code_names *n, const struct names_space *space,
		      u64 ip, size_t *program, u64 *address)
{
	struct match found;

	if (!n->match || !space->known)
		return false;
	found = match_of(cli, n, space, ip);
	*program = found.program;
	*address = ip - found.bias;
	return found.program != SIZE_MAX;
}
