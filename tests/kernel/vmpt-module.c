// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The module that tests/kernel builds with arch/ and vmm-lib/. It is never loaded: it shows that
 * kernel code can include the headers and link all of the library.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "vmm-lib/vmpt.h"

#include "vcpu-run.h"

static int __init vmpt_module_init(void)
{
	struct vmpt_vcpu *vcpu = kmalloc(sizeof(*vcpu), GFP_KERNEL);
	int step;

	if (!vcpu)
		return -ENOMEM;
	step = vcpu_run(vcpu);
	kfree(vcpu);
	if (step)
		pr_err("vmpt: step %d failed\n", step);
	return step ? -EINVAL : 0;
}

static void __exit vmpt_module_exit(void)
{
}

module_init(vmpt_module_init);
module_exit(vmpt_module_exit);
MODULE_DESCRIPTION("Intel PT for guests: a proof that libvmpt links into a kernel");
MODULE_LICENSE("Dual MIT/GPL");
