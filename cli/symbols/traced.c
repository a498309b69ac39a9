// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The code of a trace: images of --code and of the recording, and whether they fit; see traced.h.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/symbols/traced.h"
#include "util/array.h"

/* ---- images ---- */

static int add(struct cli *cli, struct traced *t, struct traced_image *im,
	       const struct vmpt_owner *owner)
{
	im->used = true;
	if (owner && vmpt_grow(&im->owner, im->owners))
		return cli_no_memory(cli);
	if (owner)
		im->owner[im->owners++] = *owner;
	return vmpt_code_add(t->code, owner, NULL, im->image) ? cli_no_memory(cli) : CLI_OK;
}

/* For each VMCS of the VM: by its names, else VM is a VMCS as tables show it, or "host". */
static int add_for_vm(struct cli *cli, struct traced *t, const struct cli_vm_names *names,
		      struct traced_image *im)
{
	struct vmpt_owner owner = { .kind = VMPT_OWNER_VM };
	const char *vm = im->given->vm;
	char *end;
	size_t i;
	int code = CLI_OK;

	for (i = 0; i < names->count && !code; i++) {
		const struct cli_vm_name *n = &names->name[i];

		owner.vmcs = n->vmcs;
		if (n->vm && !strcmp(n->vm, vm) && (!i || n[-1].vmcs != n->vmcs || !im->used))
			code = add(cli, t, im, &owner);
	}
	if (code || im->used)
		return code;
	owner.vmcs = strtoull(vm, &end, 16);
	if (!strcmp(vm, "host"))
		owner = (struct vmpt_owner){ .kind = VMPT_OWNER_HOST };
	else if (!*vm || *end)
		return CLI_OK;
	return add(cli, t, im, &owner);
}

static int open_image(struct cli *cli, struct traced *t, const struct cli_vm_names *names, size_t i)
{
	const struct code_given *g = &t->files.given[i];
	struct traced_image *im = &t->image[i];
	int code = code_image_open(cli, g, t->o.paging, &im->image);

	if (code)
		return code;
	im->given = g;
	t->images = i + 1;
	code = g->vm ? add_for_vm(cli, t, names, im) : add(cli, t, im, NULL);
	if (!code && !im->used) {
		char name[CLI_WHO];

		cli_safe_name(g->vm, name);
		cli_warn(cli, "%s: no VM of the trace has the name %s: it is not used", g->path,
			 name);
	}
	return code;
}

static int open_images(struct cli *cli, struct traced *t, bool named)
{
	struct cli_vm_names names = { 0 };
	int code = named ? cli_vm_names_open(cli, &t->clocks, &names) : CLI_OK;
	size_t i;

	if (!code)
		code = code_sources_open(cli, &t->o.source, &t->files);
	if (!code && vmpt_code_new(&t->code))
		code = cli_no_memory(cli);
	if (!code && t->files.count) {
		t->image = calloc(t->files.count, sizeof(*t->image));
		code = t->image ? CLI_OK : cli_no_memory(cli);
	}
	for (i = 0; i < t->files.count && !code; i++)
		code = open_image(cli, t, &names, i);
	cli_vm_names_close(&names);
	return code;
}

int traced_open(struct cli *cli, struct traced *t)
{
	int code;

	if (cli_is_rtit(cli)) {
		cli_error(cli, "%s: the flow of RTIT is not followed", cli->file[0]);
		return CLI_FAILED;
	}
	code = cli_filter_check(cli, 0, NULL);
	if (code)
		return code;
	/* The clocks take longer than the flow without blocks. */
	if (t->no_times && !cli_filter_clocks(cli) && !cli_vm_names_any(cli)) {
		code = cli_filter_open(cli, NULL, NULL);
		return code ? code : open_images(cli, t, false);
	}
	code = cli_clocks_open(cli, &t->clocks);
	if (!code)
		code = cli_when_open(cli, &t->clocks, cli_when_clock(cli), &t->when);
	if (!code)
		code = cli_filter_open(cli, &t->clocks, &t->when);
	if (!code)
		code = open_images(cli, t, true);
	t->timed = !code && vmpt_clocks_base(t->clocks.clocks) != VMPT_BASE_NONE;
	return code;
}

int traced_names_open(struct cli *cli, struct traced *t)
{
	int code = code_names_open(cli, &t->o.symbols, &t->names);
	size_t i;

	if (!code)
		code = code_names_by_code(cli, &t->names, t->code);
	if (!code)
		code = code_names_add_host(cli, &t->names, t->little ? NULL : t->clocks.clocks);
	if (!code && t->o.lines)
		code = names_lines_open(cli, &t->names);
	for (i = 0; i < t->images && !code; i++)
		if (t->image[i].used)
			code = code_names_add_image(cli, &t->names, t->image[i].given,
						    t->image[i].image);
	return code;
}

void traced_close(struct traced *t)
{
	code_names_close(&t->names);
	vmpt_code_free(t->code);
	while (t->images) {
		struct traced_image *im = &t->image[--t->images];

		vmpt_image_close(im->image);
		free(im->owner);
	}
	free(t->image);
	code_files_close(&t->files);
	cli_when_close(&t->when);
	cli_clocks_close(&t->clocks);
}

/* ---- what the flow meets ---- */

bool traced_wanted(struct cli *cli, const struct vmpt_space *space)
{
	const bool wanted = cli_filter_vmcs(cli, &space->owner) &&
			    cli_filter_cr3(cli, !space->no_cr3, space->cr3);

	cli_filter(cli)->seen |= wanted;
	return wanted;
}

void traced_add_counts(struct vmpt_flow_counts *to, const struct vmpt_flow_counts *from)
{
	unsigned int i;

	to->instructions += from->instructions;
	to->branches += from->branches;
	to->calls += from->calls;
	for (i = 0; i < VMPT_FLOW_REASONS; i++)
		to->gaps[i] += from->gaps[i];
}

void traced_note_gap(struct traced *t, struct vmpt_flow *flow, const struct vmpt_flow_batch *b,
		     size_t i)
{
	struct traced_gap *g = &t->gap[b->reason];

	if (g->seen)
		return;
	*g = (struct traced_gap){ .seen = true, .stream = i, .offset = b->offset, .ip = b->ip };
	if (b->space < vmpt_flow_spaces(flow))
		vmpt_flow_space(flow, b->space, &g->space, NULL);
}

static bool is_of(const struct traced_image *im, const struct vmpt_owner *owner)
{
	size_t i;

	for (i = 0; i < im->owners; i++)
		if (vmpt_owner_same(&im->owner[i], owner))
			return true;
	return false;
}

void traced_note_owner(struct traced *t, const struct vmpt_owner *owner)
{
	size_t i;

	for (i = 0; i < t->images; i++)
		t->image[i].traced |= is_of(&t->image[i], owner);
}

void traced_note(struct traced *t, struct vmpt_flow *flow)
{
	const u32 n = vmpt_flow_spaces(flow);
	struct vmpt_space space;
	u32 k;

	for (k = 0; k < n; k++) {
		vmpt_flow_space(flow, k, &space, NULL);
		traced_note_owner(t, &space.owner);
	}
}

/* The splitter knows how many bytes and why. */
int traced_losses(struct cli *cli, size_t i)
{
	const struct vmpt_options o = cli_stream_options(cli, i);
	struct vmpt_splitter *splitter;
	struct vmpt_slice slice;
	int ret = vmpt_splitter_open(&splitter, cli->stream[i], &o);

	if (ret)
		return ret;
	while ((ret = vmpt_split_next(splitter, &slice)) > 0)
		cli_lose_slice(cli, cli->stream[i], &slice);
	vmpt_splitter_close(splitter);
	return ret;
}

/* ---- times ---- */

int traced_time_open(struct cli *cli, const struct traced *t, size_t i, struct traced_time *time)
{
	struct vmpt_options options = cli_stream_options(cli, i);

	*time = (struct traced_time){ .tsc = VMPT_TIME_NONE };
	options.progress = NULL;
	options.threads = 1;
	return t->timed ? vmpt_timed_open(&time->timed, t->clocks.clocks, i, &options) : 0;
}

int traced_time_to(struct traced_time *time, u64 offset)
{
	while (time->timed && !time->ended) {
		const struct vmpt_batch *b = &time->batch.batch;
		int ret;

		if (time->item < b->count) {
			if (b->base + b->items[time->item].offset > offset)
				return 0;
			time->tsc = time->batch.time[time->item++].tsc;
			continue;
		}
		ret = vmpt_timed_next(time->timed, &time->batch);
		if (ret < 0)
			return ret;
		time->ended = !ret;
		time->item = 0;
	}
	return 0;
}

void traced_time_close(struct traced_time *time)
{
	vmpt_timed_close(time->timed);
}

/* ---- what does not fit ---- */

/*
 * One in this number of branches; a good image has none, or a few of code that changed. Branches,
 * because wrong code can run on without one: each endless gap adds up to 65,536 instructions.
 */
#define MISFITS 10000

/* ", the first at ..."; nothing where the gaps were only counted. */
static const char *place(struct cli *cli, const struct traced_gap *g, char buf[128])
{
	char stream[32];

	*buf = '\0';
	if (g->seen && cli->streams > 1)
		snprintf(buf, 128, ", the first at %s, offset 0x%llx, IP %llx",
			 cli_stream_name(cli->stream[g->stream], stream),
			 (unsigned long long)g->offset, (unsigned long long)g->ip);
	else if (g->seen)
		snprintf(buf, 128, ", the first at offset 0x%llx, IP %llx",
			 (unsigned long long)g->offset, (unsigned long long)g->ip);
	return buf;
}

/* Of a VM, or of the host, that is not in the trace. */
static void warn_owner(struct cli *cli, const struct traced_image *im)
{
	char name[CLI_WHO];

	cli_safe_name(im->given->vm, name);
	if (im->owner->kind == VMPT_OWNER_HOST)
		cli_warn(cli, "%s: the trace has no host: it is not used", im->given->path);
	else
		cli_warn(cli, "%s: the trace has no VM %s: it is not used", im->given->path, name);
}

static void warn_image(struct cli *cli, const struct traced_image *im, bool missing)
{
	struct vmpt_image_counts c;

	vmpt_image_counts(im->image, &c);
	if (!im->used || c.found)
		return;
	/* A recording's own were not needed: the code was known before they were asked. */
	if (!im->given->option && !missing)
		return;
	/* Other CPUs' streams, which were not read, may have it. */
	if (im->owners && !im->traced && !cli->cpus)
		warn_owner(cli, im);
	else if (c.no_table + c.reserved)
		cli_warn(cli,
			 "%s: no page tables at any CR3 of the trace: it is of another VM or boot, "
			 "or --paging is wrong",
			 im->given->path);
	else if (c.absent + c.not_present + c.no_memory)
		cli_warn(cli, "%s: it has none of the pages that the trace ran", im->given->path);
	else
		cli_warn(cli, "%s: it was not needed", im->given->path);
}

void traced_warn(struct cli *cli, const struct traced *t, const struct vmpt_flow_counts *c)
{
	u64 misfits = c->gaps[VMPT_FLOW_IMPOSSIBLE] + c->gaps[VMPT_FLOW_BAD_CODE] +
		      c->gaps[VMPT_FLOW_ENDLESS];
	const struct traced_gap *first =
		t->gap[VMPT_FLOW_IMPOSSIBLE].seen ? &t->gap[VMPT_FLOW_IMPOSSIBLE]
		: t->gap[VMPT_FLOW_BAD_CODE].seen ? &t->gap[VMPT_FLOW_BAD_CODE]
						  : &t->gap[VMPT_FLOW_ENDLESS];
	char where[128], n[32];
	size_t i;

	if (!t->images) {
		cli_warn(cli, "no code is known: give memory images by --code");
		return;
	}
	for (i = 0; i < t->images; i++)
		warn_image(cli, &t->image[i], c->gaps[VMPT_FLOW_NO_CODE] != 0);
	if (misfits && misfits >= c->branches / MISFITS)
		cli_warn(cli,
			 "the code does not fit the trace (gaps: %s%s): it is of "
			 "another VM or another time; give an image of this one, made when it was "
			 "traced",
			 cli_number(misfits, n), place(cli, first, where));
	if (c->gaps[VMPT_FLOW_NO_CODE])
		cli_warn(cli,
			 "the code is missing (gaps: %s%s): add an image that has it "
			 "by --code",
			 cli_number(c->gaps[VMPT_FLOW_NO_CODE], n),
			 place(cli, &t->gap[VMPT_FLOW_NO_CODE], where));
}
