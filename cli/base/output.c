// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Messages and the progress line on stderr, colour, and the check that all
 * of stdout was written.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/safe-text.h"
#include "cli/base/text.h"
#include "decoder/vmpt-extract.h"

#define OUT_BUFFER     (256u << 10)
#define LINES_TOLD     5
#define WARNINGS_KEPT  256
#define PROGRESS_BYTES (1u << 20) /* the clock is not read more often */

static const char *const escape[CLI_PAINTS] = {
	[CLI_PLAIN] = "\033[0m", [CLI_BOLD] = "\033[1m",     [CLI_DIM] = "\033[2m",
	[CLI_RED] = "\033[31m",	 [CLI_GREEN] = "\033[32m",   [CLI_YELLOW] = "\033[33m",
	[CLI_BLUE] = "\033[34m", [CLI_MAGENTA] = "\033[35m", [CLI_CYAN] = "\033[36m",
};

/* NO_COLOR: see no-color.org. */
static bool wants_color(const struct cli *cli, int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (cli->color != CLI_COLOR_AUTO)
		return cli->color == CLI_COLOR_ALWAYS;
	return isatty(fd) && !(no && *no) && term && strcmp(term, "dumb");
}

void cli_output_start(struct cli *cli)
{
	cli->paint_out = !cli->json && wants_color(cli, STDOUT_FILENO);
	cli->paint_err = wants_color(cli, STDERR_FILENO);
	cli->stdout_tty = isatty(STDOUT_FILENO);
	if (!cli->stdout_tty)
		setvbuf(stdout, NULL, _IOFBF, OUT_BUFFER);
}

/* Of a terminal that does not say how wide it is. */
#define ROOM 100

size_t cli_room(const struct cli *cli)
{
	struct winsize size = { 0 };

	if (!cli->stdout_tty || cli->wide)
		return 0;
	return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : ROOM;
}

const char *cli_paint(const struct cli *cli, enum cli_paint paint)
{
	return cli->paint_out ? escape[paint] : "";
}

bool cli_output_failed(struct cli *cli)
{
	if (ferror(stdout) && !cli->write_errno)
		cli->write_errno = errno ? errno : EIO;
	return cli->write_errno != 0;
}

/* ---- messages ---- */

/* Messages contain names and words from files. */
static void put_safely(const char *fmt, va_list args)
{
	char *text, one[CLI_SAFE_CHAR + 1], *local;
	const char *at;

	if (vasprintf(&text, fmt, args) < 0)
		return;
	for (at = text; *at;) {
		size_t n = 1;

		if (*at == '\n')
			one[0] = *at++;
		else
			n = cli_safe_char(&at, one);
		one[n] = '\0';
		local = cli_local(one);
		if (local)
			fputs(local, stderr);
		cli_local_free(local, one);
	}
	free(text);
}

static void message(const struct cli *cli, enum cli_paint paint, const char *word, const char *fmt,
		    va_list args)
{
	if (cli->progress.drawn)
		fputs("\r\033[K", stderr);
	fputs("vmpt", stderr);
	if (cli->cmd)
		fprintf(stderr, " %s", cli->cmd->name);
	fprintf(stderr, ": %s%s%s", cli->paint_err ? escape[paint] : "", word,
		cli->paint_err ? escape[CLI_PLAIN] : "");
	put_safely(fmt, args);
	fputc('\n', stderr);
}

void cli_error(const struct cli *cli, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	message(cli, CLI_RED, "error: ", fmt, args);
	va_end(args);
}

/* The caller reports a lack of memory. */
static void keep_warning(const struct cli *cli, const char *fmt, va_list args)
{
	char text[512], safe[640];
	json_t *string;

	if (json_array_size(cli->warnings) == WARNINGS_KEPT)
		return;
	vsnprintf(text, sizeof(text), fmt, args);
	string = json_string(text);
	if (!string) {
		/* A file's name need not be UTF-8, and the end may be cut. */
		cli_safe_text(text, safe, sizeof(safe), sizeof(safe));
		string = json_string(safe);
	}
	json_array_append_new(cli->warnings, string);
}

void cli_warn(const struct cli *cli, const char *fmt, ...)
{
	va_list args;

	if (cli->warnings) {
		va_start(args, fmt);
		keep_warning(cli, fmt, args);
		va_end(args);
	}
	if (cli->quiet)
		return;
	va_start(args, fmt);
	message(cli, CLI_YELLOW, "warning: ", fmt, args);
	va_end(args);
}

void cli_note(const struct cli *cli, const char *fmt, ...)
{
	va_list args;

	if (cli->quiet)
		return;
	va_start(args, fmt);
	message(cli, CLI_PLAIN, "", fmt, args);
	va_end(args);
}

void cli_warn_line(const struct cli *cli, const char *file, size_t number, const char *why,
		   size_t *skipped)
{
	if (++*skipped > LINES_TOLD)
		return;
	if (number)
		cli_warn(cli, "%s: line %zu: %s; skipped", file, number, why);
	else
		cli_warn(cli, "%s: %s; skipped", file, why);
}

void cli_warn_lines(const struct cli *cli, const char *file, size_t skipped)
{
	if (skipped > LINES_TOLD)
		cli_warn(cli, "%s: %zu more line%s skipped", file, skipped - LINES_TOLD,
			 skipped - LINES_TOLD == 1 ? " is" : "s are");
}

int cli_usage(const struct cli *cli, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	message(cli, CLI_RED, "", fmt, args);
	va_end(args);
	fprintf(stderr, "Try 'vmpt %s%s--help'.\n", cli->cmd ? cli->cmd->name : "",
		cli->cmd ? " " : "");
	return CLI_USAGE;
}

int cli_no_memory(const struct cli *cli)
{
	cli_error(cli, "%s", vmpt_strerror(-VMPT_E_NOMEM));
	return CLI_FAILED;
}

const char *cli_number(u64 value, char buf[32])
{
	char *p = buf + 31;
	int digits = 0;

	*p = '\0';
	do {
		if (digits && digits % 3 == 0)
			*--p = ',';
		*--p = (char)('0' + value % 10);
		digits++;
		value /= 10;
	} while (value);
	return memmove(buf, p, strlen(p) + 1);
}

/* ---- losses ---- */

void cli_lose(struct cli *cli, enum cli_lost why, const struct vmpt_stream *stream, u64 offset,
	      u64 size, int err)
{
	struct vmpt_losses one = { 0 };

	vmpt_losses_add(&one, offset, size, (unsigned int)err);
	cli_lose_all(cli, why, stream, &one);
	cli->loss[why].ccnts += err == VMPT_E_CCNT;
}

void cli_lose_all(struct cli *cli, enum cli_lost why, const struct vmpt_stream *stream,
		  const struct vmpt_losses *losses)
{
	struct cli_loss *l = &cli->loss[why];

	if (!l->count && losses->count) {
		l->stream = stream;
		l->offset = losses->offset;
		l->size = losses->size;
		l->err = losses->err;
	}
	l->count += losses->count;
	l->bytes += losses->bytes;
}

bool cli_lose_slice(struct cli *cli, const struct vmpt_stream *stream, const struct vmpt_slice *s)
{
	if (s->begin == VMPT_BEGIN_LOSS)
		cli_lose(cli, CLI_LOST, stream, s->offset, s->size, s->loss);
	else if (vmpt_slice_unproven(s))
		cli_lose(cli, CLI_UNPROVEN, stream, s->offset, s->size, 0);
	else
		return false;
	return true;
}

/* The cause, and the bytes that show it. */
static void print_rtit_error(int err, const u8 *b, u64 n, char *buf, size_t len)
{
	if (err == VMPT_E_IPBYTES)
		snprintf(buf, len, "reserved size of a LIP (CNT 11b) in %02x", b[0]);
	else if (err == VMPT_E_OPCODE)
		snprintf(buf, len, "%s in %02x", vmpt_strerror(err), b[0]);
	else if (err == VMPT_E_PSB && n >= VMPT_RTIT_PSB_SIZE)
		snprintf(buf, len, "%s in %02x %02x %02x %02x %02x %02x %02x %02x %02x",
			 vmpt_strerror(err), b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8]);
	else
		snprintf(buf, len, "%s", vmpt_strerror(err));
}

const char *cli_loss_text(const struct vmpt_stream *stream, u64 offset, int err, char *buf,
			  size_t len)
{
	if (stream->isa == VMPT_ISA_RTIT && offset < stream->size)
		print_rtit_error(err, stream->data + offset, stream->size - offset, buf, len);
	else if (err > VMPT_OK && err <= VMPT_E_CYC && offset < stream->size)
		vmpt_pt_print_error(-err, stream->data + offset, stream->size - offset, buf, len);
	else
		snprintf(buf, len, "%s", vmpt_strerror(err));
	return buf;
}

static bool is_called_rtit(const char *path)
{
	size_t len = strlen(path);

	return len >= 5 && !strcmp(path + len - 5, ".rtit");
}

/* No PSB in the whole stream: is it the other format? */
static const char *no_psb_advice(const struct cli *cli, const struct vmpt_stream *s)
{
	static const u8 pt[16] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
				   2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };
	static const u8 rtit[VMPT_RTIT_PSB_SIZE] = { 0xc0 };

	if (s->isa == VMPT_ISA_RTIT) {
		if (memmem(s->data, s->size, pt, sizeof(pt)))
			return "there is a PSB of Intel PT in it: try --format=pt";
		return "is this a trace of RTIT? If it only lacks PSBs, try --headless";
	}
	if (memmem(s->data, s->size, rtit, sizeof(rtit)))
		return "there is a PSB of RTIT in it: try --format=rtit";
	if (is_called_rtit(cli->file[0]))
		return "it was taken for Intel PT; if it is RTIT and only lacks PSBs, try "
		       "--format=rtit --headless";
	return "is this an Intel PT trace? If it only lacks PSBs, try --headless";
}

/* What to do about the first loss, a line of its own; NULL: nothing helps. */
static const char *loss_advice(const struct cli *cli, const struct cli_loss *l)
{
	if (2 * l->ccnts > l->count)
		return "was Cycle_Acc 0 when it was recorded? Try --cycle-acc=no";
	switch (l->err) {
	case VMPT_E_SYNC:
		if (l->bytes < l->stream->size)
			return "bytes before the first PSB cannot be decoded reliably; to try, --headless";
		return no_psb_advice(cli, l->stream);
	case VMPT_E_GAP:
		return "a larger buffer loses less: perf record -m ,64M";
	case VMPT_E_TRUNCATED:
		return "the trace ends inside a packet; everything before it was read";
	}
	if (l->offset + l->size >= l->stream->size)
		return "nothing after it could be decoded";
	return "decoding resumed at the next PSB";
}

/* What the first loss is, and what to do about it. */
static void tell_first(const struct cli *cli, enum cli_lost why, const struct cli_loss *l)
{
	char text[160];

	switch (why) {
	case CLI_UNPROVEN:
		fprintf(stderr, "after an OVF or TIP.PGD() nothing proved the owner\n"
				"  more PSBs prove more: perf record -e intel_pt/psb_period=0/k\n");
		if (cli->options.guest_only != VMPT_GUEST_ONLY_YES)
			fprintf(stderr, "  if only guests were traced, give --guest-only=yes%s\n",
				cli->host_only == CLI_NO ? "; if there was none, --host-only=yes"
							 : "");
		break;
	case CLI_TOO_MANY:
		fprintf(stderr, "a CPU has streams for at most %s owners\n",
			cli_number(VMPT_EXTRACT_STREAMS_MAX, text));
		break;
	default:
		fprintf(stderr, "%s\n  %s\n",
			cli_loss_text(l->stream, l->offset, l->err, text, sizeof(text)),
			loss_advice(cli, l));
	}
}

static void tell_loss(const struct cli *cli, enum cli_lost why)
{
	const struct cli_loss *l = &cli->loss[why];
	char bytes[32], count[32], name[32];
	const char *places = l->count == 1 ? "place" : "places";

	cli_number(l->bytes, bytes);
	cli_number(l->count, count);
	if (why == CLI_UNPROVEN)
		cli_warn(cli, "%s: %s bytes in %s %s have no proven owner", cli->file[0], bytes,
			 count, places);
	else if (why == CLI_TOO_MANY)
		cli_warn(cli, "%s: too many VMCSs: %s bytes in %s %s are in no file", cli->file[0],
			 bytes, count, places);
	else
		cli_warn(cli, "%s: lost %s bytes in %s %s", cli->file[0], bytes, count, places);
	fprintf(stderr, "  %s 0x%llx", l->count == 1 ? "at" : "first at",
		(unsigned long long)l->offset);
	if (l->stream->cpu >= 0 || l->stream->tid >= 0)
		fprintf(stderr, " of %s", cli_stream_name(l->stream, name));
	if (vmpt_trace_info(cli->trace)->format == VMPT_TRACE_PERF)
		fprintf(stderr, " (0x%llx of the file)",
			(unsigned long long)vmpt_stream_file_offset(l->stream, l->offset));
	fprintf(stderr, ", %s bytes: ", cli_number(l->size, bytes));
	tell_first(cli, why, l);
}

/* True if there were any. */
static bool tell_losses(const struct cli *cli)
{
	enum cli_lost why;
	bool any = false;

	for (why = 0; why < CLI_LOSTS; why++) {
		if (!cli->loss[why].count)
			continue;
		any |= why != CLI_UNPROVEN || !cli->packets_only;
		if (!cli->quiet)
			tell_loss(cli, why);
	}
	return any;
}

int cli_finish(struct cli *cli, int code)
{
	cli_progress_end(cli);
	if (cli->out_of_memory && code != CLI_FAILED)
		code = cli_no_memory(cli);
	if (!cli_output_failed(cli)) {
		errno = 0;
		fflush(stdout);
	}
	if (cli_output_failed(cli)) {
		/* The reader has closed the pipe: not an error. */
		if (cli->write_errno == EPIPE)
			return code;
		cli_error(cli, "cannot write the output: %s", strerror(cli->write_errno));
		return CLI_FAILED;
	}
	if ((code == CLI_OK || code == CLI_LOSSES) && !cli_inputs_whole(cli))
		code = CLI_FAILED;
	if (code == CLI_OK) {
		if (tell_losses(cli) || cli->lost_events)
			code = CLI_LOSSES;
	}
	return code;
}

/* ---- progress ---- */

static double seconds(const struct timespec *from, const struct timespec *to)
{
	return (double)(to->tv_sec - from->tv_sec) + (double)(to->tv_nsec - from->tv_nsec) / 1e9;
}

static u64 bytes_done(struct cli_progress *p, u64 offset)
{
	if (p->walks == 1)
		return p->before + offset;
	/* The offsets of two walks alternate; the smaller one is the second walk's. */
	if (offset > p->ahead)
		p->ahead = offset;
	else
		p->behind = offset;
	return p->before + p->ahead / 2 + p->behind / 2;
}

static void on_progress(void *opaque, u64 offset)
{
	struct cli *cli = opaque;
	struct cli_progress *p = &cli->progress;
	u64 done = bytes_done(p, offset);
	struct timespec now;
	double all;

	if (!p->on || done < p->shown_at + PROGRESS_BYTES)
		return;
	p->shown_at = done;
	clock_gettime(CLOCK_MONOTONIC, &now);
	all = seconds(&p->start, &now);
	if (all < p->after || seconds(&p->shown, &now) < p->every)
		return;
	p->shown = now;
	p->drawn = true;
	fprintf(stderr, "\r%3u %%  %.1f of %.1f MB  %.0f MB/s%s\033[K",
		(unsigned int)(100.0 * (double)done / (double)p->total), (double)done / 1e6,
		(double)p->total / 1e6, all > 0 ? (double)done / 1e6 / all : 0, p->what);
}

static void start_progress(struct cli *cli, u64 total, unsigned int walks, const char *what)
{
	const char *after = getenv("VMPT_PROGRESS_AFTER");
	struct cli_progress p = { .total = total, .walks = walks, .what = what };

	clock_gettime(CLOCK_MONOTONIC, &p.start);
	p.shown = p.start;
	p.after = after ? strtod(after, NULL) : 1;
	p.every = p.after < 0.1 ? p.after : 0.1;
	p.on = !cli->quiet && total && isatty(STDERR_FILENO);
	cli->progress = p;
	if (!p.on)
		return;
	cli->options.progress = on_progress;
	cli->options.progress_opaque = cli;
}

void cli_progress_start(struct cli *cli, unsigned int walks)
{
	u64 total = 0;
	size_t i;

	for (i = 0; i < cli->streams; i++)
		total += cli->stream[i]->size;
	start_progress(cli, total, walks, "");
}

void cli_progress_scan(struct cli *cli, const char *what)
{
	size_t i = vmpt_trace_streams(cli->trace);
	u64 total = 0;

	while (i--)
		total += vmpt_trace_stream(cli->trace, i)->size;
	start_progress(cli, total, 1, what);
}

void cli_progress_stream(struct cli *cli, size_t i)
{
	struct cli_progress *p = &cli->progress;

	p->before = p->ahead = p->behind = 0;
	while (i--)
		p->before += cli->stream[i]->size;
}

void cli_progress_end(struct cli *cli)
{
	if (cli->progress.drawn)
		fputs("\r\033[K", stderr);
	cli->progress.drawn = false;
	cli->progress.on = false;
}
