// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest's tasks by CR3. Its memory is read where QEMU has it, by vmpt-guest.h, which takes it for
 * hostile and bounds its work; and in all no more than a share of the time that passes is spent.
 */
#include "qemu-plugin/host/tasks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/array.h"
#include "util/hash.h"

#define CR3_ADDRESS 0x000ffffffffff000ULL /* bits 51:12 */
#define KPTI_USER   0x1000ULL
#define EFER_LMA    0x400ULL

/* ticks of the TSC: ns */
#define US 1000ULL
#define MS 1000000ULL

#define SPACES_MAX 65536u
#define LOOK_FIRST (20 * US)  /* after the first use: exec sets the name */
#define MAPS_FIRST (200 * US) /* and maps the program */
#define LOOK_LAST  (100 * MS)
#define NONE_FIRST (100 * US) /* nobody has a CR3: it is looked for again */
#define NONE_LAST  (1000 * MS)
#define OPEN_FIRST (100 * MS) /* no kernel was found */
#define OPEN_TRIES 6u
#define RAM_TRIES  200u
/* Of the time that has passed lists may take one part in this, after the first ones. */
#define SHARE 50u
#define FREE  (10 * MS)
/* Paths and maps that are read before the memory for them is freed. */
#define READS 256u
/* Processes by which it is known that CR3 bit 12 says who runs, not what. */
#define PROOFS 3u

/* An address space. */
struct space {
	u64 cr3; /* as .task has it */
	struct vmpt_guest_task task;
	bool known; /* .task had it when it was looked at last */
	u64 since;  /* when it was found */
	u64 due;    /* when its maps are to be read again */
	u64 maps;   /* hash of what was written */
	u64 retry;  /* not .known: when it is to be looked for again, 0: at once */
	u32 missed;
};

struct tasks {
	struct plugin *plugin;
	pthread_mutex_t lock; /* for what follows */
	struct tasks_file file;
	const char *symbols; /* path, or NULL */
	u64 begin;
	s64 spent;
	u64 moved; /* of the last run of any vCPU */
	u64 try_at;
	u32 tries, ram_tries;

	struct vmpt_image *image;
	struct vmpt_guest *guest; /* NULL: no kernel is known */
	struct vmpt_guest_kernel kernel;
	u64 init_task, lists[2]; /* addresses of init_task, and of the heads of lists … */
	u64 head[2];		 /* … what they led to when symbols were written */
	u32 reads, proofs;
	unsigned char *resident; /* while a kernel is looked for: mincore() of RAM */

	struct space *space;
	size_t spaces;
	struct vmpt_hash by_cr3;
	u64 lost; /* beyond SPACES_MAX, or without memory */
};

static u64 now(const struct tasks *tasks)
{
	struct vmpt_now clock;

	clock_read(&tasks->plugin->clock, &clock);
	return clock.tsc;
}

/* ---- memory ---- */

/*
 * Of what the guest has never touched nothing is read while its kernel is looked for: QEMU would
 * need memory for it.
 */
static const u8 *page_at(void *opaque, u64 physical)
{
	const struct tasks *tasks = opaque;
	const u8 *page = ram_page(tasks->plugin, physical);

	if (!page || !tasks->resident)
		return page;
	return tasks->resident[(page - tasks->plugin->ram.host) / VMPT_PAGE] & 1 ? page : NULL;
}

static void find_resident(struct tasks *tasks)
{
	const struct ram *ram = &tasks->plugin->ram;
	u64 size = ram->low + (ram->high - (4ULL << 30));

	tasks->resident = malloc(size / VMPT_PAGE + 1);
	if (tasks->resident && mincore(ram->host, size, tasks->resident)) {
		free(tasks->resident);
		tasks->resident = NULL;
	}
}

/* ---- the kernel ---- */

/* Modules and BPF programs come and go: their lists begin elsewhere then. */
static bool lists_changed(const struct tasks *tasks)
{
	u64 head;
	size_t i;

	for (i = 0; i < 2; i++)
		if (tasks->lists[i] &&
		    vmpt_guest_read(tasks->guest, 0, tasks->lists[i], &head, 8) &&
		    head != tasks->head[i])
			return true;
	return false;
}

static void write_symbols(struct tasks *tasks)
{
	static const char *const names[] = { "modules", "bpf_kallsyms" };
	const char *why;
	size_t i;

	for (i = 0; i < 2; i++)
		if (!vmpt_guest_address(tasks->guest, names[i], &tasks->lists[i]) ||
		    !vmpt_guest_read(tasks->guest, 0, tasks->lists[i], &tasks->head[i], 8))
			tasks->lists[i] = 0;
	if (!tasks->symbols || !tasks->kernel.symbols)
		return;
	why = tasks_symbols_write(tasks->symbols, tasks->plugin->options.mode, tasks->guest);
	if (why) {
		fprintf(stderr, "vmpt: symbols=%s: lost the kernel's functions: %s\n",
			tasks->symbols, why);
		tasks->symbols = NULL;
	}
}

static void forget_kernel(struct tasks *tasks)
{
	size_t i;

	vmpt_guest_close(tasks->guest);
	tasks->guest = NULL;
	tasks->tries = 0;
	tasks->try_at = 0;
	for (i = 0; i < tasks->spaces; i++)
		tasks->space[i] = (struct space){ .cr3 = tasks->space[i].cr3 };
}

static bool open_kernel(struct tasks *tasks)
{
	find_resident(tasks);
	if (vmpt_guest_open(&tasks->guest, tasks->image, NULL))
		tasks->guest = NULL;
	free(tasks->resident);
	tasks->resident = NULL;
	if (!tasks->guest)
		return false;
	vmpt_guest_kernel(tasks->guest, &tasks->kernel);
	if (!vmpt_guest_address(tasks->guest, "init_task", &tasks->init_task))
		tasks->init_task = 0;
	/* What was not there at that time is read now. */
	vmpt_guest_update(tasks->guest);
	return true;
}

/* Whether the first task is where it was: else the guest was reset. */
static bool is_alive(const struct tasks *tasks)
{
	struct vmpt_guest_task t;

	return !tasks->init_task || (vmpt_guest_task_now(tasks->guest, tasks->init_task, &t) &&
				     !t.pid && !t.tgid && !strncmp(t.comm, "swapper", 7));
}

/* In user mode a kernel is there, if it is Linux. */
static bool find_kernel(struct tasks *tasks, struct vcpu *vcpu, struct tasks_vcpu *tv, u64 tsc)
{
	if (vcpu->mode.cpl != 3 || !(vcpu->cpu.efer & EFER_LMA) || tsc < tasks->try_at ||
	    tasks->tries >= OPEN_TRIES)
		return false;
	if (open_kernel(tasks)) {
		if (tasks_put_kernel(&tv->pending, tsc, &tasks->kernel))
			tasks->lost++;
		write_symbols(tasks);
		/* Once. */
		tasks->spent -= (s64)(now(tasks) - tsc);
		return true;
	}
	tasks->try_at = tsc + (OPEN_FIRST << tasks->tries++);
	return false;
}

/* ---- spaces ---- */

static struct space *find_space(const struct tasks *tasks, u64 cr3)
{
	u32 n = vmpt_hash_find(&tasks->by_cr3, vmpt_mix64(cr3), i, tasks->space[i].cr3 == cr3);

	return n == VMPT_HASH_NONE ? NULL : &tasks->space[n];
}

/* NULL: there is no room. */
static struct space *get_space(struct tasks *tasks, u64 cr3)
{
	struct space *s = find_space(tasks, cr3);

	if (s)
		return s;
	if (tasks->spaces == SPACES_MAX || vmpt_grow(&tasks->space, tasks->spaces) ||
	    vmpt_hash_add(&tasks->by_cr3, vmpt_mix64(cr3), (u32)tasks->spaces)) {
		tasks->lost++;
		return NULL;
	}
	s = &tasks->space[tasks->spaces++];
	*s = (struct space){ .cr3 = cr3 };
	return s;
}

static bool same(const struct vmpt_guest_task *a, const struct vmpt_guest_task *b)
{
	return a->tgid == b->tgid && a->pid == b->pid && a->start == b->start && a->mm == b->mm &&
	       a->cr3 == b->cr3;
}

static u64 between(u64 least, u64 value, u64 most)
{
	return value < least ? least : value > most ? most : value;
}

/* Doubled each time. */
static u64 grown(u64 first, u32 times, u64 most)
{
	return times > 20 ? most : between(first, first << times, most);
}

static void write_task(struct tasks *tasks, struct tasks_vcpu *tv, u64 tsc,
		       const struct vmpt_guest_task *t)
{
	if (tasks_put_task(&tv->pending, tsc, t))
		tasks->lost++;
}

/* Whether the task still has the space; its name may have changed. */
static bool check(struct tasks *tasks, struct tasks_vcpu *tv, struct space *s, u64 tsc)
{
	struct vmpt_guest_task t;

	if (!vmpt_guest_task_now(tasks->guest, s->task.address, &t) || !same(&t, &s->task))
		return false;
	if (memcmp(t.comm, s->task.comm, sizeof(t.comm)) != 0) {
		memcpy(s->task.comm, t.comm, sizeof(t.comm));
		write_task(tasks, tv, tsc, &s->task);
	}
	return true;
}

/* What was read takes memory until then. */
static void count_read(struct tasks *tasks)
{
	if (++tasks->reads % READS == 0)
		vmpt_guest_update(tasks->guest);
}

static u64 hash_of(const struct vmpt_guest_map *map, size_t count)
{
	u64 hash = VMPT_FNV1A;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!map[i].exec || !map[i].file)
			continue;
		hash = vmpt_fnv1a(hash, &map[i].start, sizeof(map[i].start));
		hash = vmpt_fnv1a(hash, &map[i].end, sizeof(map[i].end));
		hash = vmpt_fnv1a(hash, &map[i].offset, sizeof(map[i].offset));
		hash = vmpt_fnv1a(hash, map[i].file, strlen(map[i].file) + 1);
		hash = vmpt_fnv1a(hash, map[i].build_id, map[i].build_id_size);
	}
	return hash;
}

static void read_maps(struct tasks *tasks, struct tasks_vcpu *tv, struct space *s, u64 tsc)
{
	const struct vmpt_guest_map *map;
	size_t count;
	bool cut;
	u64 hash;

	count_read(tasks);
	/* Cut: the guest was changing its tree just then. The next time is soon enough. */
	if (vmpt_guest_maps(tasks->guest, &s->task, &map, &count, &cut) || cut)
		return;
	hash = hash_of(map, count);
	if (hash == VMPT_FNV1A || hash == s->maps)
		return;
	s->maps = hash;
	if (tasks_put_maps(&tv->pending, tsc, &s->task, map, count))
		tasks->lost++;
}

/* A process that has a second CR3: in its own code bit 12 is set. */
static void prove(struct tasks *tasks, const struct vcpu *vcpu)
{
	if (vcpu->mode.cpl == 3 && ++tasks->proofs >= PROOFS)
		tasks->plugin->watch_cr3 &= ~KPTI_USER;
}

/* Find whose @cr3 is. */
static struct space *look_for(struct tasks *tasks, const struct vcpu *vcpu, struct tasks_vcpu *tv,
			      u64 cr3, u64 tsc)
{
	struct vmpt_guest_task t;
	struct space *s;

	count_read(tasks);
	if (!vmpt_guest_find_task(tasks->guest, cr3, &t))
		return NULL;
	if (t.cr3 != cr3)
		prove(tasks, vcpu);
	s = get_space(tasks, t.cr3);
	if (!s)
		return NULL;
	if (!s->known || !same(&s->task, &t)) {
		*s = (struct space){ .cr3 = t.cr3, .task = t, .known = true };
		s->since = tsc;
		s->due = tsc + MAPS_FIRST;
		write_task(tasks, tv, tsc, &t);
		s->task.program = NULL; /* it does not stay */
	}
	return s;
}

static struct space *miss(struct tasks *tasks, struct tasks_vcpu *tv, u64 cr3, u64 tsc)
{
	struct space *s;

	if (!is_alive(tasks)) {
		forget_kernel(tasks);
		return NULL;
	}
	s = get_space(tasks, cr3);
	if (!s)
		return NULL;
	s->known = false;
	s->retry = tsc + grown(NONE_FIRST, s->missed++, NONE_LAST);
	tv->due = s->retry;
	return NULL;
}

/* The space of @cr3; NULL: nobody's, or it is not known yet. */
static struct space *find_owner(struct tasks *tasks, const struct vcpu *vcpu, struct tasks_vcpu *tv,
				u64 cr3, bool entered, u64 tsc)
{
	struct space *s = find_space(tasks, cr3);
	bool gone = false;

	if (s && s->known) {
		if (check(tasks, tv, s, tsc))
			return s;
		/* It exits, or has ended and another one has its page tables. */
		s->known = false;
		s->missed = 0;
		s->retry = 0;
		gone = !entered;
	}
	if (gone || (s && tsc < s->retry)) {
		/* Nobody else can have them before they are loaded again. */
		tv->due = gone ? tsc + LOOK_LAST : s->retry;
		return NULL;
	}
	if (tasks->spent > (s64)(FREE + (tsc - tasks->begin) / SHARE)) {
		tv->due = tsc + MS;
		return NULL;
	}
	s = look_for(tasks, vcpu, tv, cr3, tsc);
	return s ? s : miss(tasks, tv, cr3, tsc);
}

static void look(struct tasks *tasks, struct vcpu *vcpu, struct tasks_vcpu *tv, u64 cr3,
		 bool entered, u64 tsc)
{
	struct space *s;
	u64 age;

	if (!tasks->guest && !find_kernel(tasks, vcpu, tv, tsc))
		return;
	if ((cr3 | KPTI_USER) == (tasks->kernel.cr3 | KPTI_USER))
		return;
	s = find_owner(tasks, vcpu, tv, cr3, entered, tsc);
	if (!s)
		return;
	age = tsc - s->since;
	if (tsc >= s->due) {
		read_maps(tasks, tv, s, tsc);
		s->due = tsc + between(MAPS_FIRST, age, LOOK_LAST);
	}
	/* A new name is found when it is an eighth older than the process was then. */
	tv->due = tsc + between(LOOK_FIRST, age / 8, s->due - tsc);
}

void tasks_look(struct tasks *tasks, struct vcpu *vcpu, struct tasks_vcpu *tv, u64 tsc)
{
	u64 space = vcpu->mode.cr3 & tasks->plugin->watch_cr3;
	bool entered = space != tv->space;

	tv->space = space;
	tv->due = tsc + MS;
	pthread_mutex_lock(&tasks->lock);
	if (!__atomic_load_n(&tasks->plugin->ram.known, __ATOMIC_ACQUIRE)) {
		if (tasks->ram_tries < RAM_TRIES) {
			tasks->ram_tries++;
			ram_find(vcpu);
		}
	} else {
		look(tasks, vcpu, tv, space & CR3_ADDRESS, entered, tsc);
		tasks->spent += (s64)(now(tasks) - tsc);
	}
	pthread_mutex_unlock(&tasks->lock);
}

/* ---- runs, open and close ---- */

void tasks_run(struct tasks *tasks, struct tasks_vcpu *tv, u64 moved)
{
	pthread_mutex_lock(&tasks->lock);
	tasks->moved = moved;
	if (tv->pending.count)
		tasks_file_flush(&tasks->file, &tv->pending, moved);
	pthread_mutex_unlock(&tasks->lock);
}

struct tasks *tasks_open(struct plugin *plugin, const char *vm)
{
	const struct options *options = &plugin->options;
	struct tasks *tasks = calloc(1, sizeof(*tasks));
	struct vmpt_image_source source = { .memory = page_at };
	struct tasks_pending pending = { 0 };
	const char *why = NULL;

	if (!tasks) {
		fputs("vmpt: no memory\n", stderr);
		return NULL;
	}
	pthread_mutex_init(&tasks->lock, NULL);
	tasks->plugin = plugin;
	tasks->symbols = options->symbols;
	tasks->begin = now(tasks);
	source.opaque = tasks;
	if (vmpt_image_make(&tasks->image, &source, NULL) ||
	    tasks_put_machine(&pending, tasks->begin, vm))
		why = strerror(ENOMEM);
	if (!why)
		why = tasks_file_open(&tasks->file, options->tasks, options->mode);
	if (!why) {
		tasks_file_flush(&tasks->file, &pending, 0);
		free(pending.line);
		why = tasks->file.err ? strerror(tasks->file.err) : NULL;
	}
	if (!why) {
		plugin->watch_cr3 = CR3_ADDRESS;
		return tasks;
	}
	fprintf(stderr, "vmpt: tasks=%s: %s\n", options->tasks, why);
	return NULL;
}

/* The tasks at the end, each of their threads. */
static void put_all(struct tasks *tasks, struct tasks_pending *pending, u64 tsc)
{
	const struct vmpt_guest_task *t;
	u32 i;

	for (i = 0; (t = vmpt_guest_task(tasks->guest, i)) != NULL; i++)
		if (tasks_put_task(pending, tsc, t))
			tasks->lost++;
}

/* "; lost": vmpt domain trace looks for it. */
void tasks_close(struct tasks *tasks)
{
	struct tasks_pending pending = { 0 };

	if (tasks->guest && is_alive(tasks)) {
		if (lists_changed(tasks)) {
			vmpt_guest_close(tasks->guest);
			if (open_kernel(tasks))
				write_symbols(tasks);
		}
		if (tasks->guest && !vmpt_guest_update(tasks->guest))
			put_all(tasks, &pending, now(tasks));
		tasks_file_flush(&tasks->file, &pending, tasks->moved);
		free(pending.line);
	}
	if (tasks->file.err)
		fprintf(stderr, "vmpt: tasks=%s: %llu bytes; lost later processes: %s\n",
			tasks->file.path, (unsigned long long)tasks->file.size,
			strerror(tasks->file.err));
	else if (tasks->lost)
		fprintf(stderr, "vmpt: tasks=%s: %llu bytes; lost %llu lines: no memory\n",
			tasks->file.path, (unsigned long long)tasks->file.size,
			(unsigned long long)tasks->lost);
	vmpt_guest_close(tasks->guest);
	vmpt_image_close(tasks->image);
	tasks_file_close(&tasks->file);
}
