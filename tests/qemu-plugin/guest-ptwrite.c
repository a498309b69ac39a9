// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Run by test-guest-view.sh in a guest: PTWRITE of operands whose pages are not mapped, or never
 * will be. Prints a line for each: "ok" and what the kernel made of it, or "signal" and its number,
 * address and where it was, as offsets.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#define PAGE 4096UL

static sigjmp_buf back;
static struct {
	int signal;
	uintptr_t address, rip;
} caught;
static char bss[64 * PAGE];

static void on_signal(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *user = context;

	caught.signal = sig;
	caught.address = (uintptr_t)info->si_addr;
	caught.rip = (uintptr_t)user->uc_mcontext.gregs[REG_RIP];
	siglongjmp(back, 1);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* RDI and flags, which the plugin uses meanwhile, must be as before. */
static __attribute__((noinline)) void ptwrite(const char *name, const void *p, uintptr_t base)
{
	uint64_t rdi, before, after;
	long old = faults();

	if (sigsetjmp(back, 1)) {
		printf("view: H2 %s signal %d at %#lx, RIP %d\n", name, caught.signal,
		       (unsigned long)(caught.address - base),
		       *(const uint32_t *)caught.rip == 0xae0f48f3);
		return;
	}
	__asm__ volatile("mov $0x123456789abcdef, %%rdi\n\t"
			 "stc\n\t"
			 "pushfq\n\t"
			 "pop %1\n\t"
			 "ptwriteq (%3)\n\t"
			 "pushfq\n\t"
			 "pop %2"
			 : "=&D"(rdi), "=&r"(before), "=&r"(after)
			 : "r"(p)
			 : "cc", "memory");
	printf("view: H2 %s ok, %ld faults, RDI %d, flags %d\n", name, faults() - old,
	       rdi == 0x123456789abcdef, before == after);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	char *map =
		mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGILL, &action, NULL);
	ptwrite("warm", &action, 0);
	ptwrite("fresh", map, 0);
	ptwrite("again", map, 0);
	ptwrite("crossing", map + 4 * PAGE - 4, 0);
	ptwrite("bss", bss + 32 * PAGE, 0);
	mprotect(map + 8 * PAGE, PAGE, PROT_NONE);
	ptwrite("forbidden", map + 8 * PAGE + 40, (uintptr_t)map);
	ptwrite("null", NULL, 0);
	ptwrite("non-canonical", (const void *)(1UL << 63), 0);
	return 0;
}
