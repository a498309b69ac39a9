/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Names of VMCSs for tables of whole traces (vmpt vms, vmpt split): which vCPUs of which VMs each
 * was while the trace was recorded. A VMCS's page is freed and used again, so they may be several.
 */
#ifndef VMPT_CLI_VM_NAMES_H
#define VMPT_CLI_VM_NAMES_H

#include "cli/sideinfo/clock-open.h"

struct cli_vm_name {
	u64 vmcs;
	u64 from, to;	/* host TSC; 0: from the start, ~0: still */
	const char *vm; /* the clocks'; not for a terminal */
	s64 vcpu;	/* -1: not known */
	bool ran;	/* then */
};

struct cli_vm_names {
	struct cli_vm_name *name; /* by VMCS, then .from */
	size_t count;
	bool seen; /* a VMCS was asked for that has a name */
};

/* Whether a record tells names: --side-record, or that of vmpt record beside the trace. */
bool cli_vm_names_given(const struct cli *cli);
/* Whether there may be names: a record tells them, or the trace has events. Never of RTIT. */
bool cli_vm_names_any(struct cli *cli);

/*
 * The names that @clocks have, which stay open meanwhile. Where a record has several of a VMCS the
 * trace is walked for those that ran in it. 0, or the exit code after a message: close in either
 * case.
 */
int cli_vm_names_open(struct cli *cli, const struct cli_clocks *clocks, struct cli_vm_names *names);
void cli_vm_names_close(struct cli_vm_names *names);

/* Add the cell of a VMCS's names: "web vcpu 0, +1 more", or a dash. */
void cli_vm_names_cell(struct cli_vm_names *names, struct cli_table *t, u64 vmcs);
/* "vm" and "vcpu" if it has one name, "names" if several: objects with "from" and "to", too. */
void cli_vm_names_json(struct cli *cli, struct cli_vm_names *names, json_t *o, u64 vmcs);
/* All VMCSs of the trace were asked for: warn if there is a side record of other ones only. */
void cli_vm_names_tell(const struct cli *cli, const struct cli_vm_names *names);

#endif
