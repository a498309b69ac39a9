// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Names of C++ and Rust as in their sources. A demangler's work grows without bounds with some
 * names, and names are hostile: so c++filt (binutils) has them in a process of its own, with limits
 * of time and memory, one name a line. What it does not answer in time stays as it is.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/symbols/names.h"
#include "util/array.h"
#include "util/hash.h"

#define NAME_MAX_BYTES	1024 /* longer ones are cut in symbols already */
#define ANSWER_MAX	65536
#define ANSWER_MS	1000
#define STARTS_MAX	3	/* how often it may fail */
#define CACHE_MAX	1000000 /* names */
#define MEMORY_MAX	(256u << 20)
#define CPU_SECONDS_MAX 60

struct known {
	char *mangled, *name; /* .name: safe for a terminal; NULL: c++filt knows no other */
};

struct names_demangler {
	pid_t pid; /* 0: it does not run */
	int fd;
	unsigned int starts;
	bool said;
	struct known *known;
	size_t count;
	struct vmpt_hash of;
};

/* _Z of C++ and older Rust, _R of Rust. */
static bool is_mangled(const char *name)
{
	size_t n = strlen(name), i;

	if (n < 4 || n > NAME_MAX_BYTES || name[0] != '_' || (name[1] != 'Z' && name[1] != 'R'))
		return false;
	for (i = 2; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_.$", name[i]))
			return false;
	return true;
}

static void stop(struct names_demangler *d)
{
	if (!d->pid)
		return;
	close(d->fd);
	kill(d->pid, SIGKILL);
	while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
		;
	d->pid = 0;
}

static int spawn(struct names_demangler *d, int end)
{
	char *const args[] = { (char[]){ "c++filt" }, (char[]){ "-i" }, (char[]){ "-p" }, NULL };
	posix_spawn_file_actions_t actions;
	int ret = posix_spawn_file_actions_init(&actions);

	if (ret)
		return ret;
	posix_spawn_file_actions_adddup2(&actions, end, 0);
	posix_spawn_file_actions_adddup2(&actions, end, 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	ret = posix_spawnp(&d->pid, args[0], &actions, NULL, args, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (ret)
		d->pid = 0;
	return ret;
}

static bool start(struct names_demangler *d)
{
	const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
	const struct rlimit cpu = { CPU_SECONDS_MAX, CPU_SECONDS_MAX };
	const struct rlimit none = { 0, 0 };
	int fd[2];

	if (d->pid)
		return true;
	if (d->starts >= STARTS_MAX)
		return false;
	d->starts++;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return false;
	d->fd = fd[0];
	if (spawn(d, fd[1])) {
		close(fd[0]);
		close(fd[1]);
		d->starts = STARTS_MAX;
		return false;
	}
	close(fd[1]);
	/* It has seen no name yet. */
	prlimit(d->pid, RLIMIT_AS, &memory, NULL);
	prlimit(d->pid, RLIMIT_CPU, &cpu, NULL);
	prlimit(d->pid, RLIMIT_CORE, &none, NULL);
	return true;
}

static bool send_all(int fd, const char *text, size_t n)
{
	while (n) {
		ssize_t done = send(fd, text, n, MSG_NOSIGNAL);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		text += done;
		n -= (size_t)done;
	}
	return true;
}

/* A line into @answer. */
static bool receive(int fd, char answer[ANSWER_MAX])
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t n = 0;

	while (n < ANSWER_MAX) {
		ssize_t got;

		if (poll(&p, 1, ANSWER_MS) <= 0)
			return false;
		got = recv(fd, answer + n, ANSWER_MAX - n, 0);
		if (got <= 0)
			return false;
		n += (size_t)got;
		if (answer[n - 1] == '\n') {
			answer[n - 1] = '\0';
			return !memchr(answer, '\n', n - 1);
		}
	}
	return false;
}

/* What c++filt makes of @name, safe for a terminal; NULL: nothing else, or it failed. */
static char *ask(struct cli *cli, struct names_demangler *d, const char *name)
{
	char *answer = malloc(ANSWER_MAX), safe[CLI_WHO], *result = NULL;
	bool ok = answer && start(d);

	if (ok) {
		ok = send_all(d->fd, name, strlen(name)) && send_all(d->fd, "\n", 1) &&
		     receive(d->fd, answer);
		if (!ok)
			stop(d);
	}
	if (ok && strcmp(answer, name) != 0) {
		cli_safe_name(answer, safe);
		result = strdup(safe);
	} else if (!ok && !d->said) {
		d->said = true;
		cli_warn(cli, "c++filt (binutils) is missing or gave no answer: names of C++ and "
			      "Rust are as in the symbol tables");
	}
	free(answer);
	return result;
}

const char *names_demangle(struct cli *cli, const struct code_names *names, const char *name)
{
	/* Callers have it constant as what they know does not change. */
	struct code_names *n = (struct code_names *)(uintptr_t)names;
	struct names_demangler *d;
	u64 hash;
	u32 i;

	if (n->mangled || !is_mangled(name))
		return name;
	if (!n->demangler)
		n->demangler = calloc(1, sizeof(*n->demangler));
	d = n->demangler;
	if (!d)
		return name;
	hash = vmpt_mix64(vmpt_fnv1a(VMPT_FNV1A, name, strlen(name)));
	i = vmpt_hash_find(&d->of, hash, k, !strcmp(d->known[k].mangled, name));
	if (i != VMPT_HASH_NONE)
		return d->known[i].name ? d->known[i].name : name;
	if (d->count == CACHE_MAX || vmpt_grow(&d->known, d->count))
		return name;
	d->known[d->count].mangled = strdup(name);
	if (!d->known[d->count].mangled)
		return name;
	d->known[d->count].name = ask(cli, d, name);
	if (vmpt_hash_add(&d->of, hash, (u32)d->count)) {
		free(d->known[d->count].mangled);
		free(d->known[d->count].name);
		return name;
	}
	i = (u32)d->count++;
	return d->known[i].name ? d->known[i].name : name;
}

void names_demangler_free(struct code_names *n)
{
	struct names_demangler *d = n->demangler;

	if (!d)
		return;
	stop(d);
	while (d->count) {
		free(d->known[--d->count].mangled);
		free(d->known[d->count].name);
	}
	free(d->known);
	vmpt_hash_free(&d->of);
	free(d);
}
