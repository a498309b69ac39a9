// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From install to exit: options, vCPUs that come and go, QEMU's end. QEMU, flow and views are
 * connected here.
 */
#include "qemu-plugin/plugin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu-plugin/flow/flow.h"
#include "qemu-plugin/guest/guest.h"
#include "qemu-plugin/host/host.h"
#include "qemu-plugin/options.h"

/* The scoreboard may have moved, because it grows with the number of vCPUs (beyond 16). */
static void find_hot(struct plugin *plugin)
{
	for (unsigned int i = 0; i < VCPUS; i++) {
		if (plugin->vcpu[i])
			plugin->vcpu[i]->hot = translate_hot(plugin, i);
	}
}

/* A vCPU that cannot be traced would be missing without notice. */
static void give_up(unsigned int index, const char *what)
{
	fprintf(stderr, "vmpt: vCPU %u: %s\n", index, what);
	exit(1);
}

/*
 * With one thread for several vCPUs QEMU 11.1 translates the number of the vCPU as a constant, and
 * multiplies that constant in place to find the vCPU's part of a scoreboard: callbacks then get a
 * wrong number.
 */
static void check_thread(const struct plugin *plugin, unsigned int index)
{
	for (unsigned int i = 0; i < VCPUS; i++) {
		if (plugin->vcpu[i] && !plugin->vcpu[i]->gone &&
		    pthread_equal(plugin->vcpu[i]->thread, pthread_self()))
			give_up(index,
				"shares its thread with other vCPUs, which QEMU's plugins do "
				"not support; use -accel tcg,thread=multi");
	}
}

static void vcpu_init(unsigned int index, void *user)
{
	struct plugin *plugin = user;
	struct vcpu *vcpu;

	if (index >= plugin->machine.max_vcpus)
		give_up(index, "QEMU did not announce that many vCPUs");
	vcpu = plugin->vcpu[index];
	if (vcpu && !vcpu->gone)
		return;
	check_thread(plugin, index);
	/* Plugged in again: it keeps its number, VMCS and files. */
	if (vcpu) {
		vcpu->thread = pthread_self();
		vcpu->gone = false;
		return;
	}
	vcpu = calloc(1, sizeof(*vcpu));
	if (!vcpu)
		give_up(index, "no memory");
	vcpu->plugin = plugin;
	vcpu->thread = pthread_self();
	vcpu->index = index;
	vcpu->tick = 1;
	vcpu->regs = qemu_regs_new();
	if (!vcpu->regs)
		give_up(index, "QEMU does not expose its registers");
	pthread_mutex_lock(&plugin->lock);
	plugin->vcpu[index] = vcpu;
	find_hot(plugin);
	pthread_mutex_unlock(&plugin->lock);
	vcpu->hot->on = plugin->always;
	if (plugin->options.truth) {
		vcpu->truth = plugin->truth[index];
		plugin->truth[index] = NULL;
		if (!vcpu->truth)
			vcpu->truth = truth_open(&plugin->options, index);
		if (!vcpu->truth)
			exit(1);
	}
	if ((plugin->host && host_vcpu_open(vcpu)) || (plugin->guest && guest_vcpu_open(vcpu)))
		exit(1); /* the view has printed why */
}

/* No vCPU runs. QEMU also flushes when the scoreboard has moved, whose address is in the code. */
static void flushed(void *user)
{
	struct plugin *plugin = user;

	find_hot(plugin);
	for (unsigned int i = 0; i < VCPUS; i++) {
		if (plugin->vcpu[i])
			flow_keep_block(plugin->vcpu[i]);
	}
	translate_free(plugin);
}

/* How the last block ended is not known, but what comes before I/O or HLT in it has retired. */
static void stop(struct vcpu *vcpu)
{
	u64 ip;

	if (!vcpu->block)
		return;
	ip = vcpu->block == vcpu->reached_in ? vcpu->reached : vcpu->block->start + vcpu->delta;
	if (vcpu->arrived)
		ip = vcpu->arrive;
	if (vcpu->truth)
		truth_stop(vcpu->truth, ip);
	if (vcpu->running)
		vcpu->plugin->host_ops->exit(vcpu, ip, EXIT_EXTERNAL_INTERRUPT, 0);
}

/* A later thread may get the same number. */
static void vcpu_exit(unsigned int index, void *user)
{
	struct plugin *plugin = user;
	struct vcpu *vcpu = plugin->vcpu[index];

	if (!vcpu || !flow_begin(vcpu))
		return;
	stop(vcpu);
	vcpu->block = NULL;
	vcpu->arrived = false;
	vcpu->hot->armed = 0;
	vcpu->tick = 1;
	memset(&vcpu->cpu, 0, sizeof(vcpu->cpu));
	memset(&vcpu->idt, 0, sizeof(vcpu->idt));
	vcpu->gone = true;
	flow_done(vcpu);
}

/* Only what the user may want to act on, and nothing if QEMU never ran. */
static void report(const struct plugin *plugin, u64 astray, u64 misplaced)
{
	if (misplaced)
		fprintf(stderr, "vmpt: %llu blocks were not where the trace has them\n",
			(unsigned long long)misplaced);
	if (astray)
		fprintf(stderr,
			"vmpt: %llu time%s execution went on elsewhere without a branch (reset, "
			"INIT, SMI): the trace has interrupts there\n",
			(unsigned long long)astray, astray == 1 ? "" : "s");
	if (plugin->translated && !plugin->host && !plugin->guest && !plugin->options.truth)
		fprintf(stderr,
			"vmpt: %llu blocks translated, none traced: neither host-view= nor "
			"guest-view= was given\n",
			(unsigned long long)plugin->translated);
}

/* Prints to stderr: QEMU sends the output of plugins to its log, which is off by default. */
static void at_exit(void *user)
{
	struct plugin *plugin = user;
	u64 astray = 0, misplaced = 0;
	int err;

	flow_stop(plugin);
	for (unsigned int i = 0; i < VCPUS; i++) {
		struct vcpu *vcpu = plugin->vcpu[i];

		if (!vcpu)
			continue;
		astray += vcpu->astray;
		misplaced += vcpu->misplaced;
		stop(vcpu);
		err = vcpu->truth ? truth_close(vcpu->truth) : 0;
		if (err)
			fprintf(stderr, "vmpt: %s.%u is not whole: %s\n", plugin->options.truth, i,
				strerror(-err));
	}
	if (plugin->host)
		host_view_close(plugin);
	report(plugin, astray, misplaced);
}

static const struct qemu_events callbacks = {
	.vcpu_init = vcpu_init,
	.vcpu_exit = vcpu_exit,
	.vcpu_idle = flow_idle,
	.event = flow_event,
	.translate = translate_block,
	.flush = flushed,
	.at_exit = at_exit,
};

/* Errors are found before the guest starts. vCPUs that are plugged in later open their own. */
static int open_truths(struct plugin *plugin)
{
	for (unsigned int i = 0; plugin->options.truth && i < plugin->machine.vcpus; i++) {
		plugin->truth[i] = truth_open(&plugin->options, i);
		if (!plugin->truth[i])
			return -1;
	}
	return 0;
}

static int check_machine(const struct qemu_machine *machine)
{
	if (machine->max_vcpus <= VCPUS)
		return 0;
	fprintf(stderr, "vmpt: this machine may have %u vCPUs (-smp), the plugin traces up to %u\n",
		machine->max_vcpus, VCPUS);
	return -1;
}

int plugin_install(u64 id, const struct qemu_machine *machine, int argc, char **argv)
{
	struct plugin *plugin;

	/* Never freed: callbacks may come until the process ends. */
	plugin = calloc(1, sizeof(*plugin));
	if (!plugin) {
		fputs("vmpt: no memory\n", stderr);
		return -1;
	}
	plugin->id = id;
	plugin->machine = *machine;
	pthread_mutex_init(&plugin->lock, NULL);
	if (options_parse(&plugin->options, argc, argv))
		return -1;
	if (plugin->options.help) {
		options_print_help();
		/* As "-device help" does: QEMU would run the guest, or call it an error. */
		exit(0);
	}
	if (check_machine(machine))
		return -1;
	plugin->rtit = plugin->options.rtit;
	plugin->host_ops = &host_view_ops;
	plugin->guest_ops = &guest_view_ops;
	/* At a file-size limit data is lost, as on a full disk, but QEMU continues. */
	if (plugin->options.host_view || plugin->options.truth)
		signal(SIGXFSZ, SIG_IGN);
	clock_start(&plugin->clock);
	if (host_view_open(plugin) || guest_view_open(plugin) || translate_open(plugin) ||
	    open_truths(plugin))
		return -1;
	plugin->always = plugin->host || plugin->options.truth;
	plugin->whole = plugin->always;
	plugin->events = plugin->host && !plugin->rtit && plugin->options.ctl & VMPT_CTL_EVENT_EN;
	plugin->callbacks = &callbacks;
	qemu_listen(plugin->id, plugin->callbacks, plugin);
	return 0;
}
