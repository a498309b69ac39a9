// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt calls as text: calls in the form of ftrace's function_graph. */
#include <string.h>

#include "cli/tree/tree.h"

#define TIME_WIDTH   16
#define LENGTH_WIDTH 10
#define INDENT_MAX   64 /* levels; deeper ones are not moved further */

const char *tree_kind(unsigned int kind)
{
	static const char *const word[VMPT_CALL_KINDS] = {
		[VMPT_CALL_ROOT] = "",
		[VMPT_CALL_UNKNOWN] = "unknown",
		[VMPT_CALL_CALL] = "",
		[VMPT_CALL_SYSTEM] = "system call",
		[VMPT_CALL_INTERRUPT] = "interrupt",
		[VMPT_CALL_SIGNAL] = "signal",
	};

	return kind < VMPT_CALL_KINDS && word[kind] ? word[kind] : "";
}

void tree_title(struct cli *cli)
{
	const struct tree *d = cli->data;
	char title[CLI_WHEN];

	if (d->timed)
		cli_print("%-*s  %*s  %*s  CALL\n", TIME_WIDTH,
			  cli_when_title(&d->source.t.when, title), LENGTH_WIDTH, "DURATION",
			  LENGTH_WIDTH, "± MAX");
	else
		cli_print("%12s  CALL\n", "INSTRUCTIONS");
}

/* "web, 89 pipes" */
static void print_process(struct cli *cli, u32 process)
{
	const struct tree *d = cli->data;
	const struct calls_process *p = &d->source.process[process];
	const char *vm = d->source.vm[p->vm].name;

	/* Both are safe, the one by calls.h as the other. */
	cli_print("%s%s%s", vm, *p->name ? ", " : "", p->name);
}

static void print_run(struct cli *cli, const struct tree_line *line)
{
	const struct tree *d = cli->data;
	char name[32], reason[40];

	cli_print("%s--- %s: ", cli_paint(cli, CLI_BOLD),
		  cli_stream_name(cli->stream[line->stream], name));
	print_process(cli, d->task[line->task].process);
	if (line->exit)
		cli_print(" (%s)", spans_reason(line->exit, reason));
	cli_print(" ---%s\n", cli_paint(cli, CLI_PLAIN));
}

static void print_length(struct cli *cli, const struct tree_line *line)
{
	const struct tree *d = cli->data;
	const bool ends = line->what == TREE_LEAF || line->what == TREE_END ||
			  line->what == TREE_MORE || line->what == TREE_OUT;
	char buf[CLI_LENGTH], error[CLI_LENGTH + 4];

	if (!ends || (d->timed && !line->length.known)) {
		*buf = *error = '\0';
	} else if (d->timed) {
		cli_when_length(&d->source.t.when, line->length.error, buf);
		snprintf(error, sizeof(error), "±%s", buf);
		cli_when_length(&d->source.t.when, line->length.ticks, buf);
	} else if (line->what == TREE_OUT) {
		*buf = '\0';
	} else {
		cli_number(line->instructions, buf);
	}
	if (!d->timed) {
		cli_print_padded(buf, 12, true);
		cli_print("  ");
		return;
	}
	cli_print_padded(buf, LENGTH_WIDTH, true);
	cli_print("  %s", cli_paint(cli, CLI_DIM));
	cli_print_padded(error, LENGTH_WIDTH, true);
	cli_print("%s  ", cli_paint(cli, CLI_PLAIN));
}

static void print_head(struct cli *cli, const struct tree_line *line)
{
	const struct tree *d = cli->data;
	char when[CLI_WHEN] = "–";

	if (d->timed) {
		if (line->tsc != VMPT_TIME_NONE)
			cli_when_text(&d->source.t.when, line->tsc, when);
		cli_print_padded(when, TIME_WIDTH, false);
		cli_print("  ");
	}
	print_length(cli, line);
	cli_print("%*s", (int)(2 * (line->depth < INDENT_MAX ? line->depth : INDENT_MAX)), "");
}

/* "× 12, min 1.2 µs, max 3.4 µs" */
static void print_count(struct cli *cli, const struct tree_line *line)
{
	const struct tree *d = cli->data;
	char n[32], min[CLI_LENGTH], max[CLI_LENGTH];

	if (line->count < 2 && line->what != TREE_MORE)
		return;
	cli_print(" × %s", cli_number(line->count, n));
	if (line->what == TREE_MORE)
		cli_print(" more");
	if (d->timed && line->length.known && line->what != TREE_GAP)
		cli_print(", min %s, max %s", cli_when_length(&d->source.t.when, line->min, min),
			  cli_when_length(&d->source.t.when, line->max, max));
}

/* What the task waited for. */
static void print_out(struct cli *cli, const struct tree_line *line)
{
	char reason[40];
	unsigned int i;

	cli_print("%s/* ", cli_paint(cli, CLI_BLUE));
	cli_print("%s", line->exit ? spans_reason(line->exit, reason) : "out");
	for (i = 0; i < line->outs; i++) {
		cli_print("%s", i ? "; " : ": ");
		print_process(cli, line->out[i]);
	}
	cli_print(" */%s", cli_paint(cli, CLI_PLAIN));
}

static void print_note(struct cli *cli, const struct tree_line *line)
{
	const char *kind = tree_kind(line->kind);
	const bool begins = line->what == TREE_CALL || line->what == TREE_LEAF;
	const char *assumed = !line->assumed		? ""
			      : line->what == TREE_CALL ? "began before"
							: "assumed";

	if (!begins)
		kind = "";
	if (*kind || *assumed)
		cli_print("%s  /* %s%s%s */%s", cli_paint(cli, CLI_DIM), kind,
			  *kind && *assumed ? ", " : "", assumed, cli_paint(cli, CLI_PLAIN));
}

void tree_print(struct cli *cli, const struct tree_line *line)
{
	struct tree *d = cli->data;
	const bool call = line->what <= TREE_MORE;
	const char *name = call ? d->source.function[line->function].text : "";

	if (!d->titled)
		tree_title(cli);
	d->titled = true;
	if (line->what == TREE_RUN) {
		print_run(cli, line);
		return;
	}
	print_head(cli, line);
	switch (line->what) {
	case TREE_CALL:
		cli_print("%s() {", name);
		break;
	case TREE_LEAF:
		cli_print("%s();", name);
		break;
	case TREE_MORE:
		cli_print("%s() { … }", name);
		break;
	case TREE_END:
		cli_print("}");
		if (line->far)
			cli_print(" /* %s */", name);
		break;
	case TREE_OUT:
		print_out(cli, line);
		break;
	default:
		cli_print("%s/* the flow is lost */%s", cli_paint(cli, CLI_YELLOW),
			  cli_paint(cli, CLI_PLAIN));
	}
	print_count(cli, line);
	if (line->what != TREE_OUT && line->what != TREE_GAP)
		print_note(cli, line);
	printf("\n");
}
