// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The connection to libvirt: its own driver in this process with our folder, or
 * any URI; the thread of its events; and its errors, with what to do about them.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libxml/uri.h>
#include <libxml/xmlerror.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/domain/domain.h"

#define LOG_MAX (1 << 20)
#define URIS	"its URIs are like qemu:///system; without --connect none is needed"

/* ---- errors ---- */

static void be_silent(void *opaque, virErrorPtr err)
{
	(void)opaque;
	(void)err;
}

/* Silences libxml when libvirt calls it; libvirt's error has the cause. */
static __attribute__((format(printf, 2, 3))) void be_silent_too(void *opaque, const char *fmt, ...)
{
	(void)opaque;
	(void)fmt;
}

/* Advice for libvirt's messages. The first match is used. */
static const struct {
	int code;	  /* 0: any */
	const char *says; /* NULL: anything */
	const char *advice;
} hints[] = {
	{ 0, "driver.pid", "another vmpt uses that folder: wait for it, or give --root=DIR" },
	{ 0, "Cannot check QEMU binary",
	  "<emulator> must be a QEMU; vmpt domain qemu prints one that fits the plugin" },
	{ 0, "Failed to read pidfile",
	  "is <emulator> a QEMU? vmpt domain qemu prints one that fits the plugin" },
	{ 0, "-no-acpi: invalid option",
	  "with this libvirt and QEMU its XML needs <features><acpi/></features>" },
	{ 0, "cannot open shared object", "is the plugin built, and can QEMU read its file?" },
	{ 0, "could not load PC BIOS", "is <loader> a file that QEMU can read?" },
	{ 0, "already exists", "vmpt domain stop ends it" },
	{ 0, "already active", "vmpt domain stop ends it" },
	{ 0, "not using a PTY", "its XML needs <serial type='pty'/>" },
	{ 0, "Failed to connect socket", "is libvirtd running? without --connect none is needed" },
	{ 0, "does not include a driver name", URIS },
	{ 0, "no connection driver available",
	  "the embedded driver is in Debian's package libvirt-daemon-driver-qemu" },
	{ 0, "must be less than 108 bytes", "a folder of libvirt's or QEMU's has too long a name" },
	{ 0, "the cause is unknown", "libvirt needs /sys: is it mounted here?" },
	{ 0, "Permission denied", "the user that QEMU or libvirt runs as needs access to it" },
	{ VIR_ERR_NO_DOMAIN, NULL,
	  "vmpt domain list shows all domains; a file's name ends in .xml" },
	{ VIR_ERR_OPERATION_INVALID, "not running", "vmpt domain start starts it" },
};

static bool is_noise(const char *line, size_t len)
{
	static const char *const noise[] = { ": warning: ", "char device redirected to " };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(noise); i++)
		if (memmem(line, len, noise[i], strlen(noise[i])))
			return true;
	return false;
}

/* Remove QEMU's warnings from @text: they are not why it failed. */
static void drop_warnings(char *text)
{
	char *line = strstr(text, "monitor: "), *end;
	size_t len;

	line = line ? line + strlen("monitor: ") : text;
	while (*line) {
		len = strcspn(line, "\n");
		end = line + len + (line[len] == '\n');
		if (*end && is_noise(line, len))
			memmove(line, end, strlen(end) + 1);
		else
			line = end;
	}
	for (len = strlen(text); len && text[len - 1] == '\n'; len--)
		text[len - 1] = '\0';
}

/* libvirt starts QEMU in another folder: a relative path that works here fails there. */
static bool advise_absolute(const struct cli *cli, const char *says)
{
	const struct domain_options *o = cli->data;
	size_t i;

	for (i = 0; i < o->set.count; i++) {
		const char *value = strchr(o->set.s[i], '=') + 1;
		char *quoted = NULL, *bare = NULL, *here;
		bool named;

		if (!*value || *value == '/' || access(value, F_OK))
			continue;
		named = (asprintf(&quoted, "'%s'", value) > 0 && strstr(says, quoted)) ||
			(asprintf(&bare, " %s: ", value) > 0 && strstr(says, bare));
		free(quoted);
		free(bare);
		if (!named)
			continue;
		here = getcwd(NULL, 0);
		fprintf(stderr,
			"  QEMU does not run in this folder: its paths must be absolute,"
			" --set %.*s%s/%s\n",
			(int)(value - o->set.s[i]), o->set.s[i], here ? here : "", value);
		free(here);
		return true;
	}
	return false;
}

/* Advice for libvirt's error, as a line of its own. */
static void advise(const struct cli *cli, const virError *err, const char *says)
{
	size_t i;

	if (advise_absolute(cli, says))
		return;
	for (i = 0; i < VMPT_ARRAY_SIZE(hints); i++) {
		if (hints[i].code && (!err || hints[i].code != err->code))
			continue;
		if (hints[i].says && !strstr(says, hints[i].says))
			continue;
		fprintf(stderr, "  %s\n", hints[i].advice);
		return;
	}
}

int domain_error_of(const struct cli *cli, const virError *err, const char *who, const char *what)
{
	char *says = strdup(err && err->message ? err->message : "libvirt gives no reason");
	char shown[4096], *end;

	if (!says)
		return cli_no_memory(cli);
	drop_warnings(says);
	cli_safe_text(who, shown, sizeof(shown), sizeof(shown));
	/* QEMU's messages have lines; but one with the name of @who must not get more by it. */
	while (strchr(who, '\n') && (end = strchr(says, '\n')) != NULL)
		*end = ' ';
	cli_error(cli, "%s: %s: %s", shown, what, says);
	advise(cli, err, says);
	free(says);
	return CLI_FAILED;
}

int domain_error(const struct cli *cli, const char *who, const char *what)
{
	return domain_error_of(cli, virGetLastError(), who, what);
}

json_t *domain_document(struct cli *cli, const struct domain_link *link)
{
	json_t *doc = cli_json_head(cli);

	cli_json_string(cli, doc, "connect", link->uri ? link->uri : "?");
	return doc;
}

/* ---- the embedded driver's folder ---- */

#define QEMU_USER "vmpt"

/* Root's guests do not run as root if there is a user for them. */
static bool has_user(void)
{
	return !geteuid() && getpwnam(QEMU_USER);
}

/* Create @path and its parents; who runs QEMU must get to its files. */
static int make_folders(const struct cli *cli, char *path)
{
	char *p;

	for (p = path + 1;; p++) {
		char c = *p;

		if (c && c != '/')
			continue;
		*p = '\0';
		if (mkdir(path, has_user() ? 0711 : 0700) && errno != EEXIST) {
			cli_error(cli, "%s: %s", path, strerror(errno));
			*p = c;
			return CLI_FAILED;
		}
		*p = c;
		if (!c)
			return CLI_OK;
	}
}

/* Whether "/" is a mount, as it is not in a chroot. */
static bool root_is_mount(void)
{
	struct statx st;

	return !statx(AT_FDCWD, "/", 0, 0, &st) && st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/*
 * No log daemon, no change of file owners, nothing that may be missing. As root libvirt gives each
 * QEMU a /dev with what its domain needs, where it can (namespaces): it finds out by itself, but
 * not that mount propagation cannot be changed in a chroot.
 */
static int write_conf(const struct cli *cli, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *conf = fd < 0 ? NULL : fdopen(fd, "w");

	if (fd < 0 && errno == EEXIST)
		return CLI_OK; /* perhaps edited */
	if (conf) {
		fprintf(conf,
			"# Written by vmpt domain if it does not exist; edit it as you like.\n"
			"stdio_handler = \"file\"\n"
			"security_driver = \"none\"\n"
			"dynamic_ownership = 0\n"
			"remember_owner = 0\n"
			"cgroup_controllers = []\n");
		if (!geteuid())
			fprintf(conf, "user = \"%s\"\ngroup = \"%s\"\n",
				has_user() ? QEMU_USER : "root", has_user() ? QEMU_USER : "root");
		if (!geteuid() && !root_is_mount())
			fprintf(conf, "namespaces = []\n");
		if (!ferror(conf) && !fclose(conf))
			return CLI_OK;
	}
	cli_error(cli, "%s: %s", path, strerror(errno));
	return CLI_FAILED;
}

/* libvirt does what is written in this folder, for root as whoever it says. */
static int check_owner(const struct cli *cli, const char *root)
{
	struct stat st;

	if (!stat(root, &st) && (!st.st_uid || st.st_uid == geteuid()) && !(st.st_mode & S_IWOTH))
		return CLI_OK;
	cli_error(cli, "%s: others own it or can write to it", root);
	fprintf(stderr,
		"  libvirt's files are not safe there; give another folder with --root=DIR\n");
	return CLI_FAILED;
}

/* As which user libvirt will start QEMU. */
static void read_user(struct domain_link *link, const char *path)
{
	FILE *conf = geteuid() ? NULL : fopen(path, "re");
	const struct passwd *user;
	const struct group *group;
	char line[256], name[64];

	while (conf && fgets(line, sizeof(line), conf)) {
		if (sscanf(line, " user = \"%63[^\"]", name) == 1 && (user = getpwnam(name)))
			link->uid = user->pw_uid;
		if (sscanf(line, " group = \"%63[^\"]", name) == 1 && (group = getgrnam(name)))
			link->gid = group->gr_gid;
	}
	if (conf)
		fclose(conf);
}

/*
 * ${XDG_STATE_HOME:-~/.local/state}/vmpt/libvirt, or --root, absolute. Root's home is closed to
 * QEMU's user.
 */
static char *root_folder(const struct cli *cli, const char *given)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path = NULL, *here = NULL;
	int n;

	if (given && given[0] != '/') {
		here = getcwd(NULL, 0);
		n = here ? asprintf(&path, "%s/%s", here, given) : -1;
		free(here);
	} else if (given) {
		n = asprintf(&path, "%s", given);
	} else if (state && state[0] == '/') {
		n = asprintf(&path, "%s/vmpt/libvirt", state);
	} else if (has_user()) {
		n = asprintf(&path, "/var/lib/vmpt/libvirt");
	} else if (home && home[0] == '/') {
		n = asprintf(&path, "%s/.local/state/vmpt/libvirt", home);
	} else {
		cli_error(cli, "$HOME is not set: give a folder for libvirt's files with --root");
		return NULL;
	}
	if (n < 0) {
		cli_no_memory(cli);
		return NULL;
	}
	return path;
}

/* The folder's name as part of a URI. */
static char *embedded_uri(const char *root)
{
	char *uri = NULL, *quoted = (char *)xmlURIEscapeStr(BAD_CAST root, BAD_CAST "/");

	if (!quoted || asprintf(&uri, "qemu:///embed?root=%s", quoted) < 0)
		uri = NULL;
	xmlFree(quoted);
	return uri;
}

static int prepare_root(const struct cli *cli, struct domain_link *link, const char *given)
{
	char *path = NULL;
	int code;

	link->root = root_folder(cli, given);
	if (!link->root)
		return CLI_FAILED;
	if (asprintf(&path, "%s/etc", link->root) < 0)
		return cli_no_memory(cli);
	code = make_folders(cli, path);
	free(path);
	if (!code)
		code = check_owner(cli, link->root);
	if (code)
		return code;
	if (asprintf(&path, "%s/etc/qemu.conf", link->root) < 0)
		return cli_no_memory(cli);
	code = write_conf(cli, path);
	read_user(link, path);
	free(path);
	return code;
}

/*
 * libvirt's warnings go to a file instead of the terminal, or nowhere if the file's name has
 * a separator of that variable. A process that libvirt forks keeps only the priority,
 * LIBVIRT_DEBUG, and writes to the terminal: there we want errors only.
 */
static int send_log_to_file(const struct cli *cli, const struct domain_link *link)
{
	char *outputs = NULL, *path = NULL;
	struct stat st;
	int n;

	if (asprintf(&path, "%s/libvirt.log", link->root) < 0)
		return cli_no_memory(cli);
	/* libvirt appends to it. */
	if (!stat(path, &st) && st.st_size > LOG_MAX)
		unlink(path);
	n = asprintf(&outputs, "3:file:%s", strpbrk(path, " :") ? "/dev/null" : path);
	free(path);
	if (n < 0)
		return cli_no_memory(cli);
	setenv("LIBVIRT_LOG_OUTPUTS", outputs, 0);
	free(outputs);
	if (!getenv("LIBVIRT_DEBUG"))
		setenv("LIBVIRT_LOG_FILTERS", "3:*", 0);
	setenv("LIBVIRT_DEBUG", "4", 0);
	return CLI_OK;
}

/*
 * What this process executes, QEMU above all, has no capability but this one, with which root reads
 * and writes files of others: images and traces may be in a user's folder. libvirt itself keeps
 * all.
 */
static void drop_rights(void)
{
	unsigned long cap;

	for (cap = 0; !geteuid() && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (cap != CAP_DAC_OVERRIDE)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

/* ---- the connection ---- */

static void *run_events(void *opaque)
{
	struct domain_link *link = opaque;

	while (!__atomic_load_n(&link->events_end, __ATOMIC_ACQUIRE))
		if (virEventRunDefaultImpl() < 0)
			break;
	return NULL;
}

static void no_event(int timer, void *opaque)
{
	(void)opaque;
	virEventRemoveTimeout(timer);
}

static int start_events(const struct cli *cli, struct domain_link *link)
{
	int err;

	if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0)
		return domain_error(cli, "libvirt", "cannot be used");
	err = pthread_create(&link->events, NULL, run_events, link);
	if (err) {
		cli_error(cli, "cannot start a thread: %s", strerror(err));
		return CLI_FAILED;
	}
	link->events_run = true;
	return CLI_OK;
}

/*
 * If libvirt lacks a driver, it tries a daemon, and reports that the daemon does not answer.
 * These are the drivers of libvirt 9.
 */
static bool is_driver(const char *uri)
{
	static const char *const driver[] = { "bhyve",	      "ch",	  "esx",    "gsx",
					      "hyperv",	      "lxc",	  "openvz", "parallels",
					      "qemu",	      "test",	  "vbox",   "vmwarefusion",
					      "vmwareplayer", "vmwarews", "vpx",    "vz",
					      "xen" };
	size_t len = strcspn(uri, "+:"), i;

	for (i = 0; i < VMPT_ARRAY_SIZE(driver); i++)
		if (strlen(driver[i]) == len && !strncmp(uri, driver[i], len))
			return true;
	return false;
}

static int cannot_connect(const struct cli *cli, const struct domain_link *link, const char *uri)
{
	if (link->embedded)
		return domain_error(cli, link->root, "cannot connect");
	/* Without a colon it may be a libvirt alias. */
	if (!strchr(uri, ':') || is_driver(uri))
		return domain_error(cli, uri, "cannot connect");
	cli_error(cli, "%s: cannot connect: libvirt has no driver '%.*s'", uri,
		  (int)strcspn(uri, "+:"), uri);
	fprintf(stderr, "  " URIS "\n");
	return CLI_FAILED;
}

int domain_connect(struct cli *cli, struct domain_link *link)
{
	const struct domain_options *o = cli->data;
	char *uri = o->connect ? strdup(o->connect) : NULL;
	int code = CLI_OK;

	*link = (struct domain_link){ .embedded = !o->connect };
	if (link->embedded) {
		code = domain_guard(cli);
		if (!code)
			code = prepare_root(cli, link, o->root);
		if (!code)
			domain_end_left(cli, link->root);
		if (!code)
			code = send_log_to_file(cli, link);
		drop_rights();
		uri = code ? NULL : embedded_uri(link->root);
	} else {
		/* Its errors are ours to print; 11.3 also warns of a descriptor closed twice. */
		setenv("LIBVIRT_LOG_OUTPUTS", "4:file:/dev/null", 0);
	}
	if (!code && !uri)
		code = cli_no_memory(cli);
	virSetErrorFunc(NULL, be_silent);
	xmlSetGenericErrorFunc(NULL, be_silent_too);
	if (!code)
		code = start_events(cli, link);
	if (!code) {
		link->conn = virConnectOpen(uri);
		if (!link->conn)
			code = cannot_connect(cli, link, uri);
		else
			link->uri = virConnectGetURI(link->conn);
	}
	free(uri);
	return code;
}

void domain_disconnect(struct domain_link *link)
{
	if (link->conn)
		virConnectClose(link->conn);
	if (link->events_run) {
		__atomic_store_n(&link->events_end, true, __ATOMIC_RELEASE);
		virEventAddTimeout(0, no_event, NULL, NULL);
		pthread_join(link->events, NULL);
	}
	free(link->uri);
	free(link->root);
}
