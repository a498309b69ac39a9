// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The path of the source: the only object that differs between two copies of the tree. */
#include "tests/support/support.h"

const char *const test_root = VMPT_ROOT;
