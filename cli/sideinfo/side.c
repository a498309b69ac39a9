// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * --side-record, and what other commands need from the side record of an RTIT trace:
 * owners' names in text and in JSON, the runs of each stream.
 */
#include <limits.h>
#include <string.h>

#include "cli/sideinfo/host-only.h"
#include "cli/sideinfo/recording.h"
#include "cli/sideinfo/rtit.h"

const char *cli_who(const struct cli *cli, const struct vmpt_owner *owner, char buf[CLI_WHO])
{
	const struct cli_vcpu *vcpu = cli_side_record_vcpu(cli, owner);
	size_t n;

	if (!vcpu)
		return cli_owner_name(owner, buf);
	cli_safe_name(vcpu->vm, buf);
	n = strlen(buf);
	snprintf(buf + n, CLI_WHO - n, " vcpu %u", vcpu->vcpu);
	return buf;
}

void cli_json_vm(struct cli *cli, json_t *obj, const struct vmpt_owner *owner)
{
	const struct cli_vcpu *vcpu = cli_side_record_vcpu(cli, owner);

	if (vcpu) {
		cli_json_string(cli, obj, "vm", vcpu->vm);
		cli_json_number(cli, obj, "vcpu", vcpu->vcpu);
	} else if (owner->kind == VMPT_OWNER_VM) {
		cli_json_hex(cli, obj, "vmcs", owner->vmcs);
	}
}

void cli_json_owner(struct cli *cli, json_t *obj, const struct vmpt_owner *owner)
{
	cli_json_string(cli, obj, "owner", cli_owner_kind(owner));
	cli_json_vm(cli, obj, owner);
	if (owner->kind != VMPT_OWNER_UNKNOWN)
		cli_json_string(cli, obj, "sure", cli_sure_name(owner->sure));
	if (owner->concealed)
		cli_json_set(cli, obj, "concealed", json_true());
}

struct vmpt_options cli_stream_options(const struct cli *cli, size_t i)
{
	const struct cli_side_record *r = cli_side(cli)->record;
	struct cli_runs *runs = r ? r->of_stream[i] : NULL;
	struct vmpt_options options = cli->options;

	if (runs) {
		options.runs = runs->run;
		options.run_count = runs->count;
		options.run_report = &runs->report;
	}
	return options;
}

/* ---- the option ---- */

int cli_side_rtit_only(const struct cli *cli)
{
	if (cli_is_rtit(cli) || !cli_side(cli)->file)
		return CLI_OK;
	return cli_usage(cli,
			 "--side-record is for RTIT, but %s is taken for Intel PT; "
			 "--format=rtit overrides that",
			 cli->file[0]);
}

/* What vmpt record wrote next to the trace is an input, too. */
static int note_recording(struct cli *cli, const char *path)
{
	char name[PATH_MAX];

	return cli_recording_find(path, name, sizeof(name)) ? cli_note_input(cli, name) : CLI_OK;
}

static int open_side(struct cli *cli)
{
	int i, code = CLI_OK;

	for (i = 0; i < cli->files && !code; i++)
		code = note_recording(cli, cli->path[i]);
	if (!code && cli_side(cli)->file && cli_is_rtit(cli))
		code = cli_side_record_open(cli);
	return code ? code : cli_host_only_open(cli);
}

static void add_to_document(struct cli *cli, json_t *doc)
{
	if (cli_side(cli)->file)
		cli_json_string(cli, doc, "side_record", cli_side(cli)->file);
}

static const struct cli_option options[] = {
	{ "side-record", 0, CLI_FILE, "FILE",
	  "the VMM's side record, JSON lines. RTIT: who ran; without it all is taken for the host's. "
	  "Intel PT: names of VMs by their VMCS, for vms, split, clocks, timeline, exits",
	  CLI_AT(struct cli_side, file) },
	{ 0 },
};

const struct cli_group cli_side_group = {
	.title = "Options for the trace",
	.option = options,
	.common = true,
	.size = sizeof(struct cli_side),
	.open = open_side,
	.close = cli_side_record_close,
	.document = add_to_document,
};
