// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A trace of a real run: step FROM START END TRACE TRUTH PROGRAM: run PROGRAM, step it instruction
 * by instruction from its function at FROM until that returns, and write the packets that a
 * processor with an address filter from START up to END would have; to TRUTH the address of each
 * instruction in it (u64). The program runs to its end, so what it counts of itself (gcov) is of
 * the same run. Exit 77: this machine does not allow it.
 */
#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/types.h"

static struct {
	pid_t pid;
	u64 start, end, back; /* at .back it is over */
	FILE *out, *truth;
	unsigned int bits, count; /* of a TNT packet */
	ZydisDecoder decoder;
} s;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- packets ---- */

static void put(const void *bytes, size_t n)
{
	if (fwrite(bytes, 1, n, s.out) != n)
		fail("trace");
}

static void flush_tnt(void)
{
	u8 byte = (u8)((1u << s.count | s.bits) << 1);

	if (s.count)
		put(&byte, 1);
	s.bits = s.count = 0;
}

static void put_tnt(bool taken)
{
	s.bits = s.bits << 1 | taken;
	if (++s.count == 6)
		flush_tnt();
}

/* Table 33-18: IPBytes 6 is all of the IP. */
static void put_ip(u8 opcode, u64 ip)
{
	u8 bytes[9] = { opcode | 6 << 5 };

	flush_tnt();
	memcpy(bytes + 1, &ip, sizeof(ip));
	put(bytes, sizeof(bytes));
}

enum { PGD = 0x01, PGE = 0x11, TIP = 0x0d };

static void put_psb(void)
{
	static const u8 end[] = { 0x99, 0x01, 0x02, 0x23 }; /* MODE.Exec of 64 bits, PSBEND */
	unsigned int i;

	for (i = 0; i < 8; i++)
		put((const u8[]){ 0x02, 0x82 }, 2);
	put(end, sizeof(end));
}

/* ---- the program ---- */

static u64 peek(u64 at)
{
	errno = 0;
	at = (u64)ptrace(PTRACE_PEEKTEXT, s.pid, at, 0);
	if (errno)
		fail("PTRACE_PEEKTEXT");
	return at;
}

static void go(int how)
{
	int status = 0;

	if (ptrace(how, s.pid, 0, 0) || waitpid(s.pid, &status, 0) != s.pid)
		fail("ptrace");
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) {
		fprintf(stderr, "step: the program stopped with status %x\n", (unsigned int)status);
		exit(1);
	}
}

static struct user_regs_struct regs_now(void)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, s.pid, 0, &regs))
		fail("PTRACE_GETREGS");
	return regs;
}

static void run_to(u64 at)
{
	u64 before = peek(at);
	struct user_regs_struct regs;

	ptrace(PTRACE_POKETEXT, s.pid, at, (before & ~0xffULL) | 0xcc);
	go(PTRACE_CONT);
	ptrace(PTRACE_POKETEXT, s.pid, at, before);
	regs = regs_now();
	regs.rip = at;
	if (ptrace(PTRACE_SETREGS, s.pid, 0, &regs))
		fail("PTRACE_SETREGS");
}

static bool traced(u64 ip)
{
	return ip >= s.start && ip < s.end && ip != s.back;
}

static void indirect(u64 to)
{
	put_ip(traced(to) ? TIP : PGD, to);
}

/* From the instruction at @ip, which is traced, to @to. */
static void branch(u64 ip, const u8 bytes[16], u64 to)
{
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&s.decoder, bytes, 16, &insn, op)))
		fail("ZydisDecoderDecodeFull");
	switch (insn.meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		put_tnt(to != ip + insn.length);
		break;
	case ZYDIS_CATEGORY_RET:
		indirect(to);
		break;
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (op[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			indirect(to);
		else if (!traced(to))
			put_ip(PGD, to);
		break;
	case ZYDIS_CATEGORY_SYSCALL:
		flush_tnt();
		put((const u8[]){ PGD }, 1);
		put_ip(PGE, to);
		break;
	default:
		break;
	}
}

static void step(void)
{
	struct user_regs_struct regs = regs_now();
	u64 ip = regs.rip, to, words[2];

	s.back = peek(regs.rsp);
	put_psb();
	put_ip(PGE, ip);
	for (; ip != s.back; ip = to) {
		words[0] = peek(ip);
		words[1] = peek(ip + 8);
		go(PTRACE_SINGLESTEP);
		to = regs_now().rip;
		/* A REP is stepped once for each time: it is one instruction. */
		if (to == ip)
			continue;
		if (traced(ip) && fwrite(&ip, sizeof(ip), 1, s.truth) != 1)
			fail("truth");
		if (traced(ip))
			branch(ip, (const u8 *)words, to);
		else if (traced(to))
			put_ip(PGE, to);
	}
	flush_tnt();
}

int main(int argc, char **argv)
{
	int status;

	if (argc != 7)
		return 2;
	s.start = strtoull(argv[2], NULL, 16);
	s.end = strtoull(argv[3], NULL, 16);
	s.out = fopen(argv[4], "wb");
	s.truth = fopen(argv[5], "wb");
	if (!s.out || !s.truth)
		fail(argv[4]);
	ZydisDecoderInit(&s.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	s.pid = fork();
	if (!s.pid) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(77);
		execl(argv[6], argv[6], (char *)NULL);
		_exit(77);
	}
	if (s.pid < 0 || waitpid(s.pid, &status, 0) != s.pid || !WIFSTOPPED(status))
		return 77;
	run_to(strtoull(argv[1], NULL, 16));
	step();
	if (fclose(s.out) || fclose(s.truth))
		fail(argv[4]);
	if (ptrace(PTRACE_CONT, s.pid, 0, 0) || waitpid(s.pid, &status, 0) != s.pid)
		fail("ptrace");
	return !WIFEXITED(status) || WEXITSTATUS(status);
}
