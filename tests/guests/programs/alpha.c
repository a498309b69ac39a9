// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Calls in a known order: each round main() calls alpha(), which calls beta(), which calls gamma()
 * or delta() alternately through a pointer, which calls epsilon(). "alpha [ROUNDS]" prints their
 * result, always the same: x = 0; x = 3 x + i + 1 (i even) or + 2 (i odd).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t epsilon(uint32_t x, uint32_t add);
uint32_t gamma_even(uint32_t x);
uint32_t delta_odd(uint32_t x);
uint32_t beta(uint32_t i, uint32_t x);
uint32_t alpha(uint32_t i, uint32_t x);

uint32_t epsilon(uint32_t x, uint32_t add)
{
	return x + add;
}

uint32_t gamma_even(uint32_t x)
{
	/* Code after the call, so that the compiler does not make it a tail call. */
	return epsilon(x, 1) + 0x10;
}

uint32_t delta_odd(uint32_t x)
{
	return epsilon(x, 2) + 0x10;
}

static uint32_t (*const volatile by_turns[2])(uint32_t x) = { gamma_even, delta_odd };

uint32_t beta(uint32_t i, uint32_t x)
{
	return by_turns[i % 2](x) - 0x10;
}

uint32_t alpha(uint32_t i, uint32_t x)
{
	return beta(i, 3 * x) + i;
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 1000;
	uint32_t x = 0;

	for (uint32_t i = 0; i < rounds; i++)
		x = alpha(i, x);
	printf("alpha: %u rounds %08x\n", rounds, x);
	return 0;
}
