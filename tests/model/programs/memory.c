// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <check.h>
#include <stdlib.h>

#include "arch/topa.h"
#include "tests/model/programs/memory.h"
#include "util/array.h"

/* Regions per table; each table is linked to the next; regions go from high to low addresses. */
#define TABLE_REGIONS 5u
#define TABLES	      40u
#define REGIONS	      (TABLE_REGIONS * TABLES)
#define INT_EVERY     3u
#define LAST	      (PROGRAM_MEMORY - 4096u)
#define SPARE	      16384u

static u64 region_at(unsigned int n)
{
	return LAST - 4096ULL * n;
}

static u64 table_at(unsigned int n)
{
	return 0x1000ULL * (1 + n);
}

/* ---- callbacks ---- */

static int sink_write(void *opaque, const u8 *bytes, size_t len)
{
	struct program_memory *m = opaque;
	struct execution *done = m->done;

	if (!m->refuse && once_in(&m->rng, m->refuse_every))
		m->refuse = 1 + (unsigned int)below(&m->rng, 60);
	if (m->refuse) {
		m->refuse--;
		return -1;
	}
	if (vmpt_reserve(&done->trace, &done->max, done->size + len))
		ck_abort_msg("no memory");
	memcpy(done->trace + done->size, bytes, len);
	done->size += len;
	return 0;
}

static int read_entry(void *opaque, u64 pa, u64 *entry)
{
	struct program_memory *m = opaque;

	if (pa > PROGRAM_MEMORY - 8)
		return VMPT_OUTPUT_FAULT;
	*entry = vmpt_load64(m->bytes + pa);
	return 0;
}

static int memory_write(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct program_memory *m = opaque;

	if (pa > PROGRAM_MEMORY || len > PROGRAM_MEMORY - pa)
		return VMPT_OUTPUT_FAULT;
	memcpy(m->bytes + pa, bytes, len);
	return 0;
}

static void pmi(void *opaque)
{
	struct program_memory *m = opaque;

	m->pmis++;
}

/* ---- setup ---- */

/* All features of leaf 14H except the transport subsystem. */
static void cpuid_all(struct vmpt_pt_cpuid *cpuid)
{
	unsigned int cap;

	memset(cpuid, 0, sizeof(*cpuid));
	cpuid->present = 1;
	cpuid->maxphyaddr = 46;
	cpuid->linear_bits = 48;
	for (cap = 0; cap < VMPT_CAPS; cap++)
		vmpt_pt_cap_set(cpuid, cap, ~0u);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_MAX_SUBLEAF, 1);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_FABRIC, 0);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_RANGES, 4);
}

void program_memory_init(struct program_memory *m, const struct program_settings *set,
			 struct vmpt_unit *unit, struct execution *done)
{
	struct vmpt_unit_config config = { .options = set->options, .pmi = pmi, .opaque = m };

	m->set = set;
	m->unit = unit;
	m->done = done;
	m->rng.state = set->ctl ^ set->steps;
	m->refuse_every = set->output == OUTPUT_SINK ? set->refusals : 0;
	m->sink = (struct vmpt_sink){ .write = sink_write, .opaque = m };
	m->memory = (struct vmpt_output_memory){ .read_entry = read_entry,
						 .write = memory_write,
						 .opaque = m };
	cpuid_all(&config.cpuid);
	if (set->output == OUTPUT_SINK) {
		config.sink = &m->sink;
	} else {
		m->bytes = calloc(1, PROGRAM_MEMORY);
		ck_assert_ptr_nonnull(m->bytes);
		config.memory = &m->memory;
	}
	ck_assert_int_eq(vmpt_unit_init(unit, &config), 0);
}

static void fill_tables(struct program_memory *m)
{
	unsigned int t, i, n = 0;
	u64 entry;

	for (t = 0; t < TABLES; t++) {
		for (i = 0; i < TABLE_REGIONS; i++, n++) {
			entry = region_at(n) | (n % INT_EVERY ? 0 : VMPT_TOPA_INT);
			memcpy(m->bytes + table_at(t) + 8ULL * i, &entry, 8);
		}
		entry = table_at((t + 1) % TABLES) | VMPT_TOPA_END;
		memcpy(m->bytes + table_at(t) + 8ULL * TABLE_REGIONS, &entry, 8);
	}
}

void program_memory_msrs(struct program_memory *m)
{
	u64 base = 0, mask = PROGRAM_MEMORY - 1;

	if (m->set->output == OUTPUT_TOPA) {
		fill_tables(m);
		base = table_at(0);
		mask = VMPT_LOWER_MASK;
	}
	if (m->set->output != OUTPUT_SINK) {
		ck_assert_int_eq(vmpt_unit_wrmsr(m->unit, VMPT_MSR_RTIT_OUTPUT_BASE, base, 0, 0),
				 0);
		ck_assert_int_eq(
			vmpt_unit_wrmsr(m->unit, VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, mask, 0, 0), 0);
	}
}

bool program_memory_full(const struct program_memory *m)
{
	switch (m->set->output) {
	case OUTPUT_SINGLE:
		return m->unit->bytes > PROGRAM_MEMORY - SPARE;
	case OUTPUT_TOPA:
		return m->unit->bytes > REGIONS * 4096u - SPARE;
	default:
		return false;
	}
}

/* ---- the trace ---- */

void program_memory_collect(struct program_memory *m)
{
	const struct vmpt_pt_regs *regs = &m->unit->regs;
	size_t size = (size_t)m->unit->bytes;
	unsigned int n;

	if (m->set->output == OUTPUT_SINGLE) {
		ck_assert_uint_eq(vmpt_pt_output_offset(regs), size);
		sink_write(m, m->bytes, size);
	} else if (m->set->output == OUTPUT_TOPA) {
		ck_assert_uint_eq(regs->output_base,
				  table_at((unsigned int)(size / 4096) / TABLE_REGIONS));
		ck_assert_uint_eq(vmpt_pt_topa_index(regs), size / 4096 % TABLE_REGIONS);
		ck_assert_uint_eq(vmpt_pt_output_offset(regs), size % 4096);
		for (n = 0; n < size / 4096; n++)
			sink_write(m, m->bytes + region_at(n), 4096);
		ck_assert_uint_eq(m->pmis, (n + INT_EVERY - 1) / INT_EVERY);
		sink_write(m, m->bytes + region_at(n), size % 4096);
	}
	ck_assert_uint_eq(m->done->size, size);
	ck_assert_uint_eq(regs->status & VMPT_STATUS_ERROR, 0);
	free(m->bytes);
}
