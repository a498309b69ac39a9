// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Whose a node of the tree is, and which function: numbers for names, each found once. */
#include <stdlib.h>
#include <string.h>

#include "cli/calls/calls.h"
#include "util/array.h"
#include "util/hash.h"

/* Symbols looked at for parts of functions (part_of()): hostile files could have millions. */
#define PART_STEPS (1u << 28)

/* An address space of an owner, for any mode. */
struct map_space {
	struct vmpt_space space;
	struct names_space names;
	u32 process; /* + 1; 0: not asked yet */
};

/* What is known of an address: a function's start. */
struct map_function {
	u32 space; /* of .space */
	u64 start;
	u32 function;
};

/* A part of a function, and where that starts. */
struct map_part {
	u32 space;
	u64 start, whole;
};

struct calls_map {
	struct map_space *space;
	size_t spaces;
	struct map_function *function;
	size_t functions;
	struct map_part *part;
	size_t parts;
	struct vmpt_hash space_of, function_of, part_of, name_of, process_of, vm_of;
	struct vmpt_hash owner_of; /* of .owner */
	struct {
		struct vmpt_owner owner;
		u32 vm;
	} * owner;
	size_t owners;
	u64 steps;	/* of PART_STEPS */
	u32 last_space; /* of space_number() */
};

static u32 no_memory(struct calls_source *s)
{
	s->cli->out_of_memory = true;
	return 0;
}

static struct calls_map *map_of(struct calls_source *s)
{
	if (!s->map)
		s->map = calloc(1, sizeof(*s->map));
	return s->map;
}

/* ---- VMs ---- */

static bool same_vm(const struct calls_vm *a, const char *vm, const struct vmpt_owner *owner,
		    bool wanted)
{
	if (a->wanted != wanted || a->owner.kind != owner->kind)
		return false;
	return vm || a->vm ? vm && a->vm && !strcmp(vm, a->vm) : vmpt_owner_same(&a->owner, owner);
}

/* The VM's name without its vCPU's. */
static char *vm_name(const char *vm, const struct vmpt_owner *owner)
{
	char buf[CLI_WHO];

	if (!vm)
		return strdup(cli_owner_name(owner, buf));
	cli_safe_name(vm, buf);
	return strdup(buf);
}

static u64 hash_owner(const struct vmpt_owner *owner)
{
	return vmpt_mix64(owner->vmcs ^ (u64)owner->kind << 56);
}

static u32 add_vm(struct calls_source *s, const struct vmpt_owner *owner)
{
	struct calls_map *m = s->map;
	const char *vm = traced_vm(&s->t, owner, NULL);
	const bool wanted = cli_filter_vmcs(s->cli, owner);
	const u64 hash =
		vm ? vmpt_mix64(vmpt_fnv1a(VMPT_FNV1A, vm, strlen(vm))) : hash_owner(owner);
	u32 i = vmpt_hash_find(&m->vm_of, hash, k, same_vm(&s->vm[k], vm, owner, wanted));
	struct calls_vm *v;

	if (i != VMPT_HASH_NONE)
		return i;
	i = (u32)s->vms;
	if (vmpt_grow(&s->vm, s->vms) || vmpt_hash_add(&m->vm_of, hash, i))
		return no_memory(s);
	v = &s->vm[s->vms++];
	*v = (struct calls_vm){ vm_name(vm, owner), vm, *owner, wanted };
	return v->name ? i : no_memory(s);
}

u32 calls_find_vm(void *opaque, const struct vmpt_owner *owner)
{
	struct calls_source *s = opaque;
	struct calls_map *m = map_of(s);
	const u64 hash = hash_owner(owner);
	u32 i;

	if (!m)
		return no_memory(s);
	i = vmpt_hash_find(&m->owner_of, hash, k, vmpt_owner_same(&m->owner[k].owner, owner));
	if (i != VMPT_HASH_NONE)
		return m->owner[i].vm;
	if (vmpt_grow(&m->owner, m->owners) || vmpt_hash_add(&m->owner_of, hash, (u32)m->owners))
		return no_memory(s);
	m->owner[m->owners].owner = *owner;
	m->owner[m->owners].vm = add_vm(s, owner);
	return m->owner[m->owners++].vm;
}

/* ---- address spaces ---- */

static bool same_space(const struct vmpt_space *a, const struct vmpt_space *b)
{
	return a->cr3 == b->cr3 && a->no_cr3 == b->no_cr3 && vmpt_owner_same(&a->owner, &b->owner);
}

/* What ran where no address space is known is nobody's. */
static void get_space(const struct calls_source *s, u32 number, struct vmpt_space *space)
{
	*space = (struct vmpt_space){ .owner = { .kind = VMPT_OWNER_UNKNOWN }, .no_cr3 = true };
	if (number < vmpt_calls_spaces(s->calls))
		vmpt_calls_space(s->calls, number, space);
}

/* NULL: no memory. The pointer is valid until the next call. */
static struct map_space *find_space(struct calls_source *s, const struct vmpt_space *space)
{
	struct calls_map *m = map_of(s);
	const u64 hash = vmpt_mix64(space->cr3 ^ vmpt_mix64(space->owner.vmcs));
	struct map_space *n;
	u32 i;

	if (!m)
		return NULL;
	if (m->last_space < m->spaces && same_space(&m->space[m->last_space].space, space))
		return &m->space[m->last_space];
	i = vmpt_hash_find(&m->space_of, hash, k, same_space(&m->space[k].space, space));
	if (i == VMPT_HASH_NONE) {
		i = (u32)m->spaces;
		if (vmpt_grow(&m->space, m->spaces) || vmpt_hash_add(&m->space_of, hash, i))
			return NULL;
		n = &m->space[m->spaces++];
		*n = (struct map_space){ .space = *space };
		traced_names(&s->t, space, &n->names);
	}
	m->last_space = i;
	return &m->space[i];
}

/* ---- functions that are in several parts ---- */

/* Where the part and the whole are, in one source of names. */
struct pair {
	const char *name; /* of the part */
	size_t whole;	  /* its bytes that name the whole */
	u64 part_at, whole_at;
	unsigned int parts, wholes; /* how many have these names */
};

static void look(struct pair *p, const char *name, u64 address)
{
	if (strncmp(name, p->name, p->whole) != 0)
		return;
	if (!name[p->whole]) {
		p->whole_at = address;
		p->wholes++;
	} else if (!strcmp(name, p->name)) {
		p->part_at = address;
		p->parts++;
	}
}

static bool look_in_files(struct calls_source *s, const struct names_space *space, struct pair *p)
{
	const struct code_names *n = &s->t.names;
	size_t i = 0;
	u32 file;

	for (file = 0; file < n->symbols.files; file++) {
		p->parts = p->wholes = 0;
		for (; i < n->symbols.count && n->symbols.symbol[i].file <= file; i++)
			look(p, n->symbols.symbol[i].name, n->symbols.symbol[i].address);
		if (p->parts && code_is_for(&n->files.given[file], space->vm))
			return true;
	}
	return false;
}

static bool look_in_kernel(const struct names_space *space, const char *module, struct pair *p)
{
	struct vmpt_guest_symbol symbol;
	u32 i;

	p->parts = p->wholes = 0;
	for (i = 0; space->guest && vmpt_guest_symbol(space->guest->guest, i, &symbol); i++)
		if (!symbol.module == !module && (!module || !strcmp(module, symbol.module)))
			look(p, symbol.name, symbol.address);
	return p->parts;
}

/* The start of the function of which @found at @start is a part. Names that are not unique tell
 * nothing. */
static u64 part_of(struct calls_source *s, u32 space, u64 start, const struct names_found *found,
		   size_t whole)
{
	struct calls_map *m = s->map;
	struct pair p = { .name = found->name, .whole = whole };
	const u64 hash = vmpt_mix64(start ^ space);
	const struct names_space *names = &m->space[space].names;
	u32 i = vmpt_hash_find(&m->part_of, hash, k,
			       m->part[k].start == start && m->part[k].space == space);

	if (i != VMPT_HASH_NONE)
		return m->part[i].whole;
	if (m->steps > PART_STEPS || vmpt_grow(&m->part, m->parts) ||
	    vmpt_hash_add(&m->part_of, hash, (u32)m->parts))
		return start;
	m->steps += s->t.names.symbols.count + (names->guest ? names->guest->kernel.symbols : 0);
	m->part[m->parts] = (struct map_part){ space, start, start };
	if ((look_in_files(s, names, &p) || look_in_kernel(names, found->module, &p)) &&
	    p.parts == 1 && p.wholes == 1)
		m->part[m->parts].whole = start + p.whole_at - p.part_at;
	return m->part[m->parts++].whole;
}

bool calls_find_function(void *opaque, const struct vmpt_space *space, u64 ip,
			 struct vmpt_function *function)
{
	struct calls_source *s = opaque;
	struct map_space *in = find_space(s, space);
	struct names_found found;
	size_t whole;

	if (!in) {
		no_memory(s);
		return false;
	}
	if (!code_names_find(s->cli, &s->t.names, &in->names, ip, &found) || !found.name)
		return false;
	function->start = ip - found.offset;
	function->role = (u8)calls_role(found.name);
	whole = calls_part(found.name);
	if (whole)
		function->start =
			part_of(s, (u32)(in - s->map->space), function->start, &found, whole);
	return true;
}

/* ---- functions ---- */

static void base_name(const char *path, char buf[CLI_WHO])
{
	const char *base = path ? strrchr(path, '/') : NULL;

	cli_safe_name(base ? base + 1 : path ? path : "", buf);
}

static int make_function(struct calls_function *f, const char *name, const char *module)
{
	size_t n = strlen(name) + strlen(module) + 2;

	*f = (struct calls_function){ .name = strdup(name) };
	f->module = strdup(module);
	f->text = malloc(n);
	if (f->text)
		snprintf(f->text, n, "%s%s%s", module, *module ? ":" : "", name);
	if (f->name && f->module && f->text)
		return 0;
	free(f->name);
	free(f->module);
	free(f->text);
	return -VMPT_E_NOMEM;
}

/* The number of the function with this name, new or not. */
static u32 intern(struct calls_source *s, const char *name, const char *module)
{
	struct calls_map *m = s->map;
	const u64 hash = vmpt_mix64(
		vmpt_fnv1a(vmpt_fnv1a(VMPT_FNV1A, name, strlen(name)), module, strlen(module)));
	u32 i = vmpt_hash_find(&m->name_of, hash, k,
			       !strcmp(s->function[k].name, name) &&
				       !strcmp(s->function[k].module, module));

	if (i != VMPT_HASH_NONE)
		return i;
	if (vmpt_grow(&s->function, s->functions) ||
	    make_function(&s->function[s->functions], name, module))
		return no_memory(s);
	i = (u32)s->functions++;
	return vmpt_hash_add(&m->name_of, hash, i) ? no_memory(s) : i;
}

static u32 name_function(struct calls_source *s, const struct map_space *in, u64 start)
{
	struct names_found found = { 0 };
	char module[CLI_WHO] = "", name[2 * CLI_WHO];

	if (code_names_find(s->cli, &s->t.names, &in->names, start, &found))
		base_name(found.module, module);
	if (found.name && !found.offset) {
		const u32 i = intern(s, found.name, module);

		s->function[i].named = true;
		return i;
	}
	/* Where a call went to, inside a function or a file. */
	if (found.name || *module) {
		snprintf(name, sizeof(name), "%s+0x%llx", found.name ? found.name : module,
			 (unsigned long long)found.offset);
		return intern(s, name, found.name ? module : "");
	}
	snprintf(name, sizeof(name), "0x%llx", (unsigned long long)start);
	return intern(s, name, "");
}

u32 calls_function(struct calls_source *s, const struct vmpt_call_node *node)
{
	struct calls_map *m = map_of(s);
	struct vmpt_space space;
	const struct map_space *in;
	u32 i, at;
	u64 hash;

	if (!m || (!s->functions && intern(s, "[unknown]", "")))
		return no_memory(s);
	if (node->kind == VMPT_CALL_UNKNOWN || node->kind == VMPT_CALL_ROOT)
		return 0;
	get_space(s, node->space, &space);
	in = find_space(s, &space);
	if (!in)
		return no_memory(s);
	at = (u32)(in - m->space);
	hash = vmpt_mix64(node->function ^ (u64)at << 48);
	i = vmpt_hash_find(&m->function_of, hash, k,
			   m->function[k].start == node->function && m->function[k].space == at);
	if (i != VMPT_HASH_NONE)
		return m->function[i].function;
	if (vmpt_grow(&m->function, m->functions) ||
	    vmpt_hash_add(&m->function_of, hash, (u32)m->functions))
		return no_memory(s);
	i = name_function(s, in, node->function);
	m->function[m->functions++] = (struct map_function){ at, node->function, i };
	return i;
}

/* ---- processes ---- */

static char *process_name(const struct calls_source *s, const struct map_space *in)
{
	const struct vmpt_space *space = &in->space;
	const struct vmpt_guest_task *task = in->names.task;
	char comm[CLI_WHO], name[CLI_WHO + 16];

	if (task) {
		cli_safe_name(task->comm, comm);
		snprintf(name, sizeof(name), "%u %s", task->tgid, comm);
	} else if (space->no_cr3) {
		snprintf(name, sizeof(name), "%s",
			 code_names_any(&s->t.names) ? "kernel" : "unknown");
	} else {
		snprintf(name, sizeof(name), "CR3 %llx", (unsigned long long)space->cr3);
	}
	return strdup(name);
}

static bool same_process(const struct calls_process *p, u32 vm, const struct map_space *in,
			 bool wanted)
{
	const struct vmpt_guest_task *a = p->task, *b = in->names.task;

	if (p->vm != vm || p->wanted != wanted)
		return false;
	return a || b ? a && b && a->tgid == b->tgid
		      : p->space.no_cr3 == in->space.no_cr3 && p->space.cr3 == in->space.cr3;
}

static u32 add_process(struct calls_source *s, u32 vm, const struct map_space *in)
{
	const bool wanted =
		s->vm[vm].wanted && cli_filter_cr3(s->cli, !in->space.no_cr3, in->space.cr3);
	const u64 key = in->names.task ? in->names.task->tgid : in->space.cr3;
	const u64 hash = vmpt_mix64(vmpt_mix64(key) ^ vm);
	u32 i = vmpt_hash_find(&s->map->process_of, hash, k,
			       same_process(&s->process[k], vm, in, wanted));
	struct calls_process *p;

	if (i != VMPT_HASH_NONE)
		return i;
	i = (u32)s->processes;
	if (vmpt_grow(&s->process, s->processes) || vmpt_hash_add(&s->map->process_of, hash, i))
		return no_memory(s);
	p = &s->process[s->processes++];
	*p = (struct calls_process){ vm, in->space, in->names.task, process_name(s, in), wanted };
	return p->name ? i : no_memory(s);
}

static u32 process_of(struct calls_source *s, const struct vmpt_space *space)
{
	const u32 vm = calls_find_vm(s, &space->owner);
	struct map_space *in = find_space(s, space);

	if (!in || vm >= s->vms)
		return no_memory(s);
	if (!in->process)
		in->process = add_process(s, vm, in) + 1;
	return in->process - 1;
}

u32 calls_process(struct calls_source *s, u32 space)
{
	struct vmpt_space of;

	get_space(s, space, &of);
	return process_of(s, &of);
}

u32 calls_root_process(struct calls_source *s, const struct vmpt_call_node *root)
{
	struct vmpt_space of;

	get_space(s, root->space, &of);
	if (root->function == ~0ULL) {
		of.no_cr3 = true;
		of.cr3 = 0;
	}
	return process_of(s, &of);
}

bool calls_wanted(struct calls_source *s, u32 process)
{
	const bool wanted = process < s->processes && s->process[process].wanted;

	cli_filter(s->cli)->seen |= wanted;
	return wanted;
}

void calls_names_close(struct calls_source *s)
{
	struct calls_map *m = s->map;

	while (s->functions) {
		struct calls_function *f = &s->function[--s->functions];

		free(f->name);
		free(f->module);
		free(f->text);
	}
	while (s->processes)
		free(s->process[--s->processes].name);
	while (s->vms)
		free(s->vm[--s->vms].name);
	free(s->function);
	free(s->process);
	free(s->vm);
	if (!m)
		return;
	vmpt_hash_free(&m->space_of);
	vmpt_hash_free(&m->function_of);
	vmpt_hash_free(&m->part_of);
	vmpt_hash_free(&m->name_of);
	vmpt_hash_free(&m->process_of);
	vmpt_hash_free(&m->vm_of);
	vmpt_hash_free(&m->owner_of);
	free(m->space);
	free(m->function);
	free(m->part);
	free(m->owner);
	free(m);
	s->map = NULL;
}
