// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt split: one stream per VMCS and CPU, one per CPU for the host, and an
 * index of all slices. The library splits the trace; this writes the files.
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/symbols/symbols.h"
#include "cli/split/split.h"

/* Read the guest's code before anything is written. 0, or the exit code. */
static int take_code(struct cli *cli)
{
	struct split *s = cli->data;
	int ret = s->perf ? code_files_open(cli, &s->wanted, &s->files) : CLI_OK;
	size_t i;

	for (i = 0; !ret && i < s->files.count; i++)
		ret = perf_code_add(cli, &s->code, &s->files.given[i]);
	return ret;
}

/* ---- what the library calls ---- */

static int on_stream(void *opaque, int stream, const struct vmpt_owner *owner)
{
	(void)stream;
	return split_add(opaque, owner);
}

static int on_write(void *opaque, int stream, const u8 *bytes, size_t n)
{
	struct cli *cli = opaque;
	struct split *s = cli->data;

	return split_write(cli, &s->out[s->first + (size_t)stream], bytes, n);
}

static int on_slice(void *opaque, const struct vmpt_extracted *done)
{
	struct cli *cli = opaque;
	struct split *s = cli->data;
	const struct vmpt_stream *stream = cli->stream[s->stream];
	const struct vmpt_slice *slice = &done->slice;

	if (!cli_lose_slice(cli, stream, slice) && done->stream < 0 && !s->unwanted &&
	    slice->owner.kind != VMPT_OWNER_UNKNOWN)
		cli_lose(cli, CLI_TOO_MANY, stream, slice->offset, slice->size, 0);
	if (done->stream >= 0) {
		struct split_out *out = &s->out[s->first + (size_t)done->stream];

		out->slices++;
		out->who = done->who_known ? done->who : 0;
		out->source_bytes += slice->size;
		s->unmapped += done->tscs_unmapped;
		if (done->has_tsc && !out->perf.has_tsc) {
			out->perf.has_tsc = true;
			out->perf.first_tsc = done->first_tsc;
		}
	} else if (s->unwanted) {
		s->filtered += slice->size;
		return 0;
	} else {
		s->left_out += slice->size;
	}
	return split_index_slice(cli, done);
}

/* Slices are written whole: those of which a part is wanted. */
static int is_wanted(void *opaque, const struct vmpt_slice *slice)
{
	struct cli *cli = opaque;
	struct split *s = cli->data;
	struct vmpt_slice cut = *slice;
	bool begins, ends;
	int ret = cli_filter_slice(cli, s->walk, &cut, &begins, &ends);

	s->unwanted = !ret;
	return ret;
}

static int split_stream(struct cli *cli, size_t i)
{
	static const struct vmpt_extract_ops ops = {
		.stream = on_stream,
		.write = on_write,
		.slice = on_slice,
	};
	struct split *s = cli->data;
	struct vmpt_extract_options options = { .decode = cli_stream_options(cli, i),
						.conceal = s->conceal,
						.clock = s->on_clock,
						.clocks = s->on_clock ? s->clocks.clocks : NULL,
						.clock_stream = i,
						.who = s->per_vm ? split_vm_who : NULL,
						.who_opaque = cli,
						.wanted = cli_filter_any(cli) ? is_wanted : NULL,
						.wanted_opaque = cli };
	int ret = 0;

	s->stream = i;
	s->first = s->outs;
	if (!cli_is_rtit(cli))
		ret = cli_filter_walk_open(cli, i, false, &s->walk);
	if (!ret)
		ret = vmpt_extract(cli->stream[i], &options, &ops, cli);
	cli_filter_walk_close(s->walk);
	s->walk = NULL;
	if (ret < 0)
		cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
	if (!ret)
		cli_side_record_report(cli, i);
	return ret || split_finish_all(cli) ? 1 : 0;
}

/* ---- the summary ---- */

static void print_text(struct cli *cli)
{
	static const struct cli_column column[] = {
		{ "FILE", false }, { "SLICES", true },	{ "FROM BYTES", true },
		{ "BYTES", true }, { "VM", CLI_NAMES },
	};
	struct split *s = cli->data;
	/* The last column only if there are names. */
	size_t columns = VMPT_ARRAY_SIZE(column) - !s->names.count;
	struct cli_table *t = cli_table_new(cli, column, columns);
	char buf[32];
	size_t i;

	for (i = 0; i < s->outs; i++) {
		cli_cell(t, cli_owner_paint(&s->out[i].owner), "%s", s->out[i].name);
		cli_cell_number(t, true, s->out[i].slices);
		cli_cell_number(t, true, s->out[i].source_bytes);
		cli_cell_number(t, true, s->out[i].bytes);
		if (s->names.count && s->out[i].owner.kind == VMPT_OWNER_VM)
			cli_vm_names_cell(&s->names, t, s->out[i].owner.vmcs);
		else if (s->names.count)
			cli_cell(t, CLI_DIM, "–");
	}
	cli_table_print(t, "");
	if (s->filtered)
		printf("%s bytes do not fit the filters\n", cli_number(s->filtered, buf));
	if (s->left_out)
		printf("%s bytes are in no file\n", cli_number(s->left_out, buf));
	if (s->unmapped)
		printf("%s TSC packet%s of VMs left out: their clock is not known\n",
		       cli_number(s->unmapped, buf), s->unmapped == 1 ? "" : "s");
	if (s->removed)
		printf("%s: removed %s stream%s of an earlier split\n", s->dir,
		       cli_number(s->removed, buf), s->removed == 1 ? "" : "s");
	split_vms_print(s);
	printf("%s/%s: %s slice%s\n", s->dir,
	       s->no_index ? "index.json, without them" : SLICES_FILE, cli_number(s->slices, buf),
	       s->slices == 1 ? "" : "s");
}

static void print_json(struct cli *cli)
{
	const struct split *s = cli->data;
	json_t *doc = cli_json_document(cli);

	cli_json_string(cli, doc, "directory", s->dir);
	cli_json_set(cli, doc, "slices_file", s->no_index ? json_null() : json_string(SLICES_FILE));
	cli_json_number(cli, doc, "slices", s->slices);
	cli_json_number(cli, doc, "filtered_bytes", s->filtered);
	cli_json_number(cli, doc, "left_out_bytes", s->left_out);
	cli_json_number(cli, doc, "removed_streams", s->removed);
	cli_json_set(cli, doc, "streams", split_json_streams(cli));
	if (s->per_vm)
		cli_json_set(cli, doc, "vms", split_json_vms(cli));
	cli_json_end(cli, doc);
	cli_json_print(cli, doc, stdout, false);
}

/* The trace's info for perf, with found or given rates if the trace has none. */
static void take_info(struct cli *cli)
{
	struct split *s = cli->data;
	struct vmpt_clocks_options given;

	cli_clock_settings(cli, &given);
	s->info = *vmpt_trace_info(cli->trace);
	perf_out_rates(&s->info,
		       s->clocks.clocks ? vmpt_clocks_rates(s->clocks.clocks) : &given.rates);
}

static int check_clock(struct cli *cli)
{
	struct split *s = cli->data;

	if (s->per_vm && !s->clock_given)
		s->on_clock = VMPT_EXTRACT_CLOCK_HOST;
	if (s->on_clock && cli_is_rtit(cli))
		return cli_usage(cli, "--clock is for Intel PT; RTIT has the hardware's TSC");
	if (!s->on_clock && cli_clock(cli)->given_count)
		return cli_usage(cli, "--guest-tsc is for --clock");
	return CLI_OK;
}

/* Events also name VMs, but need clocks: only if there is a VM to name. */
static int open_names(struct cli *cli)
{
	struct split *s = cli->data;
	bool vms = false;
	int code = CLI_OK;
	size_t i;

	for (i = 0; i < s->outs; i++)
		vms |= s->out[i].owner.kind == VMPT_OWNER_VM;
	if (!s->clocks.clocks && (!vms || !cli_vm_names_any(cli)))
		return CLI_OK;
	if (!s->clocks.clocks)
		code = cli_clocks_open(cli, &s->clocks);
	return code ? code : cli_vm_names_open(cli, &s->clocks, &s->names);
}

/* Never a silent nothing: there were packets, but none says whose they are. */
static void warn_of_none(struct cli *cli)
{
	const struct split *s = cli->data;
	u64 reported = 0;
	size_t i;

	for (i = 0; i < CLI_LOSTS; i++)
		reported += cli->loss[i].bytes;
	if (s->outs || s->left_out <= reported)
		return;
	cli_warn(
		cli,
		"%s: no stream was written: no packet says whose the bytes are; --host-only=yes or "
		"--guest-only=yes gives them an owner",
		cli->file[0]);
	cli->lost_events = true; /* for the exit code */
}

/* perf has one thread, and one stack, per vCPU; the guest's scheduler changes tasks. */
static void warn_of_stacks(const struct cli *cli)
{
	const struct split *s = cli->data;
	size_t i;

	for (i = 0; i < s->outs; i++)
		if (s->perf && s->out[i].owner.kind != VMPT_OWNER_HOST)
			break;
	if (s->perf && i < s->outs)
		cli_warn(
			cli,
			"perf's call stacks of a guest's kernel mix its tasks; flat profiles do not");
}

static int run(struct cli *cli)
{
	struct split *s = cli->data;
	int err; /* enum cli_exit */
	size_t i;

	s->dir_fd = s->new_fd = -1;
	s->perf |= s->per_vm;
	/* perf takes NR = 1 for a guest whose code it does not know. */
	s->conceal |= s->perf;
	if (!s->dir)
		return cli_usage(cli, "no directory to write to: give -o DIR");
	if (!s->perf && (s->wanted.kernel || s->wanted.image.count || s->wanted.code.count))
		return cli_usage(cli, "--code, --kernel and --image are for --perf");
	if (s->conceal && cli_is_rtit(cli))
		return cli_usage(cli, "--conceal and --perf are for Intel PT; RTIT has no VMX "
				      "packets, and perf does not read it");
	err = check_clock(cli);
	if (!err)
		err = take_code(cli);
	/* A record is read before anything is written: it may be bad. */
	if (!err && (s->on_clock || s->code.by_vm || cli_vm_names_given(cli)))
		err = cli_clocks_open(cli, &s->clocks);
	if (!err)
		err = cli_filter_check(cli, 0, NULL);
	if (!err)
		err = cli_filter_open_clocks(cli, &s->clocks);
	if (!err && s->on_clock)
		cli_clock_doubts(cli, s->clocks.clocks);
	if (!err)
		take_info(cli);
	if (!err)
		err = split_open_dir(cli);
	if (!err)
		err = split_index_start(cli);
	/* For PT the library reads slices first, then their packets; for RTIT only slices. */
	cli_progress_start(cli, cli_is_rtit(cli) ? 1 : 2);
	for (i = 0; i < cli->streams && !err; i++) {
		cli_progress_stream(cli, i);
		err = split_stream(cli, i);
	}
	cli_progress_end(cli);
	split_close_all(cli);
	if (!err)
		warn_of_none(cli);
	if (!err)
		warn_of_stacks(cli);
	if (!err)
		err = open_names(cli);
	if (!err)
		err = split_vms_write(cli);
	if (!err)
		err = split_index_finish(cli);
	if (!err)
		err = cli_inputs_whole(cli) ? split_commit(cli) : CLI_FAILED;
	if (!err && cli->json)
		print_json(cli);
	else if (!err)
		print_text(cli);
	if (!err)
		cli_vm_names_tell(cli, &s->names);
	if (!err)
		cli_filter_warn(cli);
	slices_close(s->index);
	json_decref(s->owners);
	json_decref(s->errors);
	free(s->owner);
	split_close_dir(cli);
	split_vms_close(s);
	free(s->out);
	free(s->who);
	cli_vm_names_close(&s->names);
	cli_clocks_close(&s->clocks);
	perf_code_free(&s->code);
	code_files_close(&s->files);
	return err;
}

static const struct cli_option options[] = {
	{ "output", 'o', CLI_DIR, "DIR",
	  "write the streams and their index to DIR, created if needed",
	  CLI_AT(struct split, dir) },
	{ "conceal", 0, CLI_FLAG, NULL,
	  "hide the VMs in all streams, also the host's: no VMCS, NR 0, no VM entries "
	  "and exits",
	  CLI_AT(struct split, conceal) },
	{ "perf", 0, CLI_FLAG, NULL,
	  "write each stream as a perf.data for perf script; implies --conceal",
	  CLI_AT(struct split, perf) },
	{ "per-vm", 0, CLI_FLAG, NULL,
	  "like --perf, but all streams of a VM in one perf.data, in order of time; default of "
	  "--clock: host",
	  CLI_AT(struct split, per_vm) },
	{ "clock", 0, CLI_WORD, "WHOSE",
	  "put TSC packets on one clock; host: the host's, in all streams; guest: each VM's own",
	  "as-is", "as-is, host, guest", CLI_AT(struct split, on_clock),
	  CLI_GIVEN(struct split, clock_given) },
	CODE_OPTIONS(struct split, wanted, "with --perf: "),
	{ "no-index", 0, CLI_FLAG, NULL, "do not write slices.gz, the index of slices",
	  CLI_AT(struct split, no_index) },
	{ "force", 'f', CLI_FLAG, NULL,
	  "overwrite the files of an earlier split, and remove its other streams",
	  CLI_AT(struct split, force) },
	{ 0 },
};

static const struct cli_group group = { .option = options };

static const char *const csv_streams[] = {
	"file", "cpu",	  "tid",	  "owner", "vmcs", "vm",
	"vcpu", "slices", "source_bytes", "bytes", NULL,
};

static const struct cli_csv csv[] = {
	{ "streams", NULL, csv_streams },
	{ 0 },
};

const struct cli_command cli_split = {
	.name = "split",
	.title = "write one stream per VM and CPU, and an index",
	.about =
		"Split the trace: one stream per VMCS and CPU, one per CPU for the host, each a\n"
		"trace of its own, and an index of the slices, which vmpt index prints: their\n"
		"owner, how sure that is, their offset, and the changes at their edges. With RTIT\n"
		"owners come from the side record. Filters choose whole slices: those of which a\n"
		"part fits.",
	.examples = "  vmpt split -o out perf.data\n"
		    "  vmpt split -o out --conceal --cpu 0 perf.data\n"
		    "  vmpt split -o out cpu0.pt cpu1.pt && vmpt vms out/*.cpu0.pt\n"
		    "  vmpt split -o out --clock=host --perf perf.data\n"
		    "  vmpt split -o out --per-vm perf.data &&\n"
		    "    perf script -i out/vm-web.perf.data --itrace=b\n"
		    "  vmpt split -o out --side-record vms.jsonl cpu0.rtit cpu1.rtit\n"
		    "  vmpt split -o out trace    a recording's folder\n"
		    "  vmpt split -o out --perf --code=vmlinux --code=a.out cpu0.pt &&\n"
		    "    perf script -k vmlinux -i out/vmcs-a000.cpu0.perf.data --itrace=b\n",
	.group = { &group, &cli_filter_group, &cli_clock_group, &cli_input_group, &cli_side_group,
		   &cli_mode_group, &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct split),
	.run = run,
};
