// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Functions of the C library that a compiler needs, for programs without an operating system. */
#include <stddef.h>
#include <string.h>

#include "arch/types.h"

/* Not a loop in C: a compiler would turn it into a call of the same function. */
void *memcpy(void *to, const void *from, size_t n)
{
	void *at = to;

	__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(n) : : "memory");
	return to;
}

void *memset(void *to, int c, size_t n)
{
	void *at = to;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(c) : "memory");
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	if (to <= from)
		return memcpy(to, from, n);
	while (n--)
		((u8 *)to)[n] = ((const u8 *)from)[n];
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (((const u8 *)a)[i] != ((const u8 *)b)[i])
			return ((const u8 *)a)[i] - ((const u8 *)b)[i];
	}
	return 0;
}
