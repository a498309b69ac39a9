// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * RTIT as seen by software: its detection, its registers' rules, and then, by SCENARIO, one of the
 * manual's Appendix A (1 to 3), a TraceStop (4), a sleep (5), a reset (6). A line for each check
 * goes to the first serial port, the trace to the second.
 */
#include "rtit.h"

#include "arch/rtit-regs.h"
#include "tests/support/bare/rom.h"

#define BUFFER	   0x800000ULL
#define MASK	   0xffffULL /* 64 KiB */
#define SERIAL	   0x3f8
#define TRACE_PORT 0x2f8

void rtit_main(void);

static void out(u16 port, u8 value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static void print(const char *text)
{
	for (; *text; text++)
		out(SERIAL, (u8)*text);
}

static void print_number(const char *text, u64 n)
{
	char digits[19] = "0x0000000000000000";

	for (int i = 17; n; i--, n >>= 4)
		digits[i] = "0123456789abcdef"[n & 0xf];
	print(text);
	print(digits);
	print("\n");
}

static void check(const char *what, u64 want, u64 got)
{
	print(want == got ? "ok " : "FAILED ");
	print(what);
	print("\n");
	if (want == got)
		return;
	print_number("  want ", want);
	print_number("  got ", got);
}

static u64 read(u32 msr)
{
	u64 value = ~0ULL;

	(void)rdmsr(msr, &value);
	return value;
}

static u32 cpuid(u32 leaf, u32 *ebx)
{
	u32 eax = leaf, ecx = 0, edx;

	__asm__ volatile("cpuid" : "+a"(eax), "=b"(*ebx), "+c"(ecx), "=d"(edx));
	return eax;
}

/* ---- detection (1.2, 3.1) ---- */

static void identify(void)
{
	u32 ebx, eax = cpuid(1, &ebx);

	check("family 6, model 37H, stepping 8", 0x30678, eax & 0xfff3fff);
	(void)cpuid(7, &ebx);
	check("no Intel PT", 0, ebx >> 25 & 1);
	check("no leaf 14H: EAX", 0, cpuid(0x14, &ebx));
	check("no leaf 14H: EBX", 0, ebx);
}

/* ---- 3.3 ---- */

static void unlock(void)
{
	u64 value;

	check("STATUS before CTL was read: #GP", 1, (u64)rdmsr(VMPT_RTIT_MSR_STATUS, &value));
	check("a write of CTL before it was read: #GP", 1, (u64)wrmsr(VMPT_RTIT_MSR_CTL, 0));
	check("CTL is read", 0, (u64)rdmsr(VMPT_RTIT_MSR_CTL, &value));
	check("CTL after RESET", 0, value);
}

/* The independent registers, with their values after RESET by the tables of 3.3. */
static void registers(void)
{
	static const struct {
		u32 msr;
		u64 reset, write; /* write: legal */
	} all[] = {
		{ 0x760, 0, 0x123456789abc },  { 0x761, 0, 1 },
		{ 0x762, 0, 0x7fffffffffff },  { 0x763, 0, 1 },
		{ 0x76b, 0, 0x3fffff },	       { 0x76c, 0, 0x3f },
		{ 0x76e, 0, 0x1ffffffff },     { 0x76f, 0, 0x1ffffffffffff },
		{ 0x770, 0xfdc00000, BUFFER }, { 0x771, 0x7f, MASK },
		{ 0x772, 0, 0x3fffff },	       { 0x777, 0, 0xfffffffe0 },
		{ 0x77c, 0x20000, 0x10001 },   { 0x77d, 1, 0x7f },
	};

	for (u32 i = 0; i < VMPT_ARRAY_SIZE(all); i++) {
		print_number("register ", all[i].msr);
		check("after RESET", all[i].reset, read(all[i].msr));
		check("is written", 0, (u64)wrmsr(all[i].msr, all[i].write));
		check("is read", all[i].write, read(all[i].msr));
		check("is restored", 0, (u64)wrmsr(all[i].msr, all[i].reset));
	}
	check("STATUS after RESET", 0, read(0x769));
	check("CTL bit 5: #GP", 1, (u64)wrmsr(0x768, 1 << 5));
	check("CTL bit 16: #GP", 1, (u64)wrmsr(0x768, 1 << 16));
	check("LIMIT_MASK without its ones: #GP", 1, (u64)wrmsr(0x771, 0xff00));
	check("TNT_BUFF 0: #GP", 1, (u64)wrmsr(0x77d, 0));
	check("EVENTS bit 6: #GP", 1, (u64)wrmsr(0x76c, 0x40));
}

/* ---- a trace ---- */

/* Everything before Trace_En: "configure RTIT prior to enabling it" (Appendix A). */
static void configure(u64 events, const char *from, const char *to)
{
	(void)wrmsr(VMPT_RTIT_MSR_BASE_ADDR, BUFFER);
	(void)wrmsr(VMPT_RTIT_MSR_LIMIT_MASK, MASK);
	(void)wrmsr(VMPT_RTIT_MSR_OFFSET, 0);
	(void)wrmsr(VMPT_RTIT_MSR_EVENTS, events);
	(void)wrmsr(VMPT_RTIT_MSR_LIP0, (u64)(unsigned long)from);
	(void)wrmsr(VMPT_RTIT_MSR_LIP0 + 2, (u64)(unsigned long)to);
}

static void send(void)
{
	u64 n = read(VMPT_RTIT_MSR_OFFSET);

	print_number("bytes ", n);
	for (u64 i = 0; i < n; i++)
		out(TRACE_PORT, ((const u8 *)BUFFER)[i]);
}

static void apps(void)
{
	run_app(PML4_A);
	run_app(PML4_B);
	run_app(PML4_A);
}

static void all(void)
{
	run_app(PML4_A);
	run_driver();
	run_app(PML4_B);
}

#define FILTER_RANGE0 (VMPT_RTIT_EVENT_RANGE0 | VMPT_RTIT_EVENT_OFF << VMPT_RTIT_EVENTS_STOP_SHIFT)
#define NO_FILTER     (VMPT_RTIT_EVENT_ON | VMPT_RTIT_EVENT_OFF << VMPT_RTIT_EVENTS_STOP_SHIFT)
#define STOP_RANGE0   (VMPT_RTIT_EVENT_ON | VMPT_RTIT_EVENT_RANGE0 << VMPT_RTIT_EVENTS_STOP_SHIFT)

static void one_application(void)
{
	configure(FILTER_RANGE0, app, app_end);
	(void)wrmsr(VMPT_RTIT_MSR_CR3_MATCH, PML4_A);
	trace_call(VMPT_RTIT_CTL_USER | VMPT_RTIT_CTL_CR3_EN | VMPT_RTIT_CTL_DEST, apps);
}

static void user_and_os(void)
{
	configure(NO_FILTER, app, app);
	trace_call(VMPT_RTIT_CTL_USER | VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_DEST |
			   VMPT_RTIT_CTL_CMPRS_RET | VMPT_RTIT_CTL_STS_EN |
			   VMPT_RTIT_CTL_STS_ON_CR3,
		   all);
}

static void one_driver(void)
{
	configure(FILTER_RANGE0, driver, driver_end);
	trace_call(VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_DEST, all);
}

static void trace_stop(void)
{
	configure(STOP_RANGE0, stop_here, stop_here + 1);
	trace_call(VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_DEST, run_stopper);
	check("the last branches are in TNT_BUFF", 0xe, read(VMPT_RTIT_MSR_TNT_BUFF));
	check("nothing overflowed", 0, read(VMPT_RTIT_MSR_STATUS) & VMPT_RTIT_STATUS_OVERFLOW);
}

static void sleep(void)
{
	configure(NO_FILTER, app, app);
	trace_call(VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_DEST | VMPT_RTIT_CTL_STS_EN |
			   VMPT_RTIT_CTL_MTC_EN | VMPT_RTIT_CTL_MTC_RANGE,
		   run_sleep);
}

/* Without Dest nothing is written, not even pending packets at a TraceStop. */
static void no_port(void)
{
	volatile u8 *buffer = (volatile u8 *)BUFFER;
	u32 changed = 0;

	for (u32 i = 0; i < 4096; i++)
		buffer[i] = 0x5a;
	configure(NO_FILTER, app, app);
	trace_call(VMPT_RTIT_CTL_OS, run_driver);
	check("without Dest OFFSET moves", 1, read(VMPT_RTIT_MSR_OFFSET) != 0);
	configure(STOP_RANGE0, stop_here, stop_here + 1);
	trace_call(VMPT_RTIT_CTL_OS, run_stopper);
	check("a TraceStop leaves packets", 1, read(VMPT_RTIT_MSR_OFFSET) != 0);
	for (u32 i = 0; i < 4096; i++)
		changed += buffer[i] != 0x5a;
	check("without Dest nothing is written to RAM", 0, changed);
}

/* The reset value of BASE does not point to RAM; without Dest it does not matter. */
static void nowhere(void)
{
	u64 base = read(VMPT_RTIT_MSR_BASE_ADDR);

	(void)wrmsr(VMPT_RTIT_MSR_EVENTS, NO_FILTER);
	trace_call(VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_DEST, run_driver);
	check("output without RAM moves OFFSET nevertheless", 1, read(VMPT_RTIT_MSR_OFFSET) != 0);
	check("and BASE does not change", base, read(VMPT_RTIT_MSR_BASE_ADDR));
	no_port();
}

/* The machine is reset while it traces; rtit_main() continues after it, with what was printed. */
static void reset(void)
{
	volatile u32 *resume = (volatile u32 *)RESUME;

	if (*resume == MAGIC) {
		*resume = 0;
		registers();
		return;
	}
	configure(NO_FILTER, app, app);
	(void)wrmsr(VMPT_RTIT_MSR_CTL, VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_TRACE_EN);
	(void)wrmsr(VMPT_RTIT_MSR_CTL, VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_TRIGGER);
	*resume = MAGIC;
	for (;;)
		out(0xcf9, 6);
}

void rtit_main(void)
{
	static void (*const scenarios[])(void) = { nowhere,    one_application, user_and_os,
						   one_driver, trace_stop,	sleep,
						   reset };

	identify();
	unlock();
	if (!SCENARIO)
		registers();
	scenarios[SCENARIO]();
	check("Trace_En and TraceActive are off", 0,
	      read(VMPT_RTIT_MSR_CTL) & VMPT_RTIT_CTL_TRIGGER);
	send();
	for (;;)
		out(0xf4, 0x10);
}
