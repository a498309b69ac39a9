/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* --host-only, decided once for the whole trace. */
#ifndef VMPT_CLI_HOST_ONLY_H
#define VMPT_CLI_HOST_ONLY_H

#include "cli/base/base.h"

/*
 * Set options.host_only of the open trace: as given, or by its packets; a line on stderr says which
 * if there are no VMs. 0, or the exit code after a message.
 */
int cli_host_only_open(struct cli *cli);

#endif
