// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt record: check what a host lacks for a recording, and what to do about it. Only the kernel's
 * files are read; nothing is tried or changed.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/record/record.h"

#define CAP_IPC_LOCK  14
#define CAP_SYS_ADMIN 21
#define CAP_PERFMON   38

enum severity {
	FATAL,	 /* nothing can be recorded */
	LACKING, /* the recording has less */
	NOTE,	 /* not a problem, but worth knowing */
};

__attribute__((format(printf, 3, 4))) static void say(struct recorder *r, enum severity severity,
						      const char *fmt, ...)
{
	char text[600];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	switch (severity) {
	case FATAL:
		r->fatal++;
		cli_error(r->cli, "%s", text);
		break;
	case LACKING:
		r->lacking++;
		cli_warn(r->cli, "%s", text);
		break;
	case NOTE:
		if (!r->cli->quiet)
			fprintf(stderr, "vmpt record: note: %s\n", text);
		break;
	}
}

/* Whether /proc/cpuinfo's flags have the word. */
static bool has_flag(const struct recorder *r, const char *flag)
{
	char flags[8192], *word, *save = NULL;

	if (!rec_cpuinfo(r, "flags", flags, sizeof(flags)))
		return false;
	for (word = strtok_r(flags, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (!strcmp(word, flag))
			return true;
	return false;
}

/* Bit @cap of the effective capabilities. */
static bool has_cap(const struct recorder *r, int cap)
{
	char path[REC_PATH], line[128];
	unsigned long long caps = 0;
	FILE *f = rec_path(r, path, "/proc/self/status") ? fopen(path, "re") : NULL;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	if (f)
		fclose(f);
	return caps >> cap & 1;
}

static bool is_mounted(const struct recorder *r, const char *type)
{
	char path[REC_PATH], line[1024], what[256];
	bool found = false;
	FILE *f = rec_path(r, path, "/proc/mounts") ? fopen(path, "re") : NULL;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*s %*s %255s", what) == 1 && !strcmp(what, type);
	if (f)
		fclose(f);
	return found;
}

static void check_pt(struct recorder *r)
{
	u64 yes = 0;

	if (!rec_exists(r, REC_PMU "/type")) {
		if (has_flag(r, "intel_pt"))
			say(r, FATAL,
			    "the processor has Intel PT, but Linux offers no intel_pt event: there is no " REC_PMU
			    "; the kernel's log says why (dmesg | grep -i 'intel_pt\\|Intel PT')");
		else if (has_flag(r, "hypervisor"))
			say(r, FATAL,
			    "this machine is a VM, and its hypervisor offers no Intel PT (CPUID leaf 7, EBX "
			    "bit 25): record on the host, or let it give PT to its guests");
		else
			say(r, FATAL,
			    "the processor has no Intel PT (CPUID leaf 7, EBX bit 25): nothing can be "
			    "recorded here");
		return;
	}
	r->has_mtc = rec_u64(r, &yes, REC_PMU "/caps/mtc") && yes &&
		     rec_exists(r, REC_PMU "/format/mtc");
	r->has_cyc = rec_u64(r, &yes, REC_PMU "/caps/psb_cyc") && yes &&
		     rec_exists(r, REC_PMU "/format/cyc");
	if (!r->has_mtc)
		say(r, LACKING,
		    "the processor has no MTC packets: times between TSC packets are not known");
	if (!r->has_cyc && !r->o->no_cyc)
		say(r, LACKING,
		    "the processor has no CYC packets: times are only as precise as MTC packets");
}

static void check_permission(struct recorder *r)
{
	u64 paranoid = 0;

	if (has_cap(r, CAP_SYS_ADMIN) || has_cap(r, CAP_PERFMON))
		return;
	if (rec_u64(r, &paranoid, "/proc/sys/kernel/perf_event_paranoid") && (s64)paranoid <= -1)
		return;
	say(r, FATAL,
	    "no permission to trace the whole system: kernel.perf_event_paranoid is %lld, and there is "
	    "neither CAP_PERFMON nor CAP_SYS_ADMIN; run as root, or sysctl "
	    "kernel.perf_event_paranoid=-1",
	    (long long)paranoid);
}

static void check_kvm(struct recorder *r)
{
	char mode[16];

	if (!has_flag(r, "vmx")) {
		say(r, LACKING,
		    "the processor has no VMX, or the firmware has disabled it: there are no VMs to see");
		return;
	}
	if (!rec_exists(r, "/sys/module/kvm_intel") || !rec_exists(r, "/dev/kvm")) {
		say(r, LACKING, "KVM is not loaded, so no VM runs: modprobe kvm_intel");
		return;
	}
	if (rec_line(r, mode, sizeof(mode), "/sys/module/kvm_intel/parameters/pt_mode") &&
	    !strcmp(mode, "1"))
		say(r, LACKING,
		    "KVM has pt_mode=1 (host-guest): the host's trace stops while a guest runs, so guests "
		    "are not in it; end all VMs, then modprobe -r kvm_intel && modprobe kvm_intel pt_mode=0 "
		    "(built into the kernel: kvm-intel.pt_mode=0 on its command line)");
}

static void check_debugfs(struct recorder *r)
{
	if (!rec_exists(r, "/sys/module/kvm"))
		return;
	if (rec_exists(r, REC_DEBUGFS))
		return;
	if (!is_mounted(r, "debugfs"))
		say(r, LACKING,
		    "debugfs is not mounted: VMs' TSC offsets are not saved; mount -t debugfs none "
		    "/sys/kernel/debug");
	else
		say(r, LACKING,
		    REC_DEBUGFS " cannot be read: VMs' TSC offsets are not saved; run as root");
}

static void check_tracepoints(struct recorder *r)
{
	static const char *const place[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char id[32];
	size_t i;

	if (r->o->no_events || !rec_exists(r, "/sys/module/kvm"))
		return;
	for (i = 0; i < VMPT_ARRAY_SIZE(place); i++) {
		if (rec_line(r, id, sizeof(id), "%s/events/kvm/kvm_entry/id", place[i]) &&
		    rec_line(r, id, sizeof(id), "%s/events/kvm/kvm_exit/id", place[i])) {
			r->has_tracepoints = true;
			return;
		}
	}
	if (errno == EACCES)
		say(r, LACKING,
		    "the events kvm:kvm_entry and kvm:kvm_exit cannot be read: run as root; without them "
		    "VMs are named by context switches, and exits have no reasons");
	else if (!is_mounted(r, "tracefs"))
		say(r, LACKING,
		    "tracefs is not mounted, so there are no events kvm:kvm_entry and kvm:kvm_exit: mount "
		    "-t tracefs none /sys/kernel/tracing; without them VMs are named by context switches, "
		    "and exits have no reasons");
	else
		say(r, LACKING,
		    "the kernel has no events kvm:kvm_entry and kvm:kvm_exit: VMs are named by context "
		    "switches, and exits have no reasons");
}

static void check_kernel_names(struct recorder *r)
{
	char path[REC_PATH], line[256];
	bool any = false, named = false;
	FILE *f;

	f = rec_path(r, path, "/proc/kallsyms") ? fopen(path, "re") : NULL;
	/* Per-CPU variables have small addresses, and 0. */
	while (f && !named && fgets(line, sizeof(line), f)) {
		any = true;
		named = strtoull(line, NULL, 16) != 0;
	}
	if (f)
		fclose(f);
	if (!any)
		say(r, LACKING,
		    "/proc/kallsyms cannot be read: the kernel's functions have no names");
	else if (!named)
		say(r, LACKING,
		    "/proc/kallsyms has no addresses: the kernel's functions have no names; sysctl "
		    "kernel.kptr_restrict=0, or run as root");
}

/* perf fails if the user may not lock its buffers. */
static void check_lock(struct recorder *r)
{
	u64 kb, need = (r->o->aux_size + (2 << 20)) >> 10;

	if (has_cap(r, CAP_IPC_LOCK) || !rec_u64(r, &kb, "/proc/sys/kernel/perf_event_mlock_kb") ||
	    kb >= need)
		return;
	say(r, LACKING,
	    "perf may lock %llu KiB of memory per CPU, but its buffers need %llu: perf may refuse; sysctl "
	    "kernel.perf_event_mlock_kb=%llu, or a smaller --aux-size",
	    (unsigned long long)kb, (unsigned long long)need, (unsigned long long)need);
}

/* The folder that @r->o->out is put in. */
static void check_room(struct recorder *r)
{
	u64 need = 8 * r->o->aux_size * (r->cpus ? r->cpus : 1), have;
	char path[REC_PATH], *slash;
	struct statvfs fs;

	snprintf(path, sizeof(path), "%s", r->o->out);
	while ((slash = strrchr(path, '/')) != NULL && slash > path && !slash[1])
		*slash = '\0';
	if (!slash)
		strcpy(path, ".");
	else
		slash[slash == path] = '\0';
	if (statvfs(path, &fs)) {
		say(r, FATAL, "%s: %s", path, strerror(errno));
		return;
	}
	rec_check_memory(r, path);
	have = (u64)fs.f_bavail * fs.f_frsize;
	if (have >= need)
		return;
	say(r, LACKING,
	    "there are %llu MiB free in %s; a busy host fills %llu MiB of buffers in well under a "
	    "second: record for a shorter time, or elsewhere (--output)",
	    (unsigned long long)(have >> 20), path, (unsigned long long)(need >> 23));
}

static void check_vms(struct recorder *r)
{
	size_t i, unknown = 0, same;

	rec_look(r);
	for (i = 0; i < r->vcpus; i++)
		unknown += r->vcpu[i].tid < 0;
	same = rec_not_offset(r);
	if (!r->vcpus && rec_exists(r, "/sys/module/kvm"))
		say(r, NOTE, "no VM is running; VMs that start later are recorded");
	if (unknown)
		say(r, LACKING,
		    "the thread of %zu of %zu vCPUs is not known (KVM has it since Linux 6.0; QEMU names "
		    "its threads with -name NAME,debug-threads=on): only kvm:kvm_entry can name them",
		    unknown, r->vcpus);
	if (same)
		say(r, NOTE,
		    "%zu of %zu vCPUs have the host's TSC (offset 0, not scaled): their times need no "
		    "offset",
		    same, r->vcpus);
}

void rec_check(struct recorder *r)
{
	char path[REC_PATH];
	struct stat st;

	if (!r->o->check && !r->o->dry_run && !lstat(r->o->out, &st))
		say(r, FATAL, "%s already exists: remove it, or give another with --output",
		    r->o->out);
	if (!rec_find_program("perf", path))
		say(r, FATAL,
		    "there is no perf in $PATH: install linux-perf (Debian), linux-tools (Ubuntu), "
		    "or perf (Fedora)");
	check_pt(r);
	check_permission(r);
	check_kvm(r);
	check_debugfs(r);
	check_tracepoints(r);
	check_kernel_names(r);
	check_lock(r);
	check_room(r);
	check_vms(r);
}
