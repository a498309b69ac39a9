// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The counts of vmpt vms. A slice counts for its owner; the next slice shows whether
 * its owner left by a VM exit; an adjacent loss counts for its owner too.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/vms/vms.h"
#include "util/array.h"

void vms_add_cr3(struct vms_row *row, u64 cr3)
{
	u32 i;

	for (i = 0; i < row->cr3s; i++)
		if (row->cr3[i] == cr3)
			return;
	if (row->cr3s < VMS_CR3S)
		row->cr3[row->cr3s++] = cr3;
	else
		row->more_cr3s = true;
}

void vms_add_tsc(struct vms_row *row, bool valid, u64 first, u64 last)
{
	if (!valid)
		return;
	if (!row->has_tsc || first < row->first_tsc)
		row->first_tsc = first;
	if (!row->has_tsc || last > row->last_tsc)
		row->last_tsc = last;
	row->has_tsc = true;
}

/*
 * The index of an owner's row, added if there is none, or a negative error. A
 * VMCS beyond the limit goes to "others".
 */
static ssize_t find_row(struct vms_rows *r, size_t stream, u8 kind, u64 vmcs)
{
	u64 hash = vmpt_mix64(vmcs ^ r->seed ^ (u64)kind << 56);
	u32 found = vmpt_hash_find(&r->by_owner, hash, i,
				   r->row[i].kind == kind && r->row[i].vmcs == vmcs);

	if (found != VMPT_HASH_NONE)
		return found;
	if (kind == VMPT_OWNER_VM && r->vmcss == VMS_ROWS_MAX)
		return find_row(r, stream, VMS_OTHERS, 0);
	if (vmpt_grow(&r->row, r->count) || vmpt_hash_add(&r->by_owner, hash, (u32)r->count))
		return -VMPT_E_NOMEM;
	r->vmcss += kind == VMPT_OWNER_VM;
	r->row[r->count] = (struct vms_row){ .kind = kind, .vmcs = vmcs, .stream = stream };
	return (ssize_t)r->count++;
}

static void add_slice(struct vms_row *row, const struct vmpt_slice *s)
{
	u32 i;

	row->returns += row->slices && row->kind != VMS_OTHERS;
	row->slices++;
	row->bytes += s->size;
	if (s->owner.kind != VMPT_OWNER_UNKNOWN) {
		row->assumed += s->owner.sure == VMPT_ASSUMED ? s->size : 0;
		row->uncertain += s->owner.sure == VMPT_UNCERTAIN ? s->size : 0;
	}
	row->unproven += row->kind == VMS_LOST && s->begin == VMPT_BEGIN_DOUBT ? s->size : 0;
	row->entries += s->begin == VMPT_BEGIN_ENTRY;
	row->overflows += s->overflows;
	row->failed_entries += s->failed_entries;
	row->enables += s->enables;
	row->disables += s->disables;
	for (i = 0; i <= VMPT_RTIT_ERRATA; i++)
		row->errata[i] += s->errata[i];
	row->concealed |= s->owner.concealed;
	vms_add_tsc(row, s->has_tsc, s->first_tsc, s->last_tsc);
	for (i = 0; i < s->cr3_count && i < VMPT_SLICE_CR3S; i++)
		vms_add_cr3(row, s->cr3[i]);
	row->more_cr3s |= s->cr3_count > VMPT_SLICE_CR3S;
}

/* Update the row of the previous slice (@prev, -1: none) by @s, whose row is @at. */
static void add_successor(struct vms_rows *r, ssize_t prev, ssize_t at, const struct vmpt_slice *s)
{
	struct vms_row *row = prev < 0 ? NULL : &r->row[prev];

	if (!row)
		return;
	row->exits += s->begin == VMPT_BEGIN_EXIT;
	/* Consecutive slices have different owners. */
	row->leaves += at != prev || row->kind == VMS_OTHERS;
	if (row->kind != VMS_LOST && r->row[at].kind == VMS_LOST)
		row->losses++;
}

/* A loss between two slices of one owner counts once for that owner. */
static void add_loss_before(struct vms_row *row, ssize_t at, ssize_t prev, bool after_loss)
{
	if (after_loss && row->kind != VMS_LOST && at != prev)
		row->losses++;
}

int vms_count(struct cli *cli, size_t i, struct vms_rows *rows)
{
	const struct vmpt_stream *stream = cli->stream[i];
	ssize_t at, prev = -1, owner = -1; /* owner: prev, losses skipped */
	bool transitions = false;
	const struct vms_ops *ops = ((const struct vms *)cli->data)->ops;
	struct cli_filter_walk *walk = NULL;
	bool begins, ends;
	u64 last_tsc = 0;
	struct vmpt_splitter *split;
	struct vmpt_slice s;
	struct vmpt_options options = cli_stream_options(cli, i);
	size_t k;
	int ret = vmpt_splitter_open(&split, stream, &options);

	if (ret)
		return ret;
	if (!i && getrandom(&rows->seed, sizeof(rows->seed), GRND_NONBLOCK) < 0)
		rows->seed = (u64)time(NULL);
	rows->first = rows->count;
	vmpt_hash_clear(&rows->by_owner);
	if (!cli_is_rtit(cli))
		ret = cli_filter_walk_open(cli, i, false, &walk);
	while (!ret && (ret = vmpt_split_next(split, &s)) > 0) {
		bool lost = cli_lose_slice(cli, stream, &s);

		if (s.has_tsc && ops->whole_tsc)
			ops->whole_tsc(&last_tsc, &s);
		transitions |= s.begin == VMPT_BEGIN_ENTRY || s.begin == VMPT_BEGIN_EXIT;
		ret = cli_filter_slice(cli, walk, &s, &begins, &ends);
		if (ret < 0)
			break;
		if (prev >= 0 && (!ret || !begins)) {
			rows->row[prev].exits += s.begin == VMPT_BEGIN_EXIT;
			rows->row[prev].leaves++;
			prev = owner = -1;
		}
		if (!ret)
			continue;
		ret = 0;
		if (!begins)
			s.begin = VMPT_BEGIN_SWITCH;
		at = find_row(rows, i, lost ? VMS_LOST : s.owner.kind,
			      !lost && s.owner.kind == VMPT_OWNER_VM ? s.owner.vmcs : 0);
		if (at < 0) {
			ret = (int)at;
			break;
		}
		add_successor(rows, prev, at, &s);
		add_loss_before(&rows->row[at], at, owner,
				prev >= 0 && rows->row[prev].kind == VMS_LOST);
		add_slice(&rows->row[at], &s);
		prev = ends ? at : -1;
		owner = !ends ? -1 : lost ? owner : at;
	}
	cli_filter_walk_close(walk);
	vmpt_splitter_close(split);
	for (k = rows->first; k < rows->count; k++)
		rows->row[k].transitions = transitions;
	if (!ret)
		cli_side_record_report(cli, i);
	return ret;
}
