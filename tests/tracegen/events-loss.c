// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Events of loss and damage: overflow (33.3.8), bytes dropped by the recorder,
 * bytes put in as they are.
 */
#include "tests/tracegen/internal.h"

static bool same_cpu(struct tracegen *g, struct tg_cpu *p)
{
	if (g->at == p)
		return true;
	tg_fail(g, "a block of lost events stays on its CPU");
	return false;
}

/* overflow [psb] { … }: the packets of the events inside are lost, then OVF. */
static void overflow(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	bool psb = tg_word(n, "psb");

	if (p->overflow || !tg_trigger_en(p)) {
		tg_fail(g, "an overflow needs tracing on, and no overflow around it");
		return;
	}
	tg_settle(g, p);
	tg_tnt_flush(g, p);
	p->lost_owner = p->cur->owner;
	p->overflow++;
	tg_run_nodes(g, n->child);
	p->overflow--;
	if (g->failed || !same_cpu(g, p))
		return;
	tg_settle(g, p);
	if (!tg_trigger_en(p)) {
		/* Resolved while no packet can be made: the OVF comes with the next one. */
		p->ovf_pending = true;
		return;
	}
	tg_forget_calls(p);
	tg_emit0(g, p, VMPT_PT_OVF);
	tg_truth_loss(g, p, true);
	p->full_ip = true;
	if (psb)
		tg_psb_plus(g, p, tg_packet_en(g, p));
	if (tg_packet_en(g, p))
		tg_emit_ip(g, p, VMPT_PT_FUP, p->cur->ip);
}

/* drop { … }: the packets are made, but not recorded. */
static void drop(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	tg_tnt_flush(g, p);
	if (!p->drop)
		p->lost_owner = p->cur->owner;
	p->drop++;
	tg_run_nodes(g, n->child);
	if (g->failed || !same_cpu(g, p))
		return;
	tg_settle(g, p);
	tg_tnt_flush(g, p);
	if (!--p->drop)
		tg_truth_loss(g, p, false);
}

static void put_raw(struct tracegen *g, struct tg_cpu *p, const u8 *bytes, size_t n, int owner)
{
	u64 at;

	tg_tnt_flush(g, p);
	if (p->overflow || p->drop)
		return;
	at = p->out.size;
	tg_emit_bytes(g, p, bytes, n, owner);
	p->psb_bytes += n;
	tg_truth_packet(g, p, at, n, VMPT_PT_KINDS, p->cur, owner, TRACEGEN_RAW);
}

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef", *d = strchr(digits, c | 0x20);

	return c && d ? (int)(d - digits) : -1;
}

/* "0a1b2c" to bytes: returns their number, or 0 if it is not hex. */
static size_t hex(const char *s, u8 *buf, size_t max)
{
	size_t n;
	int high, low;

	for (n = 0; *s && n < max; n++, s += 2) {
		high = hex_digit(s[0]);
		low = high < 0 ? -1 : hex_digit(s[1]);
		if (low < 0)
			return 0;
		buf[n] = (u8)(high << 4 | low);
	}
	return *s ? 0 : n;
}

/* raw OWNER HEX…: OWNER is host, none or a VM */
static void raw(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	const char *name = tg_next(n), *word;
	struct tg_ctx *vm;
	u8 buf[256];
	size_t bytes;
	int owner;

	if (!name) {
		tg_fail(g, "raw needs an owner and bytes");
		return;
	}
	vm = tg_vm_find(g, name);
	owner = vm ? vm->owner : strcmp(name, "host") ? TRACEGEN_NONE : TRACEGEN_HOST;
	if (owner == TRACEGEN_NONE && strcmp(name, "none")) {
		tg_fail(g, "no owner is called \"%s\"", name);
		return;
	}
	while ((word = tg_next(n))) {
		bytes = hex(word, buf, sizeof(buf));
		if (!bytes) {
			tg_fail(g, "\"%s\": not hex bytes", word);
			return;
		}
		put_raw(g, p, buf, bytes, owner);
	}
}

/* damage N: N bytes of which the first two start no packet. */
static void damage(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	u64 count = tg_next_number(g, n, 16), i;
	u8 buf[4096];

	if (count < 2 || count > sizeof(buf)) {
		tg_fail(g, "damage has 2 to %zu bytes", sizeof(buf));
		return;
	}
	buf[0] = VMPT_PT_ESCAPE;
	buf[1] = 0x01; /* no packet */
	for (i = 2; i < count; i++) {
		buf[i] = (u8)tg_random(g);
		/* No byte of a PSB, so that none can start here. */
		if (buf[i] == 0x02 || buf[i] == 0x82)
			buf[i] = 0xff;
	}
	put_raw(g, p, buf, count, TRACEGEN_NONE);
}

bool tg_event_loss(struct tracegen *g, struct tg_cpu *p, struct tg_node *n)
{
	static const struct tg_event table[] = {
		{ "overflow", overflow }, { "drop", drop }, { "raw", raw },
		{ "damage", damage },	  { NULL, NULL },
	};

	return tg_event_run(table, g, p, n);
}
