// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Random ways to trace a program, limited to what libipt 2.0 supports. */
#include <check.h>

#include "tests/model/programs/program.h"

static bool half(struct test_rng *rng)
{
	return once_in(rng, 2);
}

/* Whether a MOV CR3 is in [first, last] or right before it. */
static bool holds_mov_cr3(const struct program_region *r, unsigned int first, unsigned int last)
{
	unsigned int i;

	for (i = first ? first - 1 : 0; i <= last; i++)
		if (r->insn[i].kind == TG_MOV_CR3)
			return true;
	return false;
}

/*
 * A range of some functions of a region, for TraceStop of one. Not parts of functions: libipt does
 * not understand the TIP.PGD without IP of a conditional branch (33.4.2.5), nor that of a MOV CR3.
 */
static void range(struct program_settings *s, const struct program *program, struct test_rng *rng,
		  unsigned int n, unsigned int cfg)
{
	const struct program_region *r = &program->region[below(rng, PROGRAM_REGIONS)];
	unsigned int f = (unsigned int)below(rng, r->functions), g = f, first = r->entry[f], last;

	if (cfg == VMPT_ADDR_FILTER)
		g += (unsigned int)below(rng, r->functions - f);
	last = g + 1 < r->functions ? r->entry[g + 1] - 1u : r->insns - 1;
	if (cfg == VMPT_ADDR_TRACESTOP && holds_mov_cr3(r, first, last))
		return;
	s->addr[2 * n] = r->insn[first].ip;
	s->addr[2 * n + 1] = r->insn[last].ip;
	s->ctl |= (u64)cfg << VMPT_CTL_ADDR_SHIFT(n);
}

static void filters(struct program_settings *s, const struct program *program, struct test_rng *rng)
{
	unsigned int n;

	if (once_in(rng, 3))
		for (n = 0; n < 2; n++)
			range(s, program, rng, n, VMPT_ADDR_FILTER);
	if (once_in(rng, 4))
		for (n = 2; n < 4; n++)
			range(s, program, rng, n, VMPT_ADDR_TRACESTOP);
	if (once_in(rng, 4))
		s->ctl |= VMPT_CTL_CR3_FILTER;
	s->cr3_match = 0x1000 * (1 + below(rng, 2));
	if (once_in(rng, 3))
		s->ctl |= half(rng) ? VMPT_CTL_OS : VMPT_CTL_USER;
	else
		s->ctl |= VMPT_CTL_OS | VMPT_CTL_USER;
}

static void timing(struct program_settings *s, struct test_rng *rng)
{
	if (half(rng))
		s->ctl |= VMPT_CTL_TSC_EN;
	if (once_in(rng, 3))
		s->ctl |= VMPT_CTL_MTC_EN | below(rng, 16) << VMPT_CTL_MTC_FREQ_SHIFT;
	if (once_in(rng, 3))
		s->ctl |= VMPT_CTL_CYC_EN | below(rng, 16) << VMPT_CTL_CYC_THRESH_SHIFT;
}

void program_settings(struct program_settings *s, const struct program *program,
		      struct test_rng *rng)
{
	memset(s, 0, sizeof(*s));
	s->steps = 2000 + (unsigned int)below(rng, 40000);
	s->ctl = VMPT_CTL_TRACE_EN | VMPT_CTL_BRANCH_EN;
	if (once_in(rng, 3))
		s->ctl |= VMPT_CTL_DIS_RETC;
	if (half(rng))
		s->ctl |= VMPT_CTL_PTW_EN;
	if (half(rng))
		s->ctl |= VMPT_CTL_FUP_ON_PTW;
	/* PSBs come every 2 to 16 KiB. */
	s->ctl |= below(rng, 4) << VMPT_CTL_PSB_FREQ_SHIFT;
	filters(s, program, rng);
	timing(s, rng);
	s->output = (unsigned int)below(rng, 3);
	if (s->output == OUTPUT_TOPA)
		s->ctl |= VMPT_CTL_TOPA;
	s->options.careful_retc = true; /* for libipt */
	s->options.long_tnt = half(rng);
	s->options.deferred_tips = once_in(rng, 3);
	s->options.no_ip_compression = once_in(rng, 4);
	s->options.pip_without_context = half(rng);
	s->options.suppress_same_mode = half(rng);
	if (half(rng))
		s->ctl |= VMPT_CTL_PWR_EVT_EN;
	s->p_states = half(rng) ? 100 + (unsigned int)below(rng, 5000) : 0;
	s->interrupts = half(rng) ? 20 + (unsigned int)below(rng, 2000) : 0;
	s->refusals = once_in(rng, 3) ? 1 + (unsigned int)below(rng, 20) : 0;
	s->overflows = once_in(rng, 3) ? 50 + (unsigned int)below(rng, 2000) : 0;
}
