// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The host's loop, and the events of one turn of it. No packet may stay pending when a turn ends,
 * because another process may continue the stream. So it ends after a TIP, before which pending
 * TNTs are written.
 */
#include "qemu-plugin/host/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "qemu-plugin/flow/flow.h"

/*
 *	00 exit:    call save
 *	05          jmp *%rax                 to where the exit's reason is handled
 *	10 save:    test %ecx,%ecx
 *	12          je 15                     taken
 *	14          nop
 *	15          ret
 *	20 halted:  jmp 60
 *	30 io:      jmp 60
 *	40 other:   jmp 60
 *	50 begin:   nop
 *	51          jmp 60
 *	60          test %edx,%edx
 *	62          je 67                     the VMCS is the current one
 *	64          vmptrld (%rsi)
 *	67          vmresume
 */
static const u8 code[0x6a] = {
	[0x00] = 0xe8, 0x0b, 0x00, 0x00, 0x00, 0xff, 0xe0, /* */
	[0x10] = 0x85, 0xc9, 0x74, 0x01, 0x90, 0xc3,	   /* */
	[0x20] = 0xeb, 0x3e,				   /* */
	[0x30] = 0xeb, 0x2e,				   /* */
	[0x40] = 0xeb, 0x1e,				   /* */
	[0x50] = 0x90, 0xeb, 0x0d,			   /* */
	[0x60] = 0x85, 0xd2, 0x74, 0x03, 0x0f, 0xc7, 0x36, 0x0f, 0x01, 0xc3,
};

#define AT(offset) (HOST_LOOP_BASE + (offset))

struct vmpt_mode host_loop_mode(void)
{
	return (struct vmpt_mode){ .cr3 = HOST_LOOP_CR3, .cs_l = true };
}

u64 host_loop_exit_ip(void)
{
	return AT(0x00);
}

u64 host_loop_entry_ip(void)
{
	return AT(0x67);
}

u64 host_loop_begin_ip(void)
{
	return AT(0x50);
}

u64 host_loop_after_exit(struct vmpt_unit *unit, u32 reason)
{
	u64 handler = reason == EXIT_HLT ? AT(0x20) : reason == EXIT_IO ? AT(0x30) : AT(0x40);

	vmpt_unit_call(unit, AT(0x05), AT(0x10));
	vmpt_unit_jcc(unit, true, AT(0x15));
	vmpt_unit_ret(unit, AT(0x05));
	vmpt_unit_jmp_indirect(unit, handler);
	return handler;
}

void host_loop_to_entry(struct vmpt_unit *unit, u64 vmcs)
{
	bool same = unit->vmx.vmcs == vmcs;

	vmpt_unit_jmp(unit, AT(0x60));
	vmpt_unit_jcc(unit, same, same ? AT(0x67) : AT(0x64));
	if (!same)
		vmpt_unit_vmptrld(unit, vmcs);
}

/* What is there is the code, or its beginning if a process was killed: it is never emptied. */
int host_loop_save(const struct options *options)
{
	u8 old[sizeof(code) + 1];
	char path[4096];
	const char *why;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/host.bin", options->host_view);
	fd = file_open(path, options->mode, NULL, &why);
	if (fd >= 0) {
		n = pread(fd, old, sizeof(old), 0);
		if (n > (ssize_t)sizeof(code) || (n > 0 && memcmp(old, code, (size_t)n)))
			why = FILE_FOREIGN;
		else if (n < 0 || (n = pwrite(fd, code, sizeof(code), 0)) < 0)
			why = strerror(errno);
		else if (n != sizeof(code))
			why = strerror(ENOSPC);
		close(fd);
	}
	if (!why)
		return 0;
	fprintf(stderr, "vmpt: %s: %s\n", path, why);
	return -1;
}
