// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * 32-bit code in a segment of the process's own LDT, whose base is not 0, called from 64-bit
 * code by a far call, "ldt [ROUNDS]".
 */
#include <asm/ldt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BASE 0x20000000UL

/* mov %edi,%eax; 1: inc %eax; dec %ecx; jnz 1b; lret */
static const uint8_t code[] = { 0x89, 0xf8, 0x40, 0x49, 0x75, 0xfc, 0xcb };

static uint32_t call(uint32_t x, uint32_t rounds)
{
	/* An entry of the LDT (TI), RPL 3. */
	static const struct {
		uint32_t offset;
		uint16_t selector;
	} __attribute__((packed)) target = { 0, 7 };
	uint32_t result;

	/* 32-bit code has a 32-bit stack pointer: it uses the page's other half as stack.
	 */
	__asm__ volatile("mov %%rsp,%%r12\n\tmov %4,%%rsp\n\tlcall *(%3)\n\tmov %%r12,%%rsp"
			 : "=a"(result), "+c"(rounds)
			 : "D"(x), "r"(&target), "r"(BASE + 4096)
			 : "r12", "memory", "cc");
	return result;
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 10, x = 0;
	struct user_desc segment = { .base_addr = BASE,
				     .limit = 0xfff,
				     .seg_32bit = 1,
				     .contents = MODIFY_LDT_CONTENTS_CODE };
	void *page = mmap((void *)BASE, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (page == MAP_FAILED || syscall(SYS_modify_ldt, 1, &segment, sizeof(segment))) {
		perror("ldt");
		return 2;
	}
	memcpy(page, code, sizeof(code));
	for (uint32_t i = 1; i <= rounds; i++)
		x = call(x, i);
	printf("ldt: %u rounds %u\n", rounds, x);
	/* Each round adds its number. */
	return x == rounds * (rounds + 1) / 2 ? 0 : 3;
}
