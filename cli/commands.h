/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The subcommands of vmpt, each of a room of its own; vmpt domain is a program. */
#ifndef VMPT_CLI_COMMANDS_H
#define VMPT_CLI_COMMANDS_H

#include "cli/base/base.h"

extern const struct cli_command cli_dump, cli_stat, cli_vms, cli_split, cli_clocks, cli_timeline,
	cli_exits, cli_wait, cli_record, cli_index, cli_insn, cli_coverage, cli_guest, cli_hot,
	cli_calls, cli_latency;

#endif
