// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <check.h>
#include <intel-pt.h>

#include "tests/tracegen/flow.h"

struct memory {
	const struct tracegen *gen;
	int owner;
	struct tracegen_code last;
};

static bool holds(const struct tracegen_code *code, u64 ip)
{
	return code->size && ip - code->base < code->size;
}

/* Scripts of these tests have no address in two owners. */
static bool find(struct memory *m, u64 ip)
{
	size_t i;

	if (holds(&m->last, ip))
		return true;
	for (i = 0; tracegen_code(m->gen, i, &m->last); i++)
		if ((m->owner == FLOW_ALL_OWNERS || m->last.owner == m->owner) &&
		    holds(&m->last, ip))
			return true;
	m->last.size = 0;
	return false;
}

static int read_memory(u8 *buf, size_t size, const struct pt_asid *asid, u64 ip, void *context)
{
	struct memory *m = context;
	size_t n;

	(void)asid;
	for (n = 0; n < size && find(m, ip + n); n++)
		buf[n] = m->last.bytes[ip + n - m->last.base];
	return n ? (int)n : -pte_nomap;
}

static struct pt_insn_decoder *open_decoder(struct memory *m, const u8 *bytes, size_t size)
{
	struct pt_insn_decoder *dec;
	struct pt_config config;

	pt_config_init(&config);
	config.begin = (u8 *)bytes;
	config.end = (u8 *)bytes + size;
	dec = pt_insn_alloc_decoder(&config);
	ck_assert_ptr_nonnull(dec);
	ck_assert_int_eq(pt_image_set_callback(pt_insn_get_image(dec), read_memory, m), 0);
	return dec;
}

/* The owner's next instruction from @i on. */
static size_t next_of(const struct tracegen_stream *s, size_t i, int owner)
{
	while (i < s->insn_count && owner != FLOW_ALL_OWNERS && s->insns[i].owner != owner)
		i++;
	return i;
}

void flow_check(const char *name, const struct tracegen *g, const struct tracegen_stream *s,
		int owner, const u8 *bytes, size_t size)
{
	struct memory m = { .gen = g, .owner = owner };
	struct pt_insn_decoder *dec = open_decoder(&m, bytes, size);
	struct pt_event event;
	struct pt_insn insn;
	size_t i = next_of(s, 0, owner), n = 0;
	int status = pt_insn_sync_forward(dec);

	ck_assert_msg(status >= 0, "%s: %s", name, pt_errstr(pt_errcode(status)));
	for (;;) {
		while (status >= 0 && status & pts_event_pending)
			status = pt_insn_event(dec, &event, sizeof(event));
		if (status < 0 || status & pts_eos)
			break;
		status = pt_insn_next(dec, &insn, sizeof(insn));
		/* From libipt 2.2 on an event before the instruction may be found only now. */
		if (status == -pte_event_ignored) {
			status = pts_event_pending;
			continue;
		}
		if (status < 0)
			break;
		/* Each passing check costs a system call: too many for millions. */
		if (i == s->insn_count || insn.ip != s->insns[i].ip)
			ck_abort_msg(
				"%s, owner %d: instruction %zu is at %#llx, executed was %#llx",
				name, owner, n, (unsigned long long)insn.ip,
				i < s->insn_count ? (unsigned long long)s->insns[i].ip : 0ULL);
		i = next_of(s, i + 1, owner);
		n++;
	}
	ck_assert_msg(status >= 0 || status == -pte_eos, "%s, owner %d: after %zu: %s", name, owner,
		      n, pt_errstr(pt_errcode(status)));
	ck_assert_msg(i == s->insn_count, "%s, owner %d: ends after %zu instructions", name, owner,
		      n);
	pt_insn_free_decoder(dec);
}
