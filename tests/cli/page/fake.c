// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A made-up trace for the HTML page, see fake.h. */
#include <string.h>

#include "tests/cli/page/fake.h"

const struct fake_exit fake_exits[FAKE_REASONS] = {
	{ 48, VMPT_REASON_EVD, false, 0xffffffff81234560, "EPT violation" },
	{ 30, VMPT_REASON_CODE, false, 0xffffffff81300012, "I/O instruction" },
	{ 12, VMPT_REASON_EVD, true, 0xffffffff81c00a0b, "HLT" },
	{ 1, VMPT_REASON_EVENT, false, 0x401000, "external interrupt" },
	{ VMPT_REASON_UNKNOWN, VMPT_REASON_NONE, false, 0x7fff00001234, "unknown" },
};

const struct fake_shape fake_usual = { FAKE_CPUS, FAKE_LINES, 2 };

/* Who is on a CPU: a line, or one of these. */
#define HOST FAKE_ALL_LINES
#define LOST (FAKE_ALL_LINES + 1)

struct fake_cpu {
	u64 now, offset;
	u32 line;	/* that ran there last, TIMELINE_NONE */
	u32 turn, next; /* the line that runs next, or ran: then the host does */
	bool to_host;
	/* By who: ticks up to .now; of these the last span. */
	u64 ran[LOST + 1], since;
	u32 last;
};

struct fake_line {
	u32 cpu; /* where it last ran; FAKE_ALL_CPUS: nowhere yet */
	bool left;
	u64 left_at, ready;
	unsigned int exit;
	u64 ran[LOST + 1]; /* of that CPU when it left */
};

struct fake {
	struct page *page;
	const struct fake_shape *shape;
	struct test_rng rng;
	struct fake_cpu cpu[FAKE_ALL_CPUS];
	struct fake_line line[FAKE_ALL_LINES];
	struct fake_sums *sums;
	int err;
};

/* The last VMs have one vCPU more each, if they are not all alike. */
unsigned int fake_vm(const struct fake_shape *shape, unsigned int line)
{
	return (unsigned int)((u64)line * shape->vms / shape->lines);
}

const char *fake_reason(const struct vmpt_exit *exit, char buf[32])
{
	unsigned int i;

	for (i = 0; i < FAKE_REASONS; i++)
		if (fake_exits[i].reason == exit->reason)
			return fake_exits[i].name;
	snprintf(buf, 32, "reason %u", exit->reason);
	return buf;
}

bool fake_symbol(void *opaque, u32 vm, u64 ip, char *buf, size_t size)
{
	(void)opaque;
	(void)vm;
	if (ip != fake_exits[1].ip)
		return false;
	snprintf(buf, size, "native_outb+0x2");
	return true;
}

/* From @low up, now and then much longer. */
static u64 length(struct fake *fake, u64 low)
{
	u64 r = test_random(&fake->rng);

	return (low + r % (low * 4)) << (r >> 40 & 3) << (r >> 50 & 63 ? 0 : 3);
}

static struct vmpt_span span_of(struct fake *fake, u32 cpu, u8 kind, u64 ticks)
{
	struct fake_cpu *c = &fake->cpu[cpu];
	u64 size = 8 + ticks / 40;
	struct vmpt_span span = {
		.stream = cpu,
		.kind = kind,
		.owner = { .kind = kind == VMPT_SPAN_HOST ? VMPT_OWNER_HOST : VMPT_OWNER_UNKNOWN },
		.start = { 1000000 + c->now, 20, 40 },
		.end = { 1000000 + c->now + ticks, 20, 40 },
		.offset = c->offset,
		.size = size,
	};

	c->offset += size;
	return span;
}

/* What the CPU that the line left did until now, that is @ts->start. */
static void add_out(struct fake *fake, struct timeline_span *ts, u32 l,
		    const struct fake_line *left)
{
	const struct fake_cpu *on = &fake->cpu[left->cpu];
	u64 all = ts->start - left->left_at, sum = 0, ticks, rest;
	struct fake_sums *sums = fake->sums;
	u32 who;

	if (fake_exits[left->exit].halted) {
		ts->out[TIMELINE_HALTED].ticks = all;
		sums->out[l][left->exit] += all;
		return;
	}
	for (who = 0; who <= LOST; who++) {
		ticks = on->ran[who] - left->ran[who];
		if (who == on->last && on->now > ts->start)
			ticks -= on->now - (on->since > ts->start ? on->since : ts->start);
		sum += ticks;
		if (who < HOST)
			sums->waits[l][who] += ticks;
		ts->out[who < HOST    ? TIMELINE_WAIT
			: who == HOST ? TIMELINE_HOST
				      : TIMELINE_UNTRACED]
			.ticks += ticks;
	}
	rest = all - sum;
	ts->out[TIMELINE_UNTRACED].ticks += rest;
	sums->untraced[l] += ts->out[TIMELINE_UNTRACED].ticks;
	sums->out[l][left->exit] += ts->out[TIMELINE_HOST].ticks;
}

static void give(struct fake *fake, struct vmpt_span *span, u32 line, u32 moved_from,
		 const struct fake_line *left)
{
	struct fake_cpu *c = &fake->cpu[span->stream];
	u64 ticks = span->end.tsc - span->start.tsc;
	struct timeline_span ts = {
		.span = span,
		.vcpu = line,
		.moved_from = moved_from,
		.start = c->now,
		.end = c->now + ticks,
		.early = 60,
		.late = 60,
		.bounded = true,
	};

	if (left) {
		ts.has_left = true;
		ts.left_at = left->left_at;
		ts.left.reason = fake_exits[left->exit].reason;
		add_out(fake, &ts, line, left);
	}
	if (!fake->err)
		fake->err = page_add(fake->page, &ts,
				     line == TIMELINE_NONE ? line : fake_vm(fake->shape, line));
	c->since = c->now;
	c->last = line != TIMELINE_NONE ? line : span->kind == VMPT_SPAN_LOST ? LOST : HOST;
	c->now += ticks;
	c->ran[c->last] += ticks;
	fake->sums->spans++;
	if (c->now > fake->sums->end)
		fake->sums->end = c->now;
}

/* The host, or a loss once in a thousand. */
static void host(struct fake *fake, u32 cpu, u64 ticks)
{
	bool lost = test_random(&fake->rng) % 1000 == 0;
	struct vmpt_span span = span_of(fake, cpu, lost ? VMPT_SPAN_LOST : VMPT_SPAN_HOST, ticks);
	struct fake_cpu *c = &fake->cpu[cpu];

	if (lost && c->line != TIMELINE_NONE && fake->line[c->line].cpu == cpu)
		fake->line[c->line].left = false;
	*(lost ? &fake->sums->lost[cpu] : &fake->sums->host[cpu]) += ticks;
	give(fake, &span, TIMELINE_NONE, TIMELINE_NONE, NULL);
}

static void guest(struct fake *fake, u32 cpu, u32 l)
{
	static const unsigned int often[] = { 0, 0, 0, 1, 1, 2, 3, 3, 3, 4 };
	struct fake_line *line = &fake->line[l];
	struct fake_sums *sums = fake->sums;
	unsigned int k = often[test_random(&fake->rng) % VMPT_ARRAY_SIZE(often)];
	struct vmpt_span span = span_of(fake, cpu, VMPT_SPAN_GUEST, length(fake, 2000));
	u64 ticks = span.end.tsc - span.start.tsc;
	bool moved = line->cpu != FAKE_ALL_CPUS && line->cpu != cpu;
	struct fake_line before = *line;

	span.owner = (struct vmpt_owner){ .kind = VMPT_OWNER_VM, .vmcs = 0x1000 * (l + 1) };
	span.began = VMPT_EDGE_ENTRY;
	span.ended = VMPT_EDGE_EXIT;
	span.exit = (struct vmpt_exit){ .reason = fake_exits[k].reason,
					.source = fake_exits[k].source,
					.halted = fake_exits[k].halted,
					.has_ip = true,
					.ip = fake_exits[k].ip,
					.cr3 = 0x2000 * (l + 1) };
	if (line->left)
		sums->timed[l][line->exit]++;
	sums->moves += moved;
	sums->guest[cpu] += ticks;
	sums->running[l] += ticks;
	sums->runs[l]++;
	sums->exits[l][k]++;
	sums->at_ip[fake_vm(fake->shape, l)][k]++;
	give(fake, &span, l, moved ? before.cpu : TIMELINE_NONE, before.left ? &before : NULL);
	*line = (struct fake_line){
		.cpu = cpu, .left = true, .left_at = fake->cpu[cpu].now, .exit = k
	};
	memcpy(line->ran, fake->cpu[cpu].ran, sizeof(line->ran));
	line->ready = line->left_at + length(fake, fake_exits[k].halted ? 40000 : 800);
	fake->cpu[cpu].line = l;
}

/* Each line has a CPU; how many have that. */
static u32 sharing(const struct fake_shape *shape, u32 cpu)
{
	return (shape->lines - cpu % shape->lines + shape->cpus - 1) / shape->cpus;
}

/* They take turns. */
static u32 next_line(struct fake *fake, u32 cpu)
{
	const struct fake_shape *shape = fake->shape;

	if (test_random(&fake->rng) % 200 == 0)
		return (u32)(test_random(&fake->rng) % shape->lines);
	return cpu % shape->lines +
	       shape->cpus * (fake->cpu[cpu].turn++ / 16 % sharing(shape, cpu));
}

/* The CPU with the earliest time continues, so spans are ordered by start. */
int fake_spans(struct page *page, const struct fake_shape *shape, u64 seed, u64 rounds,
	       struct fake_sums *sums)
{
	struct fake fake = { .page = page, .shape = shape, .rng = { seed }, .sums = sums };
	u32 i, cpu;
	u64 done;

	memset(sums, 0, sizeof(*sums));
	for (i = 0; i < shape->cpus; i++)
		fake.cpu[i].line = TIMELINE_NONE;
	for (i = 0; i < shape->lines; i++)
		fake.line[i].cpu = FAKE_ALL_CPUS;
	for (done = 0; done < rounds && !fake.err;) {
		struct fake_line *line;
		struct fake_cpu *c;

		for (i = 1, cpu = 0; i < shape->cpus; i++)
			if (fake.cpu[i].now < fake.cpu[cpu].now)
				cpu = i;
		c = &fake.cpu[cpu];
		if (!c->to_host) {
			c->next = next_line(&fake, cpu);
			c->to_host = true;
			line = &fake.line[c->next];
			if (line->ready <= c->now &&
			    (line->cpu == FAKE_ALL_CPUS || line->left_at <= c->now)) {
				guest(&fake, cpu, c->next);
				done++;
				continue;
			}
		}
		line = &fake.line[c->next];
		c->to_host = false;
		/* Alone on its CPU, it is waited for. */
		host(&fake, cpu,
		     line->ready > c->now && sharing(shape, cpu) == 1 ? line->ready - c->now
								      : length(&fake, 700));
	}
	return fake.err;
}

static const char *vm_name(unsigned int i, const char *const vm[2], char buf[64])
{
	if (i < 2)
		return vm[i];
	snprintf(buf, 64, "customer-%c-production-frontend-%02u.example.org", 'a' + i / 8, i);
	return buf;
}

json_t *fake_meta(const struct fake_shape *shape, const struct fake_sums *sums, const char *title,
		  const char *const vm[2])
{
	json_t *meta = json_pack(
		"{s:s, s:s, s:s, s:f, s:s, s:[{s:s, s:s}, {s:s, s:s}], s:{s:I, s:i}}", "title",
		title, "command", "vmpt timeline --html page.html", "zero", "0xf4240", "hz", 2e9,
		"base", "host TSC", "notes", "level", "warning", "text",
		"the offset given for VMCS 1000 contradicts the trace: the trace wins", "level",
		"note", "text", "kvm_exit events were lost", "totals", "exits", (json_int_t)0,
		"losses", 3);
	json_t *list = json_array();
	char name[128], buf[64];
	unsigned int i, of, first = 0;
	json_int_t exits = 0;

	for (i = 0; i < shape->lines; i++)
		exits += (json_int_t)sums->runs[i];
	json_object_set_new(json_object_get(meta, "totals"), "exits", json_integer(exits));
	for (i = 0; i < shape->cpus; i++) {
		snprintf(name, sizeof(name), "CPU %u", i);
		json_array_append_new(list, json_pack("{s:s}", "name", name));
	}
	json_object_set_new(meta, "streams", list);
	list = json_array();
	for (i = 0; i < shape->vms; i++)
		json_array_append_new(list,
				      json_pack("{s:o}", "name", page_string(vm_name(i, vm, buf))));
	json_object_set_new(meta, "vms", list);
	list = json_array();
	for (i = 0; i < shape->lines; i++) {
		of = fake_vm(shape, i);
		first = fake_vm(shape, first) == of ? first : i;
		snprintf(name, sizeof(name), "%s vcpu %u", vm_name(of, vm, buf), i - first);
		json_array_append_new(list, json_pack("{s:o, s:i, s:s}", "name", page_string(name),
						      "vm", (int)of, "vmcs", "0x1000"));
	}
	json_object_set_new(meta, "lines", list);
	return meta;
}
