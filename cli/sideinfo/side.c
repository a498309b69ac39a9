// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * --side-record, and what other commands need from the side record of an RTIT trace:
 * owners' names in text and in JSON, the runs of each stream.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/sideinfo/host-only.h"
#include "cli/sideinfo/recording.h"
#include "cli/sideinfo/rtit.h"

#define LINES_ASKED 1000

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
	if (cli_is_rtit(cli) || !cli_side(cli)->file || cli_side(cli)->found)
		return CLI_OK;
	return cli_usage(cli,
			 "--side-record is for RTIT, but %s is taken for Intel PT; "
			 "--format=rtit overrides that",
			 cli->file[0]);
}

bool cli_side_is_recording(const struct cli *cli)
{
	FILE *f = fopen(cli_side(cli)->file, "re");
	bool is = false, read = false;
	char *text = malloc(JSON_LINE_ROOM);
	unsigned int lines;
	json_error_t error;
	json_t *o;
	size_t n;

	/* The caller opens it again and reports the error. */
	for (lines = 0; f && text && !read && lines < LINES_ASKED; lines++) {
		n = cli_getline(text, JSON_LINE_ROOM, f);
		if (!n)
			break;
		o = json_line_load(text, n, &error);
		read = json_is_object(o);
		is = json_is_string(json_object_get(o, "kind"));
		json_decref(o);
	}
	free(text);
	if (f)
		fclose(f);
	return is;
}

static int open_side(struct cli *cli)
{
	struct cli_side *side = cli_side(cli);
	int code = CLI_OK;

	if (!side->file && cli->folder && cli->folder->side) {
		side->file = cli->folder->side;
		side->found = true;
	}
	if (side->file && cli_is_rtit(cli))
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
	  "the VMM's side record, JSON lines; default: that of the recording. RTIT: who ran; without it all is taken for the host's. "
	  "Intel PT: names of VMs by their VMCS",
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
