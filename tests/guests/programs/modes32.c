// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A 32-bit program without a C library: system calls by INT 80H and, if the kernel offers an entry
 * for it, through the vdso (SYSENTER on Intel's processors); calls, also through a pointer; and
 * 64-bit code in a 32-bit program, by a far call to the kernel's 64-bit code segment and a far
 * return.
 */
typedef unsigned int u32;

#define AT_SYSINFO 32
#define USER_CS_64 0x33 /* Linux' segment for 64-bit user code */
#define NR_EXIT	   1
#define NR_WRITE   4
#define NR_GETPID  20

static u32 sysinfo;

static u32 by_int80(u32 nr, u32 b, u32 c, u32 d)
{
	u32 result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(b), "c"(c), "d"(d) : "memory");
	return result;
}

static u32 by_vdso(u32 nr)
{
	u32 result;

	__asm__ volatile("call *%1" : "=a"(result) : "m"(sysinfo), "a"(nr) : "memory", "cc");
	return result;
}

/* In 64-bit mode: RAX = RDI + 2^32, of which the upper half is returned. */
__asm__(".pushsection .text\n"
	"in_64_bit:\n"
	"	.code64\n"
	"	movl %edi,%eax\n"
	"	movabsq $0x100000000,%rdx\n"
	"	addq %rdx,%rax\n"
	"	shrq $32,%rax\n"
	"	lretl\n"
	"	.code32\n"
	".popsection\n");

static u32 by_far_call(u32 x)
{
	u32 result;

	__asm__ volatile("lcall %2,$in_64_bit"
			 : "=a"(result)
			 : "D"(x), "i"(USER_CS_64)
			 : "edx", "cc", "memory");
	return result;
}

static u32 twice(u32 x)
{
	return 2 * x;
}

static u32 thrice(u32 x)
{
	return 3 * x;
}

static u32 (*const volatile functions[2])(u32 x) = { twice, thrice };

static void print(const char *text)
{
	u32 length = 0;

	while (text[length])
		length++;
	by_int80(NR_WRITE, 1, (u32)text, length);
}

static u32 check(void)
{
	u32 bad = 0, sum = 0, pid = by_int80(NR_GETPID, 0, 0, 0);

	for (u32 i = 0; i < 100; i++) {
		sum += functions[i % 2](i); /* 2 * 2450 + 3 * 2500 = 12400 */
		bad += by_int80(NR_GETPID, 0, 0, 0) != pid;
		bad += sysinfo && by_vdso(NR_GETPID) != pid;
		bad += by_far_call(i) != 1;
	}
	return bad + (sum != 12400);
}

/* The stack at a program's start: argc, argv..., 0, environment..., 0, auxiliary vector. */
void start(u32 *stack);

void start(u32 *stack)
{
	u32 bad;

	stack += 1 + stack[0] + 1;
	while (*stack++)
		;
	for (; stack[0]; stack += 2)
		if (stack[0] == AT_SYSINFO)
			sysinfo = stack[1];
	bad = check();
	print(sysinfo ? "modes32: with vdso, " : "modes32: no vdso, ");
	print(bad ? "wrong\n" : "right\n");
	by_int80(NR_EXIT, bad != 0, 0, 0);
}

__asm__(".globl _start\n"
	"_start:\n"
	"	movl %esp,%eax\n"
	"	pushl %eax\n"
	"	call start\n"
	"	hlt\n");
