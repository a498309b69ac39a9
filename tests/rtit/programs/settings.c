// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Random ways to trace a program. */
#include <string.h>

#include "tests/rtit/programs/program.h"

static bool half(struct test_rng *rng)
{
	return once_in(rng, 2);
}

/* From one instruction to another, anywhere; now and then a few bytes off. */
static void range(struct rtit_settings *s, const struct program *program, struct test_rng *rng,
		  unsigned int n, unsigned int most)
{
	const struct program_region *r = &program->region[below(rng, PROGRAM_REGIONS)];
	unsigned int first = (unsigned int)below(rng, r->insns),
		     last = first + (unsigned int)below(rng, most);

	if (half(rng))
		first = r->entry[below(rng, r->functions)];
	if (last <= first)
		last = first + 1;
	if (last >= r->insns)
		last = r->insns - 1;
	s->lip[n] = r->insn[first].ip + once_in(rng, 8);
	s->lip[n + 2] = r->insn[last].ip + once_in(rng, 8);
}

/* One range may begin where the other ends. */
static void filters(struct rtit_settings *s, const struct program *program, struct test_rng *rng)
{
	u64 filter = VMPT_RTIT_EVENT_ON, stop = VMPT_RTIT_EVENT_OFF;

	range(s, program, rng, 0, PROGRAM_INSNS);
	range(s, program, rng, 1, half(rng) ? PROGRAM_INSNS : 20);
	if (once_in(rng, 4) && s->lip[2] < s->lip[3])
		s->lip[1] = s->lip[2];
	/* What overlapping ranges do is undefined (3.3.5). */
	if (s->lip[0] < s->lip[3] && s->lip[1] < s->lip[2]) {
		s->lip[1] = s->lip[2];
		s->lip[3] = s->lip[2] + 1 + below(rng, 100);
	}
	switch (below(rng, 7)) {
	case 0:
		filter = VMPT_RTIT_EVENT_RANGES;
		break;
	case 4:
		filter = VMPT_RTIT_EVENT_RANGES;
		stop = VMPT_RTIT_EVENT_RANGE1;
		break;
	case 1:
		filter = VMPT_RTIT_EVENT_RANGE1;
		break;
	case 2:
		filter = VMPT_RTIT_EVENT_RANGE0;
		stop = VMPT_RTIT_EVENT_RANGE1;
		break;
	case 3:
		stop = below(rng, 3);
		break;
	default:
		break;
	}
	s->events = filter | stop << VMPT_RTIT_EVENTS_STOP_SHIFT;
	if (once_in(rng, 4))
		s->ctl |= VMPT_RTIT_CTL_CR3_EN;
	s->cr3_match = 0x1000 * (1 + below(rng, 2));
	if (once_in(rng, 3))
		s->ctl |= half(rng) ? VMPT_RTIT_CTL_OS : VMPT_RTIT_CTL_USER;
	else
		s->ctl |= VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER;
}

static void packets(struct rtit_settings *s, struct test_rng *rng)
{
	if (half(rng))
		s->ctl |= VMPT_RTIT_CTL_CMPRS_RET;
	if (once_in(rng, 3))
		s->ctl |= VMPT_RTIT_CTL_CYCLE_ACC;
	if (once_in(rng, 3))
		s->ctl |= VMPT_RTIT_CTL_LESS_PKTS;
	if (half(rng))
		s->ctl |= VMPT_RTIT_CTL_MTC_EN | below(rng, 4) << VMPT_RTIT_CTL_MTC_RANGE_SHIFT;
	if (half(rng))
		s->ctl |= VMPT_RTIT_CTL_STS_EN | (half(rng) ? VMPT_RTIT_CTL_STS_ON_CR3 : 0);
	s->pkt_mask = below(rng, 4);
	s->options.psb_clears_late = (u8)below(rng, 5);
	s->options.pgd_at_disable = half(rng);
	s->options.pgd_at_stop = half(rng);
	s->options.tnt_before_all = half(rng);
	s->options.cycle_rows_exchanged = half(rng);
}

/* None, one, or a few of E1 to E7. */
static u32 errata(struct test_rng *rng)
{
	if (half(rng))
		return 0;
	if (half(rng))
		return VMPT_RTIT_ERRATUM(1 + (unsigned int)below(rng, VMPT_RTIT_ERRATA));
	return (u32)test_random(rng) & 0xfe;
}

void rtit_settings_make(struct rtit_settings *s, const struct program *program,
			struct test_rng *rng)
{
	memset(s, 0, sizeof(*s));
	s->steps = 2000 + (unsigned int)below(rng, 60000);
	s->ctl = VMPT_RTIT_CTL_TRIGGER;
	packets(s, rng);
	filters(s, program, rng);
	s->options.errata = errata(rng);
	/* E2 needs a ContextEn that is set again. */
	if (s->options.errata & VMPT_RTIT_ERRATUM(2) && s->ctl & VMPT_RTIT_CTL_USER && half(rng))
		s->ctl &= ~(u64)VMPT_RTIT_CTL_OS;
	/* 1 MiB, or so small that it wraps. */
	s->limit_mask = once_in(rng, 3) ? (4096u << below(rng, 3)) - 1 : 0xfffff;
	s->interrupts = half(rng) ? 20 + (unsigned int)below(rng, 2000) : 0;
	s->smis = once_in(rng, 3) ? 50 + (unsigned int)below(rng, 2000) : 0;
	s->exits = once_in(rng, 3) ? 50 + (unsigned int)below(rng, 2000) : 0;
	s->overflows = once_in(rng, 3) || s->options.errata & VMPT_RTIT_ERRATUM(5)
			       ? 50 + (unsigned int)below(rng, 2000)
			       : 0;
	s->refusals = once_in(rng, 4) ? 1 + (unsigned int)below(rng, 20) : 0;
	/* The first TIP after it shows the place, and no TNT bit replaces it. */
	s->overflow_nlip = !(s->ctl & VMPT_RTIT_CTL_CMPRS_RET) && half(rng);
	s->reset_tnt = half(rng);
	s->clear_trace_en = half(rng);
	s->edges = half(rng);
}
