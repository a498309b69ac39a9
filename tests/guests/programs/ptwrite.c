// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * PTWRITE of known values, "ptwrite [ROUNDS]", where CPUID has it (SDM 3 33.3.1, leaf 14H, EBX
 * bit 4): 64 and 32 bits, from a register and from memory.
 */
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void on_ill(int sig)
{
	static const char text[] = "ptwrite: CPUID has it, the processor does not\n";

	(void)sig;
	_exit(write(1, text, sizeof(text) - 1) < 0 ? 3 : 4);
}

void write_values(uint64_t value);

void write_values(uint64_t value)
{
	uint32_t low = (uint32_t)value;

	__asm__ volatile("ptwriteq %0" : : "r"(value));
	__asm__ volatile("ptwriteq %0" : : "m"(value));
	__asm__ volatile("ptwritel %0" : : "r"(low));
	__asm__ volatile("ptwritel %0" : : "m"(low));
}

int main(int argc, char **argv)
{
	unsigned int a, b, c, d;
	uint64_t rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 10;

	if (!__get_cpuid_count(0x14, 0, &a, &b, &c, &d) || !(b & (1u << 4))) {
		printf("ptwrite: CPUID does not have it\n");
		return 0;
	}
	signal(SIGILL, on_ill);
	for (uint64_t i = 0; i < rounds; i++)
		write_values(0x1122334455667700 + i);
	printf("ptwrite: %llu rounds\n", (unsigned long long)rounds);
	return 0;
}
