// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Does nothing for a while, "idle [MILLISECONDS]": the processor halts. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
	long ms = argc > 1 ? strtol(argv[1], NULL, 0) : 100;
	struct timespec wait = { ms / 1000, ms % 1000 * 1000000 };

	if (nanosleep(&wait, NULL))
		return 2;
	printf("idle: %ld ms\n", ms);
	return 0;
}
