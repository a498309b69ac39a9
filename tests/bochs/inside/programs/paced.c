// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Work for a long trace: the same rounds again and again with pauses, so that a minute of the
 * guest's time takes less than a minute of CPU time.
 *
 *	paced TIMES PAUSE_US
 *
 * Each time the function target() is called ROUNDS times through a pointer. Prints "paced: N" for
 * that many calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 1000

static unsigned int target(unsigned int x)
{
	return x & 1 ? x >> 1 ^ 0xedb88320 : x >> 1;
}

static unsigned int (*volatile call)(unsigned int) = target;

int main(int argc, char **argv)
{
	unsigned int times = argc > 1 ? (unsigned int)atoi(argv[1]) : 1;
	unsigned int pause = argc > 2 ? (unsigned int)atoi(argv[2]) : 0;
	unsigned int x = 1, i, round;

	for (i = 0; i < times; i++) {
		for (round = 0; round < ROUNDS; round++)
			x = call(x);
		if (pause)
			usleep(pause);
	}
	printf("paced: %u, %08x\n", times * ROUNDS, x);
	return 0;
}
