// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Deterministic work to be traced: data-dependent branches, deep calls and calls through a table.
 * Prints its result.
 *
 *	traced [ROUNDS [AT]]	says "traced: at" when it has done AT of them
 */
#include <stdio.h>
#include <stdlib.h>

typedef unsigned int step(unsigned int x);

static unsigned int add(unsigned int x)
{
	return x + 0x9e3779b9;
}

static unsigned int mix(unsigned int x)
{
	return x & 1 ? x >> 1 ^ 0xedb88320 : x >> 1;
}

static unsigned int turn(unsigned int x)
{
	return x << 7 | x >> 25;
}

static unsigned int deep(unsigned int x, unsigned int n)
{
	return n ? deep(mix(x), n - 1) + n : x;
}

int main(int argc, char **argv)
{
	static step *const steps[] = { add, mix, turn, mix };
	unsigned int rounds = argc > 1 ? (unsigned int)atoi(argv[1]) : 200;
	unsigned int at = argc > 2 ? (unsigned int)atoi(argv[2]) : rounds;
	unsigned int x = 1, i;

	for (i = 0; i < rounds; i++) {
		if (i == at) {
			puts("traced: at");
			fflush(stdout);
		}
		x = deep(steps[x & 3](x), x & 7);
	}
	printf("%08x\n", x);
	return 0;
}
