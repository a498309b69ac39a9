/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The contract of the stream writer, checked on any trace: a stream's packets
 * are the source's, except for the replacements that docs/vm-tracking.md names.
 */
#ifndef VMPT_TESTS_CHECK_STREAMS_H
#define VMPT_TESTS_CHECK_STREAMS_H

#include "tests/decoder/extract-memory.h"

/* @e was extracted from @stream without conceal. The test fails if the contract is broken. */
void check_streams(const struct vmpt_stream *stream, const struct extracted *e);

#endif
