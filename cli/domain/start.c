// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt domain start and stop. */
#include <string.h>
#include <unistd.h>

#include "cli/domain/domain.h"

#define STOP_LOOK_US 50000

/* ---- start ---- */

static void say(const struct domain_run *run, const char *what)
{
	size_t i;

	for (i = 0; i < run->domains && !run->cli->quiet; i++)
		fprintf(stderr, "%s: %s\n", run->domain[i].shown, what);
}

static int open_console(struct domain_run *run)
{
	run->console = domain_console_open(run->cli, run->link, run->domain[0].ptr);
	return run->console ? CLI_OK : CLI_FAILED;
}

/* Until the end of the domains; with a daemon, of the console. */
static int stay(struct domain_run *run, bool console)
{
	int code, stopped;

	code = domain_run_create(run, VIR_DOMAIN_START_PAUSED);
	if (!code && console)
		code = open_console(run);
	if (!code)
		code = domain_run_resume(run);
	if (!code && !console)
		say(run, "runs; Ctrl-C stops it");
	if (!code)
		code = domain_run_wait(run, 0);
	if (run->link->embedded || code) {
		stopped = domain_run_stop(run);
		code = code ? code : stopped;
	}
	domain_console_close(run->console);
	run->console = NULL;
	if (!code)
		code = domain_run_ends(run);
	if (!code && run->link->embedded)
		say(run, "ended");
	return code;
}

/* They keep running when this command ends. */
static int leave_running(struct domain_run *run)
{
	int code = domain_run_create(run, 0);

	if (code)
		domain_run_stop(run);
	else
		say(run, "runs");
	return code;
}

int domain_start(struct cli *cli)
{
	const struct domain_options *o = cli->data;
	bool stays = !o->connect || o->console;
	struct domain_link link;
	struct domain_run run;
	int code = CLI_OK;

	if (o->console && cli->files > 1)
		return cli_usage(cli, "--console: one domain at a time");
	if (stays)
		code = domain_catch_signals(cli);
	if (code)
		return code;
	code = domain_connect(cli, &link);
	if (!code) {
		code = domain_run_load(&run, cli, &link);
		if (!code && stays)
			code = stay(&run, o->console);
		else if (!code)
			code = leave_running(&run);
		domain_run_free(&run);
	}
	domain_disconnect(&link);
	return code;
}

/* ---- stop ---- */

/* After a libvirt error: no failure if the domain is gone meanwhile. */
static int unless_gone(const struct cli *cli, virDomainPtr ptr, const char *name, const char *what)
{
	virError *err = virSaveLastError();
	int code = CLI_OK;

	if (virDomainIsActive(ptr) != 0)
		code = domain_error_of(cli, err, name, what);
	virFreeError(err);
	return code;
}

static int destroy(const struct cli *cli, virDomainPtr ptr, const char *name)
{
	if (virDomainDestroy(ptr))
		return unless_gone(cli, ptr, name, "cannot be stopped");
	return CLI_OK;
}

/* Ask the guest, and wait for it. */
static int shut_down(const struct cli *cli, virDomainPtr ptr, const char *name, u64 seconds)
{
	u64 i;

	if (virDomainShutdown(ptr))
		return unless_gone(cli, ptr, name, "cannot be asked to shut down");
	for (i = 0; i <= seconds * (1000000 / STOP_LOOK_US); i++) {
		if (virDomainIsActive(ptr) != 1)
			return CLI_OK;
		usleep(STOP_LOOK_US);
	}
	cli_warn(cli, "%s: did not shut down within %llu s, stopping it", name,
		 (unsigned long long)seconds);
	return destroy(cli, ptr, name);
}

static int stop(const struct cli *cli, const struct domain_link *link, const char *name)
{
	const struct domain_options *o = cli->data;
	virDomainPtr ptr = virDomainLookupByName(link->conn, name);
	int code;

	if (!ptr)
		return domain_error(cli, name, "not found");
	if (virDomainIsActive(ptr) == 0) {
		cli_error(cli, "%s: not running", name);
		code = CLI_FAILED;
	} else if (o->force) {
		code = destroy(cli, ptr, name);
	} else {
		code = shut_down(cli, ptr, name, o->seconds);
	}
	virDomainFree(ptr);
	return code;
}

int domain_stop(struct cli *cli)
{
	const struct domain_options *o = cli->data;
	struct domain_link link;
	int i, one, code;

	if (!o->connect) {
		cli_error(cli, "%s: an embedded domain belongs to the command that started it",
			  cli->file[0]);
		fprintf(stderr, "  Ctrl-C there stops it, and so does SIGTERM;"
				" --connect=URI is for others\n");
		return CLI_FAILED;
	}
	code = domain_connect(cli, &link);
	for (i = 0; link.conn && i < cli->files; i++) {
		char name[CLI_WHO];

		cli_safe_name(cli->file[i], name);
		one = stop(cli, &link, cli->file[i]);
		code = code ? code : one;
		if (!one && !cli->quiet)
			fprintf(stderr, "%s: stopped\n", name);
	}
	domain_disconnect(&link);
	return code;
}
