// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Load an eBPF program, which the kernel compiles, and keep it: bpf SECONDS. */
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	/* r0 = 0; exit */
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (unsigned long)code;
	attr.insn_cnt = sizeof(code) / sizeof(*code);
	attr.license = (unsigned long)"GPL";
	strcpy(attr.prog_name, "vmpt_filter");
	if (syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)) < 0) {
		perror("bpf");
		return 1;
	}
	return (int)sleep(argc > 1 ? (unsigned int)atoi(argv[1]) : 1);
}
