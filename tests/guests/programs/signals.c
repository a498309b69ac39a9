// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Signals of all sorts, "signals [ROUNDS]": sent to itself, by faults (a handler that repairs the
 * cause and returns to the instruction, and one that jumps out), by a trap, and by a timer that
 * interrupts a loop.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

static char *page;
static sigjmp_buf out;
static volatile sig_atomic_t sent, mended, jumped, traps, ticks;

static void on_usr1(int sig)
{
	(void)sig;
	sent++;
}

/* A write to the page: allow it and go on; anything else: leave. */
static void on_segv(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	if (info->si_addr == page && !mprotect(page, 4096, PROT_READ | PROT_WRITE)) {
		mended++;
		return;
	}
	jumped++;
	siglongjmp(out, 1);
}

/* UD2 is two bytes long and a fault: continue after it. */
static void on_ill(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig, (void)info;
	uc->uc_mcontext.gregs[REG_RIP] += 2;
	traps++;
}

/* INT3 is a trap: the next instruction follows by itself. */
static void on_trap(int sig)
{
	(void)sig;
	traps++;
}

static void on_alarm(int sig)
{
	(void)sig;
	ticks++;
}

static void handle(int sig, void (*plain)(int), void (*info)(int, siginfo_t *, void *))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	if (info) {
		action.sa_sigaction = info;
		action.sa_flags = SA_SIGINFO;
	} else {
		action.sa_handler = plain;
	}
	if (sigaction(sig, &action, NULL))
		exit(2);
}

static void one_round(void)
{
	raise(SIGUSR1);
	mprotect(page, 4096, PROT_READ);
	*(volatile char *)page = 1;
	if (!sigsetjmp(out, 1))
		*(volatile char *)8 = 1;
	__asm__ volatile("ud2");
	__asm__ volatile("int3");
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 0) : 20;
	struct itimerval timer = { { 0, 2000 }, { 0, 2000 } };
	const struct itimerval stop = { { 0, 0 }, { 0, 0 } };

	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return 2;
	handle(SIGUSR1, on_usr1, NULL);
	handle(SIGSEGV, NULL, on_segv);
	handle(SIGILL, NULL, on_ill);
	handle(SIGTRAP, on_trap, NULL);
	handle(SIGALRM, on_alarm, NULL);
	for (long i = 0; i < rounds; i++)
		one_round();
	setitimer(ITIMER_REAL, &timer, NULL);
	while (ticks < 5)
		;
	setitimer(ITIMER_REAL, &stop, NULL);
	printf("signals: %d sent %d mended %d jumped %d traps\n", (int)sent, (int)mended,
	       (int)jumped, (int)traps);
	return sent != rounds || mended != rounds || jumped != rounds || traps != 2 * rounds;
}
