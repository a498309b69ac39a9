/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The side record of an RTIT trace (vmm-lib/rtit.h, vmpt_rtit_record_print()): who runs on which
 * CPU from where on. RTIT's own packets do not tell it.
 */
#ifndef VMPT_CLI_RECORD_H
#define VMPT_CLI_RECORD_H

#include "cli/cli.h"

/* A virtual CPU of the record. As an owner its .vmcs is 1 + its index. */
struct cli_vcpu {
	char *vm;   /* as the record has it */
	char *file; /* "vm-NAME-vcpuN", of safe characters and no other's */
	u32 vcpu;
	u64 tsc_offset, core_offset; /* of its last line */
};

/* The runs of one CPU. */
struct cli_runs {
	u32 cpu;
	struct vmpt_run *run;
	size_t count, room;
	size_t line; /* of the last one */
};

struct cli_record {
	struct cli_vcpu *vcpu;
	size_t vcpus, vcpu_room;
	struct cli_runs *runs;
	size_t cpus, cpu_room;
	const struct cli_runs **of_stream; /* by index in cli->stream; NULL: none */
};

/* Read --side-record's file. 0, or the exit code after a message with the line's number. */
int cli_record_open(struct cli *cli);
void cli_record_close(struct cli *cli);

/* The virtual CPU of an owner, NULL if it is none of the record's. */
const struct cli_vcpu *cli_record_vcpu(const struct cli *cli, const struct vmpt_owner *owner);

#endif
