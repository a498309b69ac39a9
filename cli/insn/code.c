// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt insn: the images of --code and of the recording, and whether they fit the trace. */
#include <stdlib.h>

#include "cli/insn/insn.h"

static int add(struct cli *cli, struct insn *d, struct insn_image *im,
	       const struct vmpt_owner *owner)
{
	im->used = true;
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
	const struct vmpt_image_options options = { .has_address = g->has_address,
						    .address = g->address,
						    .paging = d->paging };
	struct insn_image *im = &d->code.image[i];
	struct vmpt_diag diag;
	int code;

	im->given = g;
	if (insn_is_kdump(g->path))
		code = insn_open_kdump(&im->image, g->path, &options, &diag);
	else
		code = vmpt_image_open(&im->image, g->path, &options, &diag);
	if (code) {
		cli_error(cli, "%s: %s", g->path, diag.text);
		return CLI_FAILED;
	}
	d->code.count = i + 1;
	if (*diag.text)
		cli_warn(cli, "%s: %s", g->path, diag.text);
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

void insn_code_close(struct insn *d)
{
	vmpt_code_free(d->code.code);
	while (d->code.count)
		vmpt_image_close(d->code.image[--d->code.count].image);
	free(d->code.image);
	code_files_close(&d->code.files);
}

/* ---- what does not fit ---- */

/* One in this number of instructions; a good image has none, or a few of code that changed. */
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

static void warn_image(struct cli *cli, const struct insn_image *im)
{
	struct vmpt_image_counts c;

	vmpt_image_counts(im->image, &c);
	if (!im->used || c.found)
		return;
	if (c.no_table + c.reserved)
		cli_warn(
			cli,
			"%s: at no CR3 of the trace it has page tables: is it of this VM, and of the "
			"same boot?",
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
	if (misfits && misfits >= c->instructions / MISFITS)
		cli_warn(cli,
			 "the code does not fit the trace (gaps: %s, the first at %s): it is of "
			 "another VM or another time",
			 cli_number(misfits, n), place(cli, first, where));
	if (c->gaps[VMPT_FLOW_NO_CODE])
		cli_warn(cli, "the code is missing (gaps: %s, the first at %s)",
			 cli_number(c->gaps[VMPT_FLOW_NO_CODE], n),
			 place(cli, &d->gap[VMPT_FLOW_NO_CODE], where));
}
