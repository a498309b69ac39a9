/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The side record of the host view, DIR/vms.jsonl: VM, vCPU and clock of each VMCS. All QEMUs that
 * share DIR add to it.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_RECORD_H
#define VMPT_QEMU_PLUGIN_HOST_RECORD_H

#include "qemu-plugin/flow/flow.h"
#include "vmm-lib/rtit.h"

/*
 * Choose the VMCS pointer of vCPU @vcpu of VM @vm, one that no other vCPU in the record has, and
 * add its line. @since: TSC now. Fails if the vCPU runs in another QEMU. Returns a file descriptor:
 * the VMCS is reserved as long as it is open. Negative: printed why.
 */
int host_record_add(const struct options *options, const char *vm, u32 vcpu, u64 since, u64 *vmcs);

/*
 * The same for RTIT, which has no VMCS: a line is added whenever another vCPU than before runs on a
 * host CPU. Fails if a vCPU of the same name runs in another QEMU.
 */
int host_record_open(const struct options *options, const struct vmpt_rtit_record *who);
/* Add a line. 0, or a negative errno with nothing added. */
int host_record_run(int fd, const struct vmpt_rtit_record *who);
/* A number that identifies the vCPU, never 0. */
u64 host_record_key(const struct vmpt_rtit_record *who);

#endif
