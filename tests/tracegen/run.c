// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A script from its tree to events: settings, VMs, CPUs, repetition. Settings
 * hold for the whole script, but may change while no CPU traces.
 */
#include <stdlib.h>

#include "tests/tracegen/internal.h"
#include "util/array.h"

#define SETTING(name)                                     \
	{                                                 \
#name, offsetof(struct tg_settings, name) \
	}

static const struct {
	const char *name;
	size_t at;
} settings[] = {
	SETTING(branch_en),
	SETTING(event_en),
	SETTING(os),
	SETTING(user),
	SETTING(tsc),
	SETTING(mtc),
	SETTING(cyc),
	SETTING(retcomp),
	SETTING(conceal_exec),
	SETTING(conceal_entry),
	SETTING(conceal_exit),
	SETTING(psb_every),
	SETTING(pip_when_contexten0),
	SETTING(psb_fup_at_enable),
	SETTING(start_psb),
	SETTING(pip_at_guest_entry),
	SETTING(pip_at_guest_exit),
	SETTING(fup_at_host_entry),
	SETTING(psb_pip_first),
	SETTING(mode_first),
	SETTING(evd_qualification_first),
	SETTING(mtc_in_group),
	SETTING(pad_in_group),
	SETTING(tnt),
	SETTING(tsc_ratio),
	SETTING(mtc_freq),
	SETTING(cyc_thresh),
	SETTING(ticks),
	SETTING(cr3_filter),
	SETTING(fuponptw),
	SETTING(seed),
};

void tg_setup(struct tracegen *g)
{
	g->set = (struct tg_settings){
		.branch_en = 1,
		.os = 1,
		.user = 1,
		.retcomp = 1,
		.start_psb = 1,
		.pip_at_guest_entry = 1,
		.tnt = 8,
		.tsc_ratio = 84,
		.mtc_freq = 3,
		.ticks = 3,
		.seed = 1,
	};
	g->rng = 1;
	g->host = (struct tg_ctx){ .name = "host",
				   .owner = TRACEGEN_HOST,
				   .cr3 = 0x1000000,
				   .ip = 0xffffffff81000000,
				   .mode = 64,
				   .rflags_if = true,
				   .tsc_mult = 1ULL << 48 };
}

static void set_trace(struct tracegen *g, const char *v)
{
	static const char *const names[] = { "system", "guest", "host" };
	unsigned int i;

	for (i = 0; i < VMPT_ARRAY_SIZE(names); i++)
		if (!strcmp(v, names[i])) {
			g->set.trace = i;
			return;
		}
	tg_fail(g, "trace is system, guest or host");
}

static bool limits(struct tracegen *g)
{
	const struct tg_settings *s = &g->set;

	if (s->tnt != 8 && s->tnt != 64)
		tg_fail(g, "tnt is 8 or 64");
	else if (!s->tsc_ratio || s->tsc_ratio > 512)
		tg_fail(g, "tsc_ratio is 1 to 512");
	else if (s->ticks > 1000000)
		tg_fail(g, "ticks is at most 1000000");
	else if (s->mtc_freq > 15)
		tg_fail(g, "mtc_freq is 0 to 15");
	else
		return true;
	return false;
}

static void set(struct tracegen *g, struct tg_node *n)
{
	size_t i;
	int w;

	for (i = 0; i < TRACEGEN_CPUS; i++)
		if (g->cpu[i] && g->cpu[i]->trace_en) {
			tg_fail(g, "set: CPU %zu is tracing", i);
			return;
		}
	for (i = 0; i < VMPT_ARRAY_SIZE(settings); i++)
		tg_key(g, n, settings[i].name, (u64 *)((char *)&g->set + settings[i].at));
	for (w = 1; w < n->argc; w++)
		if (!strncmp(n->argv[w], "trace=", 6)) {
			n->used |= 1u << w;
			set_trace(g, n->argv[w] + 6);
		}
	if (limits(g))
		g->rng = g->set.seed;
}

bool tg_mode_valid(struct tracegen *g, u64 mode, u64 cpl)
{
	if (mode != 16 && mode != 32 && mode != 64)
		tg_fail(g, "the mode is 16, 32 or 64");
	else if (cpl > 3)
		tg_fail(g, "cpl is 0 to 3");
	return !g->failed;
}

bool tg_ip_valid(struct tracegen *g, u64 mode, u64 ip)
{
	if (ip && (mode == 64 || !(ip >> mode)))
		return true;
	tg_fail(g, "no code begins at 0x%llx in %u-bit mode", (unsigned long long)ip,
		(unsigned int)mode);
	return false;
}

/* The words that "vm" and "host" share. */
static void context_words(struct tracegen *g, struct tg_node *n, struct tg_ctx *c)
{
	u64 mode = c->mode, cpl = c->cpl, rflags_if = c->rflags_if;

	tg_key(g, n, "cr3", &c->cr3);
	tg_key(g, n, "ip", &c->ip);
	tg_key(g, n, "mode", &mode);
	tg_key(g, n, "cpl", &cpl);
	tg_key(g, n, "if", &rflags_if);
	if (!tg_mode_valid(g, mode, cpl) || !tg_ip_valid(g, mode, c->ip))
		return;
	if (c->cr3 & ~0xfffffffffffffULL)
		tg_fail(g, "cr3 has 52 bits");
	c->mode = (u8)mode;
	c->cpl = (u8)cpl;
	c->rflags_if = rflags_if;
}

static void host(struct tracegen *g, struct tg_node *n)
{
	u64 vmx = 0;

	if (g->running) {
		tg_fail(g, "host must come before the first event");
		return;
	}
	context_words(g, n, &g->host);
	if (tg_key(g, n, "vmx", &vmx)) {
		g->vmx_set = true;
		g->vmx = vmx;
	}
}

/* Names are used in JSON and in file names. */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

static struct tg_ctx *vm_new(struct tracegen *g, const char *name)
{
	struct tg_ctx *c = calloc(1, sizeof(*c));

	if (!c || vmpt_grow(&g->vms, g->vm_count) || vmpt_grow(&g->vm_info, g->vm_count)) {
		free(c);
		tg_fail(g, "out of memory");
		return NULL;
	}
	*c = (struct tg_ctx){ .mode = 64, .rflags_if = true, .tsc_mult = 1ULL << 48 };
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->owner = (int)g->vm_count;
	c->cr3 = 0x2000000 + 0x1000000 * g->vm_count;
	c->ip = 0x400000 + 0x2000000 * g->vm_count;
	c->vmcs = 0x100000000 + 0x1000 * g->vm_count;
	g->vms[g->vm_count++] = c;
	return c;
}

static void vm(struct tracegen *g, struct tg_node *n)
{
	const char *name = tg_next(n);
	u64 exec = g->set.conceal_exec, entry = g->set.conceal_entry, exits = g->set.conceal_exit;
	struct tg_ctx *c;

	if (g->running)
		tg_fail(g, "vm must come before the first event");
	else if (!name)
		tg_fail(g, "vm needs a name");
	else if (strlen(name) >= sizeof(c->name) || name[strspn(name, NAME_LETTERS)] ||
		 !strcmp(name, "host") || !strcmp(name, "none"))
		tg_fail(g, "\"%s\" cannot be a VM's name", name);
	else if (tg_vm_find(g, name))
		tg_fail(g, "there is a VM %s already", name);
	c = g->failed ? NULL : vm_new(g, name);
	if (!c)
		return;
	context_words(g, n, c);
	tg_key(g, n, "vmcs", &c->vmcs);
	tg_key(g, n, "tsc_offset", &c->tsc_offset);
	tg_key(g, n, "tsc_mult", &c->tsc_mult);
	tg_key(g, n, "conceal_exec", &exec);
	tg_key(g, n, "conceal_entry", &entry);
	tg_key(g, n, "conceal_exit", &exits);
	c->conceal_exec = exec;
	c->conceal_entry = entry;
	c->conceal_exit = exits;
	if (c->vmcs & ~0xffffffffff000ULL || c->vmcs == VMPT_PT_VMCS_NONE)
		tg_fail(g, "a VMCS is a page below 2^52");
	g->vm_info[c->owner] = (struct tracegen_vm){ .name = c->name,
						     .vmcs = c->vmcs,
						     .tsc_offset = c->tsc_offset,
						     .tsc_mult = c->tsc_mult };
}

bool tg_declare(struct tracegen *g, struct tg_node *n)
{
	if (!strcmp(n->argv[0], "set"))
		set(g, n);
	else if (!strcmp(n->argv[0], "host"))
		host(g, n);
	else if (!strcmp(n->argv[0], "vm"))
		vm(g, n);
	else
		return false;
	return true;
}

struct tg_ctx *tg_vm_find(struct tracegen *g, const char *name)
{
	size_t i;

	for (i = 0; i < g->vm_count; i++)
		if (!strcmp(g->vms[i]->name, name))
			return g->vms[i];
	return NULL;
}

static struct tg_cpu *cpu_new(struct tracegen *g, u64 number)
{
	struct tg_cpu *p = calloc(1, sizeof(*p));

	if (p)
		p->out.vms = calloc(g->vm_count + 1, sizeof(*p->out.vms));
	if (!p || !p->out.vms) {
		free(p);
		tg_fail(g, "out of memory");
		return NULL;
	}
	p->out.cpu = (int)number;
	p->host = g->host;
	p->host.ip += number * TG_REGION_SIZE;
	p->cur = &p->host;
	p->vmx = g->vmx_set ? g->vmx : g->vm_count > 0;
	p->vmcs = VMPT_PT_VMCS_NONE;
	p->filter_en = true;
	p->cbr = 30;
	p->now = 0x10000000;
	tg_advance(g, p, 0);
	g->cpu[number] = p;
	g->streams[g->stream_count++] = &p->out;
	return p;
}

static struct tg_cpu *cpu_take(struct tracegen *g, u64 number)
{
	if (number >= TRACEGEN_CPUS) {
		tg_fail(g, "a CPU is 0 to %d", TRACEGEN_CPUS - 1);
		return NULL;
	}
	g->running = true;
	g->at = g->cpu[number] ? g->cpu[number] : cpu_new(g, number);
	return g->at;
}

/* ---- repetition ---- */

/* At an iteration's end: contexts that returned to the loop's start by themselves go on there. */
static void loop_turn(struct tg_ctx *c, unsigned int level, bool again)
{
	struct tg_loop_mark *m = &c->marks[level];

	if (!m->valid || m->calls != c->call_count || m->frames != c->frame_count ||
	    m->mode != c->mode || m->ip == c->ip)
		return;
	/* It has not run since the last iteration, or an inner loop's end fills the queue. */
	if (c->jump_count && c->jumps[c->jump_count - 1].target == m->ip) {
		c->jumps[c->jump_count - 1].taken = again;
		return;
	}
	if (c->jump_count == TG_LOOPS)
		return;
	c->jumps[c->jump_count++] = (struct tg_jump){ .target = m->ip, .taken = again };
}

static void loop_all(struct tracegen *g, unsigned int level, bool again)
{
	size_t i;

	for (i = 0; i < TRACEGEN_CPUS; i++)
		if (g->cpu[i])
			loop_turn(&g->cpu[i]->host, level, again);
	for (i = 0; i < g->vm_count; i++)
		loop_turn(g->vms[i], level, again);
}

static void marks_clear(struct tracegen *g, unsigned int level)
{
	size_t i;

	for (i = 0; i < TRACEGEN_CPUS; i++)
		if (g->cpu[i])
			g->cpu[i]->host.marks[level].valid = false;
	for (i = 0; i < g->vm_count; i++)
		g->vms[i]->marks[level].valid = false;
}

static void repeat(struct tracegen *g, struct tg_node *n, bool loop)
{
	u64 count = tg_next_number(g, n, 0), i;

	if (!n->block || !count) {
		tg_fail(g, "%s needs a number above 0 and a block", n->argv[0]);
		return;
	}
	if (loop && g->loop_depth == TG_LOOPS) {
		tg_fail(g, "loops nest deeper than %d", TG_LOOPS);
		return;
	}
	if (loop)
		marks_clear(g, g->loop_depth++);
	for (i = 0; i < count && !g->failed; i++) {
		tg_run_nodes(g, n->child);
		if (loop)
			loop_all(g, g->loop_depth - 1, i + 1 < count);
	}
	if (loop)
		g->loop_depth--;
}

/* ---- one line ---- */

bool tg_event_run(const struct tg_event *table, struct tracegen *g, struct tg_cpu *p,
		  struct tg_node *n)
{
	for (; table->name; table++)
		if (!strcmp(table->name, n->argv[0])) {
			table->run(g, p, n);
			return true;
		}
	return false;
}

/* The first event of a CPU: tracing begins with it, unless the script says otherwise. */
static void begin(struct tracegen *g, struct tg_cpu *p, const struct tg_node *n)
{
	p->began = true;
	if (g->set.trace == TG_GUEST || !strcmp(n->argv[0], "trace") || p->trace_en)
		return;
	tg_trace_enable(g, p, false);
}

static bool run_event(struct tracegen *g, struct tg_node *n)
{
	struct tg_cpu *p = g->at ? g->at : cpu_take(g, 0);

	if (!p)
		return true;
	if (!p->began)
		begin(g, p, n);
	return tg_event_flow(g, p, n) || tg_event_vmx(g, p, n) || tg_event_misc(g, p, n) ||
	       tg_event_loss(g, p, n);
}

static bool takes_block(const char *word)
{
	return !strcmp(word, "repeat") || !strcmp(word, "loop") || !strcmp(word, "overflow") ||
	       !strcmp(word, "drop");
}

static void run_node(struct tracegen *g, struct tg_node *n)
{
	const char *word = n->argv[0];
	bool known = true;
	int i;

	n->used = 1;
	if (n->block != takes_block(word))
		tg_fail(g, n->block ? "%s takes no block" : "%s needs a block in braces", word);
	else if (!strcmp(word, "repeat") || !strcmp(word, "loop"))
		repeat(g, n, word[0] == 'l');
	else if (!strcmp(word, "cpu"))
		cpu_take(g, tg_next_number(g, n, TRACEGEN_CPUS));
	else if (!tg_declare(g, n))
		known = run_event(g, n);
	if (!known)
		tg_fail(g, "no event is called \"%s\"", word);
	for (i = 1; i < n->argc && !g->failed; i++)
		if (!(n->used & 1u << i))
			tg_fail(g, "%s: unexpected \"%s\"", word, n->argv[i]);
}

void tg_run_nodes(struct tracegen *g, struct tg_node *first)
{
	const struct tg_node *outer = g->node;
	struct tg_node *n;

	for (n = first; n && !g->failed; n = n->next) {
		g->node = n;
		run_node(g, n);
	}
	if (!g->failed)
		g->node = outer;
}
