// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * --host-only: whether the trace holds no VMs (docs/vm-tracking.md, "Traces without VMs"). auto is
 * decided before a command reads anything, over all CPUs, also those that --cpu leaves out.
 */
#include <stdlib.h>

#include "cli/sideinfo/host-only.h"
#include "cli/sideinfo/sideinfo.h"

/* Whether something else than packets says that VMs ran. NULL: nothing; or where. */
static const char *vms_elsewhere(struct cli *cli)
{
	const struct vmpt_event *event;
	size_t n;

	/* That of vmpt record lists the VMs that exist; whether they ran, perf's events say. */
	if (cli_side(cli)->file && (!cli_side(cli)->found || !cli_side_is_recording(cli)))
		return cli_side(cli)->found ? "the side record" : "--side-record";
	if (vmpt_trace_events(cli->trace, &event, &n))
		return NULL;
	while (n--)
		if (event[n].kind == VMPT_EVENT_KVM_ENTRY)
			return "perf's events";
	return NULL;
}

static void contradicted(const struct cli *cli, const struct vmpt_vms_found *found)
{
	const struct vmpt_stream *stream = vmpt_trace_stream(cli->trace, found->stream);
	char name[32];

	cli_warn(
		cli,
		"%s: --host-only=yes, but there is a %s packet of a VM at 0x%llx of %s: from such a "
		"packet on owners are determined from packets",
		cli->file[0], vmpt_pt_name(found->kind), (unsigned long long)found->offset,
		cli_stream_name(stream, name));
}

static void decide(struct cli *cli, const struct vmpt_vms_found *found)
{
	const char *where = NULL;

	if (found->vms == VMPT_VMS_UNSAID)
		where = vms_elsewhere(cli);
	if (where) {
		cli_warn(
			cli,
			"%s: its packets do not say who ran, and by %s VMs did; --host-only=yes or "
			"--guest-only=yes gives all bytes an owner",
			cli->file[0], where);
	} else if (found->vms == VMPT_VMS_UNSAID || found->vms == VMPT_VMS_NONE) {
		cli->options.host_only = true;
		cli_note(cli,
			 "%s: no packet of a VM in it: all of it is the host's; --host-only=no "
			 "overrides that",
			 cli->file[0]);
	}
}

int cli_host_only_open(struct cli *cli)
{
	size_t i, n = vmpt_trace_streams(cli->trace);
	const struct vmpt_stream **all;
	struct vmpt_vms_found found;
	int ret;

	if (cli_is_rtit(cli) || cli->host_only == CLI_NO ||
	    cli->options.guest_only == VMPT_GUEST_ONLY_YES)
		return CLI_OK;
	all = calloc(n, sizeof(*all));
	if (!all)
		return cli_no_memory(cli);
	for (i = 0; i < n; i++)
		all[i] = vmpt_trace_stream(cli->trace, i);
	cli_progress_scan(cli, "  looking for VMs");
	ret = vmpt_vms_find(all, n, &cli->options, &found);
	cli_progress_end(cli);
	free(all);
	if (ret) {
		cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
		return CLI_FAILED;
	}
	cli->options.host_only = cli->host_only == CLI_YES;
	if (cli->host_only == CLI_AUTO)
		decide(cli, &found);
	else if (found.vms == VMPT_VMS_SEEN)
		contradicted(cli, &found);
	return CLI_OK;
}
