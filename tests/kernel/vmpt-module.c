// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The module that tests/kernel builds arch/ and vmm-lib/ into.
 */
#include <linux/module.h>

#include "arch/error.h"
#include "vmm-lib/vmpt.h"

static int __init vmpt_module_init(void)
{
	pr_info("%s\n", vmpt_strerror(0));
	return 0;
}

static void __exit vmpt_module_exit(void)
{
}

module_init(vmpt_module_init);
module_exit(vmpt_module_exit);
MODULE_DESCRIPTION("Intel PT for guests: a proof that libvmpt links in a kernel");
MODULE_LICENSE("Dual MIT/GPL");
