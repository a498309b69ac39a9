// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Find or fetch a QEMU that fits the plugin, by the script get-qemu, which is next to this program
 * in the build folder and where "make install" puts it. Packages of a distribution are without it:
 * then it is the QEMU that is installed, which refuses a plugin that does not fit.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/domain/domain.h"

#define QEMU "qemu-system-x86_64"

/* The script's path, which the caller frees. NULL after a message. */
static char *script(const struct cli *cli)
{
	char self[4096], *path = NULL;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0) {
		cli_error(cli, "/proc/self/exe: %m");
		return NULL;
	}
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	if (asprintf(&path, "%s/get-qemu", self) < 0) {
		cli_no_memory(cli);
		return NULL;
	}
	return path;
}

static bool is_there(const char *path)
{
	return !access(path, F_OK) || errno != ENOENT;
}

/* In a child: only what is safe if the parent has other threads. */
static void execute(const char *path, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	signal(SIGPIPE, SIG_DFL);
	if (dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    dup2(null, STDERR_FILENO) >= 0) {
		if (is_there(path))
			execl(path, path, "--no-fetch", (char *)NULL);
		else
			execl("/bin/sh", "sh", "-c", "command -v " QEMU, (char *)NULL);
	}
	_exit(127);
}

/* The first line that @path prints, in @line. Whether it succeeded. */
static bool ask(const char *path, char *line, size_t size)
{
	int ends[2], status = -1;
	FILE *from;
	pid_t pid;

	line[0] = '\0';
	if (pipe2(ends, O_CLOEXEC))
		return false;
	pid = fork();
	if (!pid)
		execute(path, ends[1]);
	close(ends[1]);
	from = fdopen(ends[0], "re");
	if (from && !fgets(line, (int)size, from))
		line[0] = '\0';
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (from)
		fclose(from);
	else
		close(ends[0]);
	line[strcspn(line, "\n")] = '\0';
	return pid > 0 && !status && line[0] == '/';
}

const char *domain_qemu_path(const struct cli *cli)
{
	static char found[4096];
	char *path;

	if (found[0])
		return found;
	path = script(cli);
	if (path && !ask(path, found, sizeof(found)))
		found[0] = '\0';
	free(path);
	return found[0] ? found : NULL;
}

int domain_qemu(struct cli *cli)
{
	char *path;

	if (cli->files)
		return cli_usage(cli, "unexpected argument '%s'", cli->file[0]);
	path = script(cli);
	if (!path)
		return CLI_FAILED;
	if (is_there(path)) {
		signal(SIGPIPE, SIG_DFL);
		execl(path, path, (char *)NULL);
		cli_error(cli, "%s: %m", path);
	} else if (domain_qemu_path(cli)) {
		puts(domain_qemu_path(cli));
		free(path);
		return CLI_OK;
	} else {
		cli_error(cli, "no " QEMU " is installed");
	}
	free(path);
	return CLI_FAILED;
}
