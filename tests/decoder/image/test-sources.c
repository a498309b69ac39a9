// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Each image source gives the same pages: one guest's memory, of which random parts are absent, is
 * written in every form and read back. What there is to find is known from the mappings that were
 * made and from what was left out, not from another source.
 *
 * Forms of whole pages lack each page of which a byte is absent.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "decoder/vmpt-image.h"
#include "tests/decoder/image/guest-memory.h"
#include "tests/decoder/image/kdump-writer.h"
#include "tests/support/support.h"
#ifdef WITH_KDUMP
#include "decoder/kdump/kdump.h"
#endif

/* Above the page tables, with what is mapped by pages and by a large page. */
#define HOLES_FROM 0x500000u
#define KERNEL	   0xffffffff81000000u
#define KERNEL_AT  0x600000u
#define DIRECT	   0xffff888000000000u
/* Of the list of mappings: the first process in 4-level paging. */
#define CR3 0

static struct guest_memory m;
static struct {
	u32 from, to;
} hole[6];

static bool absent(u64 physical)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(hole); i++)
		if (physical >= hole[i].from && physical < hole[i].to)
			return true;
	return physical >= GUEST_RAM;
}

/* Whether a byte of the page at @physical may be absent. */
static bool touched(u64 physical)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(hole); i++)
		if (hole[i].from < physical + VMPT_PAGE && hole[i].to > physical)
			return true;
	return physical >= GUEST_RAM;
}

/* Bytes of the page at @physical that are there. */
static unsigned int known_in(u64 physical)
{
	unsigned int i, n = 0;

	if (!touched(physical))
		return VMPT_PAGE;
	for (i = 0; i < VMPT_PAGE; i++)
		n += !absent(physical + i);
	return n;
}

static bool whole(const void *opaque, u64 physical)
{
	(void)opaque;
	return known_in(physical) == VMPT_PAGE;
}

static void make_holes(struct test_rng *rng)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(hole); i++) {
		u32 from = HOLES_FROM + (u32)(test_random(rng) % (GUEST_RAM - HOLES_FROM));
		u32 n = (u32)(test_random(rng) % (i < 3 ? 200 : 3 * VMPT_PAGE));

		/* Where mapped pages are, and page borders. */
		if (i == 0)
			from = HOLES_FROM + (u32)(test_random(rng) % (2 * VMPT_PAGE));
		if (i > 3)
			from &= ~(VMPT_PAGE - 1);
		hole[i].from = from;
		hole[i].to = from + n < GUEST_RAM ? from + n : GUEST_RAM;
	}
}

static void setup(void)
{
	u64 at;

	test_dir_make();
	guest_memory_make(&m);
	/* Pages that zlib makes smaller. */
	for (at = HOLES_FROM; at < GUEST_RAM; at += 3 * VMPT_PAGE)
		memset(m.ram + at + 100, (int)(at >> 12), VMPT_PAGE - 200);
}

static void teardown(void)
{
	guest_memory_free(&m);
	test_dir_remove();
}

/* ---- what is to be found ---- */

/* Whether byte @i is known and right, or rightly not known. */
static bool good_byte(const struct vmpt_page *page, u64 physical, unsigned int i)
{
	bool gone = absent(physical + i);

	return vmpt_page_knows(page, i) != gone && (gone || page->bytes[i] == m.ram[physical + i]);
}

static void check_page(const char *form, bool by_bytes, int ret, const struct vmpt_page *page,
		       u64 physical)
{
	unsigned int known = known_in(physical), i;
	bool good = ret == (by_bytes ? known > 0 : known == VMPT_PAGE);

	if (good && known == VMPT_PAGE)
		good = !page->valid && !memcmp(page->bytes, m.ram + physical, VMPT_PAGE);
	else if (ret)
		for (i = 0; i < VMPT_PAGE && good; i++)
			good = good_byte(page, physical, i);
	ck_assert_msg(good, "%s: the page at 0x%llx, of which %u bytes are known: %d", form,
		      (unsigned long long)physical, known, ret);
}

static unsigned int check_linear(const char *form, bool by_bytes, struct vmpt_image *image, u64 cr3)
{
	unsigned int checked = 0;
	size_t i;
	u64 at;

	for (i = 0; i < m.count; i++) {
		const struct guest_mapping *x = &m.list[i];
		struct vmpt_space space = { .cr3 = x->cr3, .exec = 64 };

		if (x->paging != VMPT_PAGING_4 || !x->present || (cr3 && x->cr3 != cr3))
			continue;
		/* Of 1 GiB there are 8 MiB. */
		for (at = 0; at < x->size && at < 2 * GUEST_RAM; at += VMPT_PAGE) {
			struct vmpt_page page;
			int ret = vmpt_image_page(image, &space, x->linear + at, 0, &page);

			check_page(form, by_bytes, ret, &page, x->physical + at);
			checked += (unsigned int)ret;
		}
	}
	return checked;
}

static void check_physical(const char *form, bool by_bytes, struct vmpt_image *image)
{
	struct vmpt_page page;
	u64 at;

	for (at = 0; at < GUEST_RAM; at += VMPT_PAGE)
		check_page(form, by_bytes, vmpt_image_physical(image, at, &page), &page, at);
}

/* ---- forms ---- */

/* The parts between the holes, from @from to @to. */
static size_t parts(struct dump_segment *s, u64 from, u64 to)
{
	size_t n = 0;
	u64 at, begin = from;

	for (at = from; at <= to; at++) {
		if (at < to && at % VMPT_PAGE == 0 && !touched(at)) {
			at += VMPT_PAGE - 1;
			continue;
		}
		if (at < to && !absent(at))
			continue;
		if (at > begin)
			s[n++] = (struct dump_segment){ 0, begin, m.ram + begin, at - begin };
		begin = at + 1;
	}
	return n;
}

enum { MOST = 64 };

static struct vmpt_image *open_file(const char *path, u8 paging)
{
	const struct vmpt_image_options o = { .paging = paging };
	struct vmpt_diag diag;
	struct vmpt_image *image;

	ck_assert_msg(!vmpt_image_open(&image, path, &o, &diag), "%s: %s", path, diag.text);
	return image;
}

static struct vmpt_image *open_elf(const char *name, const struct dump_segment *s, size_t n)
{
	struct dump d, notes = { 0 };
	struct vmpt_image *image;

	dump_qemu_note(&notes, 1ULL << 31, m.list[CR3].cr3, 1u << 5);
	dump_elf(&d, ET_CORE, EM_X86_64, false, s, n, &notes);
	image = open_file(test_dir_file(name, d.data, d.size), VMPT_PAGING_AUTO);
	free(d.data);
	free(notes.data);
	return image;
}

/* Raw memory without its holes, and a list of what lies where. */
static struct vmpt_image *ranges(void)
{
	struct dump_segment s[MOST];
	size_t n = parts(s, 0, GUEST_RAM), i, length = 0, size = 0;
	u8 *packed = malloc(GUEST_RAM);
	char list[MOST * 64];

	ck_assert_ptr_nonnull(packed);
	for (i = 0; i < n; i++) {
		length += (size_t)snprintf(list + length, sizeof(list) - length,
					   "0x%llx %llu 0x%zx\n", (unsigned long long)s[i].physical,
					   (unsigned long long)s[i].size, size);
		memcpy(packed + size, s[i].bytes, s[i].size);
		size += s[i].size;
	}
	test_dir_file("x.ram", packed, size);
	free(packed);
	return open_file(test_dir_file("x.ranges", list, length), VMPT_PAGING_4);
}

/* As "virsh dump --memory-only": by p_paddr. */
static struct vmpt_image *core(void)
{
	struct dump_segment s[MOST];
	size_t n = parts(s, 0, GUEST_RAM);

	return open_elf("core", s, n);
}

/* With paging: what a vCPU's process maps has its p_vaddr, too. */
static struct vmpt_image *core_with_paging(void)
{
	struct dump_segment s[2 * MOST];
	size_t n = parts(s, 0, 0x500000), i;
	size_t from = n;

	n += parts(s + n, 0x500000, 0x501000);
	for (i = from; i < n; i++)
		s[i].linear = s[i].physical - 0x500000 + 0x400000;
	n += parts(s + n, 0x501000, KERNEL_AT);
	from = n;
	n += parts(s + n, KERNEL_AT, GUEST_RAM);
	for (i = from; i < n; i++)
		s[i].linear = s[i].physical - KERNEL_AT + KERNEL;
	return open_elf("paging", s, n);
}

/* A kernel's view: itself and the direct map, all with both addresses. */
static struct vmpt_image *kcore(void)
{
	struct dump_segment s[2 * MOST];
	size_t n = parts(s, KERNEL_AT, GUEST_RAM), k = n, i;

	n += parts(s + n, 0, GUEST_RAM);
	for (i = 0; i < n; i++)
		s[i].linear = s[i].physical + (i < k ? KERNEL - KERNEL_AT : DIRECT);
	return open_elf("kcore", s, n);
}

/* The pages of one process. */
static struct vmpt_image *page_set(void)
{
	struct dump addr = { 0 }, dump = { 0 };
	struct vmpt_image *image;
	size_t i;
	u64 at;

	addr.data = malloc(3 * GUEST_RAM / VMPT_PAGE * 8);
	dump.data = malloc(3 * (size_t)GUEST_RAM);
	ck_assert(addr.data && dump.data);
	for (i = 0; i < m.count; i++)
		for (at = 0; at < m.list[i].size && at < GUEST_RAM; at += VMPT_PAGE) {
			const struct guest_mapping *x = &m.list[i];
			u64 linear = x->linear + at;

			if (x->cr3 != m.list[CR3].cr3 || !x->present ||
			    !whole(NULL, x->physical + at))
				continue;
			memcpy(addr.data + addr.size, &linear, 8);
			memcpy(dump.data + dump.size, m.ram + x->physical + at, VMPT_PAGE);
			addr.size += 8;
			dump.size += VMPT_PAGE;
		}
	test_dir_file("x.dump", dump.data, dump.size);
	image = open_file(test_dir_file("x.addr", addr.data, addr.size), VMPT_PAGING_AUTO);
	free(addr.data);
	free(dump.data);
	return image;
}

#ifdef WITH_KDUMP
static struct vmpt_image *open_kdump(const struct dump *d)
{
	const struct vmpt_image_options o = { .paging = VMPT_PAGING_4 };
	struct vmpt_image_source source;
	struct vmpt_diag diag = { 0 };
	struct vmpt_image *image;

	ck_assert(vmpt_kdump_is(d->data, d->size));
	ck_assert_msg(!vmpt_kdump_open(test_dir_file("kdump", d->data, d->size), &source, &diag),
		      "%s", diag.text);
	ck_assert_int_eq(vmpt_image_make(&image, &source, &o), 0);
	return image;
}

static struct vmpt_image *kdump(void)
{
	struct vmpt_image *image;
	struct dump d;

	kdump_write(&d, m.ram, GUEST_RAM, whole, NULL);
	image = open_kdump(&d);
	free(d.data);
	return image;
}

static struct vmpt_image *kdump_flat(void)
{
	struct vmpt_image *image;
	struct dump d, flat;

	kdump_write(&d, m.ram, GUEST_RAM, whole, NULL);
	kdump_flatten(&flat, &d, 50000, 3);
	image = open_kdump(&flat);
	free(flat.data);
	free(d.data);
	return image;
}
#endif

static const struct form {
	const char *name;
	struct vmpt_image *(*open)(void);
	bool by_bytes, physical;
	bool one_space; /* the first process's */
} forms[] = {
	{ "raw memory by ranges", ranges, true, true, false },
	{ "an ELF core", core, true, true, false },
	{ "an ELF core with paging", core_with_paging, true, true, false },
	{ "kcore", kcore, true, true, false },
	{ "a set of pages", page_set, false, false, true },
#ifdef WITH_KDUMP
	{ "a kdump", kdump, false, true, false },
	{ "a flattened kdump", kdump_flat, false, true, false },
#endif
};

static void check_form(const struct form *f)
{
	struct vmpt_image *image = f->open();

	ck_assert_uint_gt(
		check_linear(f->name, f->by_bytes, image, f->one_space ? m.list[CR3].cr3 : 0),
		2000);
	if (f->physical)
		check_physical(f->name, f->by_bytes, image);
	vmpt_image_close(image);
}

START_TEST(each_source_gives_the_same_pages)
{
	struct test_rng rng = { 4 };
	int round, rounds = test_rounds(40, 1);
	size_t i;

	for (round = 0; round < rounds; round++) {
		make_holes(&rng);
		for (i = 0; i < VMPT_ARRAY_SIZE(forms); i++)
			check_form(&forms[i]);
	}
}
END_TEST

/* Without holes raw memory has them all. */
START_TEST(raw_memory)
{
	struct vmpt_image *image;

	memset(hole, 0, sizeof(hole));
	image = open_file(test_dir_file("ram", m.ram, GUEST_RAM), VMPT_PAGING_4);
	check_linear("raw memory", true, image, 0);
	check_physical("raw memory", true, image);
	vmpt_image_close(image);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("decoder/image-sources");
	TCase *c = test_long_case(suite);

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, each_source_gives_the_same_pages);
	tcase_add_test(c, raw_memory);
	return suite;
}
