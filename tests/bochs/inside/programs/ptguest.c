// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * ptguest: a guest that traces itself (kvm-intel.pt_mode=1). It programs PT's registers, with a
 * ToPA table at a guest-physical address, runs a loop, and stops; the VMM then writes the guest's
 * output into a file and counts its packets. See usage().
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "scene.h"

static const struct option options[] = {
	{ "work", required_argument, NULL, 'w' }, { "pages", required_argument, NULL, 'p' },
	{ "int", required_argument, NULL, 'i' },  { "ctl", required_argument, NULL, 'c' },
	{ "leaf", required_argument, NULL, 'l' }, { "out", required_argument, NULL, 'o' },
	{ "help", no_argument, NULL, 'h' },	  { NULL, 0, NULL, 0 },
};

static void usage(void)
{
	printf("ptguest [options]: a guest that traces itself\n"
	       "  --work=N             iterations of the loop (default: 50)\n"
	       "  --ctl=HEX            more bits of RTIT_CTL\n"
	       "  --pages=N            pages of output (default: 4)\n"
	       "  --int=N              INT in each N-th entry of the table\n"
	       "  --leaf=F.I.REG=HEX   a word of the guest's CPUID, as 14.0.ebx=0\n"
	       "  --out=FILE           the guest's output\n");
}

/* F.I.REG=VALUE into the guest's CPUID. */
static void set_leaf(struct scene *s, const char *text)
{
	struct kvm_cpuid_entry2 *leaf;
	unsigned int function, index, value;
	char name[4];

	if (sscanf(text, "%x.%x.%3[a-dx]=%x", &function, &index, name, &value) != 4 ||
	    strlen(name) != 3 || name[0] != 'e' || name[2] != 'x')
		die("--leaf=%s: not F.I.REG=HEX", text);
	leaf = scene_leaf(s, function, index);
	switch (name[1]) {
	case 'a':
		leaf->eax = value;
		break;
	case 'b':
		leaf->ebx = value;
		break;
	case 'c':
		leaf->ecx = value;
		break;
	default:
		leaf->edx = value;
	}
}

static void save(struct scene *s, const char *path, u64 size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, vm_at(&s->vm, TOPA_PAGES, size), size) != (ssize_t)size ||
	    close(fd))
		die("%s: %s", path, strerror(errno));
}

/* The packets of each PSB+ in a line, from PSB to PSBEND. */
static void show_psb(const struct vmpt_pt_packet *packet)
{
	static bool inside;

	if (packet->kind == VMPT_PT_PSB) {
		printf("PSB+:");
		inside = true;
	}
	if (!inside)
		return;
	printf(" %s", vmpt_pt_name(packet->kind));
	if (packet->kind == VMPT_PT_PSBEND) {
		printf("\n");
		inside = false;
	}
}

/* Packets by kind, how many PIPs have NR, and the bits of all TNT packets. */
static void report(struct scene *s, u64 size)
{
	const u8 *bytes = vm_at(&s->vm, TOPA_PAGES, size);
	struct vmpt_pt_packet packet;
	u32 counts[256] = { 0 }, kind, nr = 0;
	unsigned int block = 0;
	u64 at = 0, bits = 0;
	int error = 0;

	while (at < size) {
		error = vmpt_pt_decode(&packet, bytes + at, size - at, block);
		if (error)
			break;
		show_psb(&packet);
		counts[packet.kind]++;
		nr += packet.kind == VMPT_PT_PIP && packet.pip.nr;
		if (packet.kind == VMPT_PT_TNT_8 || packet.kind == VMPT_PT_TNT_64)
			bits += packet.tnt.count;
		block = vmpt_pt_block_after(&packet, block);
		at += packet.size;
	}
	printf("bytes %llu, bad from %llu; TNT bits %llu; NR %u;", (unsigned long long)size,
	       (unsigned long long)(error ? at : size), (unsigned long long)bits, nr);
	for (kind = 0; kind < VMPT_ARRAY_SIZE(counts); kind++) {
		if (counts[kind])
			printf(" %s %u", vmpt_pt_name(kind), counts[kind]);
	}
	printf("\n");
}

static u64 hex(const char *text)
{
	char *end;
	u64 value = strtoull(text, &end, 16);

	if (!*text || *end)
		die("%s: not a number in hex", text);
	return value;
}

int main(int argc, char **argv)
{
	static struct scene scene;
	struct scene *s = &scene;
	u64 ctl = CTL_TRACE;
	u32 work = 50, pages = 4, int_every = 0, status, start;
	const char *out = NULL;
	enum scene_end end;
	int c;

	scene_open(s, false);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'w':
			work = (u32)atoi(optarg);
			break;
		case 'p':
			pages = (u32)atoi(optarg);
			break;
		case 'i':
			int_every = (u32)atoi(optarg);
			break;
		case 'c':
			ctl |= hex(optarg);
			break;
		case 'l':
			set_leaf(s, optarg);
			break;
		case 'o':
			out = optarg;
			break;
		case 'h':
			usage();
			return 0;
		default:
			return 2;
		}
	}
	scene_topa(s, pages, int_every);
	start = scene_op_start(s, ctl);
	scene_op(s, OP_WORK, work, 0);
	scene_op_stop(s, ctl);
	status = scene_op(s, OP_RDMSR, VMPT_MSR_RTIT_STATUS, 0);
	scene_load(s);
	end = scene_run(s);
	printf("ptguest: %s %#llx; RTIT_CTL: vector %d; RTIT_STATUS %#llx\n", scene_end_name(end),
	       (unsigned long long)s->reason, (int)s->ops[start].fault - 1,
	       (unsigned long long)s->ops[status].result);
	if (end != SCENE_DONE || s->ops[start].fault)
		return 1;
	report(s, scene_output(s));
	if (out)
		save(s, out, scene_output(s));
	return 0;
}
