// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A Linux program that traces with RTIT through /dev/cpu/0/msr, by the scenarios of the manual's
 * Appendix A: itself, everything, or the driver of that device. The trace goes to memory reserved
 * by "memmap=", and is read through /dev/mem.
 *
 *	rtit-linux BUFFER application|all|driver FILE
 *
 * BUFFER: physical address of 4 MiB. The trace is written to FILE; the ranges and CR3 that were set
 * are printed. Each trace sets another bit of RTIT_CTL, so that the comparison can distinguish
 * them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/rtit-packet.h"
#include "arch/rtit-regs.h"

#define SIZE (4u << 20)
/* RTIT_EVENTS: TraceStop off; a filter by RANGE0, or always on */
#define STOP_OFF (VMPT_RTIT_EVENT_OFF << VMPT_RTIT_EVENTS_STOP_SHIFT)
#define RANGE0	 (VMPT_RTIT_EVENT_RANGE0 | STOP_OFF)
#define NO_RANGE (VMPT_RTIT_EVENT_ON | STOP_OFF)
/* Without MTC_En and without time packets these two change nothing. */
#define MARK_APPLICATION (1u << VMPT_RTIT_CTL_MTC_RANGE_SHIFT)
#define MARK_ALL	 (2u << VMPT_RTIT_CTL_MTC_RANGE_SHIFT)
#define MARK_DRIVER	 VMPT_RTIT_CTL_LESS_PKTS

static int msr_fd;
static const u8 *buffer;
static u64 buffer_at;

static _Noreturn void fail(const char *what)
{
	printf("rtit: %s: %s\n", what, strerror(errno));
	exit(1);
}

static u64 read_msr(u32 msr)
{
	u64 value;

	if (pread(msr_fd, &value, sizeof(value), msr) != sizeof(value))
		fail("RDMSR");
	return value;
}

static void write_msr(u32 msr, u64 value)
{
	if (pwrite(msr_fd, &value, sizeof(value), msr) != sizeof(value))
		fail("WRMSR");
}

/* The rule of 3.3.1 as seen by a program: #GP is EIO. */
static void unlock(void)
{
	u64 value;

	if (pread(msr_fd, &value, sizeof(value), VMPT_RTIT_MSR_STATUS) >= 0)
		printf("rtit: STATUS before CTL: there is no #GP\n");
	else
		printf("rtit: STATUS before CTL: %s\n", strerror(errno));
	(void)read_msr(VMPT_RTIT_MSR_CTL);
}

/* ---- on and off ---- */

static void configure(u64 events, u64 from, u64 to)
{
	write_msr(VMPT_RTIT_MSR_STATUS, 0);
	write_msr(VMPT_RTIT_MSR_TNT_BUFF, 1);
	write_msr(VMPT_RTIT_MSR_BASE_ADDR, buffer_at);
	write_msr(VMPT_RTIT_MSR_LIMIT_MASK, SIZE - 1);
	write_msr(VMPT_RTIT_MSR_OFFSET, 0);
	write_msr(VMPT_RTIT_MSR_EVENTS, events);
	write_msr(VMPT_RTIT_MSR_LIP0, from);
	write_msr(VMPT_RTIT_MSR_LIP0 + 2, to);
}

static void start(u64 ctl)
{
	write_msr(VMPT_RTIT_MSR_CTL, ctl | VMPT_RTIT_CTL_TRACE_EN);
	write_msr(VMPT_RTIT_MSR_CTL, ctl | VMPT_RTIT_CTL_TRIGGER);
}

static void stop(u64 ctl)
{
	write_msr(VMPT_RTIT_MSR_CTL, ctl | VMPT_RTIT_CTL_TRACE_EN);
	write_msr(VMPT_RTIT_MSR_CTL, ctl);
}

static void save(const char *path)
{
	size_t n = read_msr(VMPT_RTIT_MSR_OFFSET);
	FILE *file = fopen(path, "we");

	if (!file || fwrite(buffer, 1, n, file) != n || fclose(file))
		fail(path);
	printf("rtit: %zu bytes\n", n);
}

/* ---- traced code ---- */

/* A section of its own, which is the range. */
#define APPLICATION __attribute__((section("application"), noinline))
extern const char __start_application[], __stop_application[];

static APPLICATION u32 step(u32 x, u32 i)
{
	return i % 3 ? x * 5 + i : x ^ i;
}

static APPLICATION u32 work(u32 rounds)
{
	u32 x = 1;

	for (u32 i = 0; i < rounds; i++) {
		x = step(x, i);
		if (i % 100 == 0)
			x += (u32)syscall(SYS_getppid);
	}
	return x;
}

/* ---- a process's CR3 ---- */

/*
 * The CR3 when execution was last in user mode: with page table isolation the kernel has another
 * one.
 */
static u64 cr3_of_user(u64 n)
{
	struct vmpt_rtit_last_lip last = { .valid = false };
	struct vmpt_rtit_packet packet;
	u64 cr3 = 0, user = 0, lip;

	for (u64 at = 0; at < n; at += packet.size) {
		if (vmpt_rtit_decode(&packet, buffer + at, n - at, false)) {
			printf("rtit: no packet at %llu\n", (unsigned long long)at);
			exit(1);
		}
		if (packet.kind == VMPT_RTIT_PSB)
			last.valid = false;
		if (packet.kind == VMPT_RTIT_PIP)
			cr3 = packet.pip.cr3;
		if (packet.kind == VMPT_RTIT_TIP && vmpt_rtit_lip_expand(&last, &packet, &lip) &&
		    !(lip >> 47))
			user = cr3;
		else if (vmpt_rtit_table[packet.kind].classes & VMPT_RTIT_HAS_LIP)
			(void)vmpt_rtit_lip_expand(&last, &packet, &lip);
	}
	return user;
}

/* Found by a trace in which another process ran while this one waited for it. */
static u64 find_cr3(void)
{
	const u64 ctl = VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER | VMPT_RTIT_CTL_DEST;
	pid_t child;

	configure(NO_RANGE, 0, 0);
	child = fork();
	if (!child) {
		usleep(1000);
		_exit(0);
	}
	start(ctl);
	waitpid(child, NULL, 0);
	stop(ctl);
	return cr3_of_user(read_msr(VMPT_RTIT_MSR_OFFSET));
}

/* ---- the scenarios ---- */

/* While another process executes the same code in another address space. */
static void application(void)
{
	const u64 ctl = VMPT_RTIT_CTL_USER | VMPT_RTIT_CTL_CR3_EN | VMPT_RTIT_CTL_DEST |
			VMPT_RTIT_CTL_CMPRS_RET | MARK_APPLICATION;
	u64 cr3 = find_cr3(), from = (u64)(uintptr_t)__start_application;
	u64 to = (u64)(uintptr_t)__stop_application;
	pid_t child;

	printf("rtit: cr3 0x%llx\nrtit: range 0x%llx,0x%llx\n", (unsigned long long)cr3,
	       (unsigned long long)from, (unsigned long long)to);
	configure(RANGE0, from, to);
	write_msr(VMPT_RTIT_MSR_CR3_MATCH, cr3 & 0xfffffffe0);
	start(ctl);
	child = fork();
	if (!child)
		_exit(work(1000) == 0);
	for (int i = 0; i < 3; i++) {
		(void)work(1000);
		usleep(1000);
	}
	stop(ctl);
	waitpid(child, NULL, 0);
}

static void all(void)
{
	const u64 ctl = VMPT_RTIT_CTL_USER | VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_DEST |
			VMPT_RTIT_CTL_CMPRS_RET | MARK_ALL;
	pid_t child;

	configure(NO_RANGE, 0, 0);
	start(ctl);
	child = fork();
	if (!child)
		_exit(work(1000) == 0);
	(void)work(1000);
	waitpid(child, NULL, 0);
	stop(ctl);
}

/* The driver of /dev/cpu/0/msr: only it is traced, while it reads an MSR. */
static void driver(void)
{
	const u64 ctl = VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_DEST | MARK_DRIVER;
	unsigned long long from = 0, to, size = 0;
	char line[256];
	FILE *modules = fopen("/proc/modules", "re");

	while (modules && fgets(line, sizeof(line), modules) &&
	       sscanf(line, "msr %llu %*s %*s %*s 0x%llx", &size, &from) != 2)
		;
	if (!from)
		fail("/proc/modules");
	fclose(modules);
	to = from + size;
	printf("rtit: range 0x%llx,0x%llx\n", from, to);
	configure(RANGE0, from, to);
	start(ctl);
	for (int i = 0; i < 100; i++)
		(void)read_msr(VMPT_RTIT_MSR_CTL);
	stop(ctl);
}

int main(int argc, char **argv)
{
	int mem;

	if (argc != 4)
		return 2;
	setvbuf(stdout, NULL, _IONBF, 0);
	buffer_at = strtoull(argv[1], NULL, 0);
	msr_fd = open("/dev/cpu/0/msr", O_RDWR | O_CLOEXEC);
	mem = open("/dev/mem", O_RDONLY | O_CLOEXEC);
	if (msr_fd < 0 || mem < 0)
		fail("/dev/cpu/0/msr, /dev/mem");
	buffer = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, mem, (off_t)buffer_at);
	if (buffer == MAP_FAILED)
		fail("/dev/mem");
	if (!strcmp(argv[2], "application")) {
		unlock();
		application();
	} else if (!strcmp(argv[2], "all")) {
		all();
	} else {
		driver();
	}
	save(argv[3]);
	return 0;
}
