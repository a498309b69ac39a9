// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * When each byte of a trace was made (model/times-format.h): a file NAME.times.CPU for each
 * processor. Bytes that leave the unit between two settings of the time were made at the first of *
 * the two; so it is enough to read the unit's byte count before each setting (clock.cc). But a TNT
 * * leaves with a later packet, and has the time of its first branch, as its CYC says (SDM * 3
 * 33.3.6.2).
 */
#include "pc.h"

#include <cstdio>
#include <string>
#include <vector>

#include "model/times-format.h"

#define BUFFER (1u << 16)

struct pc_times {
	FILE *file;
	std::string name;
	std::vector<u8> buffer;
	bool failed;
	u64 position, tsc, ctl; /* as last written to the file */
	bool tnt;		/* a TNT is pending */
	u64 tnt_tsc;		/* since then */
};

static void write(struct pc_times *t)
{
	if (t->file && !t->failed &&
	    fwrite(t->buffer.data(), 1, t->buffer.size(), t->file) != t->buffer.size())
		t->failed = true;
	t->buffer.clear();
}

static void put(struct pc_times *t, u64 v)
{
	while (v >> 7) {
		t->buffer.push_back(static_cast<u8>(v | 0x80));
		v >>= 7;
	}
	t->buffer.push_back(static_cast<u8>(v));
}

static void put_tsc(struct pc_times *t, u64 tsc)
{
	bool back = tsc < t->tsc;

	if (t->buffer.size() > BUFFER)
		write(t);
	if (tsc == t->tsc)
		return;
	put(t, TIMES_AT);
	put(t, back);
	put(t, back ? t->tsc - tsc : tsc - t->tsc);
	t->tsc = tsc;
}

static u64 position(const struct pc_cpu *pc)
{
	return pc->unit.bytes + pc->unit.used;
}

static void put_bytes(struct pc_times *t, u64 now, u64 tsc)
{
	if (now == t->position)
		return;
	put_tsc(t, tsc);
	put(t, now > t->position ? TIMES_MADE : TIMES_LOST);
	put(t, now > t->position ? now - t->position : t->position - now);
	t->position = now;
}

/* Size of the next TNT, if it is still in the unit's buffer; otherwise it is a short one. */
static u64 tnt_size(const struct pc_cpu *pc)
{
	u64 at = pc->times->position - pc->unit.bytes;

	return at < pc->unit.used && pc->unit.buffer[at] == 2 ? 8 : 1;
}

void pc_times_note(struct pc_cpu *pc)
{
	struct pc_times *t = pc->times;
	u64 now;

	if (!t)
		return;
	now = position(pc);
	/* A pending TNT comes first; in an overflow it is dropped. */
	if (t->tnt && now > t->position) {
		put_bytes(t, t->position + tnt_size(pc), t->tnt_tsc);
		t->tnt = false;
	}
	if (!pc->unit.tnt_count)
		t->tnt = false;
	put_bytes(t, now, pc->unit.now.tsc);
	if (pc->unit.tnt_count && !t->tnt) {
		t->tnt = true;
		t->tnt_tsc = pc->unit.now.tsc;
	}
	if (pc->unit.regs.ctl != t->ctl) {
		put_tsc(t, pc->unit.now.tsc);
		t->ctl = pc->unit.regs.ctl;
		put(t, TIMES_CTL);
		put(t, t->ctl);
	}
}

void pc_times_entry(struct pc_cpu *pc)
{
	struct pc_times *t = pc->times;
	const struct vmpt_unit_vmx *vmx = &pc->entry.vmx;

	if (!t)
		return;
	pc_times_note(pc);
	put_tsc(t, pc->unit.now.tsc);
	put(t, TIMES_ENTRY);
	put(t, pc->cpu->vmcsptr);
	put(t, vmx->tsc_offset);
	put(t, vmx->tsc_multiplier ? vmx->tsc_multiplier : 1ULL << 48);
}

void pc_times_exit(struct pc_cpu *pc)
{
	struct pc_times *t = pc->times;

	if (!t)
		return;
	pc_times_note(pc);
	put_tsc(t, pc->unit.now.tsc);
	put(t, TIMES_EXIT);
	put(t, pc->cpu->vmcsptr);
	put(t, pc->exit.reason & 0xffff);
}

void pc_times_start(struct pc_cpu *pc, const char *name)
{
	static const char magic[] = TIMES_MAGIC;
	struct pc_times *t;

	pc_times_stop(pc);
	/* Bytes already in the unit were made earlier. */
	t = new struct pc_times();
	t->name = std::string(name) + ".times." + std::to_string(pc->id);
	t->file = fopen((std::string(pc_folder()) + "/" + t->name).c_str(), "we");
	t->failed = !t->file;
	t->buffer.assign(magic, magic + sizeof(magic) - 1);
	t->position = position(pc);
	pc->times = t;
	pc_time_now(pc);
	put_tsc(t, pc->unit.now.tsc);
}

void pc_times_stop(struct pc_cpu *pc)
{
	struct pc_times *t = pc->times;

	if (!t)
		return;
	pc_times_note(pc);
	write(t);
	if ((t->file && fclose(t->file)) || t->failed)
		pc_log("error: %s: cannot be written", t->name.c_str());
	pc->times = nullptr;
	delete t;
}
