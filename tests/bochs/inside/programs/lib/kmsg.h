/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Kernel messages since a point in time: the evidence of many faults.
 */
#ifndef KMSG_H
#define KMSG_H

#include "arch/types.h"

struct kmsg {
	int fd;
	unsigned long long last; /* record before the point in time */
};

/* Start listening. */
void kmsg_open(struct kmsg *kmsg);

/* Has the kernel printed a line with this text since then? The first such line goes to line[]. */
bool kmsg_find(struct kmsg *kmsg, const char *text, char *line, size_t size);

#endif
