/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt stat of RTIT, whose packets are others and have more to tell (stat-rtit.c). */
#ifndef VMPT_CLI_STAT_H
#define VMPT_CLI_STAT_H

#include "cli/cli.h"

/* A command's run(). */
int stat_rtit(struct cli *cli);

#endif
