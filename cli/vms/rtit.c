// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt vms of RTIT: who ran, by the side record. The trace itself shows how often packets
 * were enabled and disabled, by VM entries and exits among others.
 */
#include "cli/sideinfo/sideinfo.h"
#include "cli/base/base.h"
#include "cli/vms/vms.h"

static int check(const struct cli *cli)
{
	if (!cli_clock_given(cli))
		return CLI_OK;
	return cli_usage(cli, "rates and maps are for Intel PT: RTIT's owners need no times");
}

/* STSs have 40 bits. */
static void whole_tsc(u64 *last, struct vmpt_slice *s)
{
	s->first_tsc = cli_follow_sts(last, s->first_tsc);
	s->last_tsc = cli_follow_sts(last, s->last_tsc);
}

/* ---- text ---- */

static void print_who(struct cli *cli, const struct vms_row *row, size_t rows)
{
	static const struct cli_column column[] = {
		{ "VM", CLI_NAMES }, { "CPUS", false }, { "RUNS", true },  { "PGE", true },
		{ "PGD", true }, { "BYTES", true }, { "SHARE", true },
	};
	struct cli_table *t = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	u64 total = vms_total(cli);
	size_t i, n;

	for (i = 0; i < rows; i += n) {
		struct vms_row all;
		char buf[CLI_WHO];

		n = vms_merge(row + i, rows - i, &all);
		cli_cell(t, vms_paint(&all), "%s", vms_name(cli, &all, buf));
		cli_cell(t, CLI_PLAIN, "%s", vms_cpu_list(cli, row + i, n, buf, sizeof(buf)));
		cli_cell_number(t, true, all.slices);
		cli_cell_number(t, all.kind != VMS_LOST, all.enables);
		cli_cell_number(t, all.kind != VMS_LOST, all.disables);
		cli_cell_number(t, true, all.bytes);
		cli_cell(t, CLI_PLAIN, "%.1f %%",
			 total ? 100.0 * (double)all.bytes / (double)total : 0.0);
	}
	cli_table_print(t, "");
}

static void print_errata(const char *name, const struct vms_row *row)
{
	const char *sep = ": errata ";
	char buf[32];
	unsigned int i;

	for (i = 1; i <= VMPT_RTIT_ERRATA; i++) {
		if (!row->errata[i])
			continue;
		cli_print("%s%sE%u %s", *sep == ':' ? name : "", sep, i,
		       cli_number(row->errata[i], buf));
		sep = ", ";
	}
	if (*sep == ',')
		printf("\n");
}

static void print_notes(const struct cli *cli, const struct vms_row *row, size_t rows)
{
	char room[CLI_WHO], buf[32];
	struct vms_row all;
	const char *name;
	size_t i;

	for (i = 0; i < rows;) {
		i += vms_merge(row + i, rows - i, &all);
		name = vms_name(cli, &all, room);
		if (all.assumed)
			cli_print("%s: %s bytes assumed\n", name, cli_number(all.assumed, buf));
		if (all.overflows)
			cli_print("%s: %s overflow%s of the processor\n", name,
			       cli_number(all.overflows, buf), all.overflows == 1 ? "" : "s");
		print_errata(name, &all);
	}
	if (!cli_side(cli)->record)
		printf("RTIT packets do not contain who ran: all is taken for the host's. Give the VMM's\n"
		       "side record (vmpt_rtit_record_print(); vms.jsonl of the QEMU plugin) "
		       "to\n"
		       "--side-record.\n");
}

/* ---- JSON ---- */

static void json_row(struct cli *cli, json_t *o, const struct vms_row *row)
{
	json_t *errata = json_object();
	unsigned int i;
	char name[16];

	cli_json_number(cli, o, "slices", row->slices);
	cli_json_number(cli, o, "enables", row->enables);
	cli_json_number(cli, o, "disables", row->disables);
	cli_json_number(cli, o, "bytes", row->bytes);
	cli_json_number(cli, o, "assumed_bytes", row->assumed);
	cli_json_number(cli, o, "loss_count", row->losses);
	cli_json_number(cli, o, "overflows", row->overflows);
	for (i = 1; i <= VMPT_RTIT_ERRATA; i++) {
		snprintf(name, sizeof(name), "E%u", i);
		if (row->errata[i])
			cli_json_number(cli, errata, name, row->errata[i]);
	}
	cli_json_set(cli, o, "errata", errata);
	if (row->has_tsc) {
		cli_json_hex(cli, o, "first_tsc", row->first_tsc);
		cli_json_hex(cli, o, "last_tsc", row->last_tsc);
	}
}

/* The VM, if the side record has it. */
static void json_vm(struct cli *cli, json_t *o, const struct vms_row *row)
{
	struct vmpt_owner owner = { .kind = row->kind, .vmcs = row->vmcs };
	const struct cli_vcpu *vcpu = cli_side_record_vcpu(cli, &owner);

	if (!vcpu)
		return;
	cli_json_vm(cli, o, &owner);
	cli_json_signed(cli, o, "tsc_offset", (s64)vcpu->tsc_offset);
	cli_json_signed(cli, o, "core_offset", (s64)vcpu->core_offset);
}

const struct vms_ops vms_rtit_ops = {
	.title = "VM",
	.check = check,
	.whole_tsc = whole_tsc,
	.print_who = print_who,
	.print_notes = print_notes,
	.json_vm = json_vm,
	.json_row = json_row,
};
