// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A PT event of the host's perf whose whole trace is kept: see trace.h.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kvm.h"
#include "trace.h"

#define PAGE	      4096u
#define DATA_PAGES    1024u
#define CONFIG_TSC    (1u << 10)
#define CONFIG_NORETC (1u << 11)
#define SAMPLE_SIZE   64
#define SAMPLE_PERIOD 1000000000

static int open_event(struct perf_event_attr *attr, int group)
{
	int fd;

	attr->size = sizeof(*attr);
	fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		die("perf_event_open: %s", strerror(errno));
	return fd;
}

static u32 pt_type(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/intel_pt/type", "re");
	u32 type;

	if (!file || fscanf(file, "%u", &type) != 1)
		die("perf has no intel_pt");
	fclose(file);
	return type;
}

static void *map(struct trace *t, size_t size, int prot, u64 offset)
{
	void *at = mmap(NULL, size, prot, MAP_SHARED, t->fd, (off_t)offset);

	if (at == MAP_FAILED)
		die("perf's buffer of %zu bytes: %s", size, strerror(errno));
	return at;
}

void trace_open(struct trace *t, size_t aux_pages, bool sample, const char *filter)
{
	struct perf_event_attr pt = {
		.type = pt_type(),
		.config = CONFIG_TSC | CONFIG_NORETC,
		.disabled = 1,
	};
	struct perf_event_attr counter = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = SAMPLE_PERIOD,
		.sample_type = PERF_SAMPLE_AUX,
		.aux_sample_size = SAMPLE_SIZE,
	};
	struct perf_event_mmap_page *page;

	t->fd = open_event(&pt, -1);
	if (filter && ioctl(t->fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0)
		die("the filter %s: %s", filter, strerror(errno));
	t->counter = sample ? open_event(&counter, t->fd) : -1;
	page = map(t, (1 + DATA_PAGES) * PAGE, PROT_READ | PROT_WRITE, 0);
	t->base = page;
	t->aux_size = aux_pages * PAGE;
	page->aux_offset = (1 + DATA_PAGES) * PAGE;
	page->aux_size = t->aux_size;
	/* Samples need an overwritten trace: perf overwrites a buffer that is mapped read-only. */
	t->aux = map(t, t->aux_size, sample ? PROT_READ : PROT_READ | PROT_WRITE, page->aux_offset);
	if (sample && ioctl(t->counter, PERF_EVENT_IOC_SET_OUTPUT, t->fd) < 0)
		die("the counter's output: %s", strerror(errno));
}

void trace_enable(struct trace *t, bool on)
{
	unsigned long how = t->counter < 0 ? 0 : PERF_IOC_FLAG_GROUP;

	if (ioctl(t->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, how) < 0)
		die("the host's PT event: %s", strerror(errno));
}

u64 trace_size(const struct trace *t)
{
	const struct perf_event_mmap_page *page = t->base;

	return __atomic_load_n(&page->aux_head, __ATOMIC_ACQUIRE);
}

bool trace_full(const struct trace *t)
{
	const struct perf_event_mmap_page *page = t->base;

	return trace_size(t) - page->aux_tail >= t->aux_size;
}

u64 trace_drain(struct trace *t)
{
	struct perf_event_mmap_page *page = t->base;
	u64 head = trace_size(t), n = head - page->aux_tail;

	__atomic_store_n(&page->data_tail, __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&page->aux_tail, head, __ATOMIC_RELEASE);
	return n;
}

struct aux_record {
	struct perf_event_header head;
	u64 offset, size, flags;
};

void trace_read(const struct trace *t, struct trace_records *n)
{
	const struct perf_event_mmap_page *page = t->base;
	u64 head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = page->data_tail;
	const u8 *data = (const u8 *)page + PAGE;
	struct aux_record record;
	u8 *bytes = (u8 *)&record;
	u32 i;

	memset(n, 0, sizeof(*n));
	for (; at < head; at += record.head.size) {
		for (i = 0; i < sizeof(record); i++)
			bytes[i] = data[(at + i) % (DATA_PAGES * PAGE)];
		if (!record.head.size)
			die("perf's records are malformed");
		n->samples += record.head.type == PERF_RECORD_SAMPLE;
		n->lost += record.head.type == PERF_RECORD_LOST;
		if (record.head.type != PERF_RECORD_AUX)
			continue;
		n->gap |= n->aux && record.offset != n->bytes;
		n->aux++;
		n->bytes = record.offset + record.size;
		n->flags |= record.flags;
	}
}
