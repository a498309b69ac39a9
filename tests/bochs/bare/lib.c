// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Text and the host port. All text goes to the serial port and to a file of the run,
 * results.txt, which does not depend on when the emulator flushes its serial port's file.
 */
#include "lib.h"

#include <stdarg.h>

#define SERIAL	     0x3f8
#define HOST_COMMAND 0x560
#define HOST_DATA    0x564
enum { HOST_BEGIN = 1, HOST_END, HOST_MARK = 6, HOST_OFF, HOST_PULSE };

static u32 text_used;

void text_init(void)
{
	text_used = 0;
	out8(SERIAL + 3, 0x80);
	out8(SERIAL, 1);
	out8(SERIAL + 1, 0);
	out8(SERIAL + 3, 3);
}

static void put(char c)
{
	if (text_used < TEXT_SIZE)
		((char *)TEXT)[text_used++] = c;
	while (!(in8(SERIAL + 5) & 0x20))
		__builtin_ia32_pause();
	out8(SERIAL, (u8)c);
}

static void put_string(const char *s)
{
	while (*s)
		put(*s++);
}

static void put_number(u64 n, unsigned int base)
{
	char digits[21];
	int i = 20;

	digits[i] = 0;
	do {
		digits[--i] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n);
	put_string(digits + i);
}

static void vprint(const char *format, va_list args)
{
	for (; *format; format++) {
		if (*format != '%') {
			put(*format);
			continue;
		}
		switch (*++format) {
		case 's':
			put_string(va_arg(args, const char *));
			break;
		case 'u':
			put_number(va_arg(args, unsigned int), 10);
			break;
		case 'x':
			put_string("0x");
			put_number(va_arg(args, u64), 16);
			break;
		default:
			put(*format);
		}
	}
}

void print(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprint(format, args);
	va_end(args);
}

/* ---- the scenario that runs ---- */

static bool bad;

bool is_wrong(void)
{
	bool was = bad;

	bad = false;
	return was;
}

/* The line begins here; main.c prints the name if nothing was wrong. */
void wrong(const char *format, ...)
{
	va_list args;

	if (bad)
		return;
	bad = true;
	print("not ok ");
	print("%s: ", scenario_name);
	va_start(args, format);
	vprint(format, args);
	va_end(args);
	print("\n");
}

/* ---- the host port ---- */

static void host_name(const char *name)
{
	do
		out8(HOST_DATA, (u8)*name);
	while (*name++);
}

void host_file(const char *name, const void *bytes, size_t size)
{
	host_name(name);
	out32(HOST_COMMAND, HOST_BEGIN);
	__asm__ volatile("rep outsb" : "+S"(bytes), "+c"(size) : "d"(HOST_DATA) : "memory");
	out32(HOST_COMMAND, HOST_END);
}

void host_mark(u32 what)
{
	out32(HOST_DATA, what);
	out32(HOST_COMMAND, HOST_MARK);
}

void host_pulse(u32 what)
{
	out32(HOST_DATA, what);
	out32(HOST_COMMAND, HOST_PULSE);
}

void power_off(u8 status)
{
	const char *word = "Shutdown";

	host_file("results.txt", (const void *)TEXT, text_used);
	/*
	 * Without our library: the emulator's own exit, which may not flush its serial port's file.
	 */
	out32(HOST_DATA, status);
	out32(HOST_COMMAND, HOST_OFF);
	for (unsigned int i = 0; i < 8192; i++)
		put(i % 64 ? ' ' : '\n');
	for (; *word; word++)
		out8(0x8900, (u8)*word);
	for (;;)
		__asm__ volatile("cli; hlt");
}

/* ---- MSRs ---- */

static void must(const char *what, u32 msr, int ret)
{
	if (!ret)
		return;
	wrong("%s of MSR %x: fault %x", what, (u64)msr, (u64)(ret - FAULT));
	print("the program cannot go on\n");
	power_off(2);
}

u64 msr_read(u32 msr)
{
	u64 value = 0;

	must("RDMSR", msr, try_rdmsr(msr, &value));
	return value;
}

void msr_write(u32 msr, u64 value)
{
	must("WRMSR", msr, try_wrmsr(msr, value));
}
