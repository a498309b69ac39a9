// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt record: the system's files, and the description of the host. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/record/record.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#else /* builds there, but finds no PT */
#define __get_cpuid_max(leaf, signature)	       0
#define __cpuid_count(leaf, index, eax, ebx, ecx, edx) ((void)(edx))
#define __rdtsc()				       0
#endif

#define MSR_PLATFORM_INFO 0xce

static bool make_path(const struct recorder *r, char path[REC_PATH], const char *fmt, va_list args)
{
	int n = snprintf(path, REC_PATH, "%s", r->root), m;

	if (n < 0 || n >= REC_PATH)
		return false;
	m = vsnprintf(path + n, (size_t)(REC_PATH - n), fmt, args);
	return m >= 0 && m < REC_PATH - n;
}

bool rec_path(const struct recorder *r, char path[REC_PATH], const char *fmt, ...)
{
	va_list args;
	bool fits;

	va_start(args, fmt);
	fits = make_path(r, path, fmt, args);
	va_end(args);
	return fits;
}

bool rec_exists(const struct recorder *r, const char *fmt, ...)
{
	char path[REC_PATH];
	va_list args;
	bool fits;

	va_start(args, fmt);
	fits = make_path(r, path, fmt, args);
	va_end(args);
	return fits && !access(path, F_OK);
}

static bool read_line(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	if (n < 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return true;
}

bool rec_line(const struct recorder *r, char *text, size_t size, const char *fmt, ...)
{
	char path[REC_PATH];
	va_list args;
	bool fits;

	va_start(args, fmt);
	fits = make_path(r, path, fmt, args);
	va_end(args);
	errno = ENAMETOOLONG;
	return fits && read_line(path, text, size);
}

bool rec_u64(const struct recorder *r, u64 *value, const char *fmt, ...)
{
	char path[REC_PATH], text[64], *end;
	va_list args;
	bool fits;

	va_start(args, fmt);
	fits = make_path(r, path, fmt, args);
	va_end(args);
	errno = ENAMETOOLONG;
	if (!fits || !read_line(path, text, sizeof(text)))
		return false;
	errno = 0;
	/* Offsets have a sign. */
	*value = text[0] == '-' ? (u64)strtoll(text, &end, 10) : strtoull(text, &end, 0);
	return !errno && end != text && !*end;
}

bool rec_cpuinfo(const struct recorder *r, const char *name, char *value, size_t size)
{
	char path[REC_PATH], *line = NULL;
	size_t room = 0, n = strlen(name);
	bool found = false;
	FILE *f;

	f = rec_path(r, path, "/proc/cpuinfo") ? fopen(path, "re") : NULL;
	while (f && !found && getline(&line, &room, f) > 0) {
		char *colon = strchr(line, ':');

		if (!colon || strncmp(line, name, n) || (line[n] != '\t' && line[n] != ':'))
			continue;
		colon += 1 + strspn(colon + 1, " ");
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(value, size, "%s", colon);
		found = true;
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

u64 rec_tsc(void)
{
	return __rdtsc();
}

/* CPUID leaf 15H: TSC ticks per tick of the crystal clock. The driver's file has the same. */
static void add_art(const struct recorder *r, json_t *host)
{
	unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0, num, den;
	char text[64];

	if (rec_line(r, text, sizeof(text), REC_PMU "/tsc_art_ratio") &&
	    sscanf(text, "%u:%u", &num, &den) == 2) {
		ebx = num;
		eax = den;
	} else if (!*r->root && __get_cpuid_max(0, NULL) >= 0x15) {
		__cpuid_count(0x15, 0, eax, ebx, ecx, edx);
	}
	if (!eax || !ebx)
		return;
	cli_json_number(r->cli, host, "tsc_art_numerator", ebx);
	cli_json_number(r->cli, host, "tsc_art_denominator", eax);
	if (ecx)
		cli_json_number(r->cli, host, "crystal_hz", ecx);
}

/* The driver's file, or bits 15:8 of the MSR. */
static void add_ratio(const struct recorder *r, json_t *host)
{
	char path[REC_PATH];
	u64 ratio = 0;
	int fd;

	if (!rec_u64(r, &ratio, REC_PMU "/max_nonturbo_ratio") &&
	    rec_path(r, path, "/dev/cpu/0/msr")) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && pread(fd, &ratio, 8, MSR_PLATFORM_INFO) != 8)
			ratio = 0;
		if (fd >= 0)
			close(fd);
		ratio = ratio >> 8 & 0xff;
	}
	if (ratio)
		cli_json_number(r->cli, host, "max_nonturbo_ratio", ratio);
}

static void add_cpu(const struct recorder *r, json_t *host)
{
	static const struct {
		const char *cpuinfo, *key;
		bool number;
	} field[] = {
		{ "vendor_id", "vendor", false }, { "model name", "processor", false },
		{ "cpu family", "family", true }, { "model", "model", true },
		{ "stepping", "stepping", true },
	};
	char text[256];
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(field); i++) {
		if (!rec_cpuinfo(r, field[i].cpuinfo, text, sizeof(text)))
			continue;
		if (field[i].number)
			cli_json_number(r->cli, host, field[i].key, strtoul(text, NULL, 10));
		else
			cli_json_string(r->cli, host, field[i].key, text);
	}
}

static u64 recorder_tsc(void *opaque, u64 *spread)
{
	(void)opaque;
	*spread = 0;
	return rec_tsc();
}

json_t *rec_host(struct recorder *r)
{
	json_t *head = json_object(), *host = json_object(), *rates = json_object();
	char text[256];

	r->recorder.tsc = recorder_tsc;
	r->recorder.constant = true;
	cli_json_string(r->cli, head, "recorder", "vmpt record");
	if (rec_line(r, text, sizeof(text), "/proc/sys/kernel/osrelease"))
		cli_json_string(r->cli, host, "kernel", text);
	add_cpu(r, host);
	if (rec_line(r, text, sizeof(text), "/sys/module/kvm_intel/parameters/pt_mode"))
		cli_json_number(r->cli, host, "pt_mode", strtoul(text, NULL, 10));
	cli_json_number(r->cli, host, "cpus", r->cpus);
	cli_json_string(r->cli, rates, "tsc_source", "processor");
	add_art(r, rates);
	add_ratio(r, rates);
	cli_json_set(r->cli, head, "host", host);
	cli_json_set(r->cli, head, "rates", rates);
	cli_recorder_trace(r->cli, head, CLI_FOLDER_PERF, -1);
	cli_json_string(r->cli, head, "side_record", CLI_FOLDER_SIDE);
	return head;
}
