/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The parts of the test against perf's packet decoder. */
#ifndef VMPT_TESTS_ARCH_PERF_TESTS_H
#define VMPT_TESTS_ARCH_PERF_TESTS_H

#include <check.h>

TCase *perf_vectors_case(void);

#endif
