// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt record: the existing vCPUs and their TSC offsets and multipliers, from KVM's files in
 * debugfs; without debugfs only the vCPUs, from their VMMs' open files. VMs come and go while perf
 * records, so the files are polled; a vCPU is written when it is new or changed, and at the end.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/record/record.h"
#include "util/array.h"

#define VCPUS_MAX 65536

/* ---- who a VMM is ---- */

struct vmm {
	char domain[128], uuid[64], guest[128], comm[64];
};

/* The value of "guest=" of QEMU's option -name, or all of it up to a comma. */
static void take_guest(struct vmm *v, const char *arg)
{
	const char *guest = strstr(arg, "guest=");

	if (guest && (guest == arg || guest[-1] == ','))
		arg = guest + strlen("guest=");
	snprintf(v->guest, sizeof(v->guest), "%.*s", (int)strcspn(arg, ","), arg);
}

static void read_cmdline(const struct recorder *r, int pid, struct vmm *v)
{
	char path[REC_PATH], *word = NULL, last[16] = "";
	size_t room = 0;
	FILE *f;

	f = rec_path(r, path, "/proc/%d/cmdline", pid) ? fopen(path, "re") : NULL;
	while (f && getdelim(&word, &room, '\0', f) > 0) {
		if (!strcmp(last, "-name"))
			take_guest(v, word);
		else if (!strcmp(last, "-uuid"))
			snprintf(v->uuid, sizeof(v->uuid), "%s", word);
		snprintf(last, sizeof(last), "%s", word);
	}
	free(word);
	if (f)
		fclose(f);
}

/* libvirt's DOMAIN.pid in @folder, below the root. */
static bool find_pid_file(const struct recorder *r, const char *folder, int pid, struct vmm *v)
{
	char path[REC_PATH];
	struct dirent *entry;
	bool found = false;
	u64 in_file;
	DIR *dir;

	dir = rec_path(r, path, "%s", folder) ? opendir(path) : NULL;
	while (dir && !found && (entry = readdir(dir)) != NULL) {
		size_t n = strlen(entry->d_name);

		if (n <= 4 || n >= sizeof(v->domain) || strcmp(entry->d_name + n - 4, ".pid") ||
		    !rec_u64(r, &in_file, "%s/%s", folder, entry->d_name) || in_file != (u64)pid)
			continue;
		snprintf(v->domain, sizeof(v->domain), "%.*s", (int)(n - 4), entry->d_name);
		found = true;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* The domains of the system, then those of users. */
static void find_domain(const struct recorder *r, int pid, struct vmm *v)
{
	char path[REC_PATH], folder[REC_PATH];
	struct dirent *entry;
	bool found = find_pid_file(r, "/run/libvirt/qemu", pid, v);
	DIR *dir;

	if (found)
		return;
	dir = rec_path(r, path, "/run/user") ? opendir(path) : NULL;
	while (dir && !found && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(folder, sizeof(folder), "/run/user/%s/libvirt/qemu/run", entry->d_name);
		found = find_pid_file(r, folder, pid, v);
	}
	if (dir)
		closedir(dir);
}

static void set_or_null(const struct recorder *r, json_t *o, const char *key, const char *value)
{
	if (*value)
		cli_json_string(r->cli, o, key, value);
	else
		cli_json_set(r->cli, o, key, json_null());
}

/* "vm" is the first of these that is known. */
static void add_vmm(const struct recorder *r, json_t *o, int pid)
{
	struct vmm v = { 0 };
	char name[96];

	read_cmdline(r, pid, &v);
	find_domain(r, pid, &v);
	rec_line(r, v.comm, sizeof(v.comm), "/proc/%d/comm", pid);
	snprintf(name, sizeof(name), "%s/%d", *v.comm ? v.comm : "pid", pid);
	cli_json_string(r->cli, o, "vm", *v.domain ? v.domain : *v.guest ? v.guest : name);
	set_or_null(r, o, "domain", v.domain);
	set_or_null(r, o, "uuid", v.uuid);
	set_or_null(r, o, "guest", v.guest);
	set_or_null(r, o, "comm", v.comm);
}

/* ---- a vCPU's thread ---- */

/* Its number, if the name of a thread says that it runs a vCPU: of QEMU, Firecracker, crosvm ... */
static int vcpu_of_comm(const char *comm)
{
	static const char *const form[] = { "CPU %d/KVM%n", "fc_vcpu %d%n", "crosvm_vcpu%d%n",
					    "vcpu%d%n" };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(form); i++) {
		int n = 0, vcpu = -1;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		if (sscanf(comm, form[i], &vcpu, &n) >= 1 && n && !comm[n] && vcpu >= 0)
			return vcpu;
#pragma GCC diagnostic pop
	}
	return -1;
}

static int find_thread(const struct recorder *r, const struct rec_vcpu *v, bool *ran)
{
	char path[REC_PATH], comm[64];
	struct dirent *entry;
	int tid = -1;
	u64 pid;
	DIR *dir;

	/* KVM has it since Linux 6.0; 0 before the vCPU first ran. */
	*ran = true;
	if (*v->folder && rec_u64(r, &pid, REC_DEBUGFS "/%s/vcpu%d/pid", v->folder, v->vcpu)) {
		if (pid)
			return (int)pid;
		*ran = false;
	}
	dir = rec_path(r, path, "/proc/%d/task", v->pid) ? opendir(path) : NULL;
	while (dir && tid < 0 && (entry = readdir(dir)) != NULL)
		if (rec_line(r, comm, sizeof(comm), "/proc/%d/task/%s/comm", v->pid,
			     entry->d_name) &&
		    vcpu_of_comm(comm) == v->vcpu)
			tid = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return tid;
}

/* ---- one scan ---- */

static void write_vcpu(struct recorder *r, struct rec_vcpu *v, const char *kind)
{
	json_t *o = json_object();

	cli_json_string(r->cli, o, "kind", kind);
	add_vmm(r, o, v->pid);
	cli_json_number(r->cli, o, "pid", (u64)v->pid);
	cli_json_set(r->cli, o, "tid", v->tid < 0 ? json_null() : json_integer(v->tid));
	cli_json_number(r->cli, o, "vcpu", (u64)v->vcpu);
	set_or_null(r, o, "folder", v->folder);
	/* Its VMM is still setting it up: the guest has not seen this value. */
	if (!v->ran)
		cli_json_set(r->cli, o, "ran", json_false());
	cli_json_hex(r->cli, o, "tsc_before", v->before);
	cli_json_hex(r->cli, o, "tsc_after", v->after);
	if (v->has_offset)
		cli_json_hex(r->cli, o, "tsc_offset", v->offset);
	if (v->has_ratio)
		cli_json_hex(r->cli, o, "tsc_scaling_ratio", v->ratio);
	if (v->has_bits)
		cli_json_number(r->cli, o, "tsc_scaling_ratio_frac_bits", v->bits);
	v->unwritten = false;
	rec_write(r, o);
}

static struct rec_vcpu *find_vcpu(struct recorder *r, const char *folder, int pid, int vcpu,
				  bool *is_new)
{
	struct rec_vcpu *v;
	size_t i;

	*is_new = false;
	for (i = 0; i < r->vcpus; i++) {
		v = &r->vcpu[i];
		if (v->pid == pid && v->vcpu == vcpu && !strcmp(v->folder, folder))
			return v;
	}
	if (r->vcpus == VCPUS_MAX)
		return NULL;
	if (vmpt_grow(&r->vcpu, r->vcpus)) {
		r->cli->out_of_memory = true;
		return NULL;
	}
	*is_new = true;
	v = &r->vcpu[r->vcpus++];
	*v = (struct rec_vcpu){ .pid = pid, .vcpu = vcpu, .tid = -1 };
	snprintf(v->folder, sizeof(v->folder), "%s", folder);
	return v;
}

static void look_at(struct recorder *r, const char *folder, int pid, int vcpu)
{
	bool is_new, changed;
	struct rec_vcpu *v = find_vcpu(r, folder, pid, vcpu, &is_new), now;

	if (!v)
		return;
	now = *v;
	now.seen = true;
	now.tid = find_thread(r, v, &now.ran);
	now.before = rec_tsc();
	if (*folder) {
		now.has_offset =
			rec_u64(r, &now.offset, REC_DEBUGFS "/%s/vcpu%d/tsc-offset", folder, vcpu);
		now.has_ratio = rec_u64(r, &now.ratio, REC_DEBUGFS "/%s/vcpu%d/tsc-scaling-ratio",
					folder, vcpu);
	}
	now.after = rec_tsc();
	if (*folder)
		now.has_bits =
			rec_u64(r, &now.bits, REC_DEBUGFS "/%s/vcpu%d/tsc-scaling-ratio-frac-bits",
				folder, vcpu);
	changed = is_new || now.tid != v->tid || now.ran != v->ran ||
		  now.has_offset != v->has_offset || now.offset != v->offset ||
		  now.has_ratio != v->has_ratio || now.ratio != v->ratio;
	/* The last time it was unchanged bounds when it changed. */
	if (changed && v->unwritten)
		write_vcpu(r, v, "vcpu");
	*v = now;
	v->unwritten = true;
	if (is_new)
		rec_save_cmdline(r, pid);
	if (changed)
		write_vcpu(r, v, "vcpu");
}

/* A VM's folder, PID-FD. */
static void look_at_vm(struct recorder *r, const char *folder, int pid)
{
	char path[REC_PATH];
	struct dirent *entry;
	int vcpu, n;
	DIR *dir;

	dir = rec_path(r, path, REC_DEBUGFS "/%s", folder) ? opendir(path) : NULL;
	while (dir && (entry = readdir(dir)) != NULL) {
		n = 0;
		if (sscanf(entry->d_name, "vcpu%d%n", &vcpu, &n) == 1 && vcpu >= 0 &&
		    !entry->d_name[n])
			look_at(r, folder, pid, vcpu);
	}
	if (dir)
		closedir(dir);
}

/* false: debugfs cannot be read. */
static bool look_in_debugfs(struct recorder *r)
{
	char path[REC_PATH];
	struct dirent *entry;
	int pid, fd, n;
	DIR *dir;

	dir = rec_path(r, path, REC_DEBUGFS) ? opendir(path) : NULL;
	if (!dir)
		return false;
	while ((entry = readdir(dir)) != NULL) {
		n = 0;
		if (sscanf(entry->d_name, "%d-%d%n", &pid, &fd, &n) == 2 && pid > 0 &&
		    !entry->d_name[n] && strlen(entry->d_name) < sizeof(r->vcpu->folder))
			look_at_vm(r, entry->d_name, pid);
	}
	closedir(dir);
	return true;
}

/* Find vCPUs among a process' open files: "anon_inode:kvm-vcpu:3". */
static void look_at_process(struct recorder *r, int pid)
{
	char path[REC_PATH], target[64];
	struct dirent *entry;
	int vcpu, fd_dir;
	ssize_t n;
	DIR *dir;

	dir = rec_path(r, path, "/proc/%d/fd", pid) ? opendir(path) : NULL;
	if (!dir)
		return;
	fd_dir = dirfd(dir);
	while ((entry = readdir(dir)) != NULL) {
		n = readlinkat(fd_dir, entry->d_name, target, sizeof(target) - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		if (sscanf(target, "anon_inode:kvm-vcpu:%d", &vcpu) == 1 && vcpu >= 0)
			look_at(r, "", pid, vcpu);
	}
	closedir(dir);
}

static void look_in_proc(struct recorder *r)
{
	char path[REC_PATH];
	struct dirent *entry;
	DIR *dir;

	dir = rec_path(r, path, "/proc") ? opendir(path) : NULL;
	while (dir && (entry = readdir(dir)) != NULL)
		if (atoi(entry->d_name) > 0)
			look_at_process(r, atoi(entry->d_name));
	if (dir)
		closedir(dir);
}

void rec_look(struct recorder *r)
{
	size_t i, left = 0;

	for (i = 0; i < r->vcpus; i++)
		r->vcpu[i].seen = false;
	if (!look_in_debugfs(r))
		look_in_proc(r);
	for (i = 0; i < r->vcpus; i++) {
		struct rec_vcpu *v = &r->vcpu[i];

		if (v->seen) {
			r->vcpu[left++] = *v;
			continue;
		}
		/* The times are those of the last scan that saw it. */
		write_vcpu(r, v, "vcpu-gone");
	}
	r->vcpus = left;
}

void rec_look_last(struct recorder *r)
{
	size_t i;

	rec_look(r);
	for (i = 0; i < r->vcpus; i++)
		if (r->vcpu[i].unwritten)
			write_vcpu(r, &r->vcpu[i], "vcpu");
}

size_t rec_not_offset(const struct recorder *r)
{
	size_t i, n = 0;

	for (i = 0; i < r->vcpus; i++) {
		const struct rec_vcpu *v = &r->vcpu[i];

		n += v->has_offset && !v->offset &&
		     (!v->has_ratio || !v->has_bits ||
		      (v->bits < 64 && v->ratio == 1ULL << v->bits));
	}
	return n;
}
