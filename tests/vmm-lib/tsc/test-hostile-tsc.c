// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A hostile guest and vmpt_vcpu_tsc_adjust(): a thread rewrites ToPA entries and output bytes while
 * the library walks the tables and rewrites TSCs, through copies and in the memory itself. The
 * guest's memory is in pieces with an inaccessible page between them; work is bounded, and the walk
 * ends at the requested position. VMPT_SOAK=seconds: run for that long.
 *
 * In the memory itself the library and the guest race, as a VMM and its guest do, so this half is
 * skipped under ThreadSanitizer; copies are made by the VMM's callbacks, which have no races here.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/guest.h"
#include "tests/vmm-lib/tsc-oracle.h"

#if defined(__SANITIZE_THREAD__)
#define MAPS 1 /* copies only */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MAPS 1
#endif
#endif
#ifndef MAPS
#define MAPS 2
#endif

#define PAGE	4096u
#define PAGES	64u
#define PIECE	(4 * PAGE) /* of contiguous memory: the largest region of a well-behaved guest */
#define MEMORY	(PAGES * PAGE)
#define TABLES	4u /* pages 0 to 3 */
#define ENTRIES 8u /* of a table: the last one is END */
#define CALLS	20000u
#define TRACED	(1u << 20) /* what the vCPU counts before each call */

/* One guest, and the result of one call. */
struct hostile {
	struct vmpt_vcpu v;
	struct vmpt_ops ops;
	u8 *base; /* of the mapping: a guard page, then pieces, each followed by a guard page */
	size_t mapped;
	struct test_rng rng;
	u64 entries, bytes, written, maps;
	/* the thread */
	pthread_t thread;
	struct test_rng thread_rng;
	bool stop;
	u64 stores;
};

/* ---- memory ---- */

static u8 *host_of(struct hostile *h, u64 gpa)
{
	return h->base + PAGE + gpa / PIECE * (PIECE + PAGE) + gpa % PIECE;
}

static void memory_init(struct hostile *h)
{
	u64 gpa;

	h->mapped = PAGE + MEMORY / PIECE * (size_t)(PIECE + PAGE);
	h->base = mmap(NULL, h->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(h->base != MAP_FAILED);
	for (gpa = 0; gpa < MEMORY; gpa += PIECE)
		ck_assert_int_eq(mprotect(host_of(h, gpa), PIECE, PROT_READ | PROT_WRITE), 0);
}

static void store64(struct hostile *h, u64 gpa, u64 value)
{
	__atomic_store_n((u64 *)(void *)host_of(h, gpa), value, __ATOMIC_RELAXED);
}

static int hostile_read(void *opaque, u64 gpa, void *buf, size_t len)
{
	struct hostile *h = opaque;
	u8 *to = buf;
	u64 value;

	h->bytes += len;
	h->entries += len == 8;
	if (gpa >= MEMORY || len > MEMORY - gpa)
		return VMPT_MEM_UNBACKED;
	if (len == 8 && !(gpa & 7)) {
		value = __atomic_load_n((u64 *)(void *)host_of(h, gpa), __ATOMIC_RELAXED);
		memcpy(buf, &value, 8);
		return 0;
	}
	while (len--)
		*to++ = __atomic_load_n(host_of(h, gpa++), __ATOMIC_RELAXED);
	return 0;
}

static int hostile_write(void *opaque, u64 gpa, const void *buf, size_t len)
{
	struct hostile *h = opaque;
	const u8 *from = buf;

	h->written += len;
	if (gpa >= MEMORY || len > MEMORY - gpa)
		return VMPT_MEM_UNBACKED;
	while (len--)
		__atomic_store_n(host_of(h, gpa++), *from++, __ATOMIC_RELAXED);
	return 0;
}

static int hostile_map(void *opaque, u64 gpa, u8 **host, size_t *size)
{
	struct hostile *h = opaque;

	h->maps++;
	if (gpa >= MEMORY)
		return VMPT_MEM_UNBACKED;
	*host = host_of(h, gpa);
	*size = PIECE - gpa % PIECE;
	h->bytes += *size;
	return 0;
}

/* ---- the thread ---- */

static u64 draw(struct test_rng *rng, u64 n)
{
	return test_random(rng) % n;
}

/* Mostly what a well-behaved guest has at @index. */
static u64 any_entry(struct test_rng *rng, u64 index)
{
	u64 size = draw(rng, 3);

	switch (draw(rng, 32)) {
	case 0:
		return test_random(rng);
	case 1: /* beyond the memory */
		return (PAGES + draw(rng, 4)) * PAGE;
	case 2: /* END where there was none, or none where it was */
		index ^= ENTRIES - 1;
		break;
	}
	if (index == ENTRIES - 1)
		return draw(rng, TABLES) * PAGE | VMPT_TOPA_END;
	return (draw(rng, PAGES) & ~((1ULL << size) - 1)) * PAGE | size << VMPT_TOPA_SIZE_SHIFT;
}

/* Trace over anything, sometimes including tables. */
static void rewrite_bytes(struct hostile *h)
{
	static const struct tsc_mix mix = {
		.psb = 40, .tsc = 200, .block = 10, .error = 1, .tsc_bytes = true
	};
	struct test_rng *rng = &h->thread_rng;
	u64 from = draw(rng, 64) ? TABLES * PAGE : 0, state = test_random(rng) | 1;
	u8 trace[512];
	size_t i;

	from += draw(rng, MEMORY - from - sizeof(trace));
	tsc_stream(trace, sizeof(trace), &mix, &state);
	for (i = 0; i < sizeof(trace); i++)
		__atomic_store_n(host_of(h, from + i), trace[i], __ATOMIC_RELAXED);
}

static void *rewrite(void *opaque)
{
	struct hostile *h = opaque;
	struct test_rng *rng = &h->thread_rng;
	u64 index;

	while (!__atomic_load_n(&h->stop, __ATOMIC_RELAXED)) {
		index = draw(rng, ENTRIES);
		store64(h, draw(rng, TABLES) * PAGE + 8 * index, any_entry(rng, index));
		rewrite_bytes(h);
		__atomic_fetch_add(&h->stores, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* ---- one call of the library ---- */

/* The guest's current position: any value that its MSRs accept. */
static void move(struct hostile *h)
{
	struct vmpt_pt_regs *regs = &h->v.regs;
	u64 r = test_random(&h->rng);

	if (r % 64 == 0) /* from one kind of output to the other, and anywhere */
		regs->ctl ^= VMPT_CTL_TOPA;
	if (!(regs->ctl & VMPT_CTL_TOPA)) {
		regs->output_base = 4 * PIECE;
		regs->output_mask_ptrs = draw(&h->rng, 2 * PIECE) << 32 | (2 * PIECE - 1);
	} else {
		regs->output_base = draw(&h->rng, TABLES) * PAGE;
		regs->output_mask_ptrs =
			vmpt_pt_mask_ptrs((u32)draw(&h->rng, ENTRIES), (u32)draw(&h->rng, PAGE));
	}
	if (r >> 58 == 0)
		regs->output_base = test_random(&h->rng) & vmpt_mask64(46) & ~0x7fULL;
	if (r >> 58 == 1)
		regs->output_mask_ptrs = test_random(&h->rng) | 0x7f;
}

static int one_call(struct hostile *h, u64 n)
{
	struct vmpt_tsc_change change = { .multiplier = 3ULL << 46, .offset = n };
	u64 tscs = h->v.scan.tscs;
	int ret;

	move(h);
	h->v.on_mem[VMPT_MEM_UNBACKED] = (u8)draw(&h->rng, 3);
	h->entries = h->bytes = h->written = h->maps = 0;
	h->v.traced = TRACED;
	h->v.adjust_budget = draw(&h->rng, 2) ? 0 : TRACED / 4;
	ret = vmpt_vcpu_tsc_adjust(&h->v, &change, NULL);
	if (ret && ret != -VMPT_E_LIMIT && ret != -VMPT_E_RETRY && ret != VMPT_MORE)
		ck_abort_msg("call %llu: %d", (unsigned long long)n, ret);
	if (ret != -VMPT_E_RETRY && ret != VMPT_MORE &&
	    (h->v.scan_base != h->v.regs.output_base ||
	     h->v.scan_mask_ptrs != h->v.regs.output_mask_ptrs))
		ck_abort_msg("call %llu: it did not end at the target", (unsigned long long)n);
	/* Two passes over the entries; a mapped piece counts as a whole, so entry by entry. */
	if (h->bytes > TRACED + 2ULL * VMPT_ADJUST_ENTRIES * (8 + PIECE) ||
	    h->entries > 2ULL * VMPT_ADJUST_ENTRIES + h->bytes / 16 ||
	    h->written > 2 * (h->bytes + VMPT_PT_SIZE_MAX) ||
	    h->maps > VMPT_ADJUST_ENTRIES + h->bytes / PAGE + 1)
		ck_abort_msg("call %llu: %llu entries, %llu bytes, %llu written, %llu maps",
			     (unsigned long long)n, (unsigned long long)h->entries,
			     (unsigned long long)h->bytes, (unsigned long long)h->written,
			     (unsigned long long)h->maps);
	if (h->v.cut_len[0] + h->v.cut_len[1] > VMPT_PT_SIZE_MAX)
		ck_abort_msg("call %llu: a cut packet of invalid length", (unsigned long long)n);
	return ret < 0 ? ret : h->v.scan.tscs > tscs;
}

static void hostile_init(struct hostile *h, bool map)
{
	struct vmpt_caps caps;
	u64 i;

	memset(h, 0, sizeof(*h));
	memory_init(h);
	h->rng.state = 0x75c;
	h->thread_rng.state = 0x75d;
	h->ops = (struct vmpt_ops){ .guest_read = hostile_read, .guest_write = hostile_write };
	if (map)
		h->ops.guest_map = hostile_map;
	guest_full_caps(&caps);
	vmpt_pt_rules_init(&h->v.rules, &caps.cpuid);
	h->v.ops = &h->ops;
	h->v.opaque = h;
	h->v.regs.ctl = VMPT_CTL_TOPA | VMPT_CTL_TRACE_EN;
	for (i = 0; i < TABLES * ENTRIES; i++)
		store64(h, i / ENTRIES * PAGE + i % ENTRIES * 8,
			i % ENTRIES == ENTRIES - 1
				? (i / ENTRIES + 1) % TABLES * PAGE | VMPT_TOPA_END
				: (TABLES + i) * PAGE);
}

/* _i 0: through copies, 1: in the memory itself. */
START_TEST(a_thread_rewrites_all)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = time(NULL) + (soak ? atoi(soak) / MAPS : 0);
	u64 n, rewrote = 0, limits = 0, retries = 0, maps = 0;
	u64 calls = (u64)test_rounds(CALLS, CALLS / 40);
	static struct hostile h;
	int ret;

	hostile_init(&h, _i);
	ck_assert_int_eq(pthread_create(&h.thread, NULL, rewrite, &h), 0);
	/* On a busy machine the thread may start late; a hole is rare. */
	for (n = 0; n < calls || __atomic_load_n(&h.stores, __ATOMIC_RELAXED) < 1000 ||
		    (retries < 3 && n < CALLS) || (soak && time(NULL) < end);
	     n++) {
		ret = one_call(&h, n);
		rewrote += ret == 1;
		limits += ret == -VMPT_E_LIMIT;
		retries += ret == -VMPT_E_RETRY;
		maps += h.maps;
	}
	__atomic_store_n(&h.stop, true, __ATOMIC_RELAXED);
	ck_assert_int_eq(pthread_join(h.thread, NULL), 0);
	ck_assert_int_eq(munmap(h.base, h.mapped), 0);
	ck_assert_msg(
		rewrote > n / 20 && limits > 20 && retries > 2 && !maps == !_i && h.stores >= 1000,
		"of %llu calls %llu rewrote, %llu met a limit, %llu a hole; %llu stores",
		(unsigned long long)n, (unsigned long long)rewrote, (unsigned long long)limits,
		(unsigned long long)retries, (unsigned long long)h.stores);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("hostile-tsc");
	TCase *tc = test_random_case(suite);

	tcase_add_loop_test(tc, a_thread_rewrites_all, 0, MAPS);
	return suite;
}
