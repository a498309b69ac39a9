// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The list of tasks: from init_task over all processes, and of each over its threads. A list that
 * breaks is followed from its other end.
 */
#include "decoder/names/guest.h"

#define PF_KTHREAD  0x00200000u
#define CR3_ADDRESS 0x000ffffffffff000ULL /* bits 51:12 */
#define KPTI_USER   0x1000ULL
#define FIND_MAX    4096u

struct walk {
	struct vmpt_guest *g;
	struct guest_seen seen;
	bool cut;
};

static void translate_pgd(struct vmpt_guest *g, struct vmpt_guest_task *t)
{
	const struct vmpt_space space = { .cr3 = g->kernel.cr3, .exec = 64 };
	u64 pgd, physical;

	if (vmpt_guest_field64(g, t->mm, MM_PGD, &pgd) &&
	    vmpt_image_translate(g->image, &space, pgd, &physical) == 1)
		t->cr3 = physical & CR3_ADDRESS;
}

/* Threads of a process have the same as the one before, @last or NULL. 0 or -VMPT_E_NOMEM. */
static int find_program(struct vmpt_guest *g, const struct vmpt_guest_task *last,
			struct vmpt_guest_task *t)
{
	char path[VMPT_PAGE + 16];
	u64 file;

	if (last && last->mm == t->mm) {
		t->program = last->program;
		return 0;
	}
	if (!vmpt_guest_field64(g, t->mm, MM_PROGRAM, &file) || !file ||
	    !vmpt_guest_path(g, file, path, sizeof(path)))
		return 0;
	t->program = vmpt_guest_keep_string(&g->listed, path);
	return t->program ? 0 : -VMPT_E_NOMEM;
}

/* The task at @at, without its program. False: it is not in the image. */
static bool read_task(struct vmpt_guest *g, u64 at, struct vmpt_guest_task *t)
{
	u64 parent;
	u32 flags;

	*t = (struct vmpt_guest_task){ .address = at };
	if (!vmpt_guest_field32(g, at, TASK_PID, &t->pid) ||
	    !vmpt_guest_field32(g, at, TASK_TGID, &t->tgid) ||
	    !vmpt_guest_load(g, g->kernel.cr3, at + g->field[TASK_COMM], t->comm, sizeof(t->comm)))
		return false;
	t->comm[sizeof(t->comm) - 1] = '\0';
	t->kernel = vmpt_guest_field32(g, at, TASK_FLAGS, &flags) && flags & PF_KTHREAD;
	vmpt_guest_field64(g, at, TASK_START, &t->start);
	if (vmpt_guest_field64(g, at, TASK_PARENT, &parent))
		vmpt_guest_field32(g, parent, TASK_TGID, &t->parent);
	if (vmpt_guest_field64(g, at, TASK_MM, &t->mm) && t->mm)
		translate_pgd(g, t);
	return true;
}

static void forget_maps(struct vmpt_guest *g, u64 mm)
{
	size_t i;

	for (i = 0; i < g->maps_count; i++)
		if (g->maps[i].mm == mm) {
			free(g->maps[i].map);
			g->maps[i] = g->maps[--g->maps_count];
			break;
		}
}

bool vmpt_guest_task_now(struct vmpt_guest *g, u64 address, struct vmpt_guest_task *task)
{
	if (!guest_has(g, TASK_PID) || !guest_has(g, TASK_TGID) || !guest_has(g, TASK_COMM) ||
	    !read_task(g, address, task))
		return false;
	forget_maps(g, task->mm);
	return true;
}

/*
 * New processes are at the end of the list. Each process is looked at by its first thread only.
 */
bool vmpt_guest_find_task(struct vmpt_guest *g, u64 cr3, struct vmpt_guest_task *task)
{
	u64 head = g->init_task + g->field[TASK_TASKS], at = head;
	struct vmpt_guest_task t;
	bool found = false;
	u32 n;

	cr3 &= CR3_ADDRESS;
	if (!g->tasks || !cr3)
		return false;
	for (n = 0; n < FIND_MAX && vmpt_guest_u64(g, at + 8, &at) && at != head; n++) {
		if (!read_task(g, at - g->field[TASK_TASKS], &t))
			break;
		if (t.cr3 != cr3 && (t.cr3 | KPTI_USER) != cr3)
			continue;
		*task = t;
		found = true;
		if (t.cr3 == cr3)
			break;
	}
	if (!found)
		return false;
	forget_maps(g, task->mm);
	return !find_program(g, NULL, task);
}

/* The task at @at. 1; 0: it is not in the image; or -VMPT_E_NOMEM. */
static int add_task(struct vmpt_guest *g, u64 at)
{
	struct vmpt_guest_task t;

	if (!read_task(g, at, &t))
		return 0;
	if (t.mm && find_program(g, g->tasks ? &g->task[g->tasks - 1] : NULL, &t))
		return -VMPT_E_NOMEM;
	if (vmpt_grow(&g->task, g->tasks))
		return -VMPT_E_NOMEM;
	g->task[g->tasks++] = t;
	return 1;
}

/* ---- lists ---- */

/*
 * Call @take with each element of the circular list @head, whose element has its links at @member:
 * forwards, and where that breaks, backwards. 0 or -VMPT_E_NOMEM.
 */
static int walk_list(struct walk *w, u64 head, u32 member, int (*take)(struct walk *w, u64 at))
{
	struct vmpt_guest *g = w->g;
	unsigned int way;

	for (way = 0; way < 2; way++) {
		u64 at;
		bool known = vmpt_guest_u64(g, head + 8ULL * way, &at);

		while (known && at != head) {
			int ret;

			if (g->tasks >= VMPT_GUEST_TASKS) {
				w->cut = true;
				return 0;
			}
			/* One that was seen: the list leads into itself, or both ways met. */
			ret = vmpt_guest_see(&w->seen, at);
			if (ret > 0)
				ret = take(w, at - member);
			else if (!ret)
				break;
			if (ret < 0)
				return ret;
			known = ret && vmpt_guest_u64(g, at + 8ULL * way, &at);
		}
		if (known && at == head)
			return 0;
		w->cut = true;
	}
	return 0;
}

static int take_thread(struct walk *w, u64 at)
{
	return add_task(w->g, at);
}

/* A process: its threads, the first among them. */
static int take_process(struct walk *w, u64 at)
{
	struct vmpt_guest *g = w->g;
	size_t before = g->tasks;
	u64 signal;
	int ret = 0;

	if (vmpt_guest_field64(g, at, TASK_SIGNAL, &signal) && guest_has(g, SIGNAL_THREADS) &&
	    guest_has(g, TASK_THREAD) && signal)
		ret = walk_list(w, signal + g->field[SIGNAL_THREADS], g->field[TASK_THREAD],
				take_thread);
	if (!ret && g->tasks == before)
		return add_task(g, at);
	return ret < 0 ? ret : 1;
}

/* ---- */

static int by_process(const void *x, const void *y)
{
	const struct vmpt_guest_task *a = x, *b = y;

	if (a->tgid != b->tgid)
		return a->tgid < b->tgid ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static int index_spaces(struct vmpt_guest *g)
{
	size_t i;

	for (i = 0; i < g->tasks; i++) {
		const struct vmpt_guest_task *t = &g->task[i];

		if (t->cr3 && !vmpt_guest_task_at(g, t->cr3) &&
		    vmpt_hash_add(&g->task_of, vmpt_mix64(t->cr3), (u32)i))
			return -VMPT_E_NOMEM;
	}
	return 0;
}

int vmpt_guest_read_tasks(struct vmpt_guest *g)
{
	struct walk w = { .g = g };
	int ret;

	if (!guest_has(g, TASK_TASKS) || !guest_has(g, TASK_PID) || !guest_has(g, TASK_TGID) ||
	    !guest_has(g, TASK_COMM)) {
		g->kernel.lacks |= VMPT_GUEST_TASKS_MISSING;
		return 0;
	}
	if (!g->init_task && !vmpt_guest_address(g, "init_task", &g->init_task)) {
		g->kernel.lacks |= VMPT_GUEST_TASKS_MISSING | VMPT_GUEST_DATA_MISSING;
		return 0;
	}
	/* init_task itself is the idle task: pid 0. */
	ret = walk_list(&w, g->init_task + g->field[TASK_TASKS], g->field[TASK_TASKS],
			take_process);
	vmpt_guest_seen_free(&w.seen);
	if (w.cut)
		g->kernel.lacks |= VMPT_GUEST_TASKS_CUT;
	if (ret)
		return ret;
	if (g->tasks)
		qsort(g->task, g->tasks, sizeof(*g->task), by_process);
	g->kernel.tasks = (u32)g->tasks;
	return index_spaces(g);
}

void vmpt_guest_drop_tasks(struct vmpt_guest *g)
{
	while (g->maps_count)
		free(g->maps[--g->maps_count].map);
	free(g->maps);
	free(g->task);
	g->maps = NULL;
	g->task = NULL;
	g->tasks = 0;
	vmpt_hash_free(&g->task_of);
	vmpt_guest_text_free(&g->listed);
}

static const struct vmpt_guest_task *find(const struct vmpt_guest *g, u64 cr3)
{
	u32 n = vmpt_hash_find(&g->task_of, vmpt_mix64(cr3), i, g->task[i].cr3 == cr3);

	return n == VMPT_HASH_NONE ? NULL : &g->task[n];
}

const struct vmpt_guest_task *vmpt_guest_task_at(const struct vmpt_guest *g, u64 cr3)
{
	const struct vmpt_guest_task *t;

	cr3 &= CR3_ADDRESS;
	t = cr3 ? find(g, cr3) : NULL;
	return t || !(cr3 & KPTI_USER) ? t : find(g, cr3 & ~KPTI_USER);
}

const struct vmpt_guest_task *vmpt_guest_task(const struct vmpt_guest *g, u32 n)
{
	return n < g->tasks ? &g->task[n] : NULL;
}
