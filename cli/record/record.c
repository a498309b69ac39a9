// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt record: record a host with all its VMs. perf records Intel PT of all CPUs; the side file has
 * what only the host knows while they run: which thread is which VM's vCPU, and how its TSC follows
 * from the host's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/record/record.h"

/* ---- options ---- */

/* "64M": a power of two, in bytes, or K, M, G of them. */
static int take_aux_size(struct cli *cli, void *to, const char *arg)
{
	char *end;
	u64 size;

	errno = 0;
	size = strtoull(arg, &end, 10);
	if (!errno && end > arg && *end && !end[1]) {
		unsigned int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 64;

		size = shift < 64 && size <= ~0ULL >> shift ? size << shift : 0;
		end++;
	}
	if (errno || end == arg || *end || arg[0] < '0' || arg[0] > '9' || size < 4096 ||
	    size > 1ULL << 40 || (size & (size - 1))) {
		cli_usage(cli, "--aux-size: '%s' is not a power of two of at least 4K, like 64M",
			  arg);
		return -1;
	}
	*(u64 *)to = size;
	return 0;
}

/* The name becomes a file's, and a word of virsh's command line. */
static int take_guest_memory(struct cli *cli, void *to, const char *arg)
{
	(void)to;
	if (*arg && *arg != '-' && *arg != '.' && !strchr(arg, '/'))
		return 0;
	cli_usage(cli, "--guest-memory: '%s' is not a domain name", arg);
	return -1;
}

static const struct cli_option options[] = {
	{ "output", 'o', CLI_DIR, "DIR", "the folder to create", "vmpt-record",
	  CLI_AT(struct rec_options, out) },
	{ "check", 0, CLI_FLAG, NULL, "only say what is missing, and what to do",
	  CLI_AT(struct rec_options, check) },
	{ "dry-run", 'n', CLI_FLAG, NULL, "only print the command line of perf",
	  CLI_AT(struct rec_options, dry_run) },
	{ "aux-size", 0, CLI_OTHER, "SIZE", "the trace's buffer of each CPU, like 64M", "16M",
	  CLI_AT(struct rec_options, aux_size), .take = take_aux_size },
	{ "mtc-period", 0, CLI_NUMBER, "N",
	  "an MTC packet every 2^N ticks of the crystal clock [perf's: 3]", .max = 15,
	  CLI_AT(struct rec_options, mtc_period), CLI_GIVEN(struct rec_options, has_mtc_period) },
	{ "psb-period", 0, CLI_NUMBER, "N", "a PSB packet every 2^(N+11) bytes [perf's: 3]",
	  .max = 15, CLI_AT(struct rec_options, psb_period),
	  CLI_GIVEN(struct rec_options, has_psb_period) },
	{ "no-cyc", 0, CLI_FLAG, NULL, "no CYC packets: fewer bytes, less precise times",
	  CLI_AT(struct rec_options, no_cyc) },
	{ "noretcomp", 0, CLI_FLAG, NULL, "a TIP for each RET: more bytes, easier to decode",
	  CLI_AT(struct rec_options, noretcomp) },
	{ "no-events", 0, CLI_FLAG, NULL, "without kvm:kvm_entry and kvm:kvm_exit",
	  CLI_AT(struct rec_options, no_events) },
	{ "kcore", 0, CLI_FLAG, NULL, "perf's --kcore: also save the kernel's code",
	  CLI_AT(struct rec_options, kcore) },
	{ "every", 0, CLI_NUMBER, "MS", "scan the VMs every MS milliseconds", "1000", .min = 1,
	  .max = 3600000, CLI_AT(struct rec_options, every) },
	{ "guest-memory", 0, CLI_STRING, "DOMAIN",
	  "save a dump of the memory of this libvirt domain",
	  .words = "$(virsh -q list --name 2>/dev/null)", CLI_AT(struct rec_options, domain),
	  .take = take_guest_memory },
	{ "guest-memory-at", 0, CLI_WORD, "WHEN",
	  "when: at the end of the recording, at its start, or both", "end", "end, start, both",
	  CLI_AT(struct rec_options, memory_at) },
	{ 0 },
};

static const struct cli_group group = { .option = options };

/* ---- the folder ---- */

static int make_folder(struct recorder *r)
{
	static const char *const sub[] = { "", "/" CLI_FOLDER_SYMBOLS, "/" CLI_FOLDER_IMAGES,
					   "/" REC_HOST };
	char path[REC_PATH];
	size_t i;
	int fd;

	for (i = 0; i < VMPT_ARRAY_SIZE(sub); i++) {
		snprintf(path, sizeof(path), "%s%s", r->o->out, sub[i]);
		if (!mkdir(path, 0700))
			continue;
		cli_error(r->cli, "%s: %s", path, strerror(errno));
		return CLI_FAILED;
	}
	snprintf(path, sizeof(path), "%s/" CLI_FOLDER_SIDE, r->o->out);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r->side = fd < 0 ? NULL : fdopen(fd, "w");
	if (!r->side) {
		cli_error(r->cli, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return CLI_FAILED;
	}
	return CLI_OK;
}

/* ---- the result ---- */

/* Read perf.data and report losses; what was recorded is kept. */
static int tell(struct recorder *r, const struct rec_perf *p)
{
	const struct vmpt_trace_info *info;
	struct vmpt_trace *trace;
	struct vmpt_diag diag;
	u64 bytes = 0;
	size_t i;
	int code = CLI_OK;

	if (vmpt_trace_open(&trace, p->trace, -1, &diag)) {
		cli_error(r->cli, "%s: %s", p->trace, diag.text);
		return CLI_FAILED;
	}
	info = vmpt_trace_info(trace);
	for (i = 0; i < vmpt_trace_streams(trace); i++)
		bytes += vmpt_trace_stream(trace, i)->size;
	if (!r->cli->quiet)
		fprintf(stderr, "vmpt record: %llu KiB of trace of %zu CPUs in %s\n",
			(unsigned long long)(bytes >> 10), vmpt_trace_streams(trace), p->trace);
	if (info->truncated_buffers) {
		cli_warn(
			r->cli,
			"%llu times a buffer was full and trace was lost: a larger --aux-size, a faster "
			"disk, or --no-cyc",
			(unsigned long long)info->truncated_buffers);
		code = CLI_LOSSES;
	}
	if (info->lost_events) {
		cli_warn(r->cli,
			 "%llu events were lost: --no-events, or less on the host at a time",
			 (unsigned long long)info->lost_events);
		code = CLI_LOSSES;
	}
	if (info->incomplete) {
		cli_warn(r->cli, "%s: %s", p->trace, diag.text);
		code = CLI_LOSSES;
	}
	vmpt_trace_close(trace);
	return code;
}

static int record(struct recorder *r, struct rec_perf *p)
{
	int code = make_folder(r), given;
	unsigned int failed = 0;
	bool ran = false;

	if (code)
		return code;
	/* The vCPUs seen by the checks are scanned again, and written. */
	r->vcpus = 0;
	rec_save(r);
	code = cli_recorder_open(&r->recorder, r->cli, r->o->out, rec_host(r));
	if (!code) {
		failed = rec_save_memory(r, true);
		ran = !r->stopped;
		code = ran ? rec_perf_run(r, p) : CLI_FAILED;
	}
	/* The guests keep running: their memory first. */
	if (ran) {
		cli_json_set(r->cli, r->recorder.doc, "end", json_incref(r->end));
		cli_recorder_put(&r->recorder);
		failed += rec_save_memory(r, false);
	}
	given = cli_recorder_close(&r->recorder, r->end);
	code = code ? code : failed ? CLI_FAILED : given;
	if (fclose(r->side) && !r->side_errno)
		r->side_errno = errno;
	if (r->side_errno) {
		cli_error(r->cli, "%s/" CLI_FOLDER_SIDE " cannot be written: %s", r->o->out,
			  strerror(r->side_errno));
		code = CLI_FAILED;
	}
	r->side = NULL;
	given = ran ? tell(r, p) : CLI_OK;
	return code ? code : given;
}

/* A word quoted for a shell. */
static void print_word(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+=,./:@%";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, stdout);
		return;
	}
	putchar('\'');
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*word);
	putchar('\'');
}

static int run(struct cli *cli)
{
	const struct rec_options *o = cli->data;
	const char *root = getenv("VMPT_RECORD_ROOT");
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct recorder r = { .cli = cli, .o = o, .root = root ? root : "" };
	struct rec_perf p;
	int code, i;

	if (strlen(o->out) > REC_PATH / 2)
		return cli_usage(cli, "--output: '%s' is not a folder name", o->out);
	cli->mode = 0600;
	r.cpus = cpus > 0 ? (unsigned int)cpus : 1;
	rec_check(&r);
	code = r.stopped || (r.fatal && !o->dry_run) ? CLI_FAILED : rec_perf_args(&r, &p);
	if (!code && o->dry_run) {
		for (i = 0; i < p.args; i++) {
			fputs(i ? " " : "", stdout);
			print_word(p.arg[i]);
		}
		putchar('\n');
	} else if (!code && o->check) {
		printf("This host can be recorded%s\n",
		       r.lacking ? ", with less than there could be." : ".");
	} else if (!code) {
		code = record(&r, &p);
	}
	free(r.vcpu);
	return code;
}

const struct cli_command cli_record = {
	.name = "record",
	.title = "record a host with all its VMs, by perf",
	.about = "Record Intel PT of all CPUs of this host with perf, and what only the host\n"
		 "knows: which thread is which VM's vCPU, VMs' TSC offsets and multipliers as\n"
		 "they change, names of libvirt's domains, and the kernel's symbols. Without\n"
		 "COMMAND until Ctrl-C. All of it goes into one new folder that only you can\n"
		 "read: give it to the other commands as their FILE. The command first says what\n"
		 "is missing.",
	.examples = "  vmpt record --check                 what is missing, and what to do\n"
		    "  vmpt record -o trace -- sleep 1     one second of this host\n"
		    "  vmpt vms trace                      who ran in it\n",
	.args = "[-- COMMAND [ARG]...]",
	.group = { &group },
	.data_size = sizeof(struct rec_options),
	.run = run,
};
