// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Domains that a command starts: their XML from files or from libvirt, creating
 * them, letting them run, waiting for their end, and stopping those still running.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cli/domain/domain.h"

#define STOP_TELL     2.0 /* seconds of waiting for QEMU before a message */
#define STOP_GRACE    15.0
#define STOP_LOOK_MS  100
#define DRAIN_SECONDS 1.0
#define TICK_MS	      500

/* ---- which domains ---- */

/* web.xml, dir/web: a file; web: a domain that libvirt knows. */
static bool is_file(const char *arg)
{
	size_t len = strlen(arg);

	return strchr(arg, '/') || (len > 4 && !strcmp(arg + len - 4, ".xml"));
}

/* "web" of "web=dir/linux.xml", of "web.xml" and of "dir/web.xml"; @path: the file. */
static char *name_of_file(const char *arg, const char **path)
{
	const char *equals = access(arg, F_OK) ? strchr(arg, '=') : NULL;
	const char *base = strrchr(arg, '/');
	size_t len;

	*path = arg;
	if (equals && equals > arg && !memchr(arg, '/', (size_t)(equals - arg))) {
		*path = equals + 1;
		return strndup(arg, (size_t)(equals - arg));
	}
	base = base ? base + 1 : arg;
	len = strlen(base);
	if (len > 4 && !strcmp(base + len - 4, ".xml"))
		len -= 4;
	return strndup(base, len);
}

static int load_file(const struct cli *cli, const char *arg, struct domain *d)
{
	const char *path;
	char *name = name_of_file(arg, &path);
	int code = CLI_FAILED;

	if (!name)
		return cli_no_memory(cli);
	d->doc = domain_xml_read(cli, path);
	if (d->doc)
		code = domain_xml_fill(cli, d->doc, path, name);
	free(name);
	if (code)
		return code;
	d->name = domain_xml_value(d->doc, "name");
	if (d->name && d->name[0]) {
		cli_safe_name(d->name, d->shown);
		return CLI_OK;
	}
	cli_error(cli, "%s: the domain has no <name>", path);
	return CLI_FAILED;
}

/* A domain's stored XML; a running one was started by others. */
static int load_name(const struct cli *cli, const struct domain_link *link, const char *name,
		     struct domain *d)
{
	virDomainPtr ptr = virDomainLookupByName(link->conn, name);
	char *text = NULL;
	int code = CLI_OK;

	if (!ptr)
		return domain_error(cli, name, "not found");
	d->name = strdup(name);
	cli_safe_name(name, d->shown);
	if (virDomainIsActive(ptr) == 1) {
		cli_error(cli, "%s: already running", d->shown);
		fprintf(stderr,
			"  a plugin and other changes need a restart:"
			" vmpt domain stop %s\n",
			d->shown);
		code = CLI_FAILED;
	} else {
		text = virDomainGetXMLDesc(ptr, VIR_DOMAIN_XML_INACTIVE | VIR_DOMAIN_XML_SECURE);
		if (!text)
			code = domain_error(cli, name, "cannot get its XML");
	}
	if (text) {
		d->doc = domain_xml_parse(cli, name, text);
		code = d->doc && d->name ? CLI_OK : CLI_FAILED;
	}
	free(text);
	d->stored = ptr;
	return code;
}

/* The bytes of a name that libvirt uses for its folder: 20 characters. */
static int short_name(const char *name)
{
	int len = 0, characters = 0;

	for (; name[len]; len++)
		if ((name[len] & 0xc0) != 0x80 && ++characters > 20)
			break;
	return len;
}

/*
 * The longest name among the sockets that the embedded libvirt makes in its folder: one that is
 * too long for a socket fails in QEMU or libvirt, with various messages.
 */
static int check_sockets(const struct domain_run *run)
{
	const size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
	size_t i;

	for (i = 0; run->link->embedded && i < run->domains; i++) {
		const char *name = run->domain[i].name;
		char *path;

		if (asprintf(&path, "%s/lib/qemu/domain-%zu-%.*s/monitor.sock", run->link->root,
			     i + 1, short_name(name), name) < 0)
			return cli_no_memory(run->cli);
		if (strlen(path) > most) {
			cli_error(run->cli,
				  "%s: %s: the name of a socket can have %zu bytes: %zu too many",
				  run->domain[i].shown, path, most, strlen(path) - most);
			fprintf(stderr, "  give a folder with a shorter name with --root=DIR\n");
			free(path);
			return CLI_FAILED;
		}
		free(path);
	}
	return CLI_OK;
}

int domain_run_load(struct domain_run *run, struct cli *cli, struct domain_link *link)
{
	int i, k, code;

	*run = (struct domain_run){ .cli = cli, .link = link, .callback = -1 };
	pthread_mutex_init(&run->lock, NULL);
	run->domain = calloc((size_t)cli->files, sizeof(*run->domain));
	if (!run->domain)
		return cli_no_memory(cli);
	for (i = 0; i < cli->files; i++) {
		struct domain *d = &run->domain[run->domains++];

		if (is_file(cli->file[i]))
			code = load_file(cli, cli->file[i], d);
		else
			code = load_name(cli, link, cli->file[i], d);
		if (code)
			return code;
		for (k = 0; k < i; k++) {
			if (strcmp(run->domain[k].name, d->name))
				continue;
			cli_error(cli, "%s and %s are both named %s", cli->file[k], cli->file[i],
				  d->shown);
			fprintf(stderr, "  give another with NAME=FILE.xml and <name>@NAME@</name>"
					" in the file\n");
			return CLI_FAILED;
		}
	}
	code = domain_xml_unused(cli);
	return code ? code : check_sockets(run);
}

/* ---- libvirt's events ---- */

/* On libvirt's thread, as the next one. */
static int on_lifecycle(virConnectPtr conn, virDomainPtr ptr, int event, int detail, void *opaque)
{
	struct domain_run *run = opaque;
	const char *name = virDomainGetName(ptr);
	size_t i;

	(void)conn;
	if (event != VIR_DOMAIN_EVENT_STOPPED)
		return 0;
	pthread_mutex_lock(&run->lock);
	for (i = 0; name && i < run->domains; i++) {
		if (strcmp(run->domain[i].name, name) || run->domain[i].ended)
			continue;
		run->domain[i].ended = true;
		run->domain[i].how = detail;
	}
	pthread_mutex_unlock(&run->lock);
	domain_wake();
	return 0;
}

static void on_close(virConnectPtr conn, int reason, void *opaque)
{
	struct domain_run *run = opaque;

	(void)conn;
	(void)reason;
	pthread_mutex_lock(&run->lock);
	run->lost = true;
	pthread_mutex_unlock(&run->lock);
	domain_wake();
}

static bool has_ended(struct domain_run *run, size_t i)
{
	bool ended;

	pthread_mutex_lock(&run->lock);
	ended = run->domain[i].ended;
	pthread_mutex_unlock(&run->lock);
	return ended;
}

static bool is_lost(struct domain_run *run)
{
	bool lost;

	pthread_mutex_lock(&run->lock);
	lost = run->lost;
	pthread_mutex_unlock(&run->lock);
	return lost;
}

size_t domain_run_alive(struct domain_run *run)
{
	size_t i, alive = 0;

	for (i = 0; i < run->domains; i++)
		alive += !has_ended(run, i);
	return alive;
}

static bool all_ended(struct domain_run *run)
{
	return !domain_run_alive(run);
}

/* ---- start to end ---- */

/* After a signal libvirt's errors about it are not shown. */
static int stopped_early(const struct domain_run *run)
{
	cli_error(run->cli, "stopped before the guests ran");
	return CLI_FAILED;
}

static int create(struct domain_run *run, struct domain *d, unsigned int flags)
{
	char *text;

	domain_log_start(run->link, d);
	if (d->stored && !run->edited) {
		if (virDomainCreateWithFlags(d->stored, flags))
			return domain_error(run->cli, d->name, "cannot be started");
		d->ptr = d->stored;
		d->stored = NULL;
		return CLI_OK;
	}
	text = domain_xml_text(run->cli, d->doc);
	if (!text)
		return CLI_FAILED;
	d->ptr = virDomainCreateXML(run->link->conn, text, flags);
	free(text);
	if (!d->ptr && domain_signal())
		return stopped_early(run);
	return d->ptr ? CLI_OK : domain_error(run->cli, d->name, "cannot be started");
}

int domain_run_create(struct domain_run *run, unsigned int flags)
{
	virConnectPtr conn = run->link->conn;
	size_t i;

	run->callback = virConnectDomainEventRegisterAny(
		conn, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
		/* of another type: libvirt's has no arguments */
		(virConnectDomainEventGenericCallback)(void (*)(void))on_lifecycle, run, NULL);
	if (run->callback < 0)
		return domain_error(run->cli, run->link->uri, "has no events");
	/* A driver without a daemon has no connection to lose. */
	virConnectRegisterCloseCallback(conn, on_close, run, NULL);
	for (i = 0; i < run->domains && !domain_signal(); i++) {
		int code = create(run, &run->domain[i], flags);

		if (code)
			return code;
	}
	return domain_signal() ? stopped_early(run) : CLI_OK;
}

unsigned int domain_run_mortal(const struct domain_run *run)
{
	/* libvirt 9 refuses AUTODESTROY where it is embedded; there the guard ends them. */
	return VIR_DOMAIN_START_PAUSED |
	       (run->link->embedded ? 0 : (unsigned int)VIR_DOMAIN_START_AUTODESTROY);
}

int domain_run_resume(struct domain_run *run)
{
	size_t i;

	for (i = 0; i < run->domains; i++)
		if (virDomainResume(run->domain[i].ptr) && !has_ended(run, i))
			return domain_error(run->cli, run->domain[i].name, "cannot run");
	return CLI_OK;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What the guest said last is in its stream still when libvirt says that it has ended. */
static void drain_console(struct domain_run *run)
{
	const double end = now() + DRAIN_SECONDS;

	while (run->console && all_ended(run) && !domain_signal() && now() < end &&
	       domain_console_state(run->console) == DOMAIN_CONSOLE_OPEN)
		domain_wait(1 + (int)(1000 * DRAIN_SECONDS / 20));
}

int domain_run_wait(struct domain_run *run, u64 seconds)
{
	double start = now(), end = start + (double)seconds, left;
	int most;

	while (!all_ended(run) && !domain_signal()) {
		if (is_lost(run)) {
			cli_error(run->cli, "%s: libvirt ended the connection", run->link->uri);
			return CLI_FAILED;
		}
		left = end - now();
		if (seconds && left <= 0)
			break;
		if (run->console && domain_console_state(run->console) == DOMAIN_CONSOLE_LEFT)
			break;
		if (run->tick)
			run->tick(run, now() - start);
		/* An hour is long enough, and fits poll()'s milliseconds. */
		most = run->tick ? TICK_MS : 3600000;
		domain_wait(seconds && 1000 * left < most ? 1 + (int)(1000 * left) : most);
	}
	drain_console(run);
	return CLI_OK;
}

/* The end of a domain, on its own thread: libvirt waits as long as QEMU takes. */
struct ending {
	virDomainPtr ptr;
	unsigned int flags;
	virError *err; /* NULL: it has ended */
	bool done;
};

static void *end_domain(void *opaque)
{
	struct ending *e = opaque;

	if (virDomainDestroyFlags(e->ptr, e->flags))
		e->err = virSaveLastError();
	__atomic_store_n(&e->done, true, __ATOMIC_RELEASE);
	domain_wake();
	return NULL;
}

static void tell_waiting(const struct domain_run *run, const struct domain *d)
{
	if (run->cli->quiet)
		return;
	/* Ours ends QEMU by force, see domain_catch_signals() and guard.c. */
	fprintf(stderr, "waiting for QEMU of %s to end%s\n", d->shown,
		run->link->embedded && domain_signal() ? "; Ctrl-C again kills it" : "");
}

/* End @d; at @tell print that it takes long. NULL, or libvirt's error, to be freed. */
static virError *end_and_wait(const struct domain_run *run, const struct domain *d,
			      unsigned int flags, double *tell)
{
	struct ending e = { .ptr = d->ptr, .flags = flags };
	pthread_t thread;

	if (pthread_create(&thread, NULL, end_domain, &e)) {
		end_domain(&e);
		return e.err;
	}
	while (!__atomic_load_n(&e.done, __ATOMIC_ACQUIRE)) {
		if (*tell && now() >= *tell) {
			tell_waiting(run, d);
			*tell = 0;
		}
		domain_wait(STOP_LOOK_MS);
	}
	pthread_join(thread, NULL);
	return e.err;
}

/*
 * By SIGTERM, so that QEMU and its plugins exit normally. libvirt 9 waits 15 s, then kills it and
 * reports success; others may leave the killing to us.
 */
static int stop(struct domain_run *run, size_t i)
{
	const struct domain *d = &run->domain[i];
	double from = now(), tell = from + STOP_TELL;
	virError *err = end_and_wait(run, d, VIR_DOMAIN_DESTROY_GRACEFUL, &tell);
	bool ended = !err || has_ended(run, i) || virDomainIsActive(d->ptr) == 0;
	int code = CLI_OK;

	virFreeError(err);
	if (ended && now() - from < STOP_GRACE)
		return CLI_OK;
	err = ended ? NULL : end_and_wait(run, d, 0, &tell);
	if (err)
		code = domain_error_of(run->cli, err, d->name, "cannot be stopped");
	else
		cli_warn(run->cli,
			 "%s: QEMU did not end by itself in %.0f s and was killed: some of its"
			 " output may be missing",
			 d->shown, STOP_GRACE);
	virFreeError(err);
	return code;
}

int domain_run_stop(struct domain_run *run)
{
	int code = CLI_OK, one;
	size_t i;

	for (i = 0; i < run->domains; i++) {
		if (!run->domain[i].ptr || has_ended(run, i) || is_lost(run))
			continue;
		one = stop(run, i);
		code = code ? code : one;
	}
	/* The events of these ends are still to come. */
	for (i = 0; i < 50 && !code && run->callback >= 0; i++) {
		size_t k;

		for (k = 0; k < run->domains; k++)
			if (run->domain[k].ptr && !has_ended(run, k))
				break;
		if (k == run->domains || is_lost(run))
			break;
		domain_wait(100);
	}
	return code;
}

const char *domain_end_text(const struct domain *d)
{
	if (!d->ended)
		return "runs";
	switch (d->how) {
	case VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN:
		return "shut down";
	case VIR_DOMAIN_EVENT_STOPPED_DESTROYED:
		return "stopped";
	case VIR_DOMAIN_EVENT_STOPPED_CRASHED:
		return "crashed";
	case VIR_DOMAIN_EVENT_STOPPED_FAILED:
		return "failed";
	default:
		return "ended";
	}
}

int domain_run_ends(const struct domain_run *run)
{
	int code = CLI_OK;
	size_t i;

	for (i = 0; i < run->domains; i++) {
		const struct domain *d = &run->domain[i];

		if (!d->ended || (d->how != VIR_DOMAIN_EVENT_STOPPED_CRASHED &&
				  d->how != VIR_DOMAIN_EVENT_STOPPED_FAILED))
			continue;
		code = CLI_FAILED;
		cli_error(run->cli, "%s: %s", d->shown,
			  d->how == VIR_DOMAIN_EVENT_STOPPED_CRASHED ? "the guest crashed"
								     : "QEMU failed");
		domain_log_tell(run->link, d);
	}
	return code;
}

void domain_run_free(struct domain_run *run)
{
	size_t i;

	if (run->callback >= 0) {
		virConnectDomainEventDeregisterAny(run->link->conn, run->callback);
		virConnectUnregisterCloseCallback(run->link->conn, on_close);
	}
	for (i = 0; i < run->domains; i++) {
		struct domain *d = &run->domain[i];

		if (d->ptr)
			virDomainFree(d->ptr);
		if (d->stored)
			virDomainFree(d->stored);
		if (d->doc)
			xmlFreeDoc(d->doc);
		free(d->name);
	}
	free(run->domain);
	pthread_mutex_destroy(&run->lock);
}
