/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The benchmark of vmm-lib: a VMM with flat guest memory (vmm-guest.c), measures on it
 * (vmm-measure.c), rounds, goals and the report (vmm.c).
 */
#ifndef VMPT_BENCH_VMM_H
#define VMPT_BENCH_VMM_H

#include "arch/types.h"

struct vmm;

/*
 * NULL after a message. @shadow: a processor without "PT uses guest physical addresses".
 * Memory is rounded up to 4 MiB.
 */
struct vmm *vmm_open(size_t size, bool shadow);
void vmm_close(struct vmm *vmm); /* may be NULL */

/* sizeof(struct vmpt_vcpu) */
size_t vmm_vcpu_size(void);

/* ---- measures ---- */

/* One measure of one round: ns, µs, GB/s or bytes; negative: it failed, with a message. */
double vmm_indirect_call(struct vmm *vmm);
double vmm_wrmsr_mix(struct vmm *vmm);
double vmm_wrmsr_ctl(struct vmm *vmm);
double vmm_pip(struct vmm *vmm);
double vmm_shadow_build(struct vmm *vmm);
double vmm_shadow_full(struct vmm *vmm, bool scattered);

/*
 * Copy the trace @bytes into guest memory (*copy: GB/s) and adjust it there (returned: GB/s).
 * @window: bytes that guest_map returns at once, a power of two.
 */
double vmm_tsc_adjust(struct vmm *vmm, const u8 *bytes, size_t size, size_t window, double *copy);

/* RTIT's with the filter always on, and by ranges. */
enum model_kind { MODEL_PT, MODEL_RTIT, MODEL_RTIT_RANGES };

/*
 * Millions of branch events per second through libvmpt-model alone (model.c): of all kinds, or
 * conditional ones only.
 */
double model_branches(enum model_kind kind, bool mix);

#endif
