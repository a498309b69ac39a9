/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The side record of an RTIT trace (vmm-lib/rtit.h, vmpt_rtit_record_print()): who runs on which
 * CPU, and from where. RTIT packets do not contain it.
 */
#ifndef VMPT_CLI_RECORD_H
#define VMPT_CLI_RECORD_H

#include "cli/base/base.h"
#include "util/hash.h"

/* A virtual CPU of the record. As an owner its .vmcs is 1 + its index. */
struct cli_vcpu {
	char *vm;   /* as in the record */
	char *file; /* "vm-NAME-vcpuN", of safe characters, unique */
	u32 vcpu;
	u64 tsc_offset, core_offset; /* of its last line */
};

/* The runs of one CPU. */
struct cli_runs {
	u32 cpu;
	struct vmpt_run *run;
	size_t *line; /* of each */
	size_t count;
	/* Results, filled by the library */
	struct vmpt_run_report report;
};

struct cli_side_record {
	struct cli_vcpu *vcpu;
	size_t vcpus;
	struct cli_runs *runs;
	size_t cpus;
	struct vmpt_hash by_name; /* of vcpu[], with its number */
	u64 seed;
	u32 *by_cpu;		     /* 1 + index in runs[]; 0: none */
	struct cli_runs **of_stream; /* by index in cli->stream; NULL: none */
};

/* Read --side-record's file. 0, or the exit code after a message with the line's number. */
int cli_side_record_open(struct cli *cli);
void cli_side_record_close(struct cli *cli);

/* Stream number @i was read to its end: warn of lines that never took effect. */
void cli_side_record_report(struct cli *cli, size_t i);

/* The virtual CPU of an owner, NULL if it is not in the record. */
const struct cli_vcpu *cli_side_record_vcpu(const struct cli *cli, const struct vmpt_owner *owner);

/* ---- side.c ---- */

/* The values of --side-record. */
struct cli_side {
	const char *file;		/* NULL: none */
	bool found;			/* by the trace's recording, not by the option */
	struct cli_side_record *record; /* the parsed RTIT record, or NULL */
};

extern const struct cli_group cli_side_group;

static inline struct cli_side *cli_side(const struct cli *cli)
{
	return cli_values(cli, &cli_side_group);
}

/*
 * Whether the side record was written by vmpt record: its lines have a "kind". The first readable
 * line decides.
 */
bool cli_side_is_recording(const struct cli *cli);
/* For a command that only uses an RTIT record. 0, or an exit code after a message. */
int cli_side_rtit_only(const struct cli *cli);
/* The library's options for stream number @i, with its runs. */
struct vmpt_options cli_stream_options(const struct cli *cli, size_t i);

/* As cli_owner_name(), or "web vcpu 0". Safe for a terminal. */
const char *cli_who(const struct cli *cli, const struct vmpt_owner *owner, char buf[CLI_WHO]);
/* Of a VM: "vmcs", or "vm" and "vcpu" by the side record. */
void cli_json_vm(struct cli *cli, json_t *obj, const struct vmpt_owner *owner);
/* "owner", that of a VM, "sure". */
void cli_json_owner(struct cli *cli, json_t *obj, const struct vmpt_owner *owner);

#endif
