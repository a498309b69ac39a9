// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt dump: packet by packet, what is asked for of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/clock-options.h"
#include "cli/dump.h"
#include "cli/record.h"

/* ---- options ---- */

static int set_start(struct cli *cli, const char *arg)
{
	return cli_parse_u64(cli, "--start", arg, &((struct dump *)cli->own)->start);
}

static int set_end(struct cli *cli, const char *arg)
{
	struct dump *d = cli->own;

	if (cli_parse_u64(cli, "--end", arg, &d->end))
		return -1;
	if (d->end)
		return 0;
	cli_usage(cli, "--end: the end lies behind the start, so it is not 0");
	return -1;
}

static int set_head(struct cli *cli, const char *arg)
{
	struct dump *d = cli->own;

	if (cli_parse_u64(cli, "--head", arg, &d->head))
		return -1;
	if (d->head)
		return 0;
	cli_usage(cli, "--head: 0 packets are none; give 1 or more");
	return -1;
}

static int set_time(struct cli *cli, const char *arg)
{
	(void)arg;
	((struct dump *)cli->own)->time = true;
	return 0;
}

static int set_no_bytes(struct cli *cli, const char *arg)
{
	(void)arg;
	((struct dump *)cli->own)->no_bytes = true;
	return 0;
}

static int set_no_pad(struct cli *cli, const char *arg)
{
	(void)arg;
	((struct dump *)cli->own)->no_pad = true;
	return 0;
}

static int set_expand_pad(struct cli *cli, const char *arg)
{
	(void)arg;
	((struct dump *)cli->own)->expand_pad = true;
	return 0;
}

/* Call @set for each word between commas. */
static int each_word(struct cli *cli, const char *arg,
		     int (*set)(struct cli *cli, const char *word))
{
	char *copy = strdup(arg), *at, *word;
	int ret = 0;

	if (!copy) {
		cli_no_memory(cli);
		return -1;
	}
	for (at = copy; !ret && (word = strsep(&at, ",")) != NULL;)
		ret = set(cli, word);
	free(copy);
	return ret;
}

/* A VMCS in hex, or a VM's name: which, is known when the trace is. */
static int set_one_owner(struct cli *cli, const char *word)
{
	struct dump *d = cli->own;

	if (!strcmp(word, "host")) {
		d->owners |= 1u << VMPT_OWNER_HOST;
	} else if (!strcmp(word, "unknown")) {
		d->owners |= 1u << VMPT_OWNER_UNKNOWN;
	} else if (!strcmp(word, "vm")) {
		d->owners |= 1u << VMPT_OWNER_VM | 1u << VMPT_OWNER_VM_ANY;
	} else if (d->names == DUMP_OWNERS_MAX) {
		cli_usage(cli, "--owner: at most %d VMs", DUMP_OWNERS_MAX);
		return -1;
	} else if (strlen(word) >= DUMP_NAME_MAX) {
		cli_usage(cli, "--owner: a name of more than %d bytes", DUMP_NAME_MAX - 1);
		return -1;
	} else {
		strcpy(d->name[d->names++], word);
	}
	return 0;
}

/* "NAME vcpu N", as dump prints it, or "NAME:N". */
static bool is_vcpu(const struct cli *cli, size_t k, const char *word)
{
	const struct vmpt_owner owner = { .kind = VMPT_OWNER_VM, .vmcs = k + 1 };
	const struct cli_vcpu *v = &cli->record->vcpu[k];
	size_t len = strlen(v->vm);
	char text[CLI_WHO];

	if (!strcmp(word, cli_who(cli, &owner, text)))
		return true;
	snprintf(text, sizeof(text), "%u", v->vcpu);
	return !strncmp(word, v->vm, len) &&
	       ((word[len] == ':' && !strcmp(word + len + 1, text)) ||
		(!strncmp(word + len, " vcpu ", 6) && !strcmp(word + len + 6, text)));
}

/* The virtual CPUs that @word names: all of a VM of this name, else one. False if none. */
static bool take_vm(struct cli *cli, const char *word)
{
	const struct cli_record *r = cli->record;
	struct dump *d = cli->own;
	bool any = false;
	size_t k;

	for (k = 0; k < r->vcpus; k++) {
		if (strcmp(r->vcpu[k].vm, word) != 0)
			continue;
		any = d->vcpu_wanted[k] = true;
	}
	for (k = 0; k < r->vcpus && !any; k++)
		any = d->vcpu_wanted[k] |= is_vcpu(cli, k, word);
	return any;
}

/* What --owner's names stand for in this trace. 0, or an exit code. */
static int find_owners(struct cli *cli)
{
	const struct cli_record *r = cli->record;
	struct dump *d = cli->own;
	size_t i;
	char *end;

	for (i = 0; i < d->names && !cli_is_rtit(cli); i++) {
		errno = 0;
		d->vmcs[d->vmcs_count++] = strtoull(d->name[i], &end, 16);
		if (errno || end == d->name[i] || *end || d->name[i][0] == '-')
			return cli_usage(cli,
					 "--owner: '%s' is not host, vm, unknown or a VMCS in hex",
					 d->name[i]);
	}
	if (r && d->names) {
		d->vcpu_wanted = calloc(r->vcpus + 1, sizeof(*d->vcpu_wanted));
		if (!d->vcpu_wanted)
			return cli_no_memory(cli);
	}
	for (i = 0; i < d->names && cli_is_rtit(cli); i++)
		if (!r || !take_vm(cli, d->name[i]))
			return cli_usage(cli, "--owner: '%s' is not host, vm, unknown or %s",
					 d->name[i],
					 r ? "a VM of the side record, NAME or NAME:VCPU"
					   : "the name of a VM, which --side-record tells");
	return CLI_OK;
}

static int set_owner(struct cli *cli, const char *arg)
{
	return each_word(cli, arg, set_one_owner);
}

/* Words for several kinds. */
static u64 kind_group(const char *word)
{
	u64 kinds = 0;
	unsigned int i;

	for (i = 0; i < VMPT_PT_KINDS; i++) {
		unsigned int c = vmpt_pt_table[i].classes;
		const char *name = vmpt_pt_name(i);

		if ((!strcasecmp(word, "timing") && (c & VMPT_PT_TIMING)) ||
		    (!strcasecmp(word, "ip") && (c & VMPT_PT_HAS_IP)) ||
		    (!strcasecmp(word, "tnt") && !strncmp(name, "TNT", 3)) ||
		    (!strcasecmp(word, "mode") && !strncmp(name, "MODE", 4)) ||
		    !strcasecmp(word, name))
			kinds |= 1ULL << i;
	}
	return strcasecmp(word, "lost") ? kinds : DUMP_LOSS_BIT;
}

static u64 rtit_kind_group(const char *word)
{
	u64 kinds = 0;
	unsigned int i;

	for (i = 0; i < VMPT_RTIT_KINDS; i++) {
		unsigned int c = vmpt_rtit_table[i].classes;
		const char *name = vmpt_rtit_name(i);

		if ((!strcasecmp(word, "timing") && (c & VMPT_RTIT_TIMING)) ||
		    (!strcasecmp(word, "ip") && (c & VMPT_RTIT_HAS_LIP)) ||
		    (!strcasecmp(word, "fup") && !strncmp(name, "FUP", 3)) ||
		    !strcasecmp(word, name))
			kinds |= 1ULL << i;
	}
	return strcasecmp(word, "lost") ? kinds : DUMP_LOSS_BIT;
}

static int set_one_kind(struct cli *cli, const char *word)
{
	u64 kinds = kind_group(word), rtit_kinds = rtit_kind_group(word);
	struct dump *d = cli->own;
	unsigned int i;

	d->kinds |= kinds;
	d->rtit_kinds |= rtit_kinds;
	if (kinds || rtit_kinds)
		return 0;
	cli_usage(cli, "--kinds: no packet is called '%s'", word);
	fprintf(stderr, "Kinds:");
	for (i = 0; i < VMPT_PT_KINDS; i++)
		fprintf(stderr, " %s", vmpt_pt_name(i));
	fprintf(stderr, "\nof RTIT:");
	for (i = 0; i < VMPT_RTIT_KINDS; i++)
		fprintf(stderr, " %s", vmpt_rtit_name(i));
	fprintf(stderr, "\nGroups: ip mode tnt fup timing; lost\n");
	return -1;
}

/* Without --kinds all are wanted. 0, or an exit code. */
static int check_kinds(struct cli *cli)
{
	struct dump *d = cli->own;

	if (!d->kinds && !d->rtit_kinds)
		d->kinds = d->rtit_kinds = ~0ULL;
	if (cli_is_rtit(cli) ? d->rtit_kinds : d->kinds)
		return CLI_OK;
	return cli_usage(cli, "--kinds: %s has no such packets",
			 cli_is_rtit(cli) ? "RTIT" : "Intel PT");
}

static int set_kinds(struct cli *cli, const char *arg)
{
	return each_word(cli, arg, set_one_kind);
}

/* ---- the walk ---- */

bool dump_owner_wanted(const struct cli *cli, const struct vmpt_owner *o)
{
	const struct dump *d = cli->own;
	size_t i;

	if (!d->owners && !d->names)
		return true;
	if (d->owners >> o->kind & 1)
		return true;
	if (d->vcpu_wanted && cli_record_vcpu(cli, o))
		return d->vcpu_wanted[o->vmcs - 1];
	for (i = 0; i < d->vmcs_count && o->kind == VMPT_OWNER_VM; i++)
		if (d->vmcs[i] == o->vmcs)
			return true;
	return false;
}

bool dump_too_early(const struct dump *d, u64 offset, u64 size)
{
	return offset < d->start && offset + size <= d->start;
}

static bool wanted(const struct cli *cli, const struct vmpt_packet *pkt)
{
	const struct dump *d = cli->own;
	u64 bit = pkt->kind == VMPT_ITEM_LOSS ? DUMP_LOSS_BIT : 1ULL << pkt->kind;

	if (!(d->kinds & bit) || !dump_owner_wanted(cli, &pkt->owner))
		return false;
	return !(d->no_pad && pkt->kind == VMPT_PT_PAD);
}

static void print(struct cli *cli, const struct dump_line *line)
{
	struct dump *d = cli->own;

	if (d->head && d->lines == d->head)
		return;
	d->lines++;
	if (cli->json)
		dump_json(cli, &d->style, line);
	else
		dump_text(cli, &d->style, line);
}

static void flush_pads(struct cli *cli)
{
	struct dump *d = cli->own;

	if (d->pad.size)
		print(cli, &d->pad);
	d->pad.size = 0;
}

static bool same_owner(const struct vmpt_owner *a, const struct vmpt_owner *b)
{
	return a->kind == b->kind && a->vmcs == b->vmcs && a->sure == b->sure;
}

/* PADs that follow each other make one line. */
static void put_pad(struct cli *cli, const struct dump_line *line)
{
	struct dump *d = cli->own;

	if (d->pad.size && d->pad.offset + d->pad.size == line->offset &&
	    same_owner(&d->pad.owner, &line->owner)) {
		d->pad.size++;
		return;
	}
	flush_pads(cli);
	d->pad = *line;
}

/* @line has the packet's time. */
static void put_packet(struct cli *cli, const struct vmpt_stream *stream,
		       const struct vmpt_packet *pkt, u64 size, struct dump_line *line)
{
	struct dump *d = cli->own;
	unsigned int block = 0;

	line->stream = stream;
	line->offset = pkt->offset;
	line->size = size;
	line->owner = pkt->owner;
	line->kind = pkt->kind;
	line->full_ip = pkt->payload;
	line->bbp_type = d->bbp_type;
	if (pkt->kind == VMPT_ITEM_LOSS) {
		line->loss = pkt->aux;
	} else {
		if (pkt->kind == VMPT_PT_BIP)
			block = VMPT_PT_BLOCK(size == 5, d->bbp_type);
		/* The decoder took it for a packet already: this cannot fail. */
		if (vmpt_pt_decode(&line->pkt, stream->data + pkt->offset,
				   stream->size - pkt->offset, block))
			line->pkt = (struct vmpt_pt_packet){ .kind = pkt->kind };
	}
	if (pkt->kind == VMPT_PT_PAD && !d->expand_pad) {
		put_pad(cli, line);
		return;
	}
	flush_pads(cli);
	print(cli, line);
}

/* A BIP's meaning depends on the BBP before it. */
static void note_block(struct dump *d, const struct vmpt_stream *stream,
		       const struct vmpt_packet *pkt)
{
	struct vmpt_pt_packet bbp;

	if (pkt->kind == VMPT_PT_BBP &&
	    !vmpt_pt_decode(&bbp, stream->data + pkt->offset, stream->size - pkt->offset, 0))
		d->bbp_type = (unsigned int)bbp.bbp.type;
}

bool dump_enough(struct cli *cli)
{
	const struct dump *d = cli->own;

	return (d->head && d->lines == d->head) || cli_output_failed(cli);
}

static int walk(struct cli *cli, size_t i, struct dump_source *source)
{
	const struct vmpt_stream *stream = cli->stream[i];
	struct dump *d = cli->own;
	struct vmpt_packet pkt;
	struct dump_line line;
	int ret;

	while ((ret = dump_next(cli, source, &pkt, &line)) > 0) {
		u64 size = pkt.kind == VMPT_ITEM_LOSS ? pkt.payload : pkt.size;

		if ((d->end && pkt.offset >= d->end) || dump_enough(cli)) {
			ret = 0;
			break;
		}
		note_block(d, stream, &pkt);
		if (dump_too_early(d, pkt.offset, size))
			continue;
		if (pkt.kind == VMPT_ITEM_LOSS)
			cli_lose(cli, CLI_LOST, stream, pkt.offset, size, pkt.aux);
		if (wanted(cli, &pkt))
			put_packet(cli, stream, &pkt, size, &line);
	}
	flush_pads(cli);
	return ret;
}

/* So that names do not push the columns to and fro. */
static void widen_owner(struct cli *cli, u64 number)
{
	struct vmpt_owner owner = { .kind = VMPT_OWNER_VM, .vmcs = number };
	struct dump *d = cli->own;
	char buf[CLI_WHO];
	int columns = 0;
	const char *s;

	for (s = cli_who(cli, &owner, buf); *s; s++)
		columns += ((unsigned char)*s & 0xc0) != 0x80;
	if (columns > d->style.owner_width && columns <= 32)
		d->style.owner_width = columns;
}

static bool has_cycles(const struct cli *cli, size_t i)
{
	enum vmpt_cycle_acc acc = cli->options.cycle_acc;

	if (acc == VMPT_CYCLE_ACC_AUTO)
		acc = vmpt_rtit_cycles_guess(cli->stream[i], cli->options.headless);
	return acc == VMPT_CYCLE_ACC_YES;
}

static int dump_stream(struct cli *cli, size_t i)
{
	const struct vmpt_stream *stream = cli->stream[i];
	struct dump *d = cli->own;
	struct dump_source source = { 0 };
	char name[32];
	struct vmpt_options opts = cli_stream_options(cli, i);
	bool rtit = cli_is_rtit(cli);
	size_t k;
	u64 size;
	int ret = d->clocks ? vmpt_timed_open(&source.timed, d->clocks, i, &opts)
			    : vmpt_decoder_open(&source.dec, stream, &opts);

	if (ret)
		return ret;
	/* 8 bytes: few packets of PT are longer. RTIT's are 7, 10 with a cycle count. */
	d->style = (struct dump_style){ .bytes = !d->no_bytes,
					.offset_width = 8,
					.owner_width = 10,
					.bytes_width = !rtit		    ? 23
						       : has_cycles(cli, i) ? 29
									    : 20,
					.bytes_grow = rtit,
					.time = d->clocks };
	for (k = 0; cli->record && k < cli->record->vcpus; k++)
		widen_owner(cli, k + 1);
	for (size = stream->size; size >> 4 * d->style.offset_width;)
		d->style.offset_width++;
	if (!cli->json && cli->streams > 1)
		printf("%s%s%s%s\n", i ? "\n" : "", cli_paint(cli, CLI_BOLD),
		       cli_stream_name(stream, name), cli_paint(cli, CLI_PLAIN));
	if (!cli->json)
		dump_header(cli, &d->style, rtit);
	ret = rtit ? dump_rtit(cli, i, source.dec) : walk(cli, i, &source);
	vmpt_timed_close(source.timed);
	vmpt_decoder_close(source.dec);
	return ret;
}

static int dump_all(struct cli *cli)
{
	int ret = 0;
	size_t i;

	/* On a terminal the lines themselves show the progress. */
	if (!cli->stdout_tty)
		cli_progress_start(cli, 1);
	for (i = 0; i < cli->streams && !ret && !dump_enough(cli); i++) {
		cli_progress_stream(cli, i);
		ret = dump_stream(cli, i);
	}
	cli_progress_end(cli);
	if (ret < 0)
		cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
	return ret ? CLI_FAILED : CLI_OK;
}

static int check_usage(struct cli *cli)
{
	const struct dump *d = cli->own;
	int code;

	if (d->end && d->end <= d->start)
		return cli_usage(cli, "--end must lie behind --start");
	if (d->no_pad && d->expand_pad)
		return cli_usage(cli, "--no-pad and --expand-pad exclude each other");
	if (cli_is_rtit(cli) && cli->clock.rates.tsc_num &&
	    (cli->clock.rates.tsc_num > 255 || cli->clock.rates.tsc_den != 1))
		return cli_usage(cli, "--tsc-ratio: of RTIT it is one number from 1 to 255");
	if (!cli_is_rtit(cli) && !d->time && cli_clock_given(cli))
		return cli_usage(cli, "rates and maps are for times: give --time, too");
	code = find_owners(cli);
	return code ? code : check_kinds(cli);
}

static int run(struct cli *cli)
{
	struct dump *d = cli->own;
	int code = check_usage(cli);

	if (!code && d->time && !cli_is_rtit(cli))
		code = dump_time_open(cli);
	if (!code)
		code = dump_all(cli);
	vmpt_clocks_close(d->clocks);
	free(d->vcpu_wanted);
	return code;
}

static const struct cli_option options[] = {
	{ "start", 0, "OFFSET", "from this offset of the stream on", set_start },
	{ "end", 0, "OFFSET", "up to this offset", set_end },
	{ "head", 'n', "N", "stop after N lines", set_head },
	{ "owner", 0, "LIST",
	  "only these owners: host, vm (any), unknown, a VMCS\n"
	  "in hex, or of RTIT a VM's name, or NAME:VCPU",
	  set_owner },
	{ "kinds", 0, "LIST",
	  "only these packets, by name, like psb,tip.pge, or\n"
	  "by group: ip, mode, tnt, fup, timing; lost for losses",
	  set_kinds },
	{ "time", 0, NULL,
	  "the time of each packet, in ticks of the host's TSC,\n"
	  "with how much earlier and later it may have been (…:\n"
	  "not known), and on its guest's clock; of RTIT it is\n"
	  "always there",
	  set_time },
	{ "no-bytes", 0, NULL, "leave the raw bytes out", set_no_bytes },
	{ "no-pad", 0, NULL, "leave PADs out", set_no_pad },
	{ "expand-pad", 0, NULL, "a line for each PAD; else one for a run of them",
	  set_expand_pad },
	{ 0 },
};

const struct cli_command cli_dump = {
	.name = "dump",
	.title = "print the packets, with full IPs and owners",
	.about =
		"Print packets: offset in the stream, owner, raw bytes, name and payload. Packets\n"
		"with an IP show the full IP and IPBytes. Behind an owner, ~ says that it is\n"
		"assumed, ? that it is uncertain. --json prints one JSON object a line.\n"
		"--time: a < behind a time says that it went back there, for a reason that --json\n"
		"names. RTIT's have the hardware TSC too, as far as it is known, with a bound.",
	.examples = "  vmpt dump --time --vm 3b56ee000:-81923 trace.pt\n"
		    "  vmpt dump --head 40 trace.pt           the first lines\n"
		    "  vmpt dump --start 0x1000 --end 0x1100 trace.pt\n"
		    "  vmpt dump --owner 3b56ee000 --kinds ip,tnt trace.pt\n"
		    "  vmpt dump --kinds pip,vmcs --no-bytes --cpu 2 perf.data\n"
		    "  vmpt dump --side-record vms.jsonl --owner web cpu0.rtit\n"
		    "  vmpt dump --json trace.pt | jq -r 'select(.packet == \"PIP\").cr3'\n",
	.options = options,
	.clock = true,
	.own_size = sizeof(struct dump),
	.run = run,
};
