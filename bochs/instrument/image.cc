// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Images of the PC's memory: byte N of the file is that at physical address N. Pages of zeros are
 * holes. Addresses without memory, except devices and ROM below 1 MB, are not in it.
 */
#include "pc.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#define PAGE 4096u

static bool write_image(int fd, u64 size)
{
	static const u8 zero[PAGE] = {};
	u8 page[PAGE];

	if (ftruncate(fd, (off_t)size))
		return false;
	for (u64 at = 0; at < size; at += PAGE) {
		if (!BX_MEM(0)->dbg_fetch_mem(BX_CPU(0), at, PAGE, page))
			continue;
		if (memcmp(page, zero, PAGE) && pwrite(fd, page, PAGE, (off_t)at) != PAGE)
			return false;
	}
	return true;
}

void pc_image(const char *name)
{
	std::string path = std::string(pc_folder()) + "/" + name;
	int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	u64 size = BX_MEM(0)->get_memory_len();

	/* RAM goes on above 4 GB. */
	if (size > 0xc0000000)
		size += 0x40000000;
	/* Pending packets belong to memory, too. */
	for (unsigned int cpu = 0; cpu < VMPT_BOCHS_CPUS; cpu++) {
		if (pc_of(cpu))
			(void)vmpt_unit_flush(&pc_of(cpu)->unit);
	}
	if (fd < 0 || !write_image(fd, size))
		pc_log("error: %s: cannot be written: %s", name, strerror(errno));
	else
		pc_log("image %s", name);
	if (fd >= 0)
		close(fd);
}
