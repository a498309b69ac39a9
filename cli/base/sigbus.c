// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Inputs that become shorter while they are read. Traces are mapped, because they may be larger
 * than memory, and a load from a page that a file no longer has raises SIGBUS, in any thread. Here
 * it ends the command with a sentence: the handler finds the file by the address that faulted and
 * exits.
 *
 * Why so: fstat() before each access leaves a race, and costs a call; copying large inputs costs
 * their size in time and disk; going on after a siglongjmp() out of a library's loop and its
 * threads leaves locks and memory in no known state; zero pages in place of the missing ones would
 * be PADs, a result that looks right. A library may not own a signal at all: what holds for its
 * users stands in decoder/vmpt-decode.h. Outputs are left as after a kill.
 *
 * Not every shrinking raises a signal, as the last page's rest reads as zeros, and text files are
 * not mapped. So cli_inputs_whole() compares sizes at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/safe-text.h"

/* A mapping's line is "START-END PERMS OFFSET DEV INODE PATH\n", numbers in hex. */
#define LINE_BYTES (4096 + 128)

static const char *command;

struct mapping {
	u64 start, end, offset;
	char *path; /* in .line */
	char line[LINE_BYTES];
};

/* ---- what a handler may do: system calls on its own memory ---- */

static void put(const char *text)
{
	size_t n = strlen(text);

	while (n) {
		ssize_t done = write(STDERR_FILENO, text, n);

		if (done <= 0)
			return;
		text += done;
		n -= (size_t)done;
	}
}

static void put_name(const char *name)
{
	char one[CLI_SAFE_CHAR + 1];

	while (*name) {
		one[cli_safe_char(&name, one)] = '\0';
		put(one);
	}
}

static u64 take_hex(char **at)
{
	u64 value = 0;

	for (;; ++*at) {
		char c = **at;

		if (c >= '0' && c <= '9')
			value = value << 4 | (u64)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (u64)(c - 'a' + 10);
		else
			return value;
	}
}

static void parse(struct mapping *m)
{
	char *at = m->line;

	m->start = take_hex(&at);
	at += *at == '-';
	m->end = take_hex(&at);
	at = strchr(at + (*at == ' '), ' '); /* after PERMS */
	at = at ? at + 1 : "";
	m->offset = take_hex(&at);
	m->path = strchr(at, '/');
}

/* The file mapping that has @address. */
static bool find_mapping(struct mapping *m, u64 address)
{
	static char buf[4096];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool found = false;
	size_t fill = 0;
	ssize_t n, i;

	while (fd >= 0 && !found && (n = read(fd, buf, sizeof(buf))) > 0) {
		for (i = 0; i < n && !found; i++) {
			if (buf[i] != '\n') {
				m->line[fill] = buf[i];
				fill += fill < LINE_BYTES - 1;
				continue;
			}
			m->line[fill] = '\0';
			fill = 0;
			parse(m);
			found = m->path && address >= m->start && address < m->end;
		}
	}
	if (fd >= 0)
		close(fd);
	return found;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	static atomic_flag busy = ATOMIC_FLAG_INIT;
	static struct mapping m;
	u64 address = (u64)(uintptr_t)info->si_addr;
	struct sigaction by_default = { .sa_handler = SIG_DFL };
	struct stat st;

	(void)context;
	/* The first thread reports it and ends all. */
	while (atomic_flag_test_and_set(&busy))
		pause();
	if (info->si_code != BUS_ADRERR || !find_mapping(&m, address)) {
		/* It is none of an input's: end by it as without a handler. */
		sigaction(number, &by_default, NULL);
		atomic_flag_clear(&busy);
		if (info->si_code <= 0)
			raise(number);
		return;
	}
	put(isatty(STDERR_FILENO) ? "\r\033[Kvmpt " : "vmpt ");
	put(command);
	put(": error: ");
	put_name(m.path);
	if (stat(m.path, &st) || (u64)st.st_size <= address - m.start + m.offset)
		put(": it became shorter while it was read\n"
		    "  read a copy of it, or wait until it is complete\n");
	else
		put(": cannot be read: an error of its disk or file system\n");
	_exit(CLI_FAILED);
}

void cli_catch_sigbus(const char *name)
{
	struct sigaction action = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };

	command = name;
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, NULL);
}

/* ---- sizes ---- */

bool cli_inputs_whole(const struct cli *cli)
{
	struct stat st;
	size_t i;

	for (i = 0; i < cli->inputs; i++) {
		const struct cli_file_id *f = &cli->input[i];

		/* A file of that name that is another one does not change what is mapped. */
		if (!S_ISREG(f->mode) || stat(f->path, &st) || st.st_dev != f->dev ||
		    st.st_ino != f->ino || st.st_size >= f->size)
			continue;
		cli_error(cli, "%s: it became shorter while it was read: %s", f->path,
			  "the output may be wrong");
		fprintf(stderr, "  read a copy of it, or wait until it is complete\n");
		return false;
	}
	return true;
}
