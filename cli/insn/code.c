// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt insn: the images of --code and of the recording, and whether they fit the trace. */
#include <stdlib.h>

#include "cli/insn/insn.h"
#include "util/array.h"

static int add(struct cli *cli, struct insn *d, struct insn_image *im,
	       const struct vmpt_owner *owner)
{
	im->used = true;
	if (owner && vmpt_grow(&im->owner, im->owners))
		return cli_no_memory(cli);
	if (owner)
		im->owner[im->owners++] = *owner;
	return vmpt_code_add(d->code.code, owner, NULL, im->image) ? cli_no_memory(cli) : CLI_OK;
}

/* For each VMCS of the VM: by its names, else VM is a VMCS as tables show it, or "host". */
static int add_for_vm(struct cli *cli, struct insn *d, struct insn_image *im)
{
	struct vmpt_owner owner = { .kind = VMPT_OWNER_VM };
	const char *vm = im->given->vm;
	char *end;
	size_t i;
	int code = CLI_OK;

	for (i = 0; i < d->names.count && !code; i++) {
		const struct cli_vm_name *n = &d->names.name[i];

		owner.vmcs = n->vmcs;
		if (n->vm && !strcmp(n->vm, vm) && (!i || n[-1].vmcs != n->vmcs || !im->used))
			code = add(cli, d, im, &owner);
	}
	if (code || im->used)
		return code;
	owner.vmcs = strtoull(vm, &end, 16);
	if (!strcmp(vm, "host"))
		owner = (struct vmpt_owner){ .kind = VMPT_OWNER_HOST };
	else if (!*vm || *end)
		return CLI_OK;
	return add(cli, d, im, &owner);
}

static int open_image(struct cli *cli, struct insn *d, size_t i)
{
	const struct code_given *g = &d->code.files.given[i];
	struct insn_image *im = &d->code.image[i];
	int code = code_image_open(cli, g, d->paging, &im->image);

	if (code)
		return code;
	im->given = g;
	d->code.count = i + 1;
	code = g->vm ? add_for_vm(cli, d, im) : add(cli, d, im, NULL);
	if (!code && !im->used) {
		char name[CLI_WHO];

		cli_safe_name(g->vm, name);
		cli_warn(cli, "%s: no VM of the trace has the name %s: it is not used", g->path,
			 name);
	}
	return code;
}

int insn_code_open(struct cli *cli)
{
	struct insn *d = cli->data;
	int code = code_sources_open(cli, &d->source, &d->code.files);
	size_t i;

	if (!code && vmpt_code_new(&d->code.code))
		code = cli_no_memory(cli);
	if (code || !d->code.files.count)
		return code;
	d->code.image = calloc(d->code.files.count, sizeof(*d->code.image));
	if (!d->code.image)
		return cli_no_memory(cli);
	for (i = 0; i < d->code.files.count && !code; i++)
		code = open_image(cli, d, i);
	return code;
}

int insn_code_names(struct cli *cli)
{
	struct insn *d = cli->data;
	int code = code_names_open(cli, &d->symbols, &d->code_names);
	size_t i;

	if (!code)
		code = code_names_by_code(cli, &d->code_names, d->code.code);
	if (!code)
		code = code_names_add_host(cli, &d->code_names, d->clocks.clocks);
	if (!code && d->lines)
		code = names_lines_open(cli, &d->code_names);
	for (i = 0; i < d->code.count && !code; i++)
		if (d->code.image[i].used)
			code = code_names_add_image(cli, &d->code_names, d->code.image[i].given,
						    d->code.image[i].image);
	return code;
}

void insn_code_close(struct insn *d)
{
	vmpt_code_free(d->code.code);
	while (d->code.count) {
		struct insn_image *im = &d->code.image[--d->code.count];

		vmpt_image_close(im->image);
		free(im->owner);
	}
	free(d->code.image);
	code_files_close(&d->code.files);
}

/* ---- what does not fit ---- */

/*
 * One in this number of branches; a good image has none, or a few of code that changed. Branches,
 * because wrong code can run on without one: each endless gap adds up to 65,536 instructions.
 */
#define MISFITS 10000

static const char *place(struct cli *cli, const struct insn_gap *g, char buf[128])
{
	char stream[32];

	if (cli->streams > 1)
		snprintf(buf, 128, "%s, offset 0x%llx, IP %llx",
			 cli_stream_name(cli->stream[g->stream], stream),
			 (unsigned long long)g->offset, (unsigned long long)g->ip);
	else
		snprintf(buf, 128, "offset 0x%llx, IP %llx", (unsigned long long)g->offset,
			 (unsigned long long)g->ip);
	return buf;
}

static bool is_of(const struct insn_image *im, const struct vmpt_owner *owner)
{
	size_t i;

	for (i = 0; i < im->owners; i++)
		if (vmpt_owner_same(&im->owner[i], owner))
			return true;
	return false;
}

void insn_code_note(struct insn *d, struct vmpt_flow *flow)
{
	const u32 n = vmpt_flow_spaces(flow);
	struct vmpt_space space;
	size_t i;
	u32 k;

	for (i = 0; i < d->code.count; i++) {
		struct insn_image *im = &d->code.image[i];

		for (k = 0; k < n && im->owners && !im->traced; k++) {
			vmpt_flow_space(flow, k, &space, NULL);
			im->traced = is_of(im, &space.owner);
		}
	}
}

/* Of a VM, or of the host, that is not in the trace. */
static void warn_owner(struct cli *cli, const struct insn_image *im)
{
	char name[CLI_WHO];

	cli_safe_name(im->given->vm, name);
	if (im->owner->kind == VMPT_OWNER_HOST)
		cli_warn(cli, "%s: the trace has no host: it is not used", im->given->path);
	else
		cli_warn(cli, "%s: the trace has no VM %s: it is not used", im->given->path, name);
}

static void warn_image(struct cli *cli, const struct insn_image *im)
{
	struct vmpt_image_counts c;

	vmpt_image_counts(im->image, &c);
	if (!im->used || c.found)
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

void insn_code_warn(struct cli *cli)
{
	const struct insn *d = cli->data;
	const struct vmpt_flow_counts *c = &d->total.counts;
	u64 misfits = c->gaps[VMPT_FLOW_IMPOSSIBLE] + c->gaps[VMPT_FLOW_BAD_CODE] +
		      c->gaps[VMPT_FLOW_ENDLESS];
	const struct insn_gap *first =
		d->gap[VMPT_FLOW_IMPOSSIBLE].seen ? &d->gap[VMPT_FLOW_IMPOSSIBLE]
		: d->gap[VMPT_FLOW_BAD_CODE].seen ? &d->gap[VMPT_FLOW_BAD_CODE]
						  : &d->gap[VMPT_FLOW_ENDLESS];
	char where[128], n[32];
	size_t i;

	if (!d->code.count) {
		cli_warn(cli, "no code is known: give memory images by --code");
		return;
	}
	for (i = 0; i < d->code.count; i++)
		warn_image(cli, &d->code.image[i]);
	if (misfits && misfits >= c->branches / MISFITS)
		cli_warn(cli,
			 "the code does not fit the trace (gaps: %s, the first at %s): it is of "
			 "another VM or another time; give an image of this one, made when it was "
			 "traced",
			 cli_number(misfits, n), place(cli, first, where));
	if (c->gaps[VMPT_FLOW_NO_CODE])
		cli_warn(
			cli,
			"the code is missing (gaps: %s, the first at %s): add an image that has it "
			"by --code",
			cli_number(c->gaps[VMPT_FLOW_NO_CODE], n),
			place(cli, &d->gap[VMPT_FLOW_NO_CODE], where));
}
