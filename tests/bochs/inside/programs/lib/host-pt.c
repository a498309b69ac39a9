// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A PT event of the host's perf: see host-pt.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/pt-regs.h"

#include "host-pt.h"
#include "kvm.h"

#define PAGE	   4096u
#define DATA_PAGES 4u
#define CONFIG_TSC (1u << 10)

static int event_type(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/intel_pt/type", "re");
	int type = -1;

	if (file) {
		if (fscanf(file, "%d", &type) != 1)
			type = -1;
		fclose(file);
	}
	return type;
}

int host_pt_open(struct host_pt *pt, size_t aux_pages)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.config = CONFIG_TSC,
		.disabled = 1,
	};
	int type = event_type();
	struct perf_event_mmap_page *page;

	if (type < 0)
		return ENODEV;
	attr.type = (u32)type;
	pt->fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (pt->fd < 0)
		return errno;
	page = mmap(NULL, (1 + DATA_PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, pt->fd, 0);
	if (page == MAP_FAILED)
		return errno;
	pt->base = page;
	pt->aux_size = aux_pages * PAGE;
	page->aux_offset = (1 + DATA_PAGES) * PAGE;
	page->aux_size = pt->aux_size;
	pt->aux = mmap(NULL, pt->aux_size, PROT_READ | PROT_WRITE, MAP_SHARED, pt->fd,
		       (off_t)page->aux_offset);
	return pt->aux == MAP_FAILED ? errno : 0;
}

void host_pt_enable(struct host_pt *pt, bool on)
{
	if (ioctl(pt->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0)
		die("the host's PT event: %s", strerror(errno));
}

u64 host_pt_drain(struct host_pt *pt)
{
	struct perf_event_mmap_page *page = pt->base;
	u64 head = __atomic_load_n(&page->aux_head, __ATOMIC_ACQUIRE);
	u64 n = head - page->aux_tail;

	__atomic_store_n(&page->data_tail, __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&page->aux_tail, head, __ATOMIC_RELEASE);
	return n;
}

u64 host_pt_head(const struct host_pt *pt)
{
	const struct perf_event_mmap_page *page = pt->base;

	return __atomic_load_n(&page->aux_head, __ATOMIC_ACQUIRE);
}

bool host_pt_full(const struct host_pt *pt)
{
	const struct perf_event_mmap_page *page = pt->base;

	return host_pt_head(pt) - page->aux_tail >= pt->aux_size;
}

void host_pt_close(struct host_pt *pt)
{
	munmap(pt->aux, pt->aux_size);
	munmap(pt->base, (1 + DATA_PAGES) * PAGE);
	close(pt->fd);
}

int host_rdmsr(u32 index, u64 *value)
{
	int fd = open("/dev/cpu/0/msr", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return errno;
	n = pread(fd, value, sizeof(*value), index);
	close(fd);
	return n == sizeof(*value) ? 0 : EIO;
}

int host_wrmsr(u32 index, u64 value)
{
	int fd = open("/dev/cpu/0/msr", O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return errno;
	n = pwrite(fd, &value, sizeof(value), index);
	close(fd);
	return n == sizeof(value) ? 0 : EIO;
}

void host_pt_reset(void)
{
	if (host_wrmsr(VMPT_MSR_RTIT_CTL, 0) || host_wrmsr(VMPT_MSR_RTIT_STATUS, 0) ||
	    host_wrmsr(VMPT_MSR_RTIT_OUTPUT_BASE, 0) ||
	    host_wrmsr(VMPT_MSR_RTIT_OUTPUT_MASK_PTRS, 0x7f))
		die("the processor's PT registers cannot be written");
}
