// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perf.data (Linux: perf.data-file-format.txt): a header, two events as perf record has them for
 * intel_pt//, an AUXTRACE_INFO with the clocks, and one AUXTRACE record per append.
 */
#include "qemu-plugin/host/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "arch/pt-regs.h"
#include "qemu-plugin/flow/flow.h"

/* perf's own record types (tools/lib/perf/include/perf/event.h) and AUXTRACE type. */
#define RECORD_AUXTRACE_INFO 70
#define RECORD_AUXTRACE	     71
#define AUXTRACE_INTEL_PT    1
/* The kernel's number of the PMU, by which alone the file names it. */
#define PMU_TYPE 8

#define IDS	    2
#define FIRST_ID    1
#define SAMPLE_TYPE (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

struct perf_section {
	u64 offset, size;
};

struct perf_header {
	char magic[8];
	u64 size, attr_size;
	struct perf_section attrs, data, types;
	u64 features[4];
};

struct perf_file_attr {
	struct perf_event_attr attr;
	struct perf_section ids;
};

struct perf_info {
	struct perf_event_header header;
	u32 type, reserved;
	u64 priv[17];
};

/* The beginning of the file. */
struct perf_start {
	struct perf_header header;
	u64 ids[IDS];
	struct perf_file_attr attrs[IDS];
	struct perf_info info;
};

struct perf_auxtrace {
	struct perf_event_header header;
	u64 size, offset, reference;
	u32 idx, tid, cpu, reserved;
};

struct host_perf {
	int fd;
	pthread_mutex_t mutex;
};

/* ---- the beginning ---- */

static struct perf_event_attr make_attr(u32 type, u64 config)
{
	return (struct perf_event_attr){
		.type = type,
		.size = sizeof(struct perf_event_attr),
		.config = config,
		.sample_period = 1,
		.sample_type = SAMPLE_TYPE | PERF_SAMPLE_IDENTIFIER,
		.read_format = PERF_FORMAT_ID,
		.sample_id_all = 1,
		.disabled = 1,
	};
}

/* The fields that perf record takes from the PMU's format and caps, in perf's order. */
static void make_info(struct perf_info *info)
{
	*info = (struct perf_info){
		.header = { .type = RECORD_AUXTRACE_INFO, .size = sizeof(*info) },
		.type = AUXTRACE_INTEL_PT,
		.priv = {
			PMU_TYPE,
			10, 1 << 10, 0, /* ns = (TSC * mult >> shift) + zero; TSC is 1 GHz */
			1,		/* … and this is valid */
			VMPT_CTL_TSC_EN,
			VMPT_CTL_DIS_RETC,
			0, /* no context switches are recorded */
			0, /* no snapshot */
			1, /* a buffer per CPU */
			VMPT_CTL_MTC_EN,
			VMPT_CTL_MTC_FREQ,
			CLOCK_NUMERATOR, CLOCK_DENOMINATOR,
			VMPT_CTL_CYC_EN,
			CLOCK_TSC_KHZ / 100000, /* maximum non-turbo ratio */
			0,			/* no filter */
		},
	};
}

static void make_start(struct perf_start *start, u64 ctl)
{
	memset(start, 0, sizeof(*start));
	memcpy(start->header.magic, "PERFILE2", 8);
	start->header.size = sizeof(start->header);
	start->header.attr_size = sizeof(struct perf_file_attr);
	start->header.attrs.offset = offsetof(struct perf_start, attrs);
	start->header.attrs.size = sizeof(start->attrs);
	start->header.data.offset = offsetof(struct perf_start, info);
	start->header.data.size = sizeof(start->info);
	start->attrs[0].attr = make_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	/* The bits of RTIT_CTL, but OS and User are exclude_kernel and exclude_user. */
	start->attrs[1].attr = make_attr(PMU_TYPE, ctl & ~(VMPT_CTL_OS | VMPT_CTL_USER));
	start->attrs[1].attr.exclude_kernel = !(ctl & VMPT_CTL_OS);
	start->attrs[1].attr.exclude_user = !(ctl & VMPT_CTL_USER);
	for (unsigned int i = 0; i < IDS; i++) {
		start->ids[i] = FIRST_ID + i;
		start->attrs[i].ids.offset = offsetof(struct perf_start, ids) + 8 * i;
		start->attrs[i].ids.size = 8;
	}
	make_info(&start->info);
}

/* A process that was killed may have left less than the beginning. */
static bool is_fresh(int fd, const struct perf_start *want, u64 size)
{
	struct perf_start have;

	return size < sizeof(have) && pread(fd, &have, size, 0) == (ssize_t)size &&
	       !memcmp(want, &have, size);
}

static int prepare(int fd, u64 ctl, bool *fresh)
{
	struct perf_start want, have;
	struct stat st;
	ssize_t done;

	if (fstat(fd, &st))
		return -errno;
	make_start(&want, ctl);
	*fresh = is_fresh(fd, &want, (u64)st.st_size);
	if (*fresh) {
		done = pwrite(fd, &want, sizeof(want), 0);
		return done < 0 ? -errno : done == sizeof(want) ? 0 : -ENOSPC;
	}
	if (pread(fd, &have, sizeof(have), 0) != sizeof(have))
		return -EEXIST;
	want.header.data.size = have.header.data.size;
	return memcmp(&want, &have, sizeof(want)) ? -EEXIST : 0;
}

/* ---- files ---- */

static void lock(struct host_perf *perf)
{
	pthread_mutex_lock(&perf->mutex);
	while (flock(perf->fd, LOCK_EX) && errno == EINTR)
		;
}

static void unlock(struct host_perf *perf)
{
	flock(perf->fd, LOCK_UN);
	pthread_mutex_unlock(&perf->mutex);
}

struct host_perf *host_perf_open(const struct options *options, bool *fresh)
{
	struct host_perf *perf = calloc(1, sizeof(*perf));
	const char *why = "no memory";
	int err;

	if (!perf)
		goto fail;
	pthread_mutex_init(&perf->mutex, NULL);
	perf->fd = file_open(options->perf_data, options->mode, NULL, &why);
	if (perf->fd < 0)
		goto fail;
	lock(perf);
	err = prepare(perf->fd, options->ctl, fresh);
	unlock(perf);
	if (!err)
		return perf;
	why = err == -EEXIST ? "is there, and not one of ours with this ctl=" : strerror(-err);
	close(perf->fd);
fail:
	free(perf);
	fprintf(stderr, "vmpt: perf-data=%s: %s\n", options->perf_data, why);
	return NULL;
}

void host_perf_close(struct host_perf *perf)
{
	close(perf->fd);
	free(perf);
}

/* ---- appending ---- */

static int write_record(struct host_perf *perf, struct iovec *iov, int n, size_t size)
{
	struct perf_section data;
	ssize_t done;
	int err;

	if (pread(perf->fd, &data, sizeof(data), offsetof(struct perf_header, data)) !=
	    sizeof(data))
		return -EIO;
	done = pwritev(perf->fd, iov, n, (off_t)(data.offset + data.size));
	/* A short write: try one more byte to get the reason. */
	if (done >= 0 && done < (ssize_t)size)
		done = pwrite(perf->fd, "", 1, (off_t)(data.offset + data.size) + done) < 0 ? -1
											    : 0;
	err = done < 0 ? -errno : done == (ssize_t)size ? 0 : -ENOSPC;
	if (err) {
		/* Readers use the size in the header; the rest would only waste space. */
		if (ftruncate(perf->fd, (off_t)(data.offset + data.size)))
			return -errno;
		return err;
	}
	data.size += size;
	if (pwrite(perf->fd, &data, sizeof(data), offsetof(struct perf_header, data)) !=
	    sizeof(data))
		return -EIO;
	return 0;
}

int host_perf_append(struct host_perf *perf, u32 cpu, u64 offset, const u8 *bytes, size_t n)
{
	struct perf_auxtrace record = {
		.header = { .type = RECORD_AUXTRACE, .size = sizeof(record) },
		.size = n,
		.offset = offset,
		.idx = cpu,
		.tid = ~0U,
		.cpu = cpu,
	};
	struct iovec iov[2] = { { &record, sizeof(record) }, { (void *)(uintptr_t)bytes, n } };
	int err;

	lock(perf);
	err = write_record(perf, iov, 2, sizeof(record) + n);
	unlock(perf);
	return err;
}
