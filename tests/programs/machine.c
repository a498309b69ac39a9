// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <string.h>

#include "tests/programs/machine.h"

const struct program_region *machine_here(const struct machine *m)
{
	return program_region_at(m->program, m->ip);
}

static struct machine_stack *stack_of(struct machine *m)
{
	if (!m->cpl)
		return &m->stack[2];
	return &m->stack[machine_here(m)->mode == 32];
}

u64 machine_address_in(struct machine *m, const struct program_region *r)
{
	if (once_in(m->rng, 4))
		return r->insn[below(m->rng, r->insns)].ip;
	return r->insn[r->entry[below(m->rng, r->functions)]].ip;
}

u64 machine_address(struct machine *m)
{
	const struct program_region *r = machine_here(m);

	if (m->cpl && r->mode == 64)
		r = &m->program->region[once_in(m->rng, 2) ? PROGRAM_MAIN : PROGRAM_LIBRARY];
	return machine_address_in(m, r);
}

u64 machine_kernel_entry(struct machine *m)
{
	const struct program_region *r = &m->program->region[PROGRAM_KERNEL];

	return r->insn[r->entry[below(m->rng, r->functions)]].ip;
}

/* ---- stacks ---- */

void machine_push(struct machine *m, u64 ip)
{
	struct machine_stack *s = stack_of(m);

	s->top = (s->top + 1) % MACHINE_STACK;
	s->ip[s->top] = ip;
	s->depth += s->depth < MACHINE_STACK;
}

u64 machine_pop(struct machine *m)
{
	struct machine_stack *s = stack_of(m);
	u64 ip = s->ip[s->top];

	if (!s->depth)
		return machine_address(m);
	s->top = (s->top + MACHINE_STACK - 1) % MACHINE_STACK;
	s->depth--;
	return ip;
}

void machine_push_frame(struct machine *m, u64 back)
{
	if (m->frames == MACHINE_FRAMES) {
		memmove(m->frame, m->frame + 1, (MACHINE_FRAMES - 1) * sizeof(*m->frame));
		m->frames--;
	}
	m->frame[m->frames++] = (struct machine_frame){ .ip = back, .cpl = (u8)m->cpl };
}

struct machine_frame machine_pop_frame(struct machine *m, bool iret)
{
	unsigned int task = (unsigned int)below(m->rng, PROGRAM_KERNEL);
	struct machine_frame f = { .ip = machine_address_in(m, &m->program->region[task]),
				   .cpl = 3 };

	/* SYSRET only goes to 64-bit user code here. */
	if (m->frames && (iret || m->frame[m->frames - 1].cpl))
		f = m->frame[--m->frames];
	return f;
}
