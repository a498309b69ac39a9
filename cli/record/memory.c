// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt record --guest-memory: dumps of domains' memory by virsh, which knows how to reach their
 * libvirt. A dump has another name until it is whole, and is then listed in recording.json.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/record/record.h"

/* For what a dump has besides the memory, with what perf still writes. */
#define ROOM (64ULL << 20)

/* What virsh says of a domain. */
struct domain {
	const char *name;
	bool runs;
	u64 memory; /* bytes */
};

static bool look_up(struct recorder *r, const char *name, struct domain *d)
{
	char *arg[] = { "virsh", "-q", "dominfo", "--domain", (char *)name, NULL };
	char text[4096], *at;

	*d = (struct domain){ .name = name };
	if (rec_run(r, arg, text, sizeof(text)))
		return false;
	at = strstr(text, "State:");
	at = at ? at + strlen("State:") : text;
	at += strspn(at, " ");
	d->runs =
		!strncmp(at, "running", 7) || !strncmp(at, "paused", 6) || !strncmp(at, "idle", 4);
	at = strstr(text, "Max memory:");
	d->memory = at ? strtoull(at + strlen("Max memory:"), NULL, 10) << 10 : 0;
	return true;
}

static bool room_for(const char *path, u64 memory, u64 *have)
{
	struct statvfs fs;

	*have = statvfs(path, &fs) ? ~0ULL : (u64)fs.f_bavail * fs.f_frsize;
	return *have >= memory + ROOM;
}

/* ---- before the recording ---- */

void rec_check_memory(struct recorder *r, const char *folder)
{
	const unsigned int times = r->o->memory_at == REC_AT_BOTH ? 2 : 1;
	char path[REC_PATH];
	struct domain d;
	u64 need = 0, have;
	size_t i;

	if (!r->o->domain.count)
		return;
	if (!rec_find_program("virsh", path)) {
		r->fatal++;
		cli_error(r->cli, "--guest-memory needs virsh: install libvirt-clients");
		return;
	}
	for (i = 0; i < r->o->domain.count; i++) {
		const char *name = r->o->domain.s[i];

		if (look_up(r, name, &d) && d.runs) {
			need += times * d.memory;
			continue;
		}
		r->lacking++;
		cli_warn(r->cli,
			 "--guest-memory: domain '%s' does not run: its memory is saved if it runs "
			 "at the end",
			 name);
	}
	if (room_for(folder, need, &have))
		return;
	r->lacking++;
	cli_warn(r->cli, "--guest-memory: up to %llu MiB are needed, and %llu MiB are free in %s",
		 (unsigned long long)((need + ROOM) >> 20), (unsigned long long)(have >> 20),
		 folder);
}

/* ---- dumps ---- */

/* Why the last one is not there. */
__attribute__((format(printf, 3, 4))) static bool fail(struct recorder *r, const char *name,
						       const char *fmt, ...)
{
	char text[600];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	cli_error(r->cli, "the memory of domain '%s' is not saved: %s", name, text);
	return false;
}

static bool virsh_dump(struct recorder *r, const struct domain *d, bool kdump, const char *path)
{
	char *arg[16] = { "virsh",	"-q",	    "dump",	     "--memory-only",
			  "--live",	"--domain", (char *)d->name, "--file",
			  (char *)path, NULL };

	if (kdump) {
		arg[9] = "--format";
		arg[10] = "kdump-zlib";
	}
	return !rec_run(r, arg, NULL, 0);
}

/* A QEMU that was built without the format of kdump refuses it. */
static bool dump(struct recorder *r, const struct domain *d, bool *kdump, const char *path)
{
	bool done = virsh_dump(r, d, *kdump, path);

	if (!done && *kdump && !r->stopped) {
		unlink(path);
		*kdump = false;
		done = virsh_dump(r, d, false, path);
	}
	return done;
}

/* Add a whole dump to recording.json. */
static bool list(struct recorder *r, const char *domain, const char *file, bool start)
{
	json_t *all = json_object_get(r->recorder.doc, "memory"), *o = json_object();

	if (!all) {
		all = json_array();
		cli_json_set(r->cli, r->recorder.doc, "memory", all);
	}
	cli_json_string(r->cli, o, "vm", domain);
	cli_json_string(r->cli, o, "file", file);
	cli_json_string(r->cli, o, "when", start ? "start" : "end");
	cli_json_hex(r->cli, o, "tsc", rec_tsc());
	cli_json_add(r->cli, all, o);
	return !cli_recorder_put(&r->recorder);
}

static bool save(struct recorder *r, const char *folder, const char *name, bool start)
{
	char part[REC_PATH], whole[2 * REC_PATH + 16];
	bool kdump = code_has_kdump();
	struct domain d;
	struct stat st;
	u64 have;

	if (!look_up(r, name, &d) || !d.runs)
		return fail(r, name, "%s", r->stopped ? "interrupted" : "it does not run");
	if (!room_for(folder, d.memory, &have))
		return fail(r, name, "up to %llu MiB are needed, and %llu MiB are free in %s",
			    (unsigned long long)((d.memory + ROOM) >> 20),
			    (unsigned long long)(have >> 20), folder);
	if (snprintf(part, sizeof(part), "%s/.%s.part", folder, name) >= REC_PATH - 8)
		return fail(r, name, "its name is too long");
	if (!dump(r, &d, &kdump, part) || lstat(part, &st) || !S_ISREG(st.st_mode) || !st.st_size) {
		unlink(part);
		return fail(r, name, "%s", r->stopped ? "interrupted" : "virsh dump failed");
	}
	snprintf(whole, sizeof(whole), "%s/%s%s.%s", folder, name, start ? ".start" : "",
		 kdump ? "kdump" : "elf");
	/* Of libvirt's user. */
	if (chmod(part, 0600) && access(part, R_OK))
		cli_warn(r->cli, "%s belongs to another user, and cannot be read", whole);
	if (rename(part, whole)) {
		unlink(part);
		return fail(r, name, "%s: %s", whole, strerror(errno));
	}
	return list(r, name, strrchr(whole, '/') + 1, start);
}

unsigned int rec_save_memory(struct recorder *r, bool start)
{
	const u8 other = start ? REC_AT_END : REC_AT_START;
	unsigned int failed = 0;
	char folder[REC_PATH];
	size_t i;

	if (!r->o->domain.count || r->o->memory_at == other)
		return 0;
	r->stopped = false;
	snprintf(folder, sizeof(folder), "%s/" REC_MEMORY, r->o->out);
	if (mkdir(folder, 0700) && errno != EEXIST) {
		cli_error(r->cli, "%s: %s", folder, strerror(errno));
		return (unsigned int)r->o->domain.count;
	}
	for (i = 0; i < r->o->domain.count; i++)
		failed += !save(r, folder, r->o->domain.s[i], start);
	return failed;
}
