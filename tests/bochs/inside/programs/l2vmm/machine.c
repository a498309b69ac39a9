// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Runs one VM: answers its exits, raises its interrupts, and compares each round's word with what
 * guest_work_round() says.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "machine.h"

#define MSI_BASE 0xfee00000u

static const char *const exit_names[EXIT_KINDS] = { "out", "in", "read", "write", "hlt", "window" };

static void fail(struct machine *m, const char *what, u32 got, u32 wanted)
{
	printf("vm %u %s: round %u: %s is %08x, not %08x\n", m->id, guest_mode_names[m->mode],
	       m->round, what, got, wanted);
	m->failures++;
	m->done = true;
}

/* Injects an interrupt: through the local APIC at once, else as soon as the guest accepts it. */
static void raise_irq(struct machine *m)
{
	struct kvm_msi msi = { .address_lo = MSI_BASE, .data = GUEST_VECTOR_IRQ };

	if (!m->vm.irqchip) {
		m->irq_wanted = true;
		return;
	}
	if (ioctl(m->vm.fd, KVM_SIGNAL_MSI, &msi) <= 0)
		die("KVM_SIGNAL_MSI: not delivered");
	m->injected++;
}

static void inject(struct machine *m)
{
	struct kvm_interrupt interrupt = { .irq = GUEST_VECTOR_IRQ };
	struct kvm_run *run = m->vcpu.run;

	run->request_interrupt_window = m->irq_wanted && !run->ready_for_interrupt_injection;
	if (!m->irq_wanted || !run->ready_for_interrupt_injection)
		return;
	if (ioctl(m->vcpu.fd, KVM_INTERRUPT, &interrupt) < 0)
		die("KVM_INTERRUPT: %s", strerror(errno));
	m->irq_wanted = false;
	m->injected++;
}

static void end_round(struct machine *m, u32 word)
{
	m->state = guest_work_round(m->state, m->round, m->head->flags, guest_port_data(m->round),
				    guest_mmio_data(m->round));
	if (word != m->state)
		fail(m, "the guest's word", word, m->state);
	m->round++;
	sched_yield();
}

static void handle_io(struct machine *m)
{
	struct kvm_run *run = m->vcpu.run;
	u8 *data = (u8 *)run + run->io.data_offset;
	u32 word = 0;

	if (run->io.direction == KVM_EXIT_IO_IN) {
		m->exits[EXIT_IN]++;
		word = guest_port_data(m->round);
		memcpy(data, &word, run->io.size);
		return;
	}
	m->exits[EXIT_OUT]++;
	memcpy(&word, data, run->io.size);
	switch (run->io.port) {
	case GUEST_PORT_RESULT:
		end_round(m, word);
		break;
	case GUEST_PORT_IRQ:
		raise_irq(m);
		break;
	case GUEST_PORT_DONE:
		m->done = true;
		if (word)
			fail(m, "the guest's status", word, 0);
		break;
	default:
		fail(m, "a port", run->io.port, GUEST_PORT_RESULT);
	}
}

static void handle_mmio(struct machine *m)
{
	struct kvm_run *run = m->vcpu.run;
	u32 word = guest_mmio_data(m->round);
	u32 offset = (u32)run->mmio.phys_addr - GUEST_LOW;

	if (run->mmio.len != 4 || offset != (run->mmio.is_write ? 0x20 : 0x10)) {
		fail(m, "an MMIO address", (u32)run->mmio.phys_addr, GUEST_LOW);
	} else if (!run->mmio.is_write) {
		m->exits[EXIT_READ]++;
		memcpy(run->mmio.data, &word, 4);
	} else {
		m->exits[EXIT_WRITE]++;
	}
}

static void handle(struct machine *m)
{
	struct kvm_run *run = m->vcpu.run;

	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		handle_io(m);
		break;
	case KVM_EXIT_MMIO:
		handle_mmio(m);
		break;
	case KVM_EXIT_HLT:
		m->exits[EXIT_HLT]++;
		break;
	case KVM_EXIT_IRQ_WINDOW_OPEN:
		m->exits[EXIT_WINDOW]++;
		break;
	case KVM_EXIT_INTR:
		break;
	case KVM_EXIT_FAIL_ENTRY:
		fail(m, "VM entry's failure", (u32)run->fail_entry.hardware_entry_failure_reason,
		     0);
		break;
	case KVM_EXIT_INTERNAL_ERROR:
		fail(m, "KVM's internal error", run->internal.suberror, 0);
		break;
	default:
		fail(m, "an exit's reason", run->exit_reason, KVM_EXIT_IO);
	}
}

static void *run_machine(void *argument)
{
	struct machine *m = argument;
	int error;

	while (!m->done) {
		if (!m->vm.irqchip)
			inject(m);
		error = vcpu_run(&m->vcpu);
		if (error)
			die("vm %u: KVM_RUN: %s", m->id, strerror(error));
		handle(m);
	}
	return NULL;
}

static void save(const struct machine *m)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s-%u.mem", m->options->save, m->id);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, m->vm.memory, GUEST_LOW) != GUEST_LOW || close(fd))
		die("%s: %s", path, strerror(errno));
}

static void set_cpuid(struct vcpu *vcpu, bool no_pt)
{
	struct cpuid cpuid;
	struct kvm_cpuid_entry2 *leaf;

	cpuid_supported(vcpu->vm, &cpuid);
	leaf = cpuid_find(&cpuid, 7, 0);
	if (leaf && no_pt)
		leaf->ebx &= ~(1u << 25);
	if (vcpu_set_cpuid(vcpu, &cpuid))
		die("KVM refuses the CPUID that it reports as supported");
}

void machine_start(struct machine *m, unsigned int id, enum guest_mode mode,
		   const struct machine_options *options)
{
	*m = (struct machine){ .id = id, .mode = mode, .options = options, .round = 1 };
	m->state = GUEST_SEED;
	vm_open(&m->vm, options->irqchip);
	vcpu_open(&m->vcpu, &m->vm, 0);
	set_cpuid(&m->vcpu, options->no_pt);
	m->head = guest_load_work(&m->vm, mode);
	m->head->rounds = options->rounds;
	m->head->spin = options->spin;
	m->head->flags |= options->flags;
	guest_start(&m->vcpu, mode);
	if (options->has_tsc_offset)
		vcpu_set_tsc(&m->vcpu, options->tsc_offset, options->tsc_khz);
	if (options->save)
		save(m);
	if (pthread_create(&m->thread, NULL, run_machine, m))
		die("vm %u: no thread", id);
}

/* The image includes the guest's page tables and KVM's. */
static void take_image(const struct machine *m)
{
	char command[128];

	snprintf(command, sizeof(command), "to-host --dump %s-%u", m->options->image, m->id);
	if (system(command))
		die("%s failed", command);
}

int machine_finish(struct machine *m)
{
	static const char *const stats[] = { "exits",	      "io_exits",  "mmio_exits",
					     "halt_exits",    "irq_exits", "irq_injections",
					     "insn_emulation" };
	unsigned int i;

	pthread_join(m->thread, NULL);
	if (!m->failures && m->round != m->options->rounds + 1)
		fail(m, "the number of rounds", m->round - 1, m->options->rounds);
	if (!m->failures && m->injected != m->head->irqs)
		fail(m, "the number of interrupts", m->head->irqs, m->injected);
	printf("vm %u %s: rounds %u, word %08x, %s; to user space:", m->id,
	       guest_mode_names[m->mode], m->round - 1, m->state, m->failures ? "wrong" : "right");
	for (i = 0; i < EXIT_KINDS; i++)
		printf(" %s %llu", exit_names[i], (unsigned long long)m->exits[i]);
	printf("; KVM:");
	for (i = 0; i < VMPT_ARRAY_SIZE(stats); i++)
		printf(" %s %llu", stats[i], (unsigned long long)vcpu_stat(&m->vcpu, stats[i]));
	printf("\n");
	fflush(stdout);
	if (m->options->image)
		take_image(m);
	vcpu_close(&m->vcpu);
	vm_close(&m->vm);
	return m->failures != 0;
}
