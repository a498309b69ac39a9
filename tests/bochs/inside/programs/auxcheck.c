// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Checks that the PT trace in a perf.data is whole. It runs in a Linux guest on the PC, since
 * copying a large file out of it is slow. The trace is of one processor.
 *
 *	auxcheck FILE ADDRESS
 *
 * Prints one line, "aux: bytes N packets N tips N overflows N pieces N gaps N bad N records N
 * flagged N lost N":
 *
 *	tips	TIPs to ADDRESS (hex)
 *	gaps	places where two pieces of the trace are not contiguous
 *	bad	bytes from the first that is not a packet to the end
 *	flagged	AUX records flagged truncated, overwritten, partial or collision
 *	lost	records of lost events or samples
 * Exit status 2 if the file cannot be read.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/pt-packet.h"

#include "kvm.h"

/* struct perf_file_header, and the record types that perf adds to the kernel's. */
#define PADDING		    8
#define HEADER_DATA	    40 /* offset and size of the data */
#define RECORD_AUXTRACE	    71
#define FLAGS_OF_LOSS	    0xf
#define RECORD_LOST_SAMPLES 13

struct auxtrace {
	struct perf_event_header header;
	u64 size, offset;
};

struct aux {
	struct perf_event_header header;
	u64 offset, size, flags;
};

static struct {
	u8 *bytes;
	u64 size, pieces, gaps;
	u64 records, flagged, lost;
} trace;

/* A record of the file; returns its size, including data that follows it. */
static u64 take(const u8 *at, u64 room)
{
	const struct perf_event_header *header = (const void *)at;
	const struct auxtrace *auxtrace = (const void *)at;
	const struct aux *aux = (const void *)at;

	if (room < sizeof(*header) || header->size < sizeof(*header) || header->size > room)
		die("auxcheck: a record of size 0");
	switch (header->type) {
	case RECORD_AUXTRACE:
		if (auxtrace->size > room - header->size)
			die("auxcheck: the file ends in a piece of the trace");
		/* Each piece is padded with zeros. */
		if (auxtrace->offset <= trace.size && trace.size - auxtrace->offset < PADDING)
			trace.size = auxtrace->offset;
		trace.gaps += auxtrace->offset != trace.size;
		memcpy(trace.bytes + trace.size, at + header->size, auxtrace->size);
		trace.size += auxtrace->size;
		trace.pieces++;
		return header->size + auxtrace->size;
	case PERF_RECORD_AUX:
		trace.records++;
		trace.flagged += !!(aux->flags & FLAGS_OF_LOSS);
		break;
	case PERF_RECORD_LOST:
	case RECORD_LOST_SAMPLES:
		trace.lost++;
		break;
	}
	return header->size;
}

static bool is_ip(enum vmpt_pt_kind kind)
{
	return kind == VMPT_PT_TIP || kind == VMPT_PT_TIP_PGE || kind == VMPT_PT_TIP_PGD ||
	       kind == VMPT_PT_FUP;
}

static void report(u64 address)
{
	u64 at = 0, packets = 0, tips = 0, overflows = 0, last = 0;
	struct vmpt_pt_packet packet;
	unsigned int block = 0;

	while (at < trace.size &&
	       !vmpt_pt_decode(&packet, trace.bytes + at, trace.size - at, block)) {
		packets++;
		overflows += packet.kind == VMPT_PT_OVF;
		if (packet.kind == VMPT_PT_PSB)
			last = 0;
		if (is_ip(packet.kind) && packet.ip.ipbytes) {
			last = vmpt_pt_ip_expand(last, (unsigned int)packet.ip.ipbytes,
						 packet.ip.ip);
			tips += packet.kind == VMPT_PT_TIP && last == address;
		}
		block = vmpt_pt_block_after(&packet, block);
		at += packet.size;
	}
	printf("aux: bytes %llu packets %llu tips %llu overflows %llu pieces %llu gaps %llu bad %llu "
	       "records %llu flagged %llu lost %llu\n",
	       (unsigned long long)trace.size, (unsigned long long)packets,
	       (unsigned long long)tips, (unsigned long long)overflows,
	       (unsigned long long)trace.pieces, (unsigned long long)trace.gaps,
	       (unsigned long long)(trace.size - at), (unsigned long long)trace.records,
	       (unsigned long long)trace.flagged, (unsigned long long)trace.lost);
}

int main(int argc, char **argv)
{
	int fd = argc == 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct stat stat;
	u64 data[2], at;
	const u8 *file;

	if (fd < 0 || fstat(fd, &stat) || stat.st_size < HEADER_DATA + (off_t)sizeof(data))
		die("usage: auxcheck FILE ADDRESS");
	file = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	trace.bytes = malloc((size_t)stat.st_size);
	if (file == MAP_FAILED || !trace.bytes)
		die("auxcheck: no memory for %s", argv[1]);
	memcpy(data, file + HEADER_DATA, sizeof(data));
	if (data[0] > (u64)stat.st_size || data[1] > (u64)stat.st_size - data[0])
		die("auxcheck: the data lies outside of the file");
	for (at = 0; at < data[1]; at += take(file + data[0] + at, data[1] - at))
		;
	report(strtoull(argv[2], NULL, 16));
	return 0;
}
