/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* For every command: input, options, output, tables, JSON, text that is safe to show. */
#ifndef VMPT_CLI_BASE_H
#define VMPT_CLI_BASE_H

#include "cli/base/cli.h"
#include "cli/base/file.h"
#include "cli/base/folder.h"
#include "cli/base/json-line.h"
#include "cli/base/recorder.h"
#include "cli/base/safe-text.h"
#include "cli/base/sts.h"
#include "cli/base/text.h"

#endif
