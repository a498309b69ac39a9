// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines of vmpt_record_print(). A line is in the file as a whole or not at all: it is one write
 * under a lock, and a partial line on a full disk is cut off again.
 */
#include "qemu-plugin/host/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/hash.h"
#include "vmm-lib/tsc.h"

/* VMCS pointers: 4-KiB aligned, 52 bits, neither 0 nor all ones (none). */
#define VMCS_MASK 0xffffffffff000ULL
/* Derived pointers look like those of a host with a terabyte, which keeps columns narrow. */
#define DERIVED_MASK 0xfffffff000ULL
#define TRIES	     64
/* Each VMCS has a byte in the record's file that is locked, far beyond all text. */
#define LOCKS_AT (1LL << 60)

/* The same name gets the same VMCS each time, on a host of either byte order. */
static u64 derive(const char *vm, u32 vcpu)
{
	u64 hash = vmpt_fnv1a(VMPT_FNV1A, vm, strlen(vm));
	const u8 number[] = { vcpu, vcpu >> 8, vcpu >> 16, vcpu >> 24 };

	hash = vmpt_fnv1a(hash, number, sizeof(number));
	return (hash ^ hash >> 32) << 12 & DERIVED_MASK;
}

/* A line of the record: up to @who it names the vCPU, and the next @vmcs bytes are its VMCS. */
struct record_line {
	char text[8192];
	size_t len, who, vmcs;
};

static int print(struct record_line *line, const struct vmpt_record *record)
{
	const char *vmcs, *tsc;

	line->len = vmpt_record_print(record, line->text, sizeof(line->text));
	if (line->len >= sizeof(line->text))
		return -1;
	/* Quotes in the name are escaped, so these are not part of it. */
	vmcs = strstr(line->text, ",\"vmcs\":");
	tsc = strstr(line->text, ",\"tsc_offset\":");
	line->who = (size_t)(vmcs - line->text);
	line->vmcs = (size_t)(tsc - vmcs);
	return 0;
}

/* Whether another vCPU in @all has @line's VMCS. */
static bool taken(const char *all, const struct record_line *line)
{
	const char *at = all, *begin;
	char vmcs[64];

	snprintf(vmcs, sizeof(vmcs), "%.*s", (int)line->vmcs, line->text + line->who);
	while ((at = strstr(at, vmcs))) {
		for (begin = at; begin > all && begin[-1] != '\n'; begin--)
			;
		if ((size_t)(at - begin) != line->who || memcmp(begin, line->text, line->who))
			return true;
		at++;
	}
	return false;
}

/* The whole file, NUL-terminated; the caller frees. */
static char *read_all(int fd, size_t *size)
{
	struct stat st;
	char *all;

	if (fstat(fd, &st))
		return NULL;
	*size = (size_t)st.st_size;
	all = malloc(*size + 1);
	if (!all)
		return NULL;
	if (pread(fd, all, *size, 0) != (ssize_t)*size) {
		free(all);
		errno = EIO;
		return NULL;
	}
	all[*size] = 0;
	return all;
}

static int append(int fd, const struct record_line *line, size_t at)
{
	ssize_t done = pwrite(fd, line->text, line->len, (off_t)at);

	if (done == (ssize_t)line->len)
		return 0;
	if (done >= 0)
		errno = ENOSPC;
	if (ftruncate(fd, (off_t)at))
		return -1;
	return -1;
}

/* Fill @line in for a VMCS that is free. 1: none is. */
static int derive_free(struct vmpt_record *record, const char *all, struct record_line *line)
{
	record->vmcs = derive(record->vm, record->vcpu);
	for (unsigned int i = 0; i < TRIES; i++, record->vmcs = (record->vmcs + 4096) & VMCS_MASK) {
		if (!record->vmcs || record->vmcs == VMCS_MASK)
			continue;
		if (print(line, record))
			return -1;
		if (!taken(all, line))
			return 0;
	}
	return 1;
}

static int choose(const struct options *options, struct vmpt_record *record, const char *all,
		  struct record_line *line)
{
	int err;

	if (options->vmcs) {
		record->vmcs = options->vmcs + 4096ULL * record->vcpu;
		if (record->vmcs >= VMCS_MASK) {
			fprintf(stderr, "vmpt: vmcs=0x%llx: vCPU %u would have none\n",
				(unsigned long long)options->vmcs, record->vcpu);
			return -1;
		}
		err = print(line, record);
		err = err ? err : taken(all, line);
	} else {
		err = derive_free(record, all, line);
	}
	if (err < 0)
		fputs("vmpt: vm=NAME is too long\n", stderr);
	else if (err)
		fprintf(stderr, "vmpt: %s/vms.jsonl: another vCPU has VMCS 0x%llx; give %s vmcs=\n",
			options->host_view, (unsigned long long)record->vmcs,
			options->vmcs ? "another" : "a");
	return err ? -1 : 0;
}

/*
 * Two vCPUs that run at the same time with one VMCS would make a stream that cannot be decoded. OFD
 * locks belong to the open file: they go when QEMU exits, however it exits.
 */
static bool hold_byte(int fd, u64 n)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCKS_AT + (off_t)n, .l_len = 1
	};

	return !fcntl(fd, F_OFD_SETLK, &lock);
}

static int hold(int fd, const struct options *options, const struct vmpt_record *record)
{
	if (hold_byte(fd, record->vmcs >> 12))
		return 0;
	fprintf(stderr,
		"vmpt: %s/vms.jsonl: vCPU %u of %s, VMCS 0x%llx, runs in another QEMU; give "
		"another vm=\n",
		options->host_view, record->vcpu, record->vm, (unsigned long long)record->vmcs);
	return -1;
}

/*
 * Prepare for the next line at *size. A partial line that a killed QEMU has left is cut off; a
 * complete one without a newline gets one. 0, or -1 with errno.
 */
static int end_last_line(int fd, char *all, size_t *size)
{
	size_t at = *size;

	if (!at || all[at - 1] == '\n')
		return 0;
	if (all[at - 1] == '}') {
		++*size;
		return pwrite(fd, "\n", 1, (off_t)at) == 1 ? 0 : -1;
	}
	while (at && all[at - 1] != '\n')
		at--;
	all[at] = 0;
	*size = at;
	return ftruncate(fd, (off_t)at);
}

/* All its lines are JSON objects. -1: printed why. */
static int open_record(const struct options *options)
{
	char path[4096];
	const char *why;
	int fd;

	snprintf(path, sizeof(path), "%s/vms.jsonl", options->host_view);
	fd = file_open(path, options->mode, "{\"", &why);
	if (fd < 0)
		fprintf(stderr, "vmpt: %s: %s\n", path, why);
	return fd;
}

int host_record_add(const struct options *options, const char *vm, u32 vcpu, u64 since, u64 *vmcs)
{
	struct vmpt_record record = { .vm = vm,
				      .vcpu = vcpu,
				      .tsc_offset = options->tsc_offset,
				      .tsc_multiplier = options->tsc_multiplier,
				      .since = since };
	int fd = open_record(options), err;
	struct record_line line;
	size_t size = 0;
	char *all;

	if (fd < 0)
		return -1;
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	all = read_all(fd, &size);
	if (!all || end_last_line(fd, all, &size))
		goto fail;
	err = choose(options, &record, all, &line);
	if (!err)
		err = hold(fd, options, &record);
	if (!err && append(fd, &line, size))
		goto fail;
	free(all);
	flock(fd, LOCK_UN);
	*vmcs = record.vmcs;
	if (!err)
		return fd;
	close(fd);
	return -1;
fail:
	fprintf(stderr, "vmpt: %s/vms.jsonl: %s\n", options->host_view, strerror(errno));
	free(all);
	close(fd);
	return -1;
}

/* ---- RTIT ---- */

u64 host_record_key(const struct vmpt_rtit_record *who)
{
	return derive(who->vm, who->vcpu) | 1;
}

/* Cuts off what a killed QEMU has left. */
static int mend(int fd)
{
	size_t size = 0;
	char *all = read_all(fd, &size);
	int err = all ? end_last_line(fd, all, &size) : -1;

	free(all);
	return err;
}

int host_record_open(const struct options *options, const struct vmpt_rtit_record *who)
{
	int fd = open_record(options), err;

	if (fd < 0)
		return -1;
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	err = mend(fd);
	flock(fd, LOCK_UN);
	if (err)
		fprintf(stderr, "vmpt: %s/vms.jsonl: %s\n", options->host_view, strerror(errno));
	else if (hold_byte(fd, host_record_key(who) >> 12))
		return fd;
	else
		fprintf(stderr,
			"vmpt: %s/vms.jsonl: vCPU %u of %s runs in another QEMU; give another "
			"vm=\n",
			options->host_view, who->vcpu, who->vm);
	close(fd);
	return -1;
}

int host_record_run(int fd, const struct vmpt_rtit_record *who)
{
	struct record_line line;
	struct stat st;
	int err = 0;

	line.len = vmpt_rtit_record_print(who, line.text, sizeof(line.text));
	if (line.len >= sizeof(line.text))
		return -EOVERFLOW;
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
	if (fstat(fd, &st) || append(fd, &line, (size_t)st.st_size))
		err = -errno;
	flock(fd, LOCK_UN);
	return err;
}
