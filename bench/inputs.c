// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The inputs: the synthetic stream, and real traces repeated until they are large enough to
 * measure. All are in memfds: no disk is timed, and their pages can be distinguished from the
 * decoder's own memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/rtit-synth.h"
#include "bench/shapes.h"
#include "bench/synth.h"

#define SEED 1

enum { FIRST_SHAPE = BENCH_INPUTS - SHAPES };

/* Those before the shapes. */
static const struct {
	const char *name;
	const char *file;    /* of the real traces; NULL: synthetic */
	unsigned int copies; /* of the file */
	bool common;	     /* vmpt gets libipt's stream too */
	bool rtit, cycles;   /* a stream of RTIT, with cycle counts */
} inputs[FIRST_SHAPE] = {
	{ .name = "synth" },
	{ .name = "synth-common", .common = true },
	{ .name = "two-vmcs", .file = "guest-two-vmcs.pt", .copies = 128 },
	{ .name = "mruby", .file = "guest-mruby.pt", .copies = 256 },
	{ .name = "rtit", .rtit = true },
	{ .name = "rtit-cycles", .rtit = true, .cycles = true },
};

const char *bench_input_name(unsigned int i)
{
	return i < FIRST_SHAPE ? inputs[i].name : shape_name(i - FIRST_SHAPE);
}

static int bytes_open(struct bench_bytes *b, size_t size)
{
	int fd = memfd_create("vmpt-bench", MFD_CLOEXEC);
	void *p = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)size))
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (p == MAP_FAILED) {
		fprintf(stderr, "vmpt-bench: no memory for an input of %zu bytes: %s\n", size,
			strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	close(fd);
	*b = (struct bench_bytes){ .data = p, .size = size };
	return 0;
}

static void bytes_close(struct bench_bytes *b)
{
	if (b->data)
		munmap(b->data, b->size);
	b->data = NULL;
}

static int synth_open(struct bench_bytes *b, size_t size, bool libipt_kinds)
{
	struct synth_options options = { .seed = SEED, .libipt_kinds = libipt_kinds };
	struct synth_counts counts;
	int err;

	if (bytes_open(b, size))
		return -1;
	err = synth_generate(b->data, size, &options, &counts);
	if (err) {
		fprintf(stderr, "vmpt-bench: the generator of the synthetic stream failed: %s\n",
			vmpt_strerror(err));
		return -1;
	}
	b->packets = counts.packets;
	return 0;
}

static int synth_input(struct bench_input *in, size_t size, bool common)
{
	in->same = common;
	if (synth_open(&in->ipt, size, true))
		return -1;
	if (common) {
		in->vmpt = in->ipt;
		snprintf(in->about, sizeof(in->about),
			 "synthetic stream without the kinds that libipt 2.0.5 does not know "
			 "(CFE, EVD, BBP, BIP, BEP); the same bytes for all");
		return 1;
	}
	if (synth_open(&in->vmpt, size, false))
		return -1;
	snprintf(in->about, sizeof(in->about),
		 "synthetic stream with all kinds; libipt runs over its own stream of the same "
		 "size and mix without CFE, EVD, BBP, BIP, BEP, which it does not know");
	return 1;
}

static int shape_input(struct bench_input *in, size_t size, enum shape shape)
{
	static const enum bench_class classes[SHAPES] = {
		[SHAPE_PERF_DEFAULT] = BENCH_COMMON, [SHAPE_DENSE_PSB] = BENCH_COMMON,
		[SHAPE_PTWRITE] = BENCH_COMMON,	     [SHAPE_SYSTEM_WIDE] = BENCH_COMMON,
		[SHAPE_CYC] = BENCH_CYCLES,	     [SHAPE_PAUSES] = BENCH_HARD,
		[SHAPE_TIGHT] = BENCH_HARD,	     [SHAPE_CYC_3] = BENCH_HARD,
		[SHAPE_RESTARTS] = BENCH_HARD,
	};
	struct synth_counts counts;
	int err;

	if (bytes_open(&in->vmpt, size))
		return -1;
	err = shape_generate(in->vmpt.data, size, shape, SEED, &counts);
	if (err) {
		fprintf(stderr, "vmpt-bench: the generator of %s failed: %s\n", in->name,
			vmpt_strerror(err));
		return -1;
	}
	in->class = classes[shape];
	in->vmpt.packets = counts.packets;
	in->ipt = in->vmpt;
	in->same = true;
	snprintf(in->about, sizeof(in->about), "%s; the same bytes for all", shape_about(shape));
	return 1;
}

static int rtit_input(struct bench_input *in, size_t size, bool cycles)
{
	size_t entries = size / RTIT_SYNTH_VM_BYTES + 1, i;
	struct rtit_synth_counts counts;
	struct vmpt_run *runs;
	u64 *at;
	int err;

	in->isa = VMPT_ISA_RTIT;
	in->class = BENCH_RTIT;
	if (bytes_open(&in->vmpt, size) || bytes_open(&in->runs, entries * sizeof(*runs)))
		return -1;
	/* The offsets first, then the runs in their place, from the last on. */
	at = (u64 *)in->runs.data;
	runs = (struct vmpt_run *)in->runs.data;
	err = rtit_synth_generate(in->vmpt.data, size, SEED, cycles, at, &counts);
	in->run_count = counts.entries;
	for (i = in->run_count; i-- > 0;)
		runs[i] = (struct vmpt_run){
			.at = at[i], .owner = { .kind = VMPT_OWNER_VM, .vmcs = i * i % 7 % 2 }
		};
	if (err) {
		fprintf(stderr, "vmpt-bench: the generator of RTIT failed: %s\n",
			vmpt_strerror(err));
		return -1;
	}
	in->vmpt.packets = counts.items;
	snprintf(in->about, sizeof(in->about),
		 "synthetic stream of RTIT with%s cycle counts; there is no other decoder",
		 cycles ? "" : "out");
	return 1;
}

/* One copy of the file in allocated memory; NULL after a message. */
static u8 *read_file(FILE *f, const char *path, size_t *size)
{
	u8 *buf = NULL;
	long n = -1;

	if (!fseek(f, 0, SEEK_END))
		n = ftell(f);
	rewind(f);
	if (n > 0)
		buf = malloc((size_t)n);
	if (!buf || fread(buf, 1, (size_t)n, f) != (size_t)n) {
		fprintf(stderr, "vmpt-bench: cannot read %s\n", path);
		free(buf);
		return NULL;
	}
	*size = (size_t)n;
	return buf;
}

static int file_input(struct bench_input *in, const char *file, unsigned int copies)
{
	const char *dir = getenv("VMPT_DATA");
	char path[4096];
	size_t size, i;
	FILE *f;
	u8 *one;

	snprintf(path, sizeof(path), "%s/%s", dir ? dir : VMPT_DATA_DEFAULT, file);
	f = fopen(path, "rb");
	if (!f) {
		printf("skipped: %s, %s not found (set $VMPT_DATA)\n\n", in->name, file);
		return 0;
	}
	one = read_file(f, path, &size);
	fclose(f);
	if (!one)
		return -1;
	if (bytes_open(&in->vmpt, size * copies)) {
		free(one);
		return -1;
	}
	for (i = 0; i < copies; i++)
		memcpy(in->vmpt.data + i * size, one, size);
	free(one);
	in->ipt = in->vmpt;
	in->same = true;
	snprintf(in->about, sizeof(in->about), "%s, %u copies end to end; the same bytes for all",
		 file, copies);
	return 1;
}

bool bench_input_is_shape(unsigned int i)
{
	return i >= FIRST_SHAPE;
}

int bench_input_open(struct bench_input *in, unsigned int i, size_t size, unsigned int divide)
{
	int ret;

	*in = (struct bench_input){ .name = bench_input_name(i), .class = BENCH_FIRST };
	if (bench_input_is_shape(i))
		ret = shape_input(in, size, i - FIRST_SHAPE);
	else if (inputs[i].file)
		ret = file_input(in, inputs[i].file, inputs[i].copies / divide);
	else if (inputs[i].rtit)
		ret = rtit_input(in, size, inputs[i].cycles);
	else
		ret = synth_input(in, size, inputs[i].common);
	if (ret <= 0)
		bench_input_close(in);
	return ret;
}

void bench_input_close(struct bench_input *in)
{
	if (in->ipt.data == in->vmpt.data)
		in->ipt.data = NULL;
	bytes_close(&in->ipt);
	bytes_close(&in->runs);
	bytes_close(&in->vmpt);
}
