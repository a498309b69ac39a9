/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The streams in a perf.data, as perf record would write them. It is readable at any time, because
 * each append updates the size in its header. Several QEMUs may append.
 */
#ifndef VMPT_QEMU_PLUGIN_HOST_PERF_H
#define VMPT_QEMU_PLUGIN_HOST_PERF_H

#include "arch/types.h"

struct host_perf;
struct options;

/*
 * Opens perf-data=. If it is missing or empty, it is created for ctl= and *fresh is set; else it
 * must be one that this function created for the same ctl=. NULL: printed why.
 */
struct host_perf *host_perf_open(const struct options *options, bool *fresh);
void host_perf_close(struct host_perf *perf);

/*
 * Append @n bytes, a multiple of 8, to the stream of @cpu, which has @offset bytes so far. 0, or a
 * negative errno with nothing appended.
 */
int host_perf_append(struct host_perf *perf, u32 cpu, u64 offset, const u8 *bytes, size_t n);

#endif
