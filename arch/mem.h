/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The four functions that a freestanding environment, without <string.h>, has to have: compilers
 * call them anyway. They are what the C standard says.
 */
#ifndef VMPT_ARCH_MEM_H
#define VMPT_ARCH_MEM_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);

#ifdef __cplusplus
}
#endif

#endif
