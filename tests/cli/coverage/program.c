// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What test-coverage.py traces and gcov counts: each kind of branch, and code that does not run. */
#include <stdlib.h>

static volatile unsigned int sum;

static unsigned int leaf(unsigned int x)
{
	if (x % 3 == 0)
		return x / 3;
	return x + 1;
}

static unsigned int factorial(unsigned int n)
{
	return n < 2 ? 1 : n * factorial(n - 1);
}

static void never(void)
{
	sum = 0;
}

static unsigned int classify(unsigned int x)
{
	switch (x) {
	case 0:
		return 10;
	case 1:
		return 11;
	case 2:
		sum += 2;
		return 12;
	case 3:
		return 13;
	case 4:
		return 14;
	case 5:
		return 15;
	default:
		break;
	}
	return 20;
}

static int by_value(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	if (x < y)
		return -1;
	return x > y;
}

int main(int argc, char **argv)
{
	static unsigned int (*const call[])(unsigned int) = { leaf, factorial, classify };
	int list[] = { 5, 3, 9, 1, 7, 2 };
	unsigned int i;

	(void)argv;
	for (i = 0; i < 40; i++) {
		sum += call[i % 3](i % 8);
		if (argc > 100)
			never();
	}
	qsort(list, 6, sizeof(*list), by_value);
	while (i && list[0]) {
		i--;
		if (i == 7 && argc < 5)
			break;
	}
	return argc > 10 ? 1 : 0;
}
