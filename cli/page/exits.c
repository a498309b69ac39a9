// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Exits by vCPU and reason with the distribution of their host times, and by VM the IPs that exit
 * most often. Both are bounded: rare reasons of a trace with too many become "other"; only frequent
 * IPs are kept, with a bound on the error of their counts.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/page/parts.h"
#include "cli/page/page.h"
#include "util/array.h"

#define MAX_HISTS 8192
#define IPS	  768 /* of a VM */
#define IPS_SHOWN 200
#define IPS_ALL	  4000 /* of all VMs together, shown */

u32 page_bin(u64 ticks)
{
	u32 top;

	if (ticks < 8)
		return (u32)ticks;
	top = 63 - (u32)__builtin_clzll(ticks);
	return (top - 2) * 8 + (u32)(ticks >> (top - 3) & 7);
}

u8 page_exit_reason(struct page_exits *exits, const struct vmpt_exit *exit)
{
	struct page_reason *reason;
	u32 i;

	for (i = 0; i < exits->reasons; i++) {
		reason = &exits->reason[i];
		if (reason->reason == exit->reason && reason->source == exit->source &&
		    reason->halted == exit->halted)
			return (u8)i;
	}
	if (exits->reasons == PAGE_REASONS - 1)
		return PAGE_REASONS - 1;
	exits->reason[exits->reasons++] = (struct page_reason){ .reason = exit->reason,
								.source = exit->source,
								.halted = exit->halted };
	return (u8)i;
}

static struct page_hist *hist_of(struct page_exits *exits, u32 line, u8 reason)
{
	struct page_hist **of;

	if (vmpt_reserve_zeroed(&exits->hist, &exits->lines, line + 1ULL))
		return NULL;
	of = exits->hist[line];
	if (!of[reason] && exits->hists >= MAX_HISTS)
		reason = PAGE_REASONS - 1;
	if (!of[reason]) {
		of[reason] = calloc(1, sizeof(*of[reason]));
		exits->hists += of[reason] != NULL;
	}
	return of[reason];
}

static struct page_ips *ips_of(struct page_exits *exits, u32 vm)
{
	struct page_ips *ips;

	if (vmpt_reserve_zeroed(&exits->ips, &exits->vms, vm + 1ULL))
		return NULL;
	ips = exits->ips;
	if (!ips[vm].entry)
		ips[vm].entry = calloc(IPS, sizeof(*ips[vm].entry));
	return ips[vm].entry ? &ips[vm] : NULL;
}

static int by_count(const void *va, const void *vb)
{
	const struct page_ip *a = va, *b = vb;

	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return (a->ip > b->ip) - (a->ip < b->ip);
}

/*
 * Too many: drop the rarer half, and subtract the highest count among them from all others.
 * So a count is too low by at most the sum of all subtractions, and each call drops at least
 * half of the entries, so the amortized work is small.
 */
static int thin(struct page_ips *ips)
{
	struct page_ip *entry = ips->entry;
	u64 taken;
	u32 i;

	qsort(entry, ips->used, sizeof(*entry), by_count);
	taken = entry[ips->used / 2].count;
	ips->missed += taken;
	vmpt_hash_clear(&ips->hash);
	for (i = 0; i < ips->used && entry[i].count > taken; i++) {
		entry[i].count -= taken;
		if (vmpt_hash_add(&ips->hash, vmpt_mix64(entry[i].ip), i))
			return -1;
	}
	ips->used = i;
	return 0;
}

static int add_ip(struct page_exits *exits, u32 vm, u64 ip, u8 reason, u64 ticks)
{
	struct page_ips *ips = ips_of(exits, vm);
	struct page_ip *entry;
	u32 n;

	if (!ips)
		return -1;
	ips->total++;
	n = vmpt_hash_find(&ips->hash, vmpt_mix64(ip), i, ips->entry[i].ip == ip);
	if (n == VMPT_HASH_NONE) {
		if (ips->used == IPS && thin(ips))
			return -1;
		n = ips->used;
		if (vmpt_hash_add(&ips->hash, vmpt_mix64(ip), n))
			return -1;
		ips->entry[ips->used++] = (struct page_ip){ .ip = ip };
	}
	entry = &ips->entry[n];
	entry->count++;
	entry->ticks += ticks;
	if (!entry->votes)
		entry->reason = reason;
	if (entry->reason == reason)
		entry->votes++;
	else
		entry->votes--;
	return 0;
}

int page_exit_add(struct page_exits *exits, u32 line, u32 vm, const struct vmpt_exit *exit,
		  u8 reason, bool timed, u64 ticks, u64 waited)
{
	struct page_hist *hist = hist_of(exits, line, reason);
	u32 bin = page_bin(ticks);

	if (!hist)
		return -1;
	hist->count++;
	if (timed) {
		hist->timed++;
		hist->ticks += ticks;
		hist->waited += waited;
		hist->bin[bin]++;
		if (ticks > hist->max)
			hist->max = ticks;
	}
	if (exit->has_ip)
		return add_ip(exits, vm, exit->ip, reason, timed ? ticks : 0);
	return 0;
}

void page_exits_put(const struct page_exits *exits, struct page_bytes *bytes)
{
	size_t i;
	u32 bin, last, filled;

	page_put(bytes, exits->hists);
	for (i = 0; i < exits->lines * PAGE_REASONS; i++) {
		const struct page_hist *hist = exits->hist[i / PAGE_REASONS][i % PAGE_REASONS];

		if (!hist)
			continue;
		page_put(bytes, i / PAGE_REASONS);
		page_put(bytes, i % PAGE_REASONS);
		page_put(bytes, hist->count);
		page_put(bytes, hist->timed);
		page_put(bytes, hist->ticks);
		page_put(bytes, hist->waited);
		page_put(bytes, hist->max);
		for (bin = filled = 0; bin < PAGE_BINS; bin++)
			filled += hist->bin[bin] != 0;
		page_put(bytes, filled);
		for (bin = last = 0; bin < PAGE_BINS; bin++) {
			if (!hist->bin[bin])
				continue;
			page_put(bytes, bin - last);
			page_put(bytes, hist->bin[bin]);
			last = bin;
		}
	}
}

static json_t *reasons_json(const struct page_exits *exits, const struct page_options *options)
{
	json_t *all = json_array();
	u32 i;

	for (i = 0; i < exits->reasons; i++) {
		const struct page_reason *reason = &exits->reason[i];
		const struct vmpt_exit exit = { .reason = reason->reason,
						.source = reason->source };
		char buf[32];
		const char *name = buf;

		snprintf(buf, sizeof(buf), "reason %u", reason->reason);
		if (options->reason_name)
			name = options->reason_name(&exit, buf);
		json_array_append_new(all, json_pack("{s:s, s:i, s:i, s:b}", "name", name, "number",
						     reason->reason, "source", reason->source,
						     "halted", reason->halted));
	}
	return all;
}

static json_t *ips_json(struct page_exits *exits, u32 vm, const struct page_options *options)
{
	const u32 share = (u32)(IPS_ALL / exits->vms), most = share < IPS_SHOWN ? share : IPS_SHOWN;
	struct page_ips *ips = &exits->ips[vm];
	json_t *list = json_array(), *one;
	char text[256];
	u32 i;

	/* Sorting invalidates the hash: nothing is added after the end. */
	qsort(ips->entry, ips->used, sizeof(*ips->entry), by_count);
	for (i = 0; i < ips->used && (i < most || !i); i++) {
		const struct page_ip *entry = &ips->entry[i];

		snprintf(text, sizeof(text), "0x%llx", (unsigned long long)entry->ip);
		one = json_pack("{s:s, s:I, s:I, s:i}", "ip", text, "count",
				(json_int_t)entry->count, "ticks", (json_int_t)entry->ticks,
				"reason", entry->reason);
		if (options->symbol &&
		    options->symbol(options->opaque, vm, entry->ip, text, sizeof(text)))
			json_object_set_new(one, "symbol", page_string(text));
		json_array_append_new(list, one);
	}
	return json_pack("{s:I, s:I, s:I, s:o}", "vm", (json_int_t)vm, "missed",
			 (json_int_t)ips->missed, "total", (json_int_t)ips->total, "list", list);
}

int page_exits_json(struct page_exits *exits, const struct page_options *options, json_t *meta)
{
	json_t *all = json_array();
	size_t vm;
	int ret = 0;

	for (vm = 0; vm < exits->vms; vm++)
		if (exits->ips[vm].entry)
			ret |= json_array_append_new(all, ips_json(exits, (u32)vm, options));
	ret |= json_object_set_new(meta, "ips", all);
	ret |= json_object_set_new(meta, "reasons", reasons_json(exits, options));
	return ret;
}

void page_exits_free(struct page_exits *exits)
{
	size_t i;

	for (i = 0; i < exits->lines * PAGE_REASONS; i++)
		free(exits->hist[i / PAGE_REASONS][i % PAGE_REASONS]);
	free(exits->hist);
	for (i = 0; i < exits->vms; i++) {
		free(exits->ips[i].entry);
		vmpt_hash_free(&exits->ips[i].hash);
	}
	free(exits->ips);
}
