// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * In a guest on the PC: sends one file to the VMM, through the QEMU debug console that the job
 * qemu-linux sets up. REP OUTS exits once per page.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/io.h>
#include <unistd.h>

#define PORT 0xe9

int main(int argc, char **argv)
{
	char buffer[4096];
	ssize_t n = 0;
	int fd;

	if (argc != 2) {
		fputs("usage: to-vmm FILE\n", stderr);
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || iopl(3)) {
		fprintf(stderr, "to-vmm: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		outsb(PORT, buffer, (unsigned long)n);
	close(fd);
	return n < 0;
}
