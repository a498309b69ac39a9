// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Serial port, end, interrupts. */
#include "bare-io.h"

#include "bare.h"

static void out(u16 port, u8 value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

void out32(u16 port, u32 value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

u32 in32(u16 port)
{
	u32 value;

	__asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

void print(const char *text)
{
	for (; *text; text++)
		out(0x3f8, (u8)*text);
}

void print_number(const char *text, u64 n)
{
	char digits[19] = "0x0000000000000000";

	for (int i = 17; n; i--, n >>= 4)
		digits[i] = "0123456789abcdef"[n & 0xf];
	print(text);
	print(digits);
	print("\n");
}

void finish_with(u8 value)
{
	for (;;)
		out(0xf4, value);
}

/* ---- interrupts ---- */

struct gate {
	u16 low, selector, type, middle;
	u32 high, zero;
};

struct gate idt[256];

void on_db(void);
void on_gp(void);
void on_ud(void);
void on_pmi(void);
void on_go(void);
void on_done(void);
void on_other(void);

static void set_gate(unsigned int n, void (*handler)(void))
{
	u64 at = (uintptr_t)handler;

	idt[n] = (struct gate){ (u16)at, 8, 0x8e00, (u16)(at >> 16), (u32)(at >> 32), 0 };
}

void make_idt(void)
{
	for (unsigned int i = 0; i < 256; i++)
		set_gate(i, on_other);
	set_gate(1, on_db);
	set_gate(2, on_pmi);
	set_gate(6, on_ud);
	set_gate(13, on_gp);
	set_gate(PMI_VECTOR, on_pmi);
	set_gate(GO_VECTOR, on_go);
	set_gate(DONE_VECTOR, on_done);
}
