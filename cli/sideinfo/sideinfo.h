/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Information other than the trace: side records, recordings, clocks, names of VMs. */
#ifndef VMPT_CLI_SIDEINFO_H
#define VMPT_CLI_SIDEINFO_H

#include "cli/sideinfo/clock-open.h"
#include "cli/sideinfo/clock-options.h"
#include "cli/sideinfo/filter.h"
#include "cli/sideinfo/recording.h"
#include "cli/sideinfo/rtit.h"
#include "cli/sideinfo/vm-names.h"
#include "cli/sideinfo/when.h"

#endif
