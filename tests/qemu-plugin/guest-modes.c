// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Run by test-perf-own.sh and test-flow.sh in a guest: traces itself through perf's system call,
 * without perf, in one way, and writes the AUX area to a file.
 *
 *	guest-modes full|snapshot u|k|uk branch|nobranch PAGES ROUNDS FILE [filter|stop]
 *
 * full: the kernel stops when the area is full, which nobody reads. snapshot: it writes on, over
 * what is oldest. filter, stop: a range for the IP filter or for TraceStop, a function in a section
 * of its own. Prints how many bytes were written and the flags of all PERF_RECORD_AUX.
 */
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096UL

/* IA32_RTIT_CTL: bit 0 here says that software chooses BranchEn */
#define CHOOSE 1ULL
#define BRANCH (1ULL << 13)

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int pmu_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/intel_pt/type", "r");
	int type = -1;

	if (!f || fscanf(f, "%d", &type) != 1)
		return -1;
	fclose(f);
	return type;
}

static __attribute__((noinline)) long outside(long n)
{
	return n % 3 ? n + 1 : n - 1;
}

/* The range, whose bounds the linker provides; it is left and entered again by calls. */
static __attribute__((noinline, section("range"))) long inside(long n)
{
	long sum = 0;

	for (long i = 0; i < n % 5; i++)
		sum += i & 2 ? outside(i) : i;
	return sum;
}

extern const char __start_range[], __stop_range[];

/* Calls and system calls: both levels execute branches. */
static __attribute__((noinline)) long work(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += i & 1 ? syscall(SYS_getppid) : inside(i);
	return sum;
}

/* The kernel wants offsets in the file. */
static int set_range(int fd, const char *action)
{
	unsigned long start = 0, end = 0, offset = 0, at = (unsigned long)__start_range;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], path[256] = "", filter[512];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %255s", &start, &end, &offset, path) ==
			    4 &&
		    at >= start && at < end)
			break;
	}
	if (!maps || at < start || at >= end)
		return -1;
	fclose(maps);
	snprintf(filter, sizeof(filter), "%s 0x%lx/0x%lx@%s", action, at - start + offset,
		 (unsigned long)__stop_range - at, path);
	return ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter);
}

struct records {
	uint64_t count, flags, bytes;
};

/* Each PERF_RECORD_AUX of the data area, which does not wrap. */
static struct records read_records(const struct perf_event_mmap_page *page)
{
	const uint8_t *data = (const uint8_t *)page + page->data_offset;
	struct records r = { 0 };
	uint64_t at = 0;

	while (at < page->data_head) {
		const struct perf_event_header *h = (const void *)(data + at);
		const uint64_t *aux = (const uint64_t *)(h + 1);

		if (h->type == PERF_RECORD_AUX) {
			r.count++;
			r.bytes += aux[1];
			r.flags |= aux[2];
		}
		at += h->size;
	}
	return r;
}

/*
 * What is in the area, the oldest byte first: of a snapshot the whole area, from its head on. What
 * was never written there is zeros, PADs at the beginning.
 */
static int write_area(const char *path, const uint8_t *aux, size_t size, size_t head, bool snapshot)
{
	FILE *f = fopen(path, "w");
	bool whole;

	if (!f)
		return -1;
	whole = !snapshot || fwrite(aux + head, 1, size - head, f) == size - head;
	whole &= fwrite(aux, 1, head, f) == head;
	return fclose(f) || !whole ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .disabled = 1, .exclude_hv = 1 };
	struct perf_event_mmap_page *page;
	bool snapshot = argc > 1 && !strcmp(argv[1], "snapshot");
	struct records records;
	size_t size;
	void *aux;
	int fd;

	if (argc != 7 && argc != 8)
		return 2;
	attr.type = (uint32_t)pmu_type();
	attr.config = strcmp(argv[3], "nobranch") ? CHOOSE | BRANCH : CHOOSE;
	attr.exclude_kernel = !strchr(argv[2], 'k');
	attr.exclude_user = !strchr(argv[2], 'u');
	size = strtoul(argv[4], NULL, 0) * PAGE;
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd < 0)
		return fail("perf_event_open");
	if (argc == 8 && set_range(fd, argv[7]))
		return fail("range");
	page = mmap(NULL, 65 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return fail("mmap");
	page->aux_offset = 65 * PAGE;
	page->aux_size = size;
	aux = mmap(NULL, size, PROT_READ | (snapshot ? 0 : PROT_WRITE), MAP_SHARED, fd,
		   (off_t)page->aux_offset);
	if (aux == MAP_FAILED)
		return fail("mmap of the AUX area");
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return fail("enable");
	work(strtol(argv[5], NULL, 0));
	if (ioctl(fd, PERF_EVENT_IOC_DISABLE, 0))
		return fail("disable");
	records = read_records(page);
	printf("mode: %s head=%llu records=%llu bytes=%llu flags=%llu\n", strrchr(argv[6], '/') + 1,
	       (unsigned long long)page->aux_head, (unsigned long long)records.count,
	       (unsigned long long)records.bytes, (unsigned long long)records.flags);
	/* A full area ends at its size. */
	if (write_area(argv[6], aux, size, snapshot ? page->aux_head % size : page->aux_head,
		       snapshot))
		return fail(argv[6]);
	return 0;
}
