/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Names of VMCSs for tables of whole traces (vmpt vms, vmpt split): which vCPUs of which VMs each
 * was while the trace was recorded. A VMCS's page may be freed and reused, so there may be several.
 */
#ifndef VMPT_CLI_VM_NAMES_H
#define VMPT_CLI_VM_NAMES_H

#include "cli/sideinfo/clock-open.h"

struct cli_vm_name {
	u64 vmcs;
	u64 from, to;	/* host TSC; 0: from the start, ~0: still */
	const char *vm; /* owned by the clocks; not for a terminal */
	s64 vcpu;	/* -1: not known */
	bool ran;	/* then */
};

struct cli_vm_names {
	struct cli_vm_name *name; /* by VMCS, then .from */
	size_t count;
	bool seen; /* a VMCS with a name was looked up */
};

/* Whether a record has names: --side-record, or that of vmpt record next to the trace. */
bool cli_vm_names_given(const struct cli *cli);
/* Whether there may be names: a record has them, or the trace has events. Never for RTIT. */
bool cli_vm_names_any(struct cli *cli);

/*
 * The names in @clocks, which must stay open. If a record has several for a VMCS, the trace is
 * walked to find those that ran in it. 0, or the exit code after a message: close in either case.
 */
int cli_vm_names_open(struct cli *cli, const struct cli_clocks *clocks, struct cli_vm_names *names);
void cli_vm_names_close(struct cli_vm_names *names);

/* Add the cell of a VMCS's names: "web vcpu 0, +1 more", or a dash. */
void cli_vm_names_cell(struct cli_vm_names *names, struct cli_table *t, u64 vmcs);
/* "vm" and "vcpu" if it has one name, "names" if several: objects with "from" and "to", too. */
void cli_vm_names_json(struct cli *cli, struct cli_vm_names *names, json_t *o, u64 vmcs);
/* After looking up all VMCSs of the trace: warn if the side record has none of them. */
void cli_vm_names_tell(const struct cli *cli, const struct cli_vm_names *names);

#endif
