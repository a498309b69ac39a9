/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* ELF files, the code in them and the names of functions; the code of a trace. */
#ifndef VMPT_CLI_SYMBOLS_H
#define VMPT_CLI_SYMBOLS_H

#include "cli/symbols/code.h"
#include "cli/symbols/file.h"
#include "cli/symbols/image.h"
#include "cli/symbols/names.h"
#include "cli/symbols/traced.h"

#endif
