/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Shared by the tests of a vCPU's saved state: a vCPU in the middle of a trace, its bytes. */
#ifndef VMPT_TESTS_STATE_RIG_H
#define VMPT_TESTS_STATE_RIG_H

#include "tests/vmm-lib/guest.h"

#define SAVED_MAX VMPT_STATE_MAX
#define HIDE(cap) (1u << VMPT_CAP_##cap)

/* The host of all vCPUs here. */
extern struct vmpt_caps state_host;

/* A vCPU whose guest is shown @shown; NULL: no PT. */
void state_make(struct vmpt_vcpu *vcpu, const struct vmpt_caps *shown);

/* The guest of most tests: all that the library virtualizes. */
void state_make_full(struct vmpt_vcpu *vcpu, struct vmpt_caps *shown);

/* A state in the middle of a trace, each field with a different value. */
void state_fill(struct vmpt_vcpu *vcpu);

/* state_fill() as it must be on every machine, by the layout in docs/vmm-lib/state.md. */
#define STATE_GOLDEN 348
extern const u8 state_golden[STATE_GOLDEN];

/* Offsets in those bytes. */
enum { CAPS_AT = 12, MSRS_AT = 52, PMI_AT = 212, MODES_AT = 220, EVENTS_AT = 228, SCAN_AT = 237 };

size_t state_save(const struct vmpt_vcpu *vcpu, u8 buf[SAVED_MAX]);

/* A restore that leaves the vCPU unchanged if it fails; its result. */
int state_try(struct vmpt_vcpu *vcpu, const u8 *buf, size_t n, struct vmpt_refusal *why);

/* For a vCPU that accepted hostile bytes: it holds only what a vCPU may hold … */
void state_check_sane(const struct vmpt_vcpu *vcpu, const char *what, u64 at);
/* … and, saved and restored again, it does not change. */
void state_check_stable(const struct vmpt_vcpu *vcpu, const struct vmpt_caps *shown,
			const char *what, u64 at);

#endif
