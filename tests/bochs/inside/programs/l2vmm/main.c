// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * l2vmm: a small VMM in user space. Runs the guest "work" in one VM or several, each in a thread
 * of its own, answers its exits, and checks all that the guests compute. See usage().
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine.h"

static const struct option options[] = {
	{ "guest", required_argument, NULL, 'g' },
	{ "rounds", required_argument, NULL, 'r' },
	{ "vms", required_argument, NULL, 'n' },
	{ "spin", required_argument, NULL, 's' },
	{ "irqchip", no_argument, NULL, 'i' },
	{ "smc", no_argument, NULL, 'm' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "save", required_argument, NULL, 'S' },
	{ "image", required_argument, NULL, 'I' },
	{ "no-pt", no_argument, NULL, 'p' },
	{ "tsc-offset", required_argument, NULL, 'o' },
	{ "tsc-khz", required_argument, NULL, 'k' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void usage(void)
{
	printf("l2vmm [options]: run the guest \"work\" under KVM and check what it computes\n"
	       "  --guest=M[,M]  real16, prot32, page32, pae32, long64 (default: long64); VM n\n"
	       "                 gets the n-th; a list that is too short repeats\n"
	       "  --vms=N        number of VMs, a thread each (default: the number of modes)\n"
	       "  --rounds=N     rounds of each guest (default: 10)\n"
	       "  --spin=N       empty loops in a round (default: 0)\n"
	       "  --irqchip      interrupts through KVM's local APIC, not KVM_INTERRUPT\n"
	       "  --smc          guests rewrite their own code\n"
	       "  --quiet        guests exit at the end of a round only\n"
	       "  --no-pt        no Intel PT in the guests' CPUID\n"
	       "  --tsc-offset=N the guests' TSC is the host's plus N\n"
	       "  --tsc-khz=N    and runs at N kHz; only with --tsc-offset\n"
	       "  --save=PREFIX  write each VM's lower memory to PREFIX-N.mem before it runs\n"
	       "  --image=PREFIX have the host take an image of the whole PC's memory, PREFIX-N,\n"
	       "                 when VM n has ended and still exists\n"
	       "Exit status: 0 if all is right, 1 if a guest computed something else,\n"
	       "2 if the VMM could not continue.\n");
}

static unsigned int number(const char *text, const char *what)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	if (!*text || *end || value > 1000000000)
		die("--%s=%s: not a number", what, text);
	return (unsigned int)value;
}

static unsigned int parse_modes(char *list, enum guest_mode *modes)
{
	unsigned int n = 0;
	char *name;

	for (name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		if (n == MAX_MACHINES)
			die("--guest: more than %d", MAX_MACHINES);
		modes[n] = guest_mode_find(name);
		if (modes[n++] == GUEST_MODES)
			die("--guest=%s: no such mode", name);
	}
	return n;
}

int main(int argc, char **argv)
{
	static struct machine machines[MAX_MACHINES];
	struct machine_options opt = { .rounds = 10 };
	enum guest_mode modes[MAX_MACHINES] = { GUEST_LONG64 };
	unsigned int n_modes = 1, n_machines = 0, i;
	int c, status = 0;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'g':
			n_modes = parse_modes(optarg, modes);
			break;
		case 'r':
			opt.rounds = number(optarg, "rounds");
			break;
		case 'n':
			n_machines = number(optarg, "vms");
			break;
		case 's':
			opt.spin = number(optarg, "spin");
			break;
		case 'i':
			opt.irqchip = true;
			break;
		case 'm':
			opt.flags |= GUEST_SMC;
			break;
		case 'q':
			opt.flags |= GUEST_QUIET;
			break;
		case 'p':
			opt.no_pt = true;
			break;
		case 'o':
			opt.has_tsc_offset = true;
			opt.tsc_offset = strtoull(optarg, NULL, 0);
			break;
		case 'k':
			opt.tsc_khz = number(optarg, "tsc-khz");
			break;
		case 'S':
			opt.save = optarg;
			break;
		case 'I':
			opt.image = optarg;
			break;
		case 'h':
			usage();
			return 0;
		default:
			return 2;
		}
	}
	if (optind < argc || !n_modes)
		die("l2vmm: %s", optind < argc ? "no arguments, only options" : "no guest");
	if (!n_machines)
		n_machines = n_modes;
	if (n_machines > MAX_MACHINES)
		die("--vms: more than %d", MAX_MACHINES);

	for (i = 0; i < n_machines; i++)
		machine_start(&machines[i], i, modes[i % n_modes], &opt);
	for (i = 0; i < n_machines; i++)
		status |= machine_finish(&machines[i]);
	return status;
}
