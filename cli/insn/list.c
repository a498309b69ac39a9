// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt insn without --count: each instruction with its owner and time; and counts at some times. */
#include <Zydis/Zydis.h>

#include "cli/insn/insn.h"

#define INSN_MAX      15
#define TIME_WIDTH    22
#define PROCESS_WIDTH 20
#define SYMBOL_WIDTH  32
#define HEX_SHOWN     8 /* bytes in the column */

/* One stream's walk. */
struct walk {
	struct cli *cli;
	struct vmpt_flow *flow;
	size_t stream;
	bool print;

	struct vmpt_timed *timed; /* NULL: no times */
	struct vmpt_timed_batch batch;
	size_t item;
	bool ended;
	u64 tsc;    /* of the last packet at or before the batch; VMPT_TIME_NONE */
	u64 offset; /* of the batch */

	u32 space; /* the row of which is .row, and which .in is */
	struct vmpt_space in;
	struct insn_row *row;
	bool wanted;
	char who[CLI_WHO];
	struct names_space names;
	char process[CLI_WHO + 16];
	ZydisDecoder decoder;
	ZydisFormatter formatter;
};

/* ---- times ---- */

/* The time of the packet at @offset, which never goes back. 0 or a negative error. */
static int follow_time(struct walk *w, u64 offset)
{
	while (w->timed && !w->ended) {
		const struct vmpt_batch *b = &w->batch.batch;
		int ret;

		if (w->item < b->count) {
			if (b->base + b->items[w->item].offset > offset)
				return 0;
			w->tsc = w->batch.time[w->item++].tsc;
			continue;
		}
		ret = vmpt_timed_next(w->timed, &w->batch);
		if (ret < 0)
			return ret;
		w->ended = !ret;
		w->item = 0;
	}
	return 0;
}

static bool time_wanted(const struct walk *w)
{
	const struct cli_filter *f = cli_filter(w->cli);

	return (!f->from && !f->to) || cli_filter_time(w->cli, w->tsc);
}

/* ---- JSON: an object a line ---- */

/* The process, the function, and the module or mapped file that it is in, as far as known. */
static void json_names(const struct walk *w, json_t *o, u64 ip)
{
	const struct insn *d = w->cli->data;
	const struct vmpt_guest_task *t = w->names.task;
	struct names_found f;

	if (t) {
		cli_json_number(w->cli, o, "tgid", t->tgid);
		cli_json_string(w->cli, o, "comm", t->comm);
	}
	if (!code_names_find(w->cli, &d->t.names, &w->names, ip, &f))
		return;
	if (f.module)
		cli_json_string(w->cli, o, "module", f.module);
	if (f.name)
		cli_json_string(w->cli, o, "function", f.name);
	cli_json_hex(w->cli, o, "function_offset", f.offset);
}

static json_t *json_head(const struct walk *w, u64 offset, u64 ip)
{
	const struct insn *d = w->cli->data;
	json_t *o = json_object();

	cli_json_stream(w->cli, o, w->cli->stream[w->stream]);
	cli_json_number(w->cli, o, "offset", offset);
	if (d->t.timed && w->tsc == VMPT_TIME_NONE)
		cli_json_set(w->cli, o, "host_tsc", json_null());
	else if (d->t.timed)
		cli_json_hex(w->cli, o, "host_tsc", w->tsc);
	cli_json_hex(w->cli, o, "ip", ip);
	if (code_names_any(&d->t.names))
		json_names(w, o, ip);
	return o;
}

static void json_gap(const struct walk *w, const struct vmpt_flow_batch *b, bool space)
{
	const struct insn *d = w->cli->data;
	json_t *o = json_head(w, b->offset, b->ip);

	if (space)
		traced_json_space(w->cli, &d->t, o, &w->in);
	cli_json_string(w->cli, o, "gap", traced_reason_key[b->reason]);
	cli_json_print(w->cli, o, stdout, true);
}

/* ---- text ---- */

/* "do_syscall_64+0x3c", "virtio_pci:vp_notify+0x4", "libc.so.6:read+0x1a", "app+0x4711": of its
 * file. */
static void print_symbol(const struct walk *w, u64 ip)
{
	const struct insn *d = w->cli->data;
	char text[2 * CLI_WHO], module[CLI_WHO] = "";
	struct names_found f;

	*text = '\0';
	if (code_names_find(w->cli, &d->t.names, &w->names, ip, &f)) {
		const char *base = f.module ? strrchr(f.module, '/') : NULL;

		if (f.module)
			cli_safe_name(base ? base + 1 : f.module, module);
		snprintf(text, sizeof(text), "%s%s%s+0x%llx", module, f.module && f.name ? ":" : "",
			 f.name ? f.name : "", (unsigned long long)f.offset);
	}
	printf("%-*s  %-*s  ", PROCESS_WIDTH, w->process, SYMBOL_WIDTH, text);
}

static void print_head(const struct walk *w, u64 ip)
{
	const struct insn *d = w->cli->data;
	char when[CLI_WHEN] = "–";

	if (w->tsc != VMPT_TIME_NONE)
		cli_when_text(&d->t.when, w->tsc, when);
	if (d->t.timed)
		printf("%-*s  ", TIME_WIDTH, when);
	printf("%-12s  %16llx  ", w->who, (unsigned long long)ip);
	if (code_names_any(&d->t.names))
		print_symbol(w, ip);
}

static void print_title(const struct insn *d)
{
	char title[CLI_WHEN];

	if (d->t.timed)
		printf("%-*s  ", TIME_WIDTH, cli_when_title(&d->t.when, title));
	printf("%-12s  %16s  ", "VM", "IP");
	if (code_names_any(&d->t.names))
		printf("%-*s  %-*s  ", PROCESS_WIDTH, "PROCESS", SYMBOL_WIDTH, "FUNCTION");
	printf("%-*s  INSTRUCTION\n", 2 * HEX_SHOWN, "BYTES");
}

static void print_gap(const struct walk *w, const struct vmpt_flow_batch *b, bool space)
{
	if (w->cli->json) {
		json_gap(w, b, space);
		return;
	}
	print_head(w, b->ip);
	printf("%s%s at offset 0x%llx%s\n", cli_paint(w->cli, CLI_YELLOW),
	       traced_reason_text[b->reason], (unsigned long long)b->offset,
	       cli_paint(w->cli, CLI_PLAIN));
}

static void print_instruction(const struct walk *w, u64 ip, const u8 *bytes, unsigned int size,
			      const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *op)
{
	char text[256] = "?", hex[2 * INSN_MAX + 1] = "";
	unsigned int i;

	for (i = 0; i < size; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
	if (insn)
		ZydisFormatterFormatInstruction(&w->formatter, insn, op,
						insn->operand_count_visible, text, sizeof(text), ip,
						NULL);
	if (w->cli->json) {
		const struct insn *d = w->cli->data;
		json_t *o = json_head(w, w->offset, ip);

		traced_json_space(w->cli, &d->t, o, &w->in);
		cli_json_string(w->cli, o, "bytes", hex);
		cli_json_string(w->cli, o, "text", text);
		cli_json_print(w->cli, o, stdout, true);
		return;
	}
	print_head(w, ip);
	printf("%-*s  %s\n", 2 * HEX_SHOWN, hex, text);
}

static void set_mode(struct walk *w, u8 exec)
{
	if (exec == 64)
		ZydisDecoderInit(&w->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	else if (exec == 32)
		ZydisDecoderInit(&w->decoder, ZYDIS_MACHINE_MODE_LONG_COMPAT_32,
				 ZYDIS_STACK_WIDTH_32);
	else
		ZydisDecoderInit(&w->decoder, ZYDIS_MACHINE_MODE_LONG_COMPAT_16,
				 ZYDIS_STACK_WIDTH_16);
	/* As objdump prints it. */
	ZydisFormatterInit(&w->formatter, ZYDIS_FORMATTER_STYLE_ATT);
	ZydisFormatterSetProperty(&w->formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
	ZydisFormatterSetProperty(&w->formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
				  ZYDIS_PADDING_DISABLED);
}

/* ---- blocks ---- */

static void enter_names(struct walk *w, const struct vmpt_space *s)
{
	const struct insn *d = w->cli->data;
	const struct vmpt_guest_task *t;
	char comm[CLI_WHO];

	traced_names(&d->t, s, &w->names);
	t = w->names.task;
	*w->process = '\0';
	if (!t)
		return;
	cli_safe_name(t->comm, comm);
	snprintf(w->process, sizeof(w->process), "%u %s", t->tgid, comm);
}

static int enter_space(struct walk *w, u32 space)
{
	struct insn *d = w->cli->data;

	if (w->row && w->space == space)
		return 0;
	vmpt_flow_space(w->flow, space, &w->in, NULL);
	w->space = space;
	w->wanted = traced_wanted(w->cli, &w->in);
	traced_who(&d->t, &w->in.owner, w->who);
	if (w->print && code_names_any(&d->t.names))
		enter_names(w, &w->in);
	set_mode(w, w->in.exec);
	w->row = insn_row(d, &w->in);
	return w->row ? 0 : -VMPT_E_NOMEM;
}

/* The first @n instructions of a block. 0 or a negative error. */
static int print_block(struct walk *w, u32 id, const struct vmpt_flow_block *block, u32 n)
{
	struct insn *d = w->cli->data;
	u8 bytes[VMPT_PAGE + INSN_MAX]; /* a block is of one page */
	int size = vmpt_flow_code(w->flow, id, bytes, sizeof(bytes)), at = 0;
	u32 i;

	for (i = 0; i < n && size >= 0 && (!d->head || d->listed < d->head); i++, d->listed++) {
		ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction insn;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&w->decoder, bytes + at,
							 (ZyanUSize)(size - at), &insn, op))) {
			print_instruction(w, block->ip + (u64)at, bytes + at, 0, NULL, NULL);
			break;
		}
		print_instruction(w, block->ip + (u64)at, bytes + at, insn.length, &insn, op);
		at += insn.length;
	}
	return size < 0 ? size : 0;
}

static void count_block(struct vmpt_flow_counts *c, const struct vmpt_flow_block *block, u32 n)
{
	bool whole = n == block->instructions;

	c->instructions += n;
	c->branches += whole && block->end != VMPT_FLOW_NEXT && block->end != VMPT_FLOW_MOV_CR3;
	c->calls += whole && (block->end == VMPT_FLOW_CALL || block->end == VMPT_FLOW_CALL_IND);
}

static int take_blocks(struct walk *w, const struct vmpt_flow_batch *b)
{
	struct insn *d = w->cli->data;
	struct insn_stream *s = &d->stream[w->stream];
	size_t i;
	int ret = 0;

	for (i = 0; i < b->count && !ret; i++) {
		struct vmpt_flow_block block;
		u32 n;

		vmpt_flow_block(w->flow, b->blocks[i], &block);
		n = i + 1 == b->count ? b->last : block.instructions;
		ret = enter_space(w, block.space);
		if (ret || !w->wanted)
			continue;
		count_block(&w->row->counts, &block, n);
		count_block(&s->counts, &block, n);
		if (w->print)
			ret = print_block(w, b->blocks[i], &block, n);
	}
	return ret;
}

static int take_gap(struct walk *w, const struct vmpt_flow_batch *b)
{
	const bool space = b->space < vmpt_flow_spaces(w->flow);
	struct insn *d = w->cli->data;
	int ret;

	if (space) {
		ret = enter_space(w, b->space);
		if (ret)
			return ret;
		if (!w->wanted)
			return 0;
		w->row->counts.gaps[b->reason]++;
	} else if (cli_filter_owners(w->cli) || cli_filter(w->cli)->cr3s) {
		return 0;
	} else {
		cli_filter(w->cli)->seen = true;
	}
	d->stream[w->stream].counts.gaps[b->reason]++;
	traced_note_gap(&d->t, w->flow, b, w->stream);
	if (w->print) {
		print_gap(w, b, space);
		d->listed++;
	}
	return 0;
}

int insn_walk(struct cli *cli, size_t i, struct vmpt_flow *flow, bool print)
{
	struct vmpt_options options = cli_stream_options(cli, i);
	struct insn *d = cli->data;
	struct walk w = {
		.cli = cli, .flow = flow, .stream = i, .print = print, .tsc = VMPT_TIME_NONE
	};
	struct vmpt_flow_batch batch;
	int ret = 0;

	options.progress = NULL;
	options.threads = 1;
	if (d->t.timed)
		ret = vmpt_timed_open(&w.timed, d->t.clocks.clocks, i, &options);
	if (print && !cli->json)
		print_title(d);
	while (!ret && (ret = vmpt_flow_next(flow, &batch)) > 0) {
		w.offset = batch.offset;
		ret = follow_time(&w, batch.offset);
		if (ret || !time_wanted(&w))
			continue;
		ret = batch.kind == VMPT_FLOW_GAP ? take_gap(&w, &batch) : take_blocks(&w, &batch);
		if (print && ((d->head && d->listed >= d->head) || cli_output_failed(cli)))
			break;
	}
	vmpt_timed_close(w.timed);
	return ret;
}
