// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt split --per-vm: joins the streams of a VM, of all its vCPUs on all CPUs, in one perf.data
 * that perf puts in order of time. A vCPU becomes a thread, a stream one of its CPUs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/split/split.h"
#include "util/array.h"

#define NAME_BYTES 120 /* bytes of a VM's name in a file's */

/* A stream and its owner. */
struct member {
	size_t out;	/* index in split.out */
	const char *vm; /* the clocks'; NULL: not known */
	s64 vcpu;	/* -1: not known */
	u64 vmcs;
};

struct split_vm {
	char name[SPLIT_NAME]; /* of the file */
	struct member *member; /* contiguous in split_vms.member */
	size_t count;
	size_t written; /* of them; the others have no times */
	bool times;
	u64 bytes;
};

struct split_vms {
	struct member *member;
	size_t members;
	struct split_vm *vm;
	size_t count;
};

/* ---- owners ---- */

static int compare_vms(const struct member *a, const struct member *b)
{
	if (a->vm && b->vm)
		return strcmp(a->vm, b->vm);
	if (a->vm || b->vm)
		return a->vm ? -1 : 1;
	return a->vmcs < b->vmcs ? -1 : a->vmcs > b->vmcs;
}

/* A known vCPU is one owner, whatever its VMCS. */
static int compare_vcpus(const struct member *a, const struct member *b)
{
	if (a->vcpu != b->vcpu)
		return a->vcpu < b->vcpu ? -1 : 1;
	if (a->vcpu >= 0)
		return 0;
	return a->vmcs < b->vmcs ? -1 : a->vmcs > b->vmcs;
}

static int compare(const void *pa, const void *pb)
{
	const struct member *a = pa, *b = pb;
	int c = compare_vms(a, b);

	if (!c)
		c = compare_vcpus(a, b);
	return c ? c : a->out < b->out ? -1 : a->out > b->out;
}

static bool same_who(const struct split_who *a, const struct split_who *b)
{
	return a->vcpu == b->vcpu && (a->vm && b->vm ? !strcmp(a->vm, b->vm) : a->vm == b->vm);
}

/* Its number from 1 on; 0: no memory. */
static u64 number_of(struct cli *cli, const struct split_who *who)
{
	struct split *s = cli->data;
	size_t i;

	for (i = 0; i < s->whos; i++)
		if (same_who(&s->who[i], who))
			return i + 1;
	if (vmpt_grow(&s->who, s->whos)) {
		cli->out_of_memory = true;
		return 0;
	}
	s->who[s->whos++] = *who;
	return s->whos;
}

/*
 * A name begins with a run whose start may have been estimated slightly later than now. A page is
 * not reused by another VM that fast.
 */
#define REUSE_MIN (1u << 15) /* ticks */

u64 split_vm_who(void *opaque, u64 vmcs, const struct vmpt_time *at)
{
	struct cli *cli = opaque;
	struct split *s = cli->data;
	struct split_who who;
	struct split_last *last = &s->last[(vmcs >> 12) % SPLIT_LAST];
	u64 late = at->late < REUSE_MIN ? at->late : REUSE_MIN;

	if (!cli_clocks_who(&s->clocks, vmcs, at->tsc + late, &who.vm, &who.vcpu))
		who = (struct split_who){ .vcpu = -1 };
	/* Most slices have the owner of the VMCS's last one. */
	if (!last->number || last->vmcs != vmcs || last->who.vm != who.vm ||
	    last->who.vcpu != who.vcpu)
		*last = (struct split_last){ vmcs, who, number_of(cli, &who) };
	return last->number;
}

static void collect(const struct split *s, struct split_vms *v)
{
	size_t i;

	for (i = 0; i < s->outs; i++) {
		const struct split_out *out = &s->out[i];
		struct member *m = &v->member[v->members];

		if (out->owner.kind != VMPT_OWNER_VM || !out->perf.size)
			continue;
		*m = (struct member){ .out = i, .vcpu = -1, .vmcs = out->owner.vmcs };
		if (out->who) {
			m->vm = s->who[out->who - 1].vm;
			m->vcpu = s->who[out->who - 1].vcpu;
		} else if (s->clocks.clocks &&
			   !cli_clocks_who(&s->clocks, m->vmcs, 0, &m->vm, &m->vcpu)) {
			*m = (struct member){ .out = i, .vcpu = -1, .vmcs = m->vmcs };
		}
		v->members++;
	}
	if (v->members)
		qsort(v->member, v->members, sizeof(*v->member), compare);
	for (i = 0; i < v->members; i++) {
		if (!i || compare_vms(&v->member[i - 1], &v->member[i]))
			v->vm[v->count++].member = &v->member[i];
		v->vm[v->count - 1].count++;
	}
}

/* ---- names of files ---- */

/* The characters usable in a file name. False: some were replaced. */
static bool safe_name(const char *vm, char name[NAME_BYTES + 1])
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-";
	size_t len = strlen(vm), n = len < NAME_BYTES ? len : NAME_BYTES, i;
	bool all = n == len;

	for (i = 0; i < n; i++) {
		name[i] = strchr(safe, vm[i]) ? vm[i] : '_';
		all &= name[i] == vm[i];
	}
	name[n] = '\0';
	return all;
}

/* In one pass over all streams: a CPU has at most 4,096. */
static bool is_stream(const struct split *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->outs; i++)
		if (!strcmp(s->out[i].name, name))
			return true;
	return false;
}

/*
 * "vm-NAME.perf.data". A name that is not usable as it is, or is taken by a stream, gets '+' and
 * the VM's number; usable names have no '+'.
 */
static void name_vm(const struct split *s, struct split_vm *vm, size_t number)
{
	const struct member *m = vm->member;
	char name[NAME_BYTES + 1], who[NAME_BYTES + 8];
	bool all = true;

	if (m->vm) {
		all = safe_name(m->vm, name);
		snprintf(who, sizeof(who), "vm-%s", name);
	} else {
		snprintf(who, sizeof(who), "vmcs-%llx", (unsigned long long)m->vmcs);
	}
	snprintf(vm->name, sizeof(vm->name), "%s.perf.data", who);
	if (!all || is_stream(s, vm->name))
		snprintf(vm->name, sizeof(vm->name), "%s+%zu.perf.data", who, number);
}

static void name_thread(const struct member *m, char comm[PERF_OUT_COMM])
{
	char name[NAME_BYTES + 1];

	if (m->vm)
		safe_name(m->vm, name);
	if (m->vm && m->vcpu >= 0)
		snprintf(comm, PERF_OUT_COMM, "%s-vcpu%lld", name, (long long)m->vcpu);
	else
		snprintf(comm, PERF_OUT_COMM, "%s%svmcs-%llx", m->vm ? name : "", m->vm ? "-" : "",
			 (unsigned long long)m->vmcs);
}

/* ---- joining ---- */

struct joined {
	struct cli *cli;
	const struct split_vm *vm;
	struct perf_out *perf;
	const char **name; /* of the streams' files */
};

static FILE *open_stream(void *opaque, size_t i)
{
	const struct joined *j = opaque;
	const struct split *s = j->cli->data;
	int fd = openat(s->new_fd, j->name[i], O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

/* perf would not order a stream without times: it is left out if others have times. */
static void choose(const struct split *s, struct split_vm *vm, struct joined *j)
{
	const struct member *last = NULL;
	u32 threads = 0;
	size_t i;

	for (i = 0; i < vm->count; i++)
		vm->times |= s->out[vm->member[i].out].perf.has_tsc;
	for (i = 0; i < vm->count; i++) {
		const struct member *m = &vm->member[i];
		const struct split_out *out = &s->out[m->out];
		struct perf_out *p = &j->perf[vm->written];

		if (out->perf.has_tsc != vm->times)
			continue;
		threads += !last || compare_vcpus(last, m);
		last = m;
		*p = out->perf;
		p->thread = threads;
		p->idx = (u32)vm->written;
		name_thread(m, p->comm);
		vm->bytes += out->bytes;
		j->name[vm->written++] = out->name;
	}
}

/* What is in the VM's file is not kept twice. */
static int drop_joined(struct cli *cli, const struct split_vm *vm)
{
	struct split *s = cli->data;
	u32 part = 0;
	size_t i;

	for (i = 0; i < vm->count; i++) {
		struct split_out *out = &s->out[vm->member[i].out];

		if (out->perf.has_tsc != vm->times)
			continue;
		if (unlinkat(s->new_fd, out->name, 0))
			return split_io_failed(cli, out->name);
		memcpy(out->name, vm->name, sizeof(out->name));
		out->joined = true;
		out->perf_part = part++;
	}
	return 0;
}

static int join(struct cli *cli, struct split_vm *vm)
{
	const struct split *s = cli->data;
	struct joined j = { .cli = cli, .vm = vm };
	FILE *f = NULL;
	int err = 1;

	j.perf = calloc(vm->count, sizeof(*j.perf));
	j.name = calloc(vm->count, sizeof(*j.name));
	if (!j.perf || !j.name) {
		cli_no_memory(cli);
		goto out;
	}
	choose(s, vm, &j);
	f = split_create(cli, vm->name);
	if (!f)
		goto out;
	err = perf_out_join(j.perf, vm->written, f, open_stream, &j);
	if ((fclose(f) && !err) || err)
		err = split_io_failed(cli, vm->name);
	else
		err = drop_joined(cli, vm);
out:
	free(j.perf);
	free(j.name);
	return err;
}

int split_vms_write(struct cli *cli)
{
	struct split *s = cli->data;
	struct split_vms *v;
	int err = 0;
	size_t i;

	if (!s->per_vm)
		return 0;
	v = s->vms = calloc(1, sizeof(*v));
	if (v) {
		v->member = calloc(s->outs + 1, sizeof(*v->member));
		v->vm = calloc(s->outs + 1, sizeof(*v->vm));
	}
	if (!v || !v->member || !v->vm) {
		cli_no_memory(cli);
		return 1;
	}
	collect(s, v);
	for (i = 0; !err && i < v->count; i++) {
		name_vm(s, &v->vm[i], i);
		err = join(cli, &v->vm[i]);
	}
	return err;
}

void split_vms_close(struct split *s)
{
	if (s->vms) {
		free(s->vms->member);
		free(s->vms->vm);
	}
	free(s->vms);
	s->vms = NULL;
}

/* ---- report ---- */

const char *split_vm_name(const struct split *s, size_t i)
{
	return s->vms && i < s->vms->count ? s->vms->vm[i].name : NULL;
}

void split_vms_print(const struct split *s)
{
	size_t i;

	for (i = 0; split_vm_name(s, i); i++) {
		const struct split_vm *vm = &s->vms->vm[i];
		char buf[32];

		printf("%s/%s: %s stream%s", s->dir, vm->name, cli_number(vm->written, buf),
		       vm->written == 1 ? "" : "s");
		if (!vm->times)
			printf(", not ordered: without times");
		if (vm->written < vm->count)
			printf(", without %s that ha%s no times",
			       cli_number(vm->count - vm->written, buf),
			       vm->count - vm->written == 1 ? "s" : "ve");
		printf("\n");
	}
}

json_t *split_json_vms(struct cli *cli)
{
	const struct split *s = cli->data;
	json_t *vms = json_array();
	size_t i, k;

	for (i = 0; split_vm_name(s, i); i++) {
		const struct split_vm *vm = &s->vms->vm[i];
		json_t *o = json_object(), *streams = json_array();

		cli_json_string(cli, o, "file", vm->name);
		if (vm->member->vm)
			cli_json_string(cli, o, "vm", vm->member->vm);
		cli_json_set(cli, o, "times", json_boolean(vm->times));
		for (k = 0; k < vm->count; k++) {
			const struct split_out *out = &s->out[vm->member[k].out];

			if (out->perf.has_tsc == vm->times)
				cli_json_add(cli, streams,
					     json_integer((json_int_t)vm->member[k].out));
		}
		cli_json_set(cli, o, "streams", streams);
		cli_json_number(cli, o, "bytes", vm->bytes);
		cli_json_add(cli, vms, o);
	}
	return vms;
}
