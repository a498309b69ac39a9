// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Guest memory for the tests of vmm-lib. */
#include <stdlib.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/guest.h"

void guest_init(struct guest *g, u32 pages)
{
	u32 i;

	memset(g, 0, sizeof(*g));
	g->pages = pages;
	g->host = calloc(pages, GUEST_PAGE);
	g->kind = calloc(pages, 1);
	g->frame = calloc(pages, sizeof(*g->frame));
	ck_assert(g->host && g->kind && g->frame);
	for (i = 0; i < pages; i++)
		g->frame[i] = i;
}

void guest_free(struct guest *g)
{
	free(g->host);
	free(g->kind);
	free(g->frame);
	memset(g, 0, sizeof(*g));
}

void guest_set_kind(struct guest *g, u32 page, u32 count, enum vmpt_guest_mem kind)
{
	ck_assert(page <= g->pages && count <= g->pages - page);
	memset(g->kind + page, (int)kind, count);
}

void guest_shuffle(struct guest *g, u64 seed)
{
	struct test_rng rng = { seed };
	u8 page[GUEST_PAGE];
	u32 i;

	for (i = g->pages; i > 1; i--) {
		u32 j = (u32)(test_random(&rng) % i), k = i - 1, frame;
		u8 *a = g->host + (size_t)g->frame[j] * GUEST_PAGE;
		u8 *b = g->host + (size_t)g->frame[k] * GUEST_PAGE;

		memcpy(page, a, GUEST_PAGE);
		memmove(a, b, GUEST_PAGE);
		memcpy(b, page, GUEST_PAGE);
		frame = g->frame[j];
		g->frame[j] = g->frame[k];
		g->frame[k] = frame;
	}
}

/* Bytes of an access that are in the page of @gpa. */
static size_t in_page(u64 gpa, size_t len)
{
	size_t rest = GUEST_PAGE - (size_t)(gpa % GUEST_PAGE);

	return len < rest ? len : rest;
}

static u8 *host_of(struct guest *g, u64 gpa)
{
	return g->host + (size_t)g->frame[gpa / GUEST_PAGE] * GUEST_PAGE + gpa % GUEST_PAGE;
}

/* The first kind of memory, other than RAM, in the whole access. */
static int kind_of(const struct guest *g, u64 gpa, size_t len)
{
	while (len) {
		size_t n = in_page(gpa, len);

		if (gpa / GUEST_PAGE >= g->pages)
			return g->retry ? -VMPT_E_RETRY : VMPT_MEM_UNBACKED;
		if (g->kind[gpa / GUEST_PAGE])
			return g->retry ? -VMPT_E_RETRY : g->kind[gpa / GUEST_PAGE];
		gpa += n;
		len -= n;
	}
	return 0;
}

/* Relaxed atomics: a hostile guest may write the same bytes from another thread. */
static void copy_out(u8 *to, const u8 *from, size_t n)
{
	u64 v;

	if (n == 8 && !((uintptr_t)from & 7)) {
		v = __atomic_load_n((const u64 *)(const void *)from, __ATOMIC_RELAXED);
		memcpy(to, &v, 8);
		return;
	}
	while (n--)
		*to++ = __atomic_load_n(from++, __ATOMIC_RELAXED);
}

static void copy_in(u8 *to, const u8 *from, size_t n)
{
	u64 v;

	if (n == 8 && !((uintptr_t)to & 7)) {
		memcpy(&v, from, 8);
		__atomic_store_n((u64 *)(void *)to, v, __ATOMIC_RELAXED);
		return;
	}
	while (n--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELAXED);
}

int guest_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct guest *g = opaque;
	int kind = kind_of(g, gpa, len);
	u8 *to = buf;

	g->reads++;
	while (!kind && len) {
		size_t n = in_page(gpa, len);

		copy_out(to, host_of(g, gpa), n);
		to += n;
		gpa += n;
		len -= n;
	}
	return kind;
}

int guest_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct guest *g = opaque;
	int kind = kind_of(g, gpa, len);
	const u8 *from = buf;

	g->writes++;
	while (!kind && len) {
		size_t n = in_page(gpa, len);

		copy_in(host_of(g, gpa), from, n);
		from += n;
		gpa += n;
		len -= n;
	}
	return kind;
}

int guest_map(void *opaque, u64 gpa, u8 **host, size_t *size)
{
	struct guest *g = opaque;
	int kind = kind_of(g, gpa, 1);

	g->maps++;
	if (kind)
		return kind;
	*host = host_of(g, gpa);
	*size = in_page(gpa, *size);
	return 0;
}

int guest_translate(void *opaque, u64 gpa, u64 *hpa, u64 *size)
{
	struct guest *g = opaque;
	u64 page = gpa / GUEST_PAGE;
	int kind = kind_of(g, gpa, 1);

	g->translations++;
	if (kind)
		return kind;
	*hpa = GUEST_HPA + (u64)g->frame[page] * GUEST_PAGE + gpa % GUEST_PAGE;
	*size = GUEST_PAGE - gpa % GUEST_PAGE;
	while (++page < g->pages && !g->kind[page] && g->frame[page] == g->frame[page - 1] + 1)
		*size += GUEST_PAGE;
	return 0;
}

void guest_pmi(void *opaque)
{
	((struct guest *)opaque)->pmis++;
}

const struct vmpt_ops guest_memory_ops = {
	.guest_read = guest_read,
	.guest_write = guest_write,
	.guest_map = guest_map,
	.guest_translate = guest_translate,
	.inject_pmi = guest_pmi,
};

void guest_put(struct guest *g, u64 gpa, const void *buf, size_t len)
{
	ck_assert_int_eq(guest_write(g, gpa, buf, len), 0);
}

void guest_get(struct guest *g, u64 gpa, void *buf, size_t len)
{
	ck_assert_int_eq(guest_read(g, gpa, buf, len), 0);
}

void guest_put64(struct guest *g, u64 gpa, u64 value)
{
	guest_put(g, gpa, &value, sizeof(value));
}

u64 guest_get64(struct guest *g, u64 gpa)
{
	u64 value = 0;

	guest_get(g, gpa, &value, sizeof(value));
	return value;
}

u8 *guest_at_hpa(struct guest *g, u64 hpa)
{
	u64 offset = hpa - GUEST_HPA;

	return hpa < GUEST_HPA || offset >= (u64)g->pages * GUEST_PAGE ? NULL : g->host + offset;
}

void guest_full_caps(struct vmpt_caps *host)
{
	memset(host, 0, sizeof(*host));
	host->cpuid.present = 1;
	host->cpuid.maxphyaddr = 46;
	host->cpuid.linear_bits = 48;
	host->cpuid.leaf14[0] =
		(struct vmpt_cpuid_regs){ .eax = 1, .ebx = 0x1ff, .ecx = 0x80000007 };
	host->cpuid.leaf14[1] = (struct vmpt_cpuid_regs){ .eax = 0xffff0004, .ebx = 0xffffffff };
	host->cpuid.tsc_denominator = 2;
	host->cpuid.tsc_numerator = 168;
	host->cpuid.crystal_hz = 24000000;
	host->vmx = VMPT_VMX_PT | VMPT_VMX_EPT | VMPT_VMX_CONCEAL_EXEC | VMPT_VMX_CONCEAL_EXIT |
		    VMPT_VMX_CONCEAL_ENTRY | VMPT_VMX_USE_GPA | VMPT_VMX_CLEAR_CTL |
		    VMPT_VMX_LOAD_CTL | VMPT_VMX_TSC_SCALING;
}
