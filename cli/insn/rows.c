// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Rows of vmpt insn's list, as text and as JSON: instructions, branches with where they went, gaps.
 */
#include <Zydis/Zydis.h>

#include "cli/insn/insn.h"

#define INSN_MAX      15
#define TIME_WIDTH    22
#define PROCESS_WIDTH 20
#define SYMBOL_WIDTH  32
#define LINE_WIDTH    24
#define TEXT_WIDTH    40
#define HEX_SHOWN     8 /* bytes in the column */

struct insn_rows {
	struct cli *cli;
	struct vmpt_flow *flow;
	size_t stream;
	const struct insn_part *part; /* that is printed */
	u32 space;		      /* what the following is of; NONE: of nothing yet */
	struct vmpt_space in;
	char who[CLI_WHO];
	struct names_space names;
	struct names_line line; /* the last one; .line 0: there is none */
	char process[CLI_WHO + 16];
	u32 other_space; /* the same for targets elsewhere */
	struct names_space other;
	ZydisDecoder decoder;
	ZydisFormatter formatter;
};

#define NONE (~0U)

/* An instruction of the part. */
struct shown {
	u64 ip;
	const u8 *bytes;
	unsigned int size; /* 0: it does not decode */
	const char *text;
};

/* ---- address spaces ---- */

static void set_process(struct insn_rows *r)
{
	const struct vmpt_guest_task *t = r->names.task;
	char comm[CLI_WHO];

	r->line.line = 0;
	*r->process = '\0';
	if (!t)
		return;
	cli_safe_name(t->comm, comm);
	snprintf(r->process, sizeof(r->process), "%u %s", t->tgid, comm);
}

static void set_mode(struct insn_rows *r, u8 exec)
{
	if (exec == 64)
		ZydisDecoderInit(&r->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	else if (exec == 32)
		ZydisDecoderInit(&r->decoder, ZYDIS_MACHINE_MODE_LONG_COMPAT_32,
				 ZYDIS_STACK_WIDTH_32);
	else
		ZydisDecoderInit(&r->decoder, ZYDIS_MACHINE_MODE_LONG_COMPAT_16,
				 ZYDIS_STACK_WIDTH_16);
	/* As objdump prints it. */
	ZydisFormatterInit(&r->formatter, ZYDIS_FORMATTER_STYLE_ATT);
	ZydisFormatterSetProperty(&r->formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
	ZydisFormatterSetProperty(&r->formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
				  ZYDIS_PADDING_DISABLED);
}

/* A gap may have no space: then it is said of the one before it. */
static void enter_space(struct insn_rows *r, u32 space)
{
	const struct insn *d = r->cli->data;

	if (r->space == space || space == NONE)
		return;
	r->space = space;
	vmpt_flow_space(r->flow, space, &r->in, NULL);
	traced_who(&d->t, &r->in.owner, r->who);
	set_mode(r, r->in.exec);
	*r->process = '\0';
	if (!code_names_any(&d->t.names))
		return;
	traced_names(&d->t, &r->in, &r->names);
	set_process(r);
}

/* Names where the branch of the part went. */
static const struct names_space *names_there(struct insn_rows *r)
{
	struct vmpt_space space;

	if (r->part->to_space == r->space)
		return &r->names;
	if (r->other_space != r->part->to_space) {
		r->other_space = r->part->to_space;
		vmpt_flow_space(r->flow, r->other_space, &space, NULL);
		traced_names(&((const struct insn *)r->cli->data)->t, &space, &r->other);
	}
	return &r->other;
}

/* The source line of @ip; NULL: it has none. */
static const struct names_line *line_of(struct insn_rows *r, u64 ip)
{
	const struct insn *d = r->cli->data;

	if (!d->t.o.lines)
		return NULL;
	if ((!r->line.line || ip < r->line.start || ip >= r->line.end) &&
	    !names_lines_find(r->cli, &d->t.names, &r->names, ip, &r->line))
		r->line.line = 0;
	return r->line.line ? &r->line : NULL;
}

/* ---- JSON: an object a line ---- */

/* The function, and the module or mapped file that it is in, as far as known. */
static void json_function(const struct insn_rows *r, json_t *o, const struct names_space *names,
			  u64 ip, const char *const key[3])
{
	const struct insn *d = r->cli->data;
	struct names_found f;

	if (!code_names_find(r->cli, &d->t.names, names, ip, &f))
		return;
	if (f.module)
		cli_json_string(r->cli, o, key[0], f.module);
	if (f.name)
		cli_json_string(r->cli, o, key[1], f.name);
	cli_json_hex(r->cli, o, key[2], f.offset);
}

static json_t *json_head(struct insn_rows *r, u64 ip)
{
	static const char *const key[] = { "module", "function", "function_offset" };
	const struct names_line *line = line_of(r, ip);
	const struct insn *d = r->cli->data;
	json_t *o = json_object();

	cli_json_stream(r->cli, o, r->cli->stream[r->stream]);
	cli_json_number(r->cli, o, "offset", r->part->offset);
	if (d->t.timed && r->part->tsc == VMPT_TIME_NONE)
		cli_json_set(r->cli, o, "host_tsc", json_null());
	else if (d->t.timed)
		cli_json_hex(r->cli, o, "host_tsc", r->part->tsc);
	cli_json_hex(r->cli, o, "ip", ip);
	if (line) {
		cli_json_string(r->cli, o, "file", line->file);
		cli_json_number(r->cli, o, "line", line->line);
	}
	if (!code_names_any(&d->t.names))
		return o;
	if (r->names.task) {
		cli_json_number(r->cli, o, "tgid", r->names.task->tgid);
		cli_json_string(r->cli, o, "comm", r->names.task->comm);
	}
	json_function(r, o, &r->names, ip, key);
	return o;
}

static void json_gap(struct insn_rows *r)
{
	const struct insn *d = r->cli->data;
	json_t *o = json_head(r, r->part->ip);

	if (r->part->space != NONE)
		traced_json_space(r->cli, &d->t, o, &r->in);
	cli_json_string(r->cli, o, "gap", traced_reason_key[r->part->reason]);
	cli_json_print(r->cli, o, stdout, true);
}

static void json_went(struct insn_rows *r, json_t *o)
{
	static const char *const key[] = { "to_module", "to_function", "to_function_offset" };
	const struct insn *d = r->cli->data;
	const struct insn_part *p = r->part;

	if (!p->went)
		return;
	cli_json_hex(r->cli, o, "to", p->to);
	if (p->taken != INSN_TAKEN_NOT_KNOWN)
		cli_json_set(r->cli, o, "taken", json_boolean(p->taken == INSN_TAKEN));
	if (code_names_any(&d->t.names))
		json_function(r, o, names_there(r), p->to, key);
}

static void json_instruction(struct insn_rows *r, const struct shown *s, const char *hex)
{
	const struct insn *d = r->cli->data;
	json_t *o = json_head(r, s->ip);

	traced_json_space(r->cli, &d->t, o, &r->in);
	cli_json_string(r->cli, o, "bytes", hex);
	cli_json_string(r->cli, o, "text", s->text);
	if (r->part->branch)
		json_went(r, o);
	cli_json_print(r->cli, o, stdout, true);
}

/* ---- text ---- */

/* "do_syscall_64+0x3c", "virtio_pci:vp_notify+0x4", "libc.so.6:read+0x1a", "app+0x4711": of its
 * file. */
static void symbol_text(const struct insn_rows *r, const struct names_space *names, u64 ip,
			char text[2 * CLI_WHO])
{
	const struct insn *d = r->cli->data;
	char module[CLI_WHO] = "";
	struct names_found f;
	const char *base;

	*text = '\0';
	if (!code_names_find(r->cli, &d->t.names, names, ip, &f))
		return;
	base = f.module ? strrchr(f.module, '/') : NULL;
	if (f.module)
		cli_safe_name(base ? base + 1 : f.module, module);
	snprintf(text, 2 * CLI_WHO, "%s%s%s+0x%llx", module, f.module && f.name ? ":" : "",
		 f.name ? f.name : "", (unsigned long long)f.offset);
}

/* "main.c:12" */
static void print_line(struct insn_rows *r, u64 ip)
{
	const struct names_line *line = line_of(r, ip);
	char text[CLI_WHO + 16] = "", file[CLI_WHO];

	if (line) {
		const char *base = strrchr(line->file, '/');

		cli_safe_name(base ? base + 1 : line->file, file);
		snprintf(text, sizeof(text), "%s:%u", file, line->line);
	}
	printf("%-*s  ", LINE_WIDTH, text);
}

static void print_head(struct insn_rows *r, u64 ip)
{
	const struct insn *d = r->cli->data;
	char when[CLI_WHEN] = "–", text[2 * CLI_WHO];

	if (r->part->tsc != VMPT_TIME_NONE)
		cli_when_text(&d->t.when, r->part->tsc, when);
	if (d->t.timed)
		printf("%-*s  ", TIME_WIDTH, when);
	printf("%-12s  %16llx  ", r->who, (unsigned long long)ip);
	if (code_names_any(&d->t.names)) {
		symbol_text(r, &r->names, ip, text);
		printf("%-*s  %-*s  ", PROCESS_WIDTH, r->process, SYMBOL_WIDTH, text);
	}
	if (d->t.o.lines)
		print_line(r, ip);
}

void insn_rows_title(const struct cli *cli)
{
	const struct insn *d = cli->data;
	char title[CLI_WHEN];

	if (d->t.timed)
		printf("%-*s  ", TIME_WIDTH, cli_when_title(&d->t.when, title));
	printf("%-12s  %16s  ", "VM", "IP");
	if (code_names_any(&d->t.names))
		printf("%-*s  %-*s  ", PROCESS_WIDTH, "PROCESS", SYMBOL_WIDTH, "FUNCTION");
	if (d->t.o.lines)
		printf("%-*s  ", LINE_WIDTH, "LINE");
	if (!insn_only_branches(d))
		printf("%-*s  INSTRUCTION\n", 2 * HEX_SHOWN, "BYTES");
	else
		printf("%-*s  %-*s  %16s  %s\n", 2 * HEX_SHOWN, "BYTES", TEXT_WIDTH, "INSTRUCTION",
		       "TO", code_names_any(&d->t.names) ? "TAKEN  TO FUNCTION" : "TAKEN");
}

/* A conditional branch was taken or not; others always are. */
static void print_went(struct insn_rows *r)
{
	static const char *const taken[] = { "", "yes", "no" };
	const struct insn *d = r->cli->data;
	const struct insn_part *p = r->part;
	char text[2 * CLI_WHO] = "";

	if (!p->went) {
		printf("  %*s%s\n", 15, "", "–");
		return;
	}
	if (code_names_any(&d->t.names))
		symbol_text(r, names_there(r), p->to, text);
	printf("  %16llx", (unsigned long long)p->to);
	if (*text)
		printf("  %-5s  %s", taken[p->taken], text);
	else if (p->taken)
		printf("  %s", taken[p->taken]);
	putchar('\n');
}

static void print_instruction(struct insn_rows *r, const struct shown *s)
{
	char hex[2 * INSN_MAX + 1] = "";
	unsigned int i;

	for (i = 0; i < s->size; i++)
		snprintf(hex + 2 * i, 3, "%02x", s->bytes[i]);
	if (r->cli->json) {
		json_instruction(r, s, hex);
		return;
	}
	print_head(r, s->ip);
	if (!r->part->branch) {
		printf("%-*s  %s\n", 2 * HEX_SHOWN, hex, s->text);
		return;
	}
	printf("%-*s  %-*s", 2 * HEX_SHOWN, hex, TEXT_WIDTH, s->text);
	print_went(r);
}

static void print_gap(struct insn_rows *r)
{
	if (r->cli->json) {
		json_gap(r);
		return;
	}
	print_head(r, r->part->ip);
	printf("%s%s at offset 0x%llx%s\n", cli_paint(r->cli, CLI_YELLOW),
	       traced_reason_text[r->part->reason], (unsigned long long)r->part->offset,
	       cli_paint(r->cli, CLI_PLAIN));
}

/* ---- parts ---- */

/* Instructions @first to @end of the block. 0 or a negative error. */
static int print_block(struct insn_rows *r, u32 first, u32 end)
{
	const struct insn_part *p = r->part;
	u8 bytes[VMPT_PAGE + INSN_MAX]; /* a block is of one page */
	int size = vmpt_flow_code(r->flow, p->block, bytes, sizeof(bytes)), at = 0;
	u32 i;

	for (i = 0; i < end && size >= 0; i++) {
		struct shown s = { .ip = p->ip + (u64)at, .bytes = bytes + at, .text = "?" };
		ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction insn;
		char text[256] = "?";

		if (ZYAN_SUCCESS(ZydisDecoderDecodeFull(&r->decoder, bytes + at,
							(ZyanUSize)(size - at), &insn, op))) {
			s.size = insn.length;
			at += insn.length;
		}
		if (i < first && s.size)
			continue;
		if (s.size)
			ZydisFormatterFormatInstruction(&r->formatter, &insn, op,
							insn.operand_count_visible, text,
							sizeof(text), s.ip, NULL);
		s.text = text;
		print_instruction(r, &s);
		if (!s.size)
			break;
	}
	return size < 0 ? size : 0;
}

int insn_rows_print(struct insn_rows *r, const struct insn_part *part, u32 first, u32 rows)
{
	const struct insn *d = r->cli->data;

	r->part = part;
	enter_space(r, part->space);
	if (code_names_at(&d->t.names, &r->names, r->cli->stream[r->stream], part->tsc))
		set_process(r);
	if (part->gap) {
		print_gap(r);
		return 0;
	}
	if (part->branch)
		first = part->count - 1;
	return print_block(r, first, first + rows);
}

struct insn_rows *insn_rows_open(struct cli *cli, size_t stream, struct vmpt_flow *flow)
{
	struct insn_rows *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->cli = cli;
	r->flow = flow;
	r->stream = stream;
	r->space = r->other_space = NONE;
	return r;
}

void insn_rows_close(struct insn_rows *r)
{
	free(r);
}
