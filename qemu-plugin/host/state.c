// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A state file has two locks: flock() while a run is appended, and a lock on its first byte, which
 * each process holds shared while it runs, so that a new one can tell whether it is alone.
 */
#include "qemu-plugin/host/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qemu-plugin/flow/flow.h"

/* Change the digit when something in the file, struct vmpt_unit included, changes its meaning. */
#define MAGIC "VMPTCP2"

_Static_assert(offsetof(struct host_shared, end.tsc) == HOST_SHARED_END,
	       "cli/domain/trace-record.c reads it");

static int report(const char *path, const char *why)
{
	fprintf(stderr, "vmpt: %s: %s\n", path, why);
	return -1;
}

static int report_errno(const char *path)
{
	return report(path, strerror(errno));
}

void host_state_lock(struct host_state *state)
{
	pthread_mutex_lock(&state->mutex);
	while (flock(state->fd, LOCK_EX) && errno == EINTR)
		;
}

void host_state_unlock(struct host_state *state)
{
	flock(state->fd, LOCK_UN);
	pthread_mutex_unlock(&state->mutex);
}

/* The lock on the first byte. OFD locks belong to the open file, not to the process. */
static bool lock_users(int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };

	return !fcntl(fd, F_OFD_SETLK, &lock);
}

/* The clocks count from the host's boot, which has an ID. */
static void read_boot(char *boot, size_t len)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	memset(boot, 0, len);
	if (!file)
		return;
	if (!fgets(boot, (int)len, file))
		boot[0] = 0;
	fclose(file);
}

/* Start a stream, or continue one that earlier processes have left. */
static void begin(struct host_shared *shared, const struct host_state_settings *settings)
{
	struct host_shared old = *shared;
	char boot[sizeof(old.boot)];
	bool ours = !memcmp(old.magic, MAGIC, sizeof(MAGIC)) && old.layout == sizeof(old);

	read_boot(boot, sizeof(boot));
	if (ours && old.ctl == settings->ctl && old.synthetic == settings->synthetic &&
	    old.perf == settings->perf && old.rtit == settings->rtit && !strcmp(old.boot, boot))
		return;
	memset(shared, 0, sizeof(*shared));
	shared->layout = sizeof(*shared);
	memcpy(shared->boot, boot, sizeof(boot));
	shared->ctl = settings->ctl;
	shared->synthetic = settings->synthetic;
	shared->perf = settings->perf;
	shared->rtit = settings->rtit;
	if (ours) {
		shared->size = old.size;
		shared->bytes = old.bytes;
		if (!strcmp(old.boot, boot))
			shared->end = old.end;
	}
	memcpy(shared->magic, MAGIC, sizeof(MAGIC));
}

static int join(const struct host_shared *shared, const char *path,
		const struct host_state_settings *settings)
{
	const char *what = NULL;

	if (memcmp(shared->magic, MAGIC, sizeof(MAGIC)) || shared->layout != sizeof(*shared))
		what = "another version of this plugin";
	else if (shared->rtit != settings->rtit)
		what = "another isa=";
	else if (shared->ctl != settings->ctl)
		what = "another ctl=";
	else if (shared->synthetic != settings->synthetic)
		what = "another host=";
	else if (shared->perf != settings->perf)
		what = settings->perf ? "no perf-data=" : "perf-data=";
	if (!what)
		return 0;
	fprintf(stderr, "vmpt: %s: a QEMU that shares this host CPU runs with %s\n", path, what);
	return -1;
}

/* By any version of the plugin; all 0: a process was killed before it wrote more. */
static bool is_ours(int fd)
{
	static const char none[sizeof(MAGIC)];
	char magic[sizeof(MAGIC)] = "";
	ssize_t n = pread(fd, magic, sizeof(magic), 0);
	struct stat st;

	if (n == sizeof(magic) && !memcmp(magic, MAGIC, sizeof(MAGIC) - 2))
		return true;
	return n >= 0 && !memcmp(magic, none, sizeof(magic)) && !fstat(fd, &st) &&
	       st.st_size <= (off_t)sizeof(struct host_shared);
}

static int map(struct host_state *state, const char *path,
	       const struct host_state_settings *settings)
{
	int err;

	if (!is_ours(state->fd))
		return report(path, FILE_FOREIGN);
	err = posix_fallocate(state->fd, 0, sizeof(*state->shared));
	/* A write to a hole would kill QEMU if the disk is full. */
	if (err) {
		errno = err;
		return report_errno(path);
	}
	state->shared = mmap(NULL, sizeof(*state->shared), PROT_READ | PROT_WRITE, MAP_SHARED,
			     state->fd, 0);
	if (state->shared == MAP_FAILED)
		return report_errno(path);
	if (lock_users(state->fd, F_WRLCK))
		begin(state->shared, settings);
	else if (join(state->shared, path, settings))
		return -1;
	return lock_users(state->fd, F_RDLCK) ? 0 : report_errno(path);
}

int host_state_open(struct host_state *state, const struct options *options, u32 cpu,
		    const struct host_state_settings *settings)
{
	char path[4096];
	const char *why;
	int err;

	snprintf(path, sizeof(path), "%s/cpu%u.state", options->host_view, cpu);
	pthread_mutex_init(&state->mutex, NULL);
	state->fd = file_open(path, options->mode, NULL, &why);
	if (state->fd < 0)
		return report(path, why);
	host_state_lock(state);
	err = map(state, path, settings);
	host_state_unlock(state);
	return err;
}

void host_state_close(struct host_state *state)
{
	munmap(state->shared, sizeof(*state->shared));
	close(state->fd);
}
