/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The side record of the host view, DIR/vms.jsonl: which VM and vCPU a VMCS is, and its clock.
 * All QEMUs that share DIR add to it.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_RECORD_H
#define VMPT_QEMU_PLUGIN_HOST_RECORD_H

#include "qemu-plugin/flow/flow.h"
#include "vmm-lib/rtit.h"

/*
 * Find the VMCS pointer of vCPU @vcpu of VM @vm, another than any other vCPU in the record has,
 * and add its line. @since: TSC now. A VMCS whose vCPU runs now in another QEMU is refused: as
 * long as the file that is returned stays open, this one is taken. Negative: printed why.
 */
int host_record_add(const struct options *options, const char *vm, u32 vcpu, u64 since, u64 *vmcs);

/*
 * The same for RTIT, which has no VMCS: a line is added each time another vCPU is the next one
 * to run on a host CPU. A vCPU of the same name that runs in another QEMU is refused.
 */
int host_record_open(const struct options *options, const struct vmpt_rtit_record *who);
/* Add a line. 0, or a negative errno, with nothing added. */
int host_record_run(int fd, const struct vmpt_rtit_record *who);
/* A number for the vCPU, never 0. */
u64 host_record_key(const struct vmpt_rtit_record *who);

#endif
