// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The parent process of an embedded libvirt. A QEMU that libvirt starts becomes an orphan at
 * once, and libvirt waits up to a minute for it to vanish: its new parent must reap it soon,
 * and not every PID 1 does. If the command dies, everything it started is stopped. If both die
 * at once, the next command does that, before it opens libvirt.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/domain/domain.h"

#define GRACE_MS 5000 /* for orphans to end by SIGTERM */
#define STEP_MS	 20

static volatile sig_atomic_t child;

/* The terminal signals the child too: pass on only what was sent to this process. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code == SI_USER && child > 0)
		kill(child, sig);
}

/* The parent of process @pid, or 0. */
static pid_t parent_of(const char *pid)
{
	char path[64], line[512], *name_end;
	FILE *stat;
	int parent;

	snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
	stat = fopen(path, "re");
	if (!stat)
		return 0;
	name_end = fgets(line, sizeof(line), stat) ? strrchr(line, ')') : NULL;
	fclose(stat);
	/* ") S 123 …" */
	if (!name_end || sscanf(name_end, ") %*c %d", &parent) != 1)
		return 0;
	return parent;
}

static void signal_children(int sig)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc)) != NULL) {
		int pid = atoi(entry->d_name);

		if (pid > 0 && parent_of(entry->d_name) == getpid())
			kill(pid, sig);
	}
	if (proc)
		closedir(proc);
}

/* Whether no child is left after at most @ms. */
static bool reaped_within(int ms)
{
	pid_t pid;

	for (;;) {
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			return true;
		if (ms <= 0)
			return false;
		usleep(STEP_MS * 1000);
		ms -= STEP_MS;
	}
}

/* Reap until the child ends, then end what it left. The exit code is the child's. */
static int watch(const struct cli *cli, pid_t worker)
{
	int status = 0;
	pid_t pid;

	do
		pid = wait(&status);
	while (pid != worker && (pid > 0 || errno == EINTR));
	if (!reaped_within(0)) {
		signal_children(SIGTERM);
		if (!reaped_within(GRACE_MS)) {
			signal_children(SIGKILL);
			reaped_within(GRACE_MS);
		}
	}
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	cli_error(cli, "ended by signal %d (%s); its domains were stopped", WTERMSIG(status),
		  strsignal(WTERMSIG(status)));
	return CLI_FAILED;
}

int domain_guard(const struct cli *cli)
{
	struct sigaction on = { .sa_sigaction = pass_on, .sa_flags = SA_SIGINFO };
	static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction old[VMPT_ARRAY_SIZE(forwarded)];
	pid_t guard = getpid(), pid;
	sigset_t block, before;
	size_t i;

	fflush(NULL);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		cli_warn(cli, "stopping a domain may take long: %s", strerror(errno));
	/* A signal that comes meanwhile must reach a child with its own handlers restored. */
	sigemptyset(&block);
	for (i = 0; i < VMPT_ARRAY_SIZE(forwarded); i++) {
		sigaddset(&block, forwarded[i]);
		sigaction(forwarded[i], &on, &old[i]);
	}
	sigprocmask(SIG_BLOCK, &block, &before);
	pid = fork();
	if (pid < 0) {
		cli_error(cli, "cannot start a process: %s", strerror(errno));
		return CLI_FAILED;
	}
	if (pid > 0) {
		child = pid;
		sigprocmask(SIG_SETMASK, &before, NULL);
		_exit(watch(cli, pid));
	}
	for (i = 0; i < VMPT_ARRAY_SIZE(forwarded); i++)
		sigaction(forwarded[i], &old[i], NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	/* If the guard is killed, end as by SIGTERM: domains are stopped. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != guard)
		raise(SIGTERM);
	return CLI_OK;
}

/* ---- what a killed command left ---- */

#define ARGS_MAX (64 << 10)

/*
 * Whether process @pid is a QEMU that libvirt started with this folder: its arguments have -S and
 * a file in @files. @name is its guest's; "": libvirt only asks what it can do.
 */
static bool is_left(const char *pid, const char *files, char name[CLI_WHO])
{
	static const char stopped[] = "\0-S", guest[] = "-name\0guest=";
	char path[64], *args = malloc(ARGS_MAX + 1), *at;
	ssize_t got = 0;
	size_t n;
	bool is;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.16s/cmdline", pid);
	fd = args ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		got = read(fd, args, ARGS_MAX);
		close(fd);
	}
	n = got > 0 ? (size_t)got : 0;
	is = n && memmem(args, n, stopped, sizeof(stopped)) &&
	     memmem(args, n, files, strlen(files));
	at = is ? memmem(args, n, guest, sizeof(guest) - 1) : NULL;
	name[0] = '\0';
	if (at) {
		args[n] = '\0';
		at += sizeof(guest) - 1;
		at[strcspn(at, ",")] = '\0';
		cli_safe_name(at, name);
	}
	free(args);
	return is;
}

/* Send them @sig; how many got it. */
static unsigned int signal_left(const struct cli *cli, const char *files, int sig, bool say)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned int n = 0;
	char name[CLI_WHO];

	while (proc && (entry = readdir(proc)) != NULL) {
		int pid = atoi(entry->d_name), fd = pid > 0 ? pidfd_open(pid, 0) : -1;

		/* The descriptor stays that process's, whatever becomes of its number. */
		if (fd < 0)
			continue;
		if (is_left(entry->d_name, files, name)) {
			if (say && *name)
				cli_warn(cli, "%s: a killed command left it running: it is stopped",
					 name);
			n += !pidfd_send_signal(fd, sig, NULL, 0);
		}
		close(fd);
	}
	if (proc)
		closedir(proc);
	return n;
}

/* libvirt's notes on what ran: it would wait for the end of a start that nobody goes on with. */
static void forget_left(const char *root)
{
	char path[PATH_MAX];
	struct dirent *entry;
	size_t len;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/run/qemu", root);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) != NULL) {
		len = strlen(entry->d_name);
		if (len > 4 && !strcmp(entry->d_name + len - 4, ".xml"))
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

void domain_end_left(const struct cli *cli, const char *root)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ms;
	char *files = NULL;

	/* Held as long as this process lives: while a command runs, nothing there is left. */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || asprintf(&files, "%s/lib/qemu/", root) < 0) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (ms = 0; ms < 2 * GRACE_MS; ms += STEP_MS) {
		if (!signal_left(cli, files, ms < GRACE_MS ? SIGTERM : SIGKILL, !ms))
			break;
		usleep(STEP_MS * 1000);
	}
	forget_left(root);
	free(files);
}
