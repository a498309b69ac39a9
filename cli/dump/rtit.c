// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt dump of RTIT. A packet's cycle count is a separate item after it, so a line waits for
 * the next item. If others have cycle counts and this packet has none, the next packet bounds its
 * time, so it waits for that one too.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/dump/dump.h"
#include "decoder/vmpt-rtit-clock.h"

#define NAME_WIDTH 11 /* "FUP.BuffOvf" */
#define WAIT_MAX   4  /* lines */

/* A packet with its cycle count, or a loss. */
struct rtit_line {
	struct vmpt_packet at; /* size 0: none */
	u64 size;	       /* with the cycle count */
	struct vmpt_rtit_packet pkt;
	bool timed; /* tsc and error are valid */
	u64 tsc, error;
	u64 lo;		    /* not before this tick */
	u64 contradictions; /* of the clock up to here */
	bool went_back;
	bool by_mtc; /* no STS yet: since_mtc is valid */
	u64 since_mtc;
};

struct rtit_walk {
	struct cli *cli;
	struct dump *d;
	const struct vmpt_stream *stream;
	struct vmpt_rtit_clock clock;
	struct rtit_line line[WAIT_MAX]; /* not printed yet */
	unsigned int waiting;
	bool cycles; /* a cycle count was seen */
	u64 mtc;     /* before the first STS: the last one's payload */
	bool mtc_known;
	u64 since_mtc; /* ticks since the first one */
};

/* What was corrected because of it (Appendix E). E1 needs the code; E6 is in every cycle count
 * other than 0. */
static const char *const erratum_text[VMPT_RTIT_ERRATA + 1] = {
	[2] = "E2: one too many, ignored",
	[3] = "E3: one packet late",
	[4] = "E4: the TraceSTOP before it did not stop",
	[5] = "E5: meaningless, ignored",
	[7] = "E7: the first after an enable, ignored",
};

/* ---- text ---- */

static void print_bytes(struct cli *cli, struct rtit_walk *w, const struct rtit_line *line)
{
	const u8 *b = w->stream->data + line->at.offset;
	bool loss = line->at.kind == VMPT_ITEM_LOSS;
	char text[64] = "", *at = text;
	u64 i, n = line->size;

	if (!loss && line->pkt.kind == VMPT_RTIT_PSB) {
		strcpy(text, "c0 00 ×8");
	} else {
		if (n > 8)
			n = loss ? 7 : n > VMPT_RTIT_SIZE_MAX ? VMPT_RTIT_SIZE_MAX : n;
		for (i = 0; i < n; i++)
			at += sprintf(at, "%s%02x", i ? " " : "", b[i]);
		if (n < line->size)
			strcpy(at, " …");
	}
	dump_print_bytes(cli, &w->d->style, text);
}

static void print_time(struct cli *cli, const struct rtit_line *line)
{
	char text[64] = "–";

	if (line->timed && line->error == ~0ULL)
		snprintf(text, sizeof(text), "%llx ?", (unsigned long long)line->tsc);
	else if (line->timed && line->error)
		snprintf(text, sizeof(text), "%llx ±%llu", (unsigned long long)line->tsc,
			 (unsigned long long)line->error);
	else if (line->timed)
		snprintf(text, sizeof(text), "%llx", (unsigned long long)line->tsc);
	else if (line->by_mtc)
		snprintf(text, sizeof(text), "+%llx", (unsigned long long)line->since_mtc);
	fputs(cli_paint(cli, CLI_DIM), stdout);
	dump_print_padded(text, DUMP_TIME_WIDTH);
	printf("%s  ", cli_paint(cli, CLI_PLAIN));
}

static enum cli_paint kind_paint(unsigned int kind)
{
	unsigned int classes = vmpt_rtit_table[kind].classes;

	switch (kind) {
	case VMPT_RTIT_PSB:
		return CLI_BOLD;
	case VMPT_RTIT_PIP:
		return CLI_MAGENTA;
	case VMPT_RTIT_BUFF_OVF:
	case VMPT_RTIT_TRACESTOP:
		return CLI_RED;
	default:
		return classes & VMPT_RTIT_TIMING    ? CLI_YELLOW
		       : classes & VMPT_RTIT_HAS_LIP ? CLI_CYAN
						     : CLI_PLAIN;
	}
}

/* The full LIP; digits that are not known are '?'. */
static void print_lip(struct cli *cli, const struct rtit_line *line)
{
	unsigned int digits = 4 * ((unsigned int)line->pkt.ip.cnt + 1);

	if (line->at.aux & VMPT_RTIT_AUX_NO_LIP)
		printf(" 0x%.*s%0*llx", 12 - (int)digits, "????????????", (int)digits,
		       (unsigned long long)line->at.payload);
	else
		printf(" 0x%llx", (unsigned long long)line->at.payload);
	printf("%s cnt=%u%s%s", cli_paint(cli, CLI_DIM), (unsigned int)line->pkt.ip.cnt,
	       line->pkt.ip.zext ? " zext" : "", cli_paint(cli, CLI_PLAIN));
}

static void print_packet(struct cli *cli, const struct rtit_line *line)
{
	const struct vmpt_rtit_packet *p = &line->pkt;
	enum cli_paint paint = kind_paint(p->kind);
	unsigned int erratum = VMPT_RTIT_AUX_ERRATUM(line->at.aux);
	struct vmpt_rtit_packet body = *p;
	const char *fields;
	char text[128];

	body.flags = 0;
	vmpt_rtit_print(&body, text, sizeof(text));
	fields = strchr(text, ' ');
	printf("%s%-*s%s", paint ? cli_paint(cli, paint) : "",
	       fields || p->flags || erratum ? NAME_WIDTH : 0, vmpt_rtit_name(p->kind),
	       paint ? cli_paint(cli, CLI_PLAIN) : "");
	if (vmpt_rtit_table[p->kind].classes & VMPT_RTIT_HAS_LIP)
		print_lip(cli, line);
	else
		fputs(fields ? fields : "", stdout);
	if (p->flags & VMPT_RTIT_CYCLES)
		printf(" +%u", p->cycles);
	if (erratum && erratum_text[erratum])
		printf(" %s(%s)%s", cli_paint(cli, CLI_RED), erratum_text[erratum],
		       cli_paint(cli, CLI_PLAIN));
	if (line->went_back)
		printf(" %s(the TSC went back)%s", cli_paint(cli, CLI_RED),
		       cli_paint(cli, CLI_PLAIN));
	putchar('\n');
}

static void print_text(struct rtit_walk *w, const struct rtit_line *line)
{
	struct cli *cli = w->cli;

	dump_print_where(cli, &w->d->style, line->at.offset, &line->at.owner);
	if (w->d->style.bytes)
		print_bytes(cli, w, line);
	print_time(cli, line);
	if (line->at.kind == VMPT_ITEM_LOSS)
		dump_print_loss(cli, w->stream, line->at.offset, line->size, line->at.aux);
	else
		print_packet(cli, line);
}

/* ---- JSON ---- */

static void json_bytes(struct cli *cli, json_t *o, const struct rtit_walk *w,
		       const struct rtit_line *line)
{
	const u8 *b = w->stream->data + line->at.offset;
	u64 i, n = line->size < 16 ? line->size : 16;
	char text[33] = "";

	for (i = 0; i < n; i++)
		sprintf(text + 2 * i, "%02x", b[i]);
	cli_json_string(cli, o, "raw", text);
}

static void json_fields(struct cli *cli, json_t *o, const struct vmpt_rtit_packet *p)
{
	const struct vmpt_rtit_desc *desc = &vmpt_rtit_table[p->kind];
	char taken[VMPT_RTIT_TNT_FULL + 1] = "";
	u64 i;

	for (i = 0; i < desc->fields; i++) {
		const struct vmpt_rtit_field *f = &desc->field[i];

		if (f->coding == VMPT_RTIT_COUNT || f->format == VMPT_RTIT_TAKEN)
			continue;
		if (f->format == VMPT_RTIT_FLAG)
			cli_json_set(cli, o, f->name, json_boolean(p->val[i]));
		else if (f->format == VMPT_RTIT_DEC)
			cli_json_number(cli, o, f->name, p->val[i]);
		else
			cli_json_hex(cli, o, f->name, p->val[i]);
	}
	if (p->kind != VMPT_RTIT_TNT)
		return;
	for (i = 0; i < p->tnt.count && i < VMPT_RTIT_TNT_FULL; i++)
		taken[i] = p->tnt.bits >> (p->tnt.count - 1 - i) & 1 ? 'T' : 'N';
	cli_json_string(cli, o, "bits", taken);
}

static void json_packet(struct cli *cli, json_t *o, const struct rtit_line *line)
{
	const struct vmpt_rtit_packet *p = &line->pkt;
	unsigned int erratum = VMPT_RTIT_AUX_ERRATUM(line->at.aux);
	char text[8];

	cli_json_string(cli, o, "packet", vmpt_rtit_name(p->kind));
	json_fields(cli, o, p);
	if (vmpt_rtit_table[p->kind].classes & VMPT_RTIT_HAS_LIP &&
	    !(line->at.aux & VMPT_RTIT_AUX_NO_LIP))
		cli_json_hex(cli, o, "full_lip", line->at.payload);
	if (p->flags & VMPT_RTIT_CYCLES)
		cli_json_number(cli, o, "cycles", p->cycles);
	if (erratum) {
		snprintf(text, sizeof(text), "E%u", erratum);
		cli_json_string(cli, o, "erratum", text);
	}
	if (line->at.aux & VMPT_RTIT_AUX_IGNORE)
		cli_json_set(cli, o, "ignored", json_true());
}

static void json_time(struct cli *cli, json_t *o, const struct rtit_line *line)
{
	/* The STS's own "tsc" has 40 bits. */
	if (line->timed)
		cli_json_hex(cli, o, "host_tsc", line->tsc);
	if (line->timed)
		line->error == ~0ULL ? cli_json_set(cli, o, "host_tsc_error", json_null())
				     : cli_json_number(cli, o, "host_tsc_error", line->error);
	if (line->by_mtc)
		cli_json_hex(cli, o, "since_first_mtc", line->since_mtc);
	if (line->went_back)
		cli_json_set(cli, o, "host_tsc_went_back", json_true());
}

static void print_json(struct rtit_walk *w, const struct rtit_line *line)
{
	struct cli *cli = w->cli;
	json_t *o = json_object();

	cli_json_stream(cli, o, w->stream);
	cli_json_number(cli, o, "offset", line->at.offset);
	cli_json_number(cli, o, "size", line->size);
	cli_json_owner(cli, o, &line->at.owner);
	if (w->d->style.bytes)
		json_bytes(cli, o, w, line);
	if (line->at.kind == VMPT_ITEM_LOSS)
		dump_json_loss(cli, o, w->stream, line->at.offset, line->at.aux);
	else
		json_packet(cli, o, line);
	json_time(cli, o, line);
	cli_json_print(cli, o, stdout, true);
}

/* ---- the walk ---- */

static bool wanted(const struct rtit_walk *w, const struct rtit_line *line)
{
	u64 bit = line->at.kind == VMPT_ITEM_LOSS ? DUMP_LOSS_BIT : 1ULL << line->pkt.kind;

	return w->d->wanted & bit && dump_owner_wanted(w->cli, &line->at.owner);
}

static void put_line(struct rtit_walk *w, const struct rtit_line *line)
{
	if (dump_too_early(w->d, line->at.offset, line->size))
		return;
	if (line->at.kind == VMPT_ITEM_LOSS)
		cli_lose(w->cli, CLI_LOST, w->stream, line->at.offset, line->size, line->at.aux);
	if (!wanted(w, line) || (w->d->head && w->d->lines == w->d->head))
		return;
	w->d->lines++;
	if (w->cli->json)
		print_json(w, line);
	else
		print_text(w, line);
}

/* Earlier lines were sent before the last one. */
static void bound_by_last(struct rtit_walk *w)
{
	const struct rtit_line *last = &w->line[w->waiting - 1];
	struct rtit_line *line;
	u64 hi;

	if (!last->timed || last->error == ~0ULL || last->went_back)
		return;
	hi = last->tsc + last->error;
	for (line = w->line; line < last; line++)
		if (line->timed && line->error == ~0ULL &&
		    line->contradictions == last->contradictions && line->lo <= line->tsc &&
		    line->tsc <= hi)
			line->error = hi - line->tsc > line->tsc - line->lo ? hi - line->tsc
									    : line->tsc - line->lo;
}

static void flush(struct rtit_walk *w)
{
	unsigned int i;

	if (w->waiting > 1)
		bound_by_last(w);
	for (i = 0; i < w->waiting; i++)
		put_line(w, &w->line[i]);
	w->waiting = 0;
}

/* Whether the last line, which is whole, waits for the next one's time (4.2.15). */
static bool waits_on(const struct rtit_walk *w)
{
	const struct rtit_line *line = &w->line[w->waiting - 1];

	return w->waiting < WAIT_MAX && w->cycles && line->timed && line->error == ~0ULL &&
	       line->at.kind != VMPT_ITEM_LOSS && !(line->pkt.flags & VMPT_RTIT_CYCLES) &&
	       (line->pkt.kind == VMPT_RTIT_TNT || line->pkt.kind == VMPT_RTIT_PSB);
}

/* Without an STS, an MTC has the time since the first MTC. */
static void note_mtc(struct rtit_walk *w, struct rtit_line *line, const struct vmpt_packet *at)
{
	unsigned int rng = at->payload >> 8 & 3;

	if (at->kind == VMPT_ITEM_LOSS)
		w->mtc_known = false;
	if (w->clock.known || at->kind != VMPT_ITEM_RTIT + VMPT_RTIT_MTC)
		return;
	if (at->aux & VMPT_RTIT_AUX_IGNORE) {
		w->mtc_known = false;
		return;
	}
	if (w->mtc_known && w->mtc >> 8 == at->payload >> 8)
		w->since_mtc += ((at->payload - w->mtc) & 0xff) << (7 + 2 * rng);
	else
		w->since_mtc = 0;
	w->mtc = at->payload;
	w->mtc_known = line->by_mtc = true;
	line->since_mtc = w->since_mtc;
}

static void note_time(struct rtit_walk *w, struct rtit_line *line, const struct vmpt_packet *at)
{
	vmpt_rtit_clock_feed(&w->clock, at);
	line->timed = w->clock.known && at->kind != VMPT_ITEM_LOSS;
	line->tsc = w->clock.tsc;
	line->error = w->clock.error;
	line->lo = w->clock.lo;
	line->contradictions = w->clock.contradictions;
	line->went_back = w->clock.went_back;
	note_mtc(w, line, at);
}

static void take(struct rtit_walk *w, const struct vmpt_packet *at)
{
	struct rtit_line *line;

	if (at->kind == VMPT_ITEM_RTIT_CYC && w->waiting) {
		line = &w->line[w->waiting - 1];
		line->size += at->size;
		line->pkt.flags = VMPT_RTIT_CYCLES;
		line->pkt.cycles = (u32)at->payload;
		w->cycles = true;
	} else {
		if (w->waiting && !waits_on(w))
			flush(w);
		line = &w->line[w->waiting++];
		*line = (struct rtit_line){ .at = *at, .size = at->size };
		if (at->kind == VMPT_ITEM_LOSS)
			line->size = at->payload;
		/* The decoder has already accepted it: this cannot fail. */
		else if (vmpt_rtit_decode(&line->pkt, w->stream->data + at->offset, at->size,
					  false))
			line->pkt.kind = (u8)(at->kind - VMPT_ITEM_RTIT);
	}
	note_time(w, line, at);
}

/* Once: MTCs and STSs contradict the ratio, or the cycle counts. */
static void tell_contradiction(const struct rtit_walk *w, u64 before, u64 offset)
{
	if (cli_clock(w->cli)->rates.tsc_num && !before && w->clock.contradictions)
		cli_warn(
			w->cli,
			"at 0x%llx: cycle counts and --tsc-ratio=%llu contradict the MTCs and STSs; "
			"from here on the ratio is measured",
			(unsigned long long)offset,
			(unsigned long long)cli_clock(w->cli)->rates.tsc_num);
}

static int walk_stream(struct cli *cli, size_t i, struct vmpt_decoder *dec)
{
	struct rtit_walk w = { .cli = cli, .d = cli->data, .stream = cli->stream[i] };
	struct vmpt_cursor cursor = { 0 };
	struct vmpt_packet at;
	u64 before;
	int ret;

	vmpt_rtit_clock_init(&w.clock, cli_clock(cli)->rates.tsc_num);
	while ((ret = vmpt_packet_next(dec, &cursor, &at)) > 0) {
		if (dump_enough(cli) ||
		    (w.d->end && at.offset >= w.d->end && at.kind != VMPT_ITEM_RTIT_CYC)) {
			flush(&w);
			return 0;
		}
		before = w.clock.contradictions;
		take(&w, &at);
		tell_contradiction(&w, before, at.offset);
	}
	flush(&w);
	if (!ret)
		cli_side_record_report(cli, i);
	return ret;
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
	/* Packets have 7 bytes, 10 with a cycle count. */
	const struct dump_style style = { .bytes_width = has_cycles(cli, i) ? 29 : 20,
					  .bytes_grow = true,
					  .time = true };
	struct vmpt_options opts = cli_stream_options(cli, i);
	struct vmpt_decoder *dec;
	int ret = vmpt_decoder_open(&dec, cli->stream[i], &opts);

	if (ret)
		return ret;
	dump_start(cli, i, &style);
	ret = walk_stream(cli, i, dec);
	vmpt_decoder_close(dec);
	return ret;
}

/* ---- options ---- */

/* "NAME vcpu N", as dump prints it, or "NAME:N". */
static bool is_vcpu(const struct cli *cli, size_t k, const char *word)
{
	const struct vmpt_owner owner = { .kind = VMPT_OWNER_VM, .vmcs = k + 1 };
	const struct cli_vcpu *v = &cli_side(cli)->record->vcpu[k];
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
	const struct cli_side_record *r = cli_side(cli)->record;
	struct dump *d = cli->data;
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

/* The virtual CPUs of --owner. */
static int find_owners(struct cli *cli)
{
	const struct cli_side_record *r = cli_side(cli)->record;
	struct dump *d = cli->data;
	size_t i;

	if (r && d->names) {
		d->vcpu_wanted = calloc(r->vcpus + 1, sizeof(*d->vcpu_wanted));
		if (!d->vcpu_wanted)
			return cli_no_memory(cli);
	}
	for (i = 0; i < d->names; i++)
		if (!r || !take_vm(cli, d->name[i]))
			return cli_usage(cli, "--owner: '%s' is not host, vm, unknown or %s",
					 d->name[i],
					 r ? "a VM of the side record, NAME or NAME:VCPU"
					   : "the name of a VM, which needs --side-record");
	return CLI_OK;
}

static int check(struct cli *cli)
{
	const struct vmpt_rates *rates = &cli_clock(cli)->rates;

	if (rates->tsc_num && (rates->tsc_num > 255 || rates->tsc_den != 1))
		return cli_usage(cli, "--tsc-ratio: for RTIT it is one number from 1 to 255");
	return find_owners(cli);
}

const struct dump_ops dump_rtit = {
	.isa = VMPT_ISA_RTIT,
	.name = "RTIT",
	.check = check,
	.stream = dump_stream,
};
