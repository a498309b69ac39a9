// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Code that changes, "jit [ROUNDS]": a function written to a page and called, written anew and
 * called again; a function that changes the instruction right after the one that writes; and the
 * same code at two addresses, written through one and run through the other.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint32_t (*function)(uint32_t x);

/* mov $value,%eax; add %edi,%eax; ret */
static void write_add(uint8_t *code, uint32_t value)
{
	static const uint8_t bytes[] = { 0xb8, 0, 0, 0, 0, 0x01, 0xf8, 0xc3 };

	memcpy(code, bytes, sizeof(bytes));
	memcpy(code + 1, &value, sizeof(value));
}

/* The same as a loop that is entered by a jump: other branches at the same addresses. */
static void write_loop(uint8_t *code, uint32_t value)
{
	static const uint8_t bytes[] = {
		0xb9, 0,    0, 0, 0, /* mov $value,%ecx */
		0x89, 0xf8,	     /* mov %edi,%eax */
		0xe3, 0x06,	     /* jrcxz 2f */
		0xff, 0xc0,	     /* 1: inc %eax */
		0xff, 0xc9,	     /* dec %ecx */
		0x75, 0xfa,	     /* jnz 1b */
		0xc3,		     /* 2: ret */
	};

	memcpy(code, bytes, sizeof(bytes));
	memcpy(code + 1, &value, sizeof(value));
}

/* Writes its argument into the next instruction's immediate, which must take effect. */
static void write_self(uint8_t *code)
{
	static const uint8_t bytes[] = {
		0x89, 0x3d, 0x01, 0x00, 0x00, 0x00, /* mov %edi,1(%rip) */
		0xb8, 0,    0,	  0,	0,	    /* mov $0,%eax */
		0xc3,				    /* ret */
	};

	memcpy(code, bytes, sizeof(bytes));
}

static uint32_t call(const uint8_t *code, uint32_t x)
{
	return ((function)(uintptr_t)code)(x);
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 50;
	uint32_t sum = 0, bad = 0;
	int fd = memfd_create("jit", 0);
	uint8_t *code, *other;

	if (fd < 0 || ftruncate(fd, 8192))
		return 2;
	code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0);
	other = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (code == MAP_FAILED || other == MAP_FAILED)
		return 2;
	for (uint32_t i = 0; i < rounds; i++) {
		uint8_t *at = code + (i % 3) * 2044; /* the last one lies across two pages */

		write_add(at, i);
		bad += call(at, 1) != i + 1;
		bad += call(other + (at - code), 2) != i + 2;
		write_loop(at, i % 7);
		bad += call(at, 10) != 10 + i % 7;
		bad += call(other + (at - code), 20) != 20 + i % 7;
		write_self(at);
		bad += call(at, i) != i;
		bad += call(at, i ^ 0xffff) != (i ^ 0xffff);
		sum += i;
	}
	printf("jit: %u rounds sum %u bad %u\n", rounds, sum, bad);
	return bad != 0;
}
