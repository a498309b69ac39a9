// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A processor for the tests of the hand-over. */
#include <stdlib.h>

#include "tests/support/support.h"
#include "tests/vmm-lib/machine.h"

void machine_init(struct machine *m, const struct vmpt_caps *host, struct guest *guest)
{
	u32 i;

	memset(m, 0, sizeof(*m));
	vmpt_pt_rules_init(&m->rules, &host->cpuid);
	vmpt_pt_reset_cold(&m->regs);
	m->guest = guest;
	m->fail_access = -1;
	m->log_size = 1 << 20;
	m->log = malloc(m->log_size);
	ck_assert_ptr_nonnull(m->log);
	for (i = 0; i <= MACHINE_REGIONS; i++) {
		u64 entry = MACHINE_HPA + (i + 1ULL) * GUEST_PAGE;

		/* INT in every other region, in a ring. */
		if (i == MACHINE_REGIONS)
			entry = MACHINE_HPA | VMPT_TOPA_END;
		else if (i & 1)
			entry |= VMPT_TOPA_INT;
		memcpy(m->host + 8 * i, &entry, sizeof(entry));
	}
}

void machine_free(struct machine *m)
{
	free(m->log);
}

/* ---- memory ---- */

/* The guest's packets: its own PT, in the guest or (a leak) still after an exit. */
static bool guest_traces(const struct machine *m)
{
	return m->regs.output_base - MACHINE_HPA >= sizeof(m->host);
}

/* Output and table reads go through EPT. */
static bool by_gpa(const struct machine *m)
{
	return m->in_guest && m->secondary & VMPT_SECONDARY_PT_USE_GPA;
}

static u8 *host_memory(struct machine *m, u64 pa, size_t len)
{
	u64 at = pa - MACHINE_HPA;
	u32 i;

	if (pa >= MACHINE_HPA && at <= sizeof(m->host) - len)
		return m->host + at;
	for (i = 0; m->shadow && i < m->shadow->pages; i++)
		if (pa >= m->shadow->page_hpa[i] && pa - m->shadow->page_hpa[i] <= GUEST_PAGE - len)
			return (u8 *)m->shadow->page[i] + (pa - m->shadow->page_hpa[i]);
	return NULL;
}

static int violate(struct machine *m, u64 gpa)
{
	m->violation = true;
	m->violation_gpa = gpa;
	return -VMPT_E_RETRY;
}

static int read_entry(void *opaque, u64 pa, u64 *entry)
{
	struct machine *m = opaque;
	u8 *at;

	if (by_gpa(m))
		return guest_read(m->guest, pa, entry, 8) ? violate(m, pa) : 0;
	at = host_memory(m, pa, 8);
	if (!at) {
		m->leaks++;
		return VMPT_OUTPUT_FAULT;
	}
	memcpy(entry, at, 8);
	return 0;
}

/* The tests check whose memory the bytes of a stream go to. */
static int store(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	struct machine *m = opaque;
	bool guests = m->queued;
	u8 *at;

	if (by_gpa(m))
		return guest_write(m->guest, pa, bytes, len) ? violate(m, pa) : 0;
	while (len) {
		size_t n = GUEST_PAGE - pa % GUEST_PAGE;

		n = n < len ? n : len;
		at = guests ? guest_at_hpa(m->guest, pa) : host_memory(m, pa, n);
		if (!at || (!guests && pa < MACHINE_HPA + GUEST_PAGE)) {
			m->leaks += n;
			return VMPT_OUTPUT_FAULT;
		}
		memcpy(at, bytes, n);
		pa += n;
		bytes += n;
		len -= n;
	}
	return 0;
}

/* ---- packets ---- */

static void pend(struct machine *m, enum machine_who who)
{
	if (m->global_status & VMPT_GLOBAL_TOPA_PMI) {
		m->mixed += m->pmi_of != who;
		return;
	}
	m->pmi_of = (u8)who;
	m->pended[who]++;
	m->global_status |= VMPT_GLOBAL_TOPA_PMI;
	m->nmi = true;
}

static void count(struct machine *m, size_t n)
{
	u64 bytes = (m->regs.status & VMPT_STATUS_BYTES) >> VMPT_STATUS_BYTES_SHIFT;

	if (!m->rules.psb_cyc)
		return;
	bytes = (bytes + n) & 0x1ffff;
	m->regs.status &= ~VMPT_STATUS_BYTES;
	m->regs.status |= (bytes ? bytes : 1) << VMPT_STATUS_BYTES_SHIFT;
}

/* Store; returns the number of bytes handled, *lost of them after STOP or an error. */
static size_t output(struct machine *m, const u8 *bytes, size_t len, enum machine_who who,
		     u64 *lost)
{
	const struct vmpt_output_memory memory = { read_entry, store, m };
	struct vmpt_output out;
	size_t done = 0;

	vmpt_output_init(&out, &m->rules, &m->regs, &memory);
	if (vmpt_output_write(&out, bytes, len, &done))
		if (!m->violation)
			ck_abort_msg("output stops without a violation");
	*lost = out.lost;
	count(m, done - out.lost);
	if (out.events & VMPT_OUTPUT_INT) {
		if (m->regs.ctl & VMPT_CTL_INJECT)
			m->regs.status |= VMPT_STATUS_PEND_PMI;
		if (!m->no_pmi)
			pend(m, who);
	}
	return done;
}

static void flush(struct machine *m)
{
	size_t done;
	u64 lost;

	m->violation = false;
	if (!m->queued)
		return;
	/* After STOP or an error the buffered bytes are lost (33.2.7.2). */
	if (m->regs.status & (VMPT_STATUS_ERROR | VMPT_STATUS_STOPPED)) {
		m->queued = 0;
		return;
	}
	done = output(m, m->queue, m->queued, BY_GUEST, &lost);
	if (m->logged + done > m->log_size)
		ck_abort_msg("the log is full");
	memcpy(m->log + m->logged, m->queue, done - lost);
	m->logged += done - lost;
	memmove(m->queue, m->queue + done, m->queued - done);
	m->queued -= (u32)done;
}

static void packet(struct machine *m, const void *bytes, u32 len)
{
	if (!vmpt_pt_trigger_en(&m->regs))
		return;
	if (m->queued + len > sizeof(m->queue))
		ck_abort_msg("the queue is full");
	memcpy(m->queue + m->queued, bytes, len);
	m->queued += len;
	flush(m);
}

static const u8 psb_plus[18] = { 2,    0x82, 2,	   0x82, 2,    0x82, 2,	   0x82, 2,
				 0x82, 2,    0x82, 2,	 0x82, 2,    0x82, 2,	 0x23 };
static const u8 tip_pge[7] = { 0x71, 0x10, 0x32, 0x54, 0x76, 0x98, 0x0a };
static const u8 tip_pgd[1] = { 0x01 };
/* TIP with 6 bytes, TNT-8 with one branch. */
static const u8 branches[8] = { 0x6d, 0x10, 0x32, 0x54, 0x76, 0x98, 0x0a, 0x06 };

/* Packets of an enable (33.2.8.3). */
static void enabled(struct machine *m)
{
	if (m->regs.status & VMPT_STATUS_PEND_PMI && m->regs.ctl & VMPT_CTL_INJECT)
		pend(m, guest_traces(m) ? BY_GUEST : BY_HOST);
	if (!guest_traces(m))
		return;
	flush(m);
	if (!(m->regs.status & VMPT_STATUS_BYTES) ||
	    (m->regs.status & VMPT_STATUS_PEND_PSB && m->regs.ctl & VMPT_CTL_INJECT)) {
		m->regs.status &= ~VMPT_STATUS_PEND_PSB;
		packet(m, psb_plus, sizeof(psb_plus));
	}
	packet(m, tip_pge, sizeof(tip_pge));
}

/* Write CTL by any means; non-zero: #GP. */
static int set_ctl(struct machine *m, u64 value)
{
	struct vmpt_pt_regs next = m->regs;
	u64 was = m->regs.ctl & VMPT_CTL_TRACE_EN;

	if (vmpt_pt_wrmsr(&m->rules, &next, VMPT_MSR_RTIT_CTL, value, NULL))
		return 1;
	if (was && !(value & VMPT_CTL_TRACE_EN)) {
		if (guest_traces(m))
			packet(m, tip_pgd, sizeof(tip_pgd));
		vmpt_pt_clear_trace_en(&m->regs);
	}
	next = m->regs;
	vmpt_pt_wrmsr(&m->rules, &m->regs, VMPT_MSR_RTIT_CTL, value, NULL);
	if (!was && value & VMPT_CTL_TRACE_EN)
		enabled(m);
	return 0;
}

/* ---- MSRs ---- */

static int access_fails(struct machine *m)
{
	if (!m->fail_access) {
		m->fail_access = m->fail_on ? 0 : -1;
		m->failed++;
		return 1;
	}
	m->fail_access -= m->fail_access > 0;
	return 0;
}

int machine_rdmsr(struct machine *m, u32 msr, u64 *value)
{
	m->reads++;
	if (access_fails(m))
		return -1;
	if (msr - MACHINE_TRIGGER < VMPT_TRIGGERS_MAX) {
		*value = m->trigger[msr - MACHINE_TRIGGER];
		return 0;
	}
	if (msr == VMPT_MSR_PERF_GLOBAL_STATUS) {
		m->global++;
		*value = m->global_status;
		return 0;
	}
	if (vmpt_pt_rdmsr(&m->rules, &m->regs, msr, value, NULL)) {
		m->faults++;
		return -1;
	}
	return 0;
}

static int write_msr(struct machine *m, u32 msr, u64 value)
{
	if (msr == VMPT_MSR_PERF_GLOBAL_RESET) {
		m->global_status &= ~value;
		return 0;
	}
	if (msr == VMPT_MSR_RTIT_CTL)
		return set_ctl(m, value);
	if (msr - MACHINE_TRIGGER < VMPT_TRIGGERS_MAX) {
		if (m->regs.ctl & VMPT_CTL_TRACE_EN)
			return VMPT_GP;
		m->trigger[msr - MACHINE_TRIGGER] = value;
		return 0;
	}
	return vmpt_pt_wrmsr(&m->rules, &m->regs, msr, value, NULL);
}

int machine_wrmsr(struct machine *m, u32 msr, u64 value)
{
	m->writes++;
	if (access_fails(m))
		return -1;
	if (write_msr(m, msr, value)) {
		m->faults++;
		return -1;
	}
	return 0;
}

/* ---- VMX ---- */

/* Checks of controls: what fails here falls through to the next instruction. */
static bool controls_ok(const struct machine *m)
{
	bool load = m->entry & VMPT_ENTRY_LOAD_RTIT_CTL;

	if (m->secondary & VMPT_SECONDARY_PT_USE_GPA &&
	    !(m->secondary & VMPT_SECONDARY_EPT && load && m->exit & VMPT_EXIT_CLEAR_RTIT_CTL))
		return false;
	return !(load && m->regs.ctl & VMPT_CTL_TRACE_EN);
}

/* The effect of an exit on CTL; @stored: the exit-store list is used too. */
static void leave(struct machine *m, bool stored)
{
	u8 pip[8] = { 0x02, 0x43 };
	u64 payload = MACHINE_HOST_CR3 >> 5 << 1;
	u32 i;

	for (i = 0; stored && i < m->lists.exit_stores; i++)
		vmpt_pt_rdmsr(&m->rules, &m->regs, m->lists.exit_store[i].msr,
			      &m->lists.exit_store[i].value, NULL);
	if (m->exit & VMPT_EXIT_CLEAR_RTIT_CTL)
		set_ctl(m, 0);
	/* TraceEn is 1 here with lists, or if nothing clears it at all. */
	memcpy(pip + 2, &payload, 6);
	if (m->regs.ctl & VMPT_CTL_TRACE_EN && !(m->exit & VMPT_EXIT_CONCEAL) && guest_traces(m))
		packet(m, pip, sizeof(pip));
	for (i = 0; i < m->lists.exit_loads; i++)
		if (write_msr(m, m->lists.exit_load[i].msr, m->lists.exit_load[i].value))
			ck_abort_msg("a #GP by the exit list: VMX abort");
	m->in_guest = false;
}

enum vmpt_exit_kind machine_enter(struct machine *m)
{
	int fault = m->fail_late;
	u32 i;

	m->entries++;
	if (m->fail_early || !controls_ok(m))
		return VMPT_EXIT_FAILED_EARLY;
	m->in_guest = true;
	if (!fault && m->entry & VMPT_ENTRY_LOAD_RTIT_CTL)
		fault = set_ctl(m, m->guest_ctl);
	for (i = 0; !fault && i < m->lists.entry_loads; i++)
		fault = write_msr(m, m->lists.entry_load[i].msr, m->lists.entry_load[i].value);
	if (!fault)
		return VMPT_EXIT_NORMAL;
	leave(m, false);
	return VMPT_EXIT_FAILED_LATE;
}

void machine_exit(struct machine *m)
{
	leave(m, true);
}

/* ---- execution ---- */

static void host_byte(struct machine *m)
{
	u8 byte = (u8)m->host_bytes;
	u64 lost;

	if (vmpt_pt_trigger_en(&m->regs))
		m->host_bytes += output(m, &byte, 1, BY_HOST, &lost) - lost;
}

void machine_run(struct machine *m, u32 n)
{
	if (m->queued && m->in_guest)
		flush(m);
	for (; n && m->regs.ctl & VMPT_CTL_TRACE_EN && !m->violation; n--) {
		if (guest_traces(m))
			packet(m, branches, sizeof(branches));
		else
			host_byte(m);
	}
}

bool machine_host_stream_ok(const struct machine *m)
{
	u64 n = m->host_bytes < MACHINE_RING ? m->host_bytes : MACHINE_RING, i;

	for (i = m->host_bytes - n; i < m->host_bytes; i++)
		if (m->host[GUEST_PAGE + i % MACHINE_RING] != (u8)i)
			return false;
	return true;
}
