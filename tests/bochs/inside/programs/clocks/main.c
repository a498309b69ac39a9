// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * clocks: a VMM whose guest computes, exits and sleeps in rounds, while the VMM changes its TSC as
 * VMMs do: see usage(). For traces whose times are judged.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

#define MSR_TSC	   0x10
#define MAX_ROUNDS 1000
#define MAX_STEPS  16
#define ROUND_OPS  4
/* Of the second vCPU. */
#define SECOND_OPS   (GUEST_OPS + 0x10000)
#define SECOND_STACK (GUEST_STACK - 0x4000)

enum what {
	WHAT_NONE,
	WHAT_TSC,
	WHAT_OFFSET,
	WHAT_KHZ,
	WHAT_CPU,
	WHAT_WRITE,
	WHAT_MOVE,
	WHAT_AGAIN
};

static const struct {
	const char *name;
	enum what what;
} words[] = {
	{ "tsc", WHAT_TSC },	 { "offset", WHAT_OFFSET }, { "khz", WHAT_KHZ },
	{ "cpu", WHAT_CPU },	 { "write", WHAT_WRITE },   { "move", WHAT_MOVE },
	{ "again", WHAT_AGAIN },
};

/* After round @round do @what with @value. */
struct step {
	unsigned int round;
	enum what what;
	unsigned long long value;
};

struct machine {
	struct vm vm;
	struct vcpu vcpu, second;
	bool has_second;
	unsigned int second_cpu;
	unsigned int round, rounds, work, traps, sleep;
	u32 halt;   /* how the guest halts: OP_HALT, OP_MWAIT; 0: it does not */
	bool exits; /* HLT exits */
	volatile bool done;
	struct step steps[MAX_STEPS];
	unsigned int n_steps;
};

static void usage(void)
{
	printf("clocks [options] [ROUND:WHAT=VALUE]...: run a guest and change its TSC\n"
	       "  --rounds=N  of the guest (40); in each it works, exits for CPUID, and sleeps\n"
	       "  --work=N    loops of a round (600)\n"
	       "  --traps=N   CPUIDs of a round (3)\n"
	       "  --sleep=US  microseconds of real time after every fourth round (200)\n"
	       "  --halt      in each round the guest halts, without an exit, until an\n"
	       "              interrupt\n"
	       "  --mwait     the same, by MWAIT\n"
	       "  --exits     with exits: KVM emulates HLT, and ignores MWAIT\n"
	       "  --second=N  add a second vCPU, which runs the same rounds on processor N;\n"
	       "              the actions apply to the first vCPU\n"
	       "Actions after a round (0: before the first):\n"
	       "  tsc=N       KVM_SET_MSRS of IA32_TSC\n"
	       "  offset=N    KVM_VCPU_TSC_OFFSET\n"
	       "  khz=N       KVM_SET_TSC_KHZ\n"
	       "  cpu=N       continue on this processor\n"
	       "  write=N     the guest itself writes IA32_TSC\n"
	       "  move=N      continue in another process, in another VM with that TSC offset\n"
	       "  again=N     the same in this process; KVM may reuse the VMCS's page\n"
	       "Exit status: 0, or 2 if the VMM could not continue.\n");
}

/* ---- the guest's program ---- */

/* The operations of a vCPU, into @ops; returns how many. */
static size_t make_ops(const struct machine *m, bool second, struct guest_op *ops)
{
	size_t n = 0;

	/* Bochs does not handle an EPT violation during an interrupt's delivery (docs/bochs.md). */
	for (u64 page = GUEST_TABLES; page <= GUEST_TABLES + 0x2000; page += 0x1000)
		ops[n++] = (struct guest_op){ .code = OP_READ, .value = page };
	for (unsigned int round = 0; round <= m->rounds; round++) {
		if (round) {
			ops[n++] = (struct guest_op){ .code = OP_WORK, .arg = m->work };
			ops[n++] = (struct guest_op){ .code = OP_TRAPS, .arg = m->traps };
			if (m->halt)
				ops[n++] = (struct guest_op){ .code = m->halt };
			ops[n++] = (struct guest_op){ .code = OP_OUT, .value = round };
		}
		for (unsigned int i = 0; i < m->n_steps && !second; i++)
			if (m->steps[i].round == round && m->steps[i].what == WHAT_WRITE)
				ops[n++] = (struct guest_op){ .code = OP_WRMSR,
							      .arg = MSR_TSC,
							      .value = m->steps[i].value };
	}
	ops[n++] = (struct guest_op){ .code = OP_END };
	return n;
}

static void load(struct machine *m)
{
	static struct guest_op ops[(ROUND_OPS + MAX_STEPS) * MAX_ROUNDS + 1];
	u64 room = (m->has_second ? SECOND_OPS : GUEST_PAGING) - GUEST_OPS;
	size_t n = make_ops(m, false, ops);

	if (n * sizeof(*ops) > room)
		die("clocks: %zu operations are too many", n);
	guest_load_script(&m->vm, GUEST_LONG64, ops, n);
	guest_start(&m->vcpu, GUEST_LONG64);
}

/* At most as many as the first vCPU's. */
static void load_second(struct machine *m)
{
	static struct guest_op ops[ROUND_OPS * MAX_ROUNDS + 1];
	size_t size = make_ops(m, true, ops) * sizeof(*ops);
	struct kvm_regs regs;

	memcpy(vm_at(&m->vm, SECOND_OPS, size), ops, size);
	guest_start(&m->second, GUEST_LONG64);
	if (ioctl(m->second.fd, KVM_GET_REGS, &regs))
		die("registers: %s", strerror(errno));
	regs.rsi = SECOND_OPS;
	regs.rsp = SECOND_STACK;
	if (ioctl(m->second.fd, KVM_SET_REGS, &regs))
		die("registers: %s", strerror(errno));
}

static void open_vcpu(struct vcpu *vcpu, struct vm *vm, unsigned int id)
{
	struct cpuid cpuid;

	vcpu_open(vcpu, vm, id);
	cpuid_supported(vm, &cpuid);
	if (vcpu_set_cpuid(vcpu, &cpuid))
		die("KVM refuses the CPUID that it reports as supported");
}

static void open_machine(struct machine *m)
{
	struct kvm_enable_cap no_exits = { .cap = KVM_CAP_X86_DISABLE_EXITS,
					   .args = { m->halt == OP_MWAIT
							     ? KVM_X86_DISABLE_EXITS_MWAIT
							     : KVM_X86_DISABLE_EXITS_HLT } };

	vm_open(&m->vm, m->halt);
	if (m->halt && !m->exits &&
	    (!(ioctl(m->vm.fd, KVM_CHECK_EXTENSION, no_exits.cap) & no_exits.args[0]) ||
	     ioctl(m->vm.fd, KVM_ENABLE_CAP, &no_exits)))
		die("KVM_CAP_X86_DISABLE_EXITS: KVM has no %#llx",
		    (unsigned long long)no_exits.args[0]);
	open_vcpu(&m->vcpu, &m->vm, 0);
	if (m->has_second)
		open_vcpu(&m->second, &m->vm, 1);
}

/* A guest that halts gets an interrupt now and then. */
static void *wake(void *argument)
{
	struct kvm_msi msi = { .address_lo = 0xfee00000, .data = GUEST_VECTOR_IRQ };
	struct machine *m = argument;

	while (!m->done) {
		usleep(m->sleep);
		(void)ioctl(m->vm.fd, KVM_SIGNAL_MSI, &msi);
	}
	return NULL;
}

/* ---- actions on its TSC ---- */

static void set_offset(struct machine *m, unsigned long long offset)
{
	struct kvm_device_attr attr = { .group = KVM_VCPU_TSC_CTRL,
					.attr = KVM_VCPU_TSC_OFFSET,
					.addr = (unsigned long)&offset };

	if (ioctl(m->vcpu.fd, KVM_SET_DEVICE_ATTR, &attr))
		die("KVM_VCPU_TSC_OFFSET: %s", strerror(errno));
}

static void set_cpu(unsigned long long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("processor %llu: %s", cpu, strerror(errno));
}

/* The rest runs in a child; this process ends with it. */
static void go_to_child(void)
{
	int status = 0;
	pid_t child = fork();

	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child) {
		waitpid(child, &status, 0);
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
	}
}

/*
 * Continue with the memory and registers in another VM. The old one is closed first, so that KVM
 * may reuse its VMCS's page.
 */
static void move(struct machine *m, unsigned long long offset, bool child)
{
	static u8 memory[GUEST_LOW]; /* all that the guest uses */
	struct kvm_sregs sregs;
	struct kvm_regs regs;

	if (m->has_second)
		die("clocks: a VM with a second vCPU does not move");
	/* Completes the pending OUT. */
	m->vcpu.run->immediate_exit = 1;
	if (vcpu_run(&m->vcpu))
		die("KVM_RUN: %s", strerror(errno));
	if (ioctl(m->vcpu.fd, KVM_GET_REGS, &regs) || ioctl(m->vcpu.fd, KVM_GET_SREGS, &sregs))
		die("registers: %s", strerror(errno));
	memcpy(memory, m->vm.memory, GUEST_LOW);
	vcpu_close(&m->vcpu);
	vm_close(&m->vm);
	if (child)
		go_to_child();
	open_machine(m);
	memcpy(m->vm.memory, memory, GUEST_LOW);
	if (ioctl(m->vcpu.fd, KVM_SET_SREGS, &sregs) || ioctl(m->vcpu.fd, KVM_SET_REGS, &regs))
		die("registers: %s", strerror(errno));
	set_offset(m, offset);
}

static void take(struct machine *m, const struct step *step)
{
	switch (step->what) {
	case WHAT_TSC:
		if (vcpu_set_msr(&m->vcpu, MSR_TSC, step->value))
			die("IA32_TSC is refused");
		break;
	case WHAT_OFFSET:
		set_offset(m, step->value);
		break;
	case WHAT_KHZ:
		if (ioctl(m->vcpu.fd, KVM_SET_TSC_KHZ, (unsigned long)step->value))
			die("KVM_SET_TSC_KHZ: %s", strerror(errno));
		break;
	case WHAT_CPU:
		set_cpu(step->value);
		break;
	case WHAT_MOVE:
	case WHAT_AGAIN:
		move(m, step->value, step->what == WHAT_MOVE);
		break;
	default:
		break;
	}
}

static void sleep_a_while(const struct machine *m, unsigned int round)
{
	if (m->sleep && !m->halt && round % 4 == 0)
		usleep(m->sleep);
}

static void end_round(struct machine *m, unsigned int round)
{
	if (round != m->round + 1)
		die("clocks: round %u comes after round %u", round, m->round);
	m->round = round;
	sleep_a_while(m, round);
	for (unsigned int i = 0; i < m->n_steps; i++)
		if (m->steps[i].round == round)
			take(m, &m->steps[i]);
}

/* Run until the guest outputs @word; false: it has ended. */
static bool next_word(struct vcpu *vcpu, u32 *word)
{
	struct kvm_run *run = vcpu->run;
	int error;

	do {
		error = vcpu_run(vcpu);
		if (error)
			die("KVM_RUN: %s", strerror(error));
	} while (run->exit_reason == KVM_EXIT_INTR);
	if (run->exit_reason != KVM_EXIT_IO)
		die("clocks: an exit for reason %u", run->exit_reason);
	*word = 0;
	memcpy(word, (u8 *)run + run->io.data_offset, run->io.size);
	if (run->io.port == GUEST_PORT_DONE && *word)
		die("clocks: the guest of vCPU %u ends with %u", vcpu->id, *word);
	return run->io.port != GUEST_PORT_DONE;
}

static void run(struct machine *m)
{
	u32 word;

	while (next_word(&m->vcpu, &word))
		end_round(m, word);
}

static void *run_second(void *argument)
{
	struct machine *m = argument;
	u32 word, round = 0;

	set_cpu(m->second_cpu);
	while (next_word(&m->second, &word)) {
		if (word != ++round)
			die("clocks: vCPU 1: round %u comes after round %u", word, round - 1);
		sleep_a_while(m, round);
	}
	if (round != m->rounds)
		die("clocks: vCPU 1: %u rounds", round);
	return NULL;
}

/* ---- options ---- */

static void parse_step(struct machine *m, const char *text)
{
	struct step *step = &m->steps[m->n_steps];
	char name[16];
	long long value;

	if (m->n_steps == MAX_STEPS ||
	    sscanf(text, "%u:%15[a-z]=%lli", &step->round, name, &value) != 3)
		die("clocks: %s: not ROUND:WHAT=VALUE", text);
	step->value = (unsigned long long)value;
	for (unsigned int i = 0; i < VMPT_ARRAY_SIZE(words); i++)
		if (!strcmp(words[i].name, name))
			step->what = words[i].what;
	if (!step->what)
		die("clocks: %s: no such action", text);
	m->n_steps++;
}

static const struct option options[] = {
	{ "rounds", required_argument, NULL, 'r' }, { "work", required_argument, NULL, 'w' },
	{ "traps", required_argument, NULL, 't' },  { "sleep", required_argument, NULL, 's' },
	{ "halt", no_argument, NULL, 'H' },	    { "mwait", no_argument, NULL, 'm' },
	{ "exits", no_argument, NULL, 'e' },	    { "second", required_argument, NULL, '2' },
	{ "help", no_argument, NULL, 'h' },	    { NULL, 0, NULL, 0 },
};

int main(int argc, char **argv)
{
	static struct machine m = { .rounds = 40, .work = 600, .traps = 3, .sleep = 200 };
	pthread_t waker, second;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		unsigned int value = optarg ? (unsigned int)strtoul(optarg, NULL, 0) : 0;

		switch (c) {
		case 'r':
			m.rounds = value;
			break;
		case 'w':
			m.work = value;
			break;
		case 't':
			m.traps = value;
			break;
		case 's':
			m.sleep = value;
			break;
		case 'H':
			m.halt = OP_HALT;
			break;
		case 'm':
			m.halt = OP_MWAIT;
			break;
		case 'e':
			m.exits = true;
			break;
		case '2':
			m.has_second = true;
			m.second_cpu = value;
			break;
		case 'h':
			usage();
			return 0;
		default:
			return 2;
		}
	}
	if (m.rounds > MAX_ROUNDS)
		die("clocks: more than %d rounds", MAX_ROUNDS);
	for (; optind < argc; optind++)
		parse_step(&m, argv[optind]);
	if (m.has_second && m.halt)
		die("clocks: only the first vCPU gets interrupts: no --second with --halt");
	open_machine(&m);
	load(&m);
	if (m.has_second)
		load_second(&m);
	for (unsigned int i = 0; i < m.n_steps; i++)
		if (!m.steps[i].round)
			take(&m, &m.steps[i]);
	if ((m.halt && pthread_create(&waker, NULL, wake, &m)) ||
	    (m.has_second && pthread_create(&second, NULL, run_second, &m)))
		die("clocks: no thread");
	run(&m);
	if (m.has_second)
		pthread_join(second, NULL);
	m.done = true;
	printf("clocks: %u rounds, exits %llu\n", m.round,
	       (unsigned long long)vcpu_stat(&m.vcpu, "exits"));
	return 0;
}
