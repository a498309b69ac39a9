// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The generator's code and trace against libipt's instruction decoder: it must
 * walk exactly the instructions that the truth says were executed, one after the
 * other, also where RETs are compressed across VM exits.
 */
#include <intel-pt.h>
#include <stdlib.h>

#include "tests/support/support.h"
#include "tests/tracegen/tracegen.h"

struct memory {
	const struct tracegen *gen;
	struct tracegen_code last;
};

static bool holds(const struct tracegen_code *code, u64 ip)
{
	return code->size && ip - code->base < code->size;
}

/* Scripts of this test have no address in two owners. */
static bool find(struct memory *m, u64 ip)
{
	size_t i;

	if (holds(&m->last, ip))
		return true;
	for (i = 0; tracegen_code(m->gen, i, &m->last); i++)
		if (holds(&m->last, ip))
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

static struct pt_insn_decoder *open_decoder(const struct tracegen_stream *s, struct memory *m)
{
	struct pt_insn_decoder *dec;
	struct pt_config config;

	pt_config_init(&config);
	config.begin = s->data;
	config.end = s->data + s->size;
	dec = pt_insn_alloc_decoder(&config);
	ck_assert_ptr_nonnull(dec);
	ck_assert_int_eq(pt_image_set_callback(pt_insn_get_image(dec), read_memory, m), 0);
	return dec;
}

static void check_stream(const char *name, const struct tracegen *g,
			 const struct tracegen_stream *s)
{
	struct memory m = { .gen = g };
	struct pt_insn_decoder *dec = open_decoder(s, &m);
	struct pt_event event;
	struct pt_insn insn;
	size_t i = 0;
	int status = pt_insn_sync_forward(dec);

	ck_assert_msg(status >= 0, "%s: %s", name, pt_errstr(pt_errcode(status)));
	for (;;) {
		while (status >= 0 && status & pts_event_pending)
			status = pt_insn_event(dec, &event, sizeof(event));
		if (status < 0 || status & pts_eos)
			break;
		status = pt_insn_next(dec, &insn, sizeof(insn));
		if (status < 0)
			break;
		/* A check that passes costs a system call: not for millions. */
		if (i >= s->insn_count || insn.ip != s->insns[i].ip)
			ck_abort_msg("%s: instruction %zu is at %llx, the truth says %llx", name, i,
				     (unsigned long long)insn.ip,
				     i < s->insn_count ? (unsigned long long)s->insns[i].ip : 0ULL);
		i++;
	}
	ck_assert_msg(status >= 0 || status == -pte_eos, "%s: behind %zu instructions: %s", name, i,
		      pt_errstr(pt_errcode(status)));
	ck_assert_msg(i == s->insn_count, "%s: %zu instructions of %zu", name, i, s->insn_count);
	pt_insn_free_decoder(dec);
}

/* Not psb-fup: libipt 2.0.5 takes no TIP.PGE behind a PSB+ with a FUP. */
static const char *const scripts[] = {
	"one-owner",	  "nested-calls", "ret-compressed", "host-unbalanced",
	"mode-while-out", "ip-filter",	  "vmptrld-alone",  "group-orders",
	"host-only",	  "guest-only",	  "pgd-then-psb",   "context",
	"cr3-filter",	  "cpus",	  "timing",	    "clocks",
	"concealed",	  "demo",
};

START_TEST(flow)
{
	const struct tracegen_options options = { .insns = true };
	struct tracegen *g;
	char path[4096];
	size_t i;

	snprintf(path, sizeof(path), "%s/%s.trace", TRACEGEN_SCRIPTS, scripts[_i]);
	g = tracegen_run_file(path, &options);
	ck_assert_ptr_nonnull(g);
	ck_assert_msg(!tracegen_error(g), "%s", tracegen_error(g));
	for (i = 0; i < tracegen_streams(g); i++)
		check_stream(scripts[_i], g, tracegen_stream(g, i));
	tracegen_free(g);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("flow");
	TCase *tc = tcase_create("flow");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, flow, 0, (int)VMPT_ARRAY_SIZE(scripts));
	suite_add_tcase(suite, tc);
	return test_main(suite);
}
