/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Slices added up per owner and stream, for vmpt vms. */
#ifndef VMPT_CLI_VMS_H
#define VMPT_CLI_VMS_H

#include "cli/sideinfo/sideinfo.h"
#include "util/hash.h"

/* A kind of row in addition to enum vmpt_owner_kind: no packets, or no proven owner. */
#define VMS_LOST (VMPT_OWNER_VM_ANY + 1)
/* The VMCSs without a row of their own. */
#define VMS_OTHERS     (VMPT_OWNER_VM_ANY + 2)
#define VMS_CR3S       32
#define VMS_SHOWN_CR3S 3
/* VMCSs times the CPUs they ran on: more rows than this are "others". */
#define VMS_ROWS_MAX 32768

struct vms_row {
	u8 kind; /* enum vmpt_owner_kind, VMS_LOST or VMS_OTHERS */
	u64 vmcs;
	size_t stream; /* index in cli->stream */
	u64 slices, entries, exits, leaves, returns;
	u64 bytes, assumed, uncertain, unproven; /* all are part of bytes */
	u64 losses, overflows, failed_entries;
	u64 enables, disables, errata[VMPT_RTIT_ERRATA + 1]; /* RTIT */
	bool transitions; /* the stream shows VM entries and exits */
	bool concealed;
	bool has_tsc;
	u64 first_tsc, last_tsc;
	u64 cr3[VMS_CR3S];
	u32 cr3s;
	bool more_cr3s;
};

struct vms_rows {
	struct vms_row *row;
	size_t count;
	size_t first;		   /* row of the stream at work */
	struct vmpt_hash by_owner; /* of that stream's rows */
	size_t vmcss;		   /* rows of VMCSs, of all streams */
	u64 seed;		   /* of the hash, against traces made to collide */
};

/* What differs between Intel PT and RTIT. */
struct vms_ops {
	const char *title; /* of the column of owners */
	bool perf_time;	   /* of the host's TSC */
	/* Whether the options fit. 0, or an exit code after a message. */
	int (*check)(const struct cli *cli);
	/* Extend a slice's TSC to 64 bits; @last: of the previous slice. May be NULL. */
	void (*whole_tsc)(u64 *last, struct vmpt_slice *slice);
	void (*print_who)(struct cli *cli, const struct vms_row *row, size_t rows);
	void (*print_notes)(const struct cli *cli, const struct vms_row *row, size_t rows);
	/* The owner's name, if it is a VM; its counts. */
	void (*json_vm)(struct cli *cli, json_t *o, const struct vms_row *row);
	void (*json_row)(struct cli *cli, json_t *o, const struct vms_row *row);
};

extern const struct vms_ops vms_rtit_ops;

/* The command's own. */
struct vms {
	const struct vms_ops *ops;
	struct cli_clocks clocks; /* of the names; open only if there may be some */
	struct cli_vm_names names;
};

/* ---- vms.c ---- */

/* The rows of one owner, from @row on: their number, and the sum. */
size_t vms_merge(const struct vms_row *row, size_t n, struct vms_row *all);
/* Bytes of all streams. */
u64 vms_total(const struct cli *cli);
const char *vms_name(const struct cli *cli, const struct vms_row *row, char buf[CLI_WHO]);
enum cli_paint vms_paint(const struct vms_row *row);
/* "0-3,8": the CPUs of @n rows in order of their streams, cut where it gets long. */
const char *vms_cpu_list(const struct cli *cli, const struct vms_row *row, size_t n, char *buf,
			 size_t len);

/* ---- count.c ---- */

/* Add the rows of stream number @i. 0 or a negative error. */
int vms_count(struct cli *cli, size_t i, struct vms_rows *rows);
void vms_add_cr3(struct vms_row *row, u64 cr3);
void vms_add_tsc(struct vms_row *row, bool valid, u64 first, u64 last);

#endif
