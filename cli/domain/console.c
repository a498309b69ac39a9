// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt domain console: stdin and stdout on a domain's serial console, through a
 * libvirt stream handled on the thread of its events. ^] leaves.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cli/domain/domain.h"

#define LEAVE	 0x1d /* ^] */
#define TYPED	 1024
#define GOES_OUT 4096

struct domain_console {
	virStreamPtr stream;
	int input; /* libvirt's number of the watch on stdin, -1: none */
	enum domain_console_state state;
	char typed[TYPED]; /* on its way to the guest */
	size_t waiting;
	struct termios saved;
	bool raw, embedded;
};

static void change_state(struct domain_console *c, enum domain_console_state state)
{
	__atomic_store_n(&c->state, state, __ATOMIC_RELEASE);
	domain_wake();
}

enum domain_console_state domain_console_state(struct domain_console *c)
{
	return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
}

/* ---- on libvirt's thread ---- */

static void write_all(const char *s, size_t n)
{
	while (n) {
		ssize_t done = write(STDOUT_FILENO, s, n);

		if (done < 0 && errno != EINTR)
			return; /* the reader is gone; the guest keeps running */
		if (done > 0) {
			s += done;
			n -= (size_t)done;
		}
	}
}

/* Set the events to wait for: writable if input is pending, stdin while there is room. */
static void expect(struct domain_console *c)
{
	int events = VIR_STREAM_EVENT_READABLE | VIR_STREAM_EVENT_HANGUP | VIR_STREAM_EVENT_ERROR;

	if (c->waiting)
		events |= VIR_STREAM_EVENT_WRITABLE;
	virStreamEventUpdateCallback(c->stream, events);
	if (c->input >= 0)
		virEventUpdateHandle(c->input, c->waiting < TYPED ? VIR_EVENT_HANDLE_READABLE : 0);
}

/* The guest's output; false: it has ended. */
static bool take_output(virStreamPtr stream)
{
	char buf[GOES_OUT];
	int n;

	while ((n = virStreamRecv(stream, buf, sizeof(buf))) > 0)
		write_all(buf, (size_t)n);
	return n == -2; /* nothing at the moment */
}

static void on_stream(virStreamPtr stream, int events, void *opaque)
{
	struct domain_console *c = opaque;
	int n;

	if (domain_console_state(c) != DOMAIN_CONSOLE_OPEN)
		return;
	if (events & VIR_STREAM_EVENT_WRITABLE && c->waiting) {
		n = virStreamSend(stream, c->typed, c->waiting);
		if (n > 0) {
			c->waiting -= (size_t)n;
			memmove(c->typed, c->typed + n, c->waiting);
		}
	}
	/* What it said last may come with its end. */
	if ((events & (VIR_STREAM_EVENT_READABLE | VIR_STREAM_EVENT_HANGUP) &&
	     !take_output(stream)) ||
	    events & (VIR_STREAM_EVENT_ERROR | VIR_STREAM_EVENT_HANGUP)) {
		virStreamEventUpdateCallback(stream, 0);
		change_state(c, DOMAIN_CONSOLE_OVER);
		return;
	}
	expect(c);
}

static void on_input(int watch, int fd, int events, void *opaque)
{
	struct domain_console *c = opaque;
	char *at = c->typed + c->waiting, *leave;
	ssize_t n;

	(void)events;
	if (domain_console_state(c) != DOMAIN_CONSOLE_OPEN) {
		virEventUpdateHandle(watch, 0);
		return;
	}
	n = read(fd, at, TYPED - c->waiting);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		/* The end of a file; the guest's output still counts. */
		virEventUpdateHandle(watch, 0);
		c->input = -1;
		virEventRemoveHandle(watch);
		return;
	}
	leave = memchr(at, LEAVE, (size_t)n);
	c->waiting += leave ? (size_t)(leave - at) : (size_t)n;
	if (leave)
		change_state(c, DOMAIN_CONSOLE_LEFT);
	expect(c);
}

/* ---- opening and closing ---- */

static void make_raw(struct domain_console *c)
{
	struct termios raw;

	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &c->saved))
		return;
	raw = c->saved;
	cfmakeraw(&raw);
	c->raw = !tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
}

struct domain_console *domain_console_open(struct cli *cli, struct domain_link *link,
					   virDomainPtr ptr)
{
	const char *name = virDomainGetName(ptr);
	struct domain_console *c = calloc(1, sizeof(*c));
	const int events =
		VIR_STREAM_EVENT_READABLE | VIR_STREAM_EVENT_HANGUP | VIR_STREAM_EVENT_ERROR;

	if (!c) {
		cli_no_memory(cli);
		return NULL;
	}
	c->embedded = link->embedded;
	c->input = -1;
	c->stream = virStreamNew(link->conn, VIR_STREAM_NONBLOCK);
	if (!c->stream || virDomainOpenConsole(ptr, NULL, c->stream, 0) ||
	    virStreamEventAddCallback(c->stream, events, on_stream, c, NULL)) {
		domain_error(cli, name, "no console");
		if (c->stream)
			virStreamFree(c->stream);
		free(c);
		return NULL;
	}
	make_raw(c);
	c->input = virEventAddHandle(STDIN_FILENO, VIR_EVENT_HANDLE_READABLE, on_input, c, NULL);
	return c;
}

void domain_console_close(struct domain_console *c)
{
	if (!c)
		return;
	if (c->input >= 0)
		virEventRemoveHandle(c->input);
	virStreamEventRemoveCallback(c->stream);
	/*
	 * Embedded, libvirt 9 hangs if a stream is closed while its ended domain is cleaned up
	 * on another thread. There the exit of the process closes it.
	 */
	if (!c->embedded)
		virStreamAbort(c->stream);
	virStreamFree(c->stream);
	if (c->raw)
		tcsetattr(STDIN_FILENO, TCSAFLUSH, &c->saved);
	free(c);
}

/* ---- the action ---- */

static int console(struct cli *cli, struct domain_link *link)
{
	virDomainPtr ptr = virDomainLookupByName(link->conn, cli->file[0]);
	struct domain_console *c = NULL;
	int code = CLI_OK;

	if (!ptr)
		return domain_error(cli, cli->file[0], "not found");
	if (virDomainIsActive(ptr) == 0) {
		cli_error(cli, "%s: not running", cli->file[0]);
		fprintf(stderr, "  vmpt domain start --console starts it with its console\n");
		code = CLI_FAILED;
	}
	if (!code)
		code = domain_catch_signals(cli);
	if (!code) {
		c = domain_console_open(cli, link, ptr);
		code = c ? CLI_OK : CLI_FAILED;
	}
	if (c && !cli->quiet && isatty(STDIN_FILENO))
		fprintf(stderr, "%s: ^] leaves the console\r\n", cli->file[0]);
	while (c && domain_console_state(c) == DOMAIN_CONSOLE_OPEN && !domain_signal())
		domain_wait(-1);
	domain_console_close(c);
	virDomainFree(ptr);
	return code;
}

int domain_console_run(struct cli *cli)
{
	const struct domain_options *o = cli->data;
	struct domain_link link;
	int code;

	if (cli->files > 1)
		return cli_usage(cli, "one domain at a time");
	if (!o->connect) {
		cli_error(cli, "%s: an embedded domain belongs to the command that started it",
			  cli->file[0]);
		fprintf(stderr, "  vmpt domain start --console shows its console;"
				" --connect=URI is for others\n");
		return CLI_FAILED;
	}
	code = domain_connect(cli, &link);
	if (!code)
		code = console(cli, &link);
	domain_disconnect(&link);
	return code;
}
