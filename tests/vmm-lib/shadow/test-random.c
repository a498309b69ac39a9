// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmm-lib/shadow against a guest that needs no shadow: the same trace goes through the shadow of
 * one guest and directly into the memory of its twin, over random tables, exits, moves of memory,
 * inserted packets and edits. Positions, STATUS and PMIs are the same at each exit, and the memory
 * at the end.
 */
#include <stdlib.h>
#include <time.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/shadow-rig.h"

#define PAGES	   1024u
#define TABLES	   8u
#define FIRST_DATA 16u
#define CHUNK	   (300u << 9)

struct twin {
	struct guest guest;
	struct vmpt_pt_regs regs;
	struct vmpt_output out;
	struct vmpt_output_memory memory;
	u32 ints; /* of them were seen */
};

struct run {
	struct rig rig;
	struct twin twin;
	struct test_rng rng;
	u64 seed;
	u32 most; /* the largest region: log2 of pages */
	bool pmi; /* of a packet that was inserted */
	bool holes;
	bool calm; /* long tables without STOP or errors: many pages of shadow */
	u32 chunk; /* most bytes at a time */
};

static u32 pick(struct run *run, u32 n)
{
	return (u32)(test_random(&run->rng) % n);
}

static void wrong(const struct run *run, const char *what)
{
	const struct vmpt_pt_regs *a = &run->rig.vcpu.regs, *b = &run->twin.regs;

	ck_abort_msg("seed %#llx: %s: shadow %#llx %#llx %#llx, direct %#llx %#llx %#llx, end %u",
		     (unsigned long long)run->seed, what, (unsigned long long)a->output_base,
		     (unsigned long long)a->output_mask_ptrs, (unsigned long long)a->status,
		     (unsigned long long)b->output_base, (unsigned long long)b->output_mask_ptrs,
		     (unsigned long long)b->status, run->rig.vcpu.shadow.end);
}

static int twin_read(void *opaque, u64 pa, u64 *entry)
{
	return guest_read(opaque, pa, entry, sizeof(*entry));
}

static int twin_write(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct guest *g = opaque;

	/* the twin's frames are in order; one page at a time (arch/output.h) */
	if (pa + len > (u64)g->pages * GUEST_PAGE || g->kind[pa / GUEST_PAGE])
		return VMPT_OUTPUT_FAULT;
	memcpy(g->host + pa, bytes, len);
	return 0;
}

/* Missing memory becomes available: all of it, from any page on. */
static void back(struct guest *g)
{
	u32 page;

	for (page = 0; page < g->pages; page++)
		if (g->kind[page] == VMPT_MEM_UNBACKED)
			g->kind[page] = VMPT_MEM_OK;
}

/* Direct output into the rig's own guest, as for an inserted packet. */
static int insert_write(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	int kind = guest_write(opaque, pa, bytes, len);

	if (kind == VMPT_MEM_UNBACKED) {
		back(opaque);
		kind = guest_write(opaque, pa, bytes, len);
	}
	return kind ? VMPT_OUTPUT_FAULT : 0;
}

static void put_both(struct run *run, u64 gpa, u64 value)
{
	guest_put64(&run->rig.guest, gpa, value);
	guest_put64(&run->twin.guest, gpa, value);
}

/* A region of a random size, aligned, outside the tables. */
static u64 make_region(struct run *run)
{
	u32 order = pick(run, run->most + 1), count = PAGES >> order, first = FIRST_DATA >> order;

	if (!first)
		first = 1;
	return (u64)(first + pick(run, count - first)) << (order + 12) |
	       (u64)order << VMPT_TOPA_SIZE_SHIFT;
}

static u64 make_bad(struct run *run)
{
	switch (pick(run, 5)) {
	case 0:
		return make_region(run) | 1ULL << 1; /* reserved */
	case 1:
		return 0x5000 | 3ULL << VMPT_TOPA_SIZE_SHIFT; /* not aligned */
	case 2:
		return make_region(run) | 1ULL << 47; /* above MAXPHYADDR */
	case 3:
		return 0x1000 | VMPT_TOPA_END | VMPT_TOPA_STOP;
	default:
		return test_random(&run->rng) | 1ULL << 63;
	}
}

static void make_table(struct run *run, u32 table)
{
	u32 n = pick(run, 8) && !run->calm ? 1 + pick(run, 12) : 1 + pick(run, 510), i;
	u64 base = (u64)table * GUEST_PAGE, entry;

	for (i = 0; i < n; i++) {
		entry = make_region(run);
		if (!pick(run, 6))
			entry |= VMPT_TOPA_INT;
		if (!pick(run, 40) && !run->calm)
			entry |= VMPT_TOPA_STOP;
		if (!pick(run, 150) && !run->calm)
			entry = make_bad(run);
		put_both(run, base + 8ULL * i, entry);
	}
	entry = (u64)pick(run, TABLES) * GUEST_PAGE | VMPT_TOPA_END;
	if (!pick(run, 10) && !run->calm)
		entry = make_bad(run);
	put_both(run, base + 8ULL * n, entry);
	if (!pick(run, 20) && !run->calm)
		put_both(run, base, (u64)pick(run, TABLES) * GUEST_PAGE | VMPT_TOPA_END);
}

/* A position that is usually in a region. */
static void make_position(struct run *run)
{
	struct vmpt_pt_regs *regs = &run->rig.vcpu.regs;
	u32 table = pick(run, TABLES), index = pick(run, 4) ? 0 : pick(run, 6), order;
	u64 entry = guest_get64(&run->twin.guest, (u64)table * GUEST_PAGE + 8ULL * index);

	if (!entry) /* beyond the table's end: a region where the tables are */
		index = 0;
	if (!pick(run, 5)) {
		u32 mask;

		order = run->rig.vcpu.host_rules.single_range ? pick(run, 16) : 5 + pick(run, 11);
		mask = (128u << order) - 1;
		rig_range(&run->rig, (0x200000 + test_random(&run->rng) % 0x200000) & ~(u64)mask,
			  mask, (u32)test_random(&run->rng) & mask);
	} else {
		order = entry >> VMPT_TOPA_SIZE_SHIFT & 0xf;
		rig_at(&run->rig, (u64)table * GUEST_PAGE, index,
		       pick(run, 2) ? 0 : pick(run, 4096u << order));
		if (!pick(run, 50))
			rig_at(&run->rig, (u64)table * GUEST_PAGE + 128, index, 0);
		if (!pick(run, 50))
			rig_at(&run->rig, (u64)table * GUEST_PAGE, index, 4096u << order);
	}
	regs->status = 0;
	run->twin.regs = *regs;
}

/*
 * Holes: a device (both guests: an error), and pages that the rig's VMM provides only on request
 * (the twin has them).
 */
static void make_holes(struct run *run)
{
	u32 n, page;

	run->rig.vcpu.on_mem[VMPT_MEM_UNBACKED] = VMPT_ON_MEM_RETRY;
	run->holes = !pick(run, 4) && !run->calm;
	for (n = run->holes ? pick(run, 8) : 0; n; n--) {
		page = FIRST_DATA + pick(run, PAGES - FIRST_DATA);
		run->rig.guest.kind[page] = run->twin.guest.kind[page] = VMPT_MEM_MMIO;
	}
}

/* Pages become missing (again), as after swapping out. */
static void make_late(struct run *run)
{
	u32 n, page;

	for (n = pick(run, 30); n; n--) {
		page = FIRST_DATA + pick(run, PAGES - FIRST_DATA);
		if (run->rig.guest.kind[page])
			continue;
		if (vmpt_shadow_invalidate(&run->rig.vcpu, (u64)page * GUEST_PAGE, GUEST_PAGE) &&
		    run->rig.entered && rig_exit(&run->rig))
			wrong(run, "exit");
		run->rig.guest.kind[page] = VMPT_MEM_UNBACKED;
	}
}

static void make_run(struct run *run, u64 seed)
{
	struct twin *twin = &run->twin;
	u32 i;

	memset(run, 0, sizeof(*run));
	run->seed = run->rng.state = seed;
	run->calm = !pick(run, 4);
	run->most = pick(run, run->calm ? 3 : 9);
	run->chunk = 300u << pick(run, 10);
	rig_init(&run->rig, PAGES, 1 + pick(run, 3));
	run->rig.vcpu.host_rules.single_range = pick(run, 8) > 0;
	guest_init(&twin->guest, PAGES);
	twin->memory.read_entry = twin_read;
	twin->memory.write = twin_write;
	twin->memory.opaque = &twin->guest;
	if (run->calm || !pick(run, 3))
		guest_shuffle(&run->rig.guest, test_random(&run->rng));
	for (i = 0; i < TABLES; i++)
		make_table(run, i);
	make_position(run);
	make_holes(run);
	vmpt_output_init(&twin->out, &run->rig.rules, &twin->regs, &twin->memory);
}

static void enter(struct run *run)
{
	const struct vmpt_shadow *shadow = &run->rig.vcpu.shadow;

	int err = 0;

	if (!run->rig.entered)
		err = rig_enter(&run->rig);
	if (err == -VMPT_E_RETRY) {
		back(&run->rig.guest);
		err = rig_enter(&run->rig);
	}
	if (err)
		wrong(run, "entry");
	if (shadow->reads > VMPT_SHADOW_READS ||
	    shadow->translations > 3ULL * run->rig.memory.pages * VMPT_SHADOW_PER_PAGE / 2)
		wrong(run, "work is not bounded");
}

static void twin_trace(struct run *run, const u8 *bytes, size_t len)
{
	size_t done;

	if (vmpt_output_write(&run->twin.out, bytes, len, &done))
		wrong(run, "twin");
}

/* Leave the guest; after our own STOP once more, so that the next event takes effect. */
static void leave(struct run *run)
{
	const u64 watched = VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED;
	struct twin *twin = &run->twin;
	struct rig *rig = &run->rig;
	int n;

	for (n = 0; n < 2; n++) {
		if (rig->entered && rig_exit(rig))
			wrong(run, "exit");
		if (n)
			break;
		enter(run);
	}
	if (vmpt_output_load(&twin->out))
		wrong(run, "twin");
	/* The shadow hits a hole when it becomes current, the twin with the first byte to it. */
	if (rig->vcpu.regs.status & VMPT_STATUS_ERROR && rig->vcpu.output_why == VMPT_OUTPUT_MEMORY)
		twin_trace(run, (const u8[]){ 0 }, 1);
	if ((rig->vcpu.regs.status ^ twin->regs.status) & watched)
		wrong(run, "STATUS");
	if (rig->vcpu.regs.output_base != twin->regs.output_base ||
	    rig->vcpu.regs.output_mask_ptrs != twin->regs.output_mask_ptrs)
		wrong(run, "position");
	if ((rig->pmi || run->pmi) != (twin->out.ints != twin->ints))
		wrong(run, "PMI");
	if (rig->strays)
		wrong(run, "an access outside the guest");
	rig->pmi = run->pmi = false;
	twin->ints = twin->out.ints;
}

/* Bytes of the guest; those that our own STOP loses are made again, as if they had come later. */
static void trace(struct run *run)
{
	size_t len = 1 + pick(run, pick(run, 4) ? 300 : run->chunk), i;
	struct rig *rig = &run->rig;
	static u8 bytes[CHUNK];
	u64 lost;

	for (i = 0; i < len; i += 8) {
		u64 v = test_random(&run->rng);

		memcpy(bytes + i, &v, len - i < 8 ? len - i : 8);
	}
	for (;;) {
		enter(run);
		lost = rig_trace(rig, bytes, len);
		if (!lost || !(rig->hw.status & VMPT_STATUS_STOPPED))
			break;
		if (rig_exit(rig))
			wrong(run, "exit");
		if (rig->vcpu.regs.status & VMPT_STATUS_STOPPED)
			break;
		if (!rig->vcpu.force_psb || !(rig->vcpu.events & VMPT_EVENT_LOST))
			wrong(run, "our own STOP is not reported");
		twin_trace(run, bytes, len - lost);
		memmove(bytes, bytes + len - lost, lost);
		len = lost;
	}
	twin_trace(run, bytes, len);
}

/* Move two pages of the guest to other frames, with the notification of an MMU notifier. */
static void move_pages(struct run *run)
{
	struct guest *g = &run->rig.guest;
	u32 a = pick(run, PAGES), b = pick(run, PAGES), frame;
	u8 page[GUEST_PAGE], *at, *bt;
	bool out = vmpt_shadow_invalidate(&run->rig.vcpu, (u64)a * GUEST_PAGE, GUEST_PAGE);

	out |= vmpt_shadow_invalidate(&run->rig.vcpu, (u64)b * GUEST_PAGE, GUEST_PAGE);
	if (out && run->rig.entered && rig_exit(&run->rig))
		wrong(run, "exit");
	at = g->host + (size_t)g->frame[a] * GUEST_PAGE;
	bt = g->host + (size_t)g->frame[b] * GUEST_PAGE;
	memcpy(page, at, GUEST_PAGE);
	memmove(at, bt, GUEST_PAGE);
	memcpy(bt, page, GUEST_PAGE);
	frame = g->frame[a];
	g->frame[a] = g->frame[b];
	g->frame[b] = frame;
}

/* A PIP that the VMM inserts. */
static void insert(struct run *run)
{
	struct vmpt_output_memory memory = { twin_read, insert_write, &run->rig.guest };
	static const u8 pip[8] = { 0x02, 0x43, 1, 2, 3, 4, 5, 6 };
	struct vmpt_output out;
	size_t done;

	leave(run);
	vmpt_output_init(&out, &run->rig.rules, &run->rig.vcpu.regs, &memory);
	if (vmpt_output_write(&out, pip, sizeof(pip), &done))
		wrong(run, "insertion");
	run->pmi |= out.ints > 0;
	twin_trace(run, pip, sizeof(pip));
}

/* The guest turns tracing off, changes tables or its position, and turns it on. */
static void reconfigure(struct run *run)
{
	int err;

	leave(run);
	if (pick(run, 2))
		make_table(run, pick(run, TABLES));
	if (pick(run, 2)) {
		make_position(run);
	} else {
		run->rig.vcpu.regs.status = 0;
		run->twin.regs.status = 0;
	}
	vmpt_output_unload(&run->twin.out);
	err = vmpt_shadow_build(&run->rig.vcpu);
	if (err && err != -VMPT_E_RETRY) /* then the entry is retried */
		wrong(run, "build");
}

static void step(struct run *run)
{
	const struct rig *rig = &run->rig;

	switch (pick(run, 64)) {
	case 0:
		if (!run->calm || !pick(run, 8))
			reconfigure(run);
		break;
	case 1:
	case 2:
		insert(run);
		break;
	case 3:
	case 4:
	case 5:
		move_pages(run);
		break;
	case 6:
		leave(run);
		break;
	case 7:
		if (run->holes)
			make_late(run);
		else
			leave(run);
		break;
	default:
		trace(run);
		if (rig->out.events & VMPT_OUTPUT_INT && pick(run, 4))
			leave(run);
		break;
	}
	/* A guest that is stopped reacts in time. */
	if (rig->hw.status & (VMPT_STATUS_STOPPED | VMPT_STATUS_ERROR) && !pick(run, 4)) {
		leave(run);
		if (rig->vcpu.regs.status & (VMPT_STATUS_STOPPED | VMPT_STATUS_ERROR))
			reconfigure(run);
	}
}

static void check_memory(struct run *run)
{
	struct guest *g = &run->rig.guest;
	u32 page;

	for (page = 0; page < PAGES; page++)
		if (memcmp(g->host + (size_t)g->frame[page] * GUEST_PAGE,
			   run->twin.guest.host + (size_t)page * GUEST_PAGE, GUEST_PAGE)) {
			wrong(run, "memory");
		}
}

static void one_run(u64 seed, u32 steps)
{
	static struct run run;

	make_run(&run, seed);
	while (steps--)
		step(&run);
	leave(&run);
	check_memory(&run);
	guest_free(&run.twin.guest);
	rig_free(&run.rig);
}

START_TEST(same_as_direct)
{
	const char *soak = getenv("VMPT_SOAK");
	time_t end = soak ? time(NULL) + atoi(soak) : 0;
	u64 n, runs = (u64)test_rounds(300, 40);

	for (n = 0; n < runs || time(NULL) < end; n++)
		one_run(0x5ad0 + n, 1000);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("shadow-random");
	TCase *tcase = test_random_case(suite);

	tcase_add_test(tcase, same_as_direct);
	return suite;
}
