// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The host view: runs. A vCPU makes the packets of its run by itself. When the run ends, they are
 * appended to the stream of its host CPU (stream.c).
 */
#include "qemu-plugin/host/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qemu-plugin/flow/flow.h"
#include "qemu-plugin/host/loop.h"
#include "qemu-plugin/host/perf.h"
#include "qemu-plugin/host/record.h"
#include "qemu-plugin/host/rtit.h"
#include "qemu-plugin/host/stream.h"
#include "qemu-plugin/host/tasks.h"

struct host_view {
	struct vmpt_unit_config config; /* without a sink */
	struct host_stream_settings settings;
	pthread_mutex_t lock; /* for the list: vCPUs are added on their own threads */
	struct host_stream *streams;
	bool warned;	     /* atomic: of a guest that was running before */
	struct tasks *tasks; /* NULL: none are written */
	char vm[256];
};

struct host_vcpu {
	struct host_stream *stream;
	struct vmpt_unit unit, idle; /* idle: its state before a VM entry */
	struct vmpt_sink sink;
	struct vmpt_rtit_unit rtit, rtit_idle; /* the same with isa=rtit */
	struct vmpt_rtit_sink rtit_sink;
	struct host_run run;
	int record; /* side record; while it is open the VMCS is this vCPU's */
	u64 slice;  /* in ticks of the TSC */
	bool begun; /* it had a run */
	struct tasks_vcpu tasks;
};

/* ---- the view ---- */

/*
 * A processor with everything in the manual: ctl= chooses. Event Trace it has only where that is
 * chosen, because it puts RFLAGS.IF into each MODE.Exec (Table 33-26), and without EventEn the flow
 * does not follow STI, CLI and POPF.
 */
static void all_capabilities(struct vmpt_pt_cpuid *cpuid, u64 ctl)
{
	*cpuid = (struct vmpt_pt_cpuid){ .present = 1, .maxphyaddr = 52, .linear_bits = 57 };
	for (unsigned int cap = 0; cap < VMPT_CAPS; cap++)
		vmpt_pt_cap_set(cpuid, cap, ~0u);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_MAX_SUBLEAF, 1);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_LIP, 0);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_FABRIC, 0);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_EVENT, ctl & VMPT_CTL_EVENT_EN ? 1 : 0);
	cpuid->crystal_hz = CLOCK_CRYSTAL;
	cpuid->tsc_numerator = CLOCK_NUMERATOR;
	cpuid->tsc_denominator = CLOCK_DENOMINATOR;
}

/* The view sets TraceEn and the output; address ranges need MSRs for which there is no option. */
#define CTL_REFUSED                                                                     \
	(VMPT_CTL_TRACE_EN | VMPT_CTL_TOPA | VMPT_CTL_FABRIC_EN | VMPT_CTL_CR3_FILTER | \
	 VMPT_CTL_ADDR(0) | VMPT_CTL_ADDR(1) | VMPT_CTL_ADDR(2) | VMPT_CTL_ADDR(3))

static int check_ctl(const struct host_view *view, u64 ctl)
{
	struct vmpt_pt_rules rules;
	struct vmpt_pt_regs regs;

	vmpt_pt_rules_init(&rules, &view->config.cpuid);
	vmpt_pt_reset_cold(&regs);
	if (!(ctl & CTL_REFUSED) && !vmpt_pt_wrmsr(&rules, &regs, VMPT_MSR_RTIT_CTL, ctl, NULL))
		return 0;
	fprintf(stderr, "vmpt: ctl=0x%llx: %s\n", (unsigned long long)ctl,
		ctl & CTL_REFUSED
			? "TraceEn, ToPA, FabricEn, CR3Filter and ADDRn_CFG cannot be chosen here"
			: "a processor would refuse it (#GP)");
	return -1;
}

static int make_dir(const char *dir, u64 mode)
{
	struct stat st;

	/* Who may read the files may enter it. */
	if (!mkdir(dir, (mode_t)(0700 | mode | (mode & 0444) >> 2)))
		return 0;
	if (errno == EEXIST && !stat(dir, &st)) {
		if (!S_ISDIR(st.st_mode))
			errno = ENOTDIR;
		else if (!access(dir, W_OK | X_OK))
			return 0;
	}
	fprintf(stderr, "vmpt: host-view=%s: %s\n", dir, strerror(errno));
	return -1;
}

static struct host_stream *find_stream(struct host_view *view, u32 cpu)
{
	struct host_stream *stream;

	pthread_mutex_lock(&view->lock);
	for (stream = view->streams; stream && stream->cpu != cpu; stream = stream->next)
		;
	if (!stream) {
		stream = host_stream_open(&view->settings, cpu);
		if (stream) {
			stream->next = view->streams;
			view->streams = stream;
		}
	}
	pthread_mutex_unlock(&view->lock);
	return stream;
}

static u32 cpu_of(const struct options *options, unsigned int vcpu)
{
	unsigned int last = options->cpu_count ? options->cpu_count - 1 : 0;

	return vcpu <= last ? options->cpus[vcpu] : options->cpus[last] + (vcpu - last);
}

static void name_vm(struct host_view *view, const char *vm)
{
	if (vm)
		snprintf(view->vm, sizeof(view->vm), "%s", vm);
	else
		snprintf(view->vm, sizeof(view->vm), "vm-%ld", (long)getpid());
}

int host_view_open(struct plugin *plugin)
{
	const struct options *options = &plugin->options;
	struct host_view *view;

	if (!options->host_view)
		return 0;
	view = calloc(1, sizeof(*view));
	if (!view) {
		fputs("vmpt: no memory\n", stderr);
		return -1;
	}
	pthread_mutex_init(&view->lock, NULL);
	all_capabilities(&view->config.cpuid, options->ctl);
	view->config.options.careful_retc = true;
	view->settings.options = options;
	view->settings.config = &view->config;
	name_vm(view, options->vm);
	view->settings.vm = view->vm;
	if ((plugin->rtit ? host_rtit_check(options->ctl) : check_ctl(view, options->ctl)) ||
	    make_dir(options->host_view, options->mode))
		return -1;
	if (options->perf_data) {
		view->settings.perf = host_perf_open(options, &view->settings.fresh);
		if (!view->settings.perf)
			return -1;
	}
	if (options->synthetic && host_loop_save(options))
		return -1;
	/* Find errors before the guest starts. */
	if (!find_stream(view, cpu_of(options, 0)))
		return -1;
	if (options->code) {
		plugin->code = code_open(plugin, view->vm);
		if (!plugin->code)
			return -1;
	}
	if (options->tasks) {
		view->tasks = tasks_open(plugin, view->vm);
		if (!view->tasks)
			return -1;
	}
	plugin->host = view;
	return 0;
}

void host_view_close(struct plugin *plugin)
{
	struct host_view *view = plugin->host;
	struct host_stream *stream, *next;

	for (stream = view->streams; stream; stream = next) {
		next = stream->next;
		host_stream_close(stream);
	}
	view->streams = NULL;
	if (plugin->code)
		code_close(plugin->code);
	if (view->tasks)
		tasks_close(view->tasks);
	if (view->settings.perf)
		host_perf_close(view->settings.perf);
}

/* ---- a vCPU ---- */

static int take(void *opaque, const u8 *bytes, size_t len)
{
	struct host_run *run = opaque;

	if (run->discard)
		return 0;
	if (run->used + len > HOST_ROOM_BODY)
		return -ENOSPC;
	memcpy(run->room + HOST_ROOM_HEAD + run->used, bytes, len);
	run->used += len;
	return 0;
}

static int take_rtit(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	(void)pa;
	return take(opaque, bytes, len);
}

/* RTIT has no VMCS: the side record says which vCPU runs, from each change on. */
static int open_rtit(struct vcpu *vcpu, struct host_vcpu *host)
{
	const struct options *options = &vcpu->plugin->options;
	struct host_run *run = &host->run;

	run->who = (struct vmpt_rtit_record){ .vm = vcpu->plugin->host->vm,
					      .vcpu = vcpu->index,
					      .cpu = host->stream->cpu,
					      .tsc_offset = options->tsc_offset };
	host->record = host_record_open(options, &run->who);
	run->record = host->record;
	if (host->record < 0)
		return -1;
	host->rtit_sink = (struct vmpt_rtit_sink){ .write = take_rtit, .opaque = run };
	host_rtit_init(&host->rtit_idle, options, &host->rtit_sink);
	return 0;
}

/* Sets up the VMCS, and the units with what a VM entry loads. */
static int open_pt(struct vcpu *vcpu, struct host_vcpu *host)
{
	struct host_view *view = vcpu->plugin->host;
	const struct options *options = &vcpu->plugin->options;
	struct vmpt_unit_config config = view->config;
	struct vmpt_now now;
	u64 vmcs;

	clock_read(&vcpu->plugin->clock, &now);
	host->record = host_record_add(options, view->vm, vcpu->index, now.tsc, &vmcs);
	if (host->record < 0)
		return -1;
	host->sink = (struct vmpt_sink){ .write = take, .opaque = &host->run };
	config.sink = &host->sink;
	vmpt_unit_init(&host->idle, &config);
	vmpt_unit_vmxon(&host->idle, true, 0);
	vmpt_unit_vmptrld(&host->idle, vmcs);
	host->run.unit = &host->unit;
	host->run.entry.load_ctl = true;
	host->run.entry.ctl = options->ctl | VMPT_CTL_TRACE_EN;
	host->run.entry.vmx = (struct vmpt_unit_vmx){ .on = true,
						      .vmcs = vmcs,
						      .tsc_offset = options->tsc_offset,
						      .tsc_multiplier = options->tsc_multiplier };
	return 0;
}

int host_vcpu_open(struct vcpu *vcpu)
{
	const struct options *options = &vcpu->plugin->options;
	struct host_vcpu *host = calloc(1, sizeof(*host));

	if (!host)
		goto no_memory;
	host->run.room = malloc(HOST_ROOM);
	if (!host->run.room)
		goto no_memory;
	host->stream = find_stream(vcpu->plugin->host, cpu_of(options, vcpu->index));
	if (!host->stream)
		goto fail;
	if (vcpu->plugin->code && code_vcpu_open(vcpu))
		goto no_memory;
	if (vcpu->plugin->rtit ? open_rtit(vcpu, host) : open_pt(vcpu, host))
		goto fail;
	host->slice = options->slice_us * 1000;
	vcpu->host = host;
	return 0;
no_memory:
	fputs("vmpt: no memory\n", stderr);
fail:
	if (host)
		free(host->run.room);
	free(host);
	return -1;
}

/* ---- runs ---- */

/* A guest that was restored has loaded its GDT and IDT before. */
static void warn_of_middle(struct vcpu *vcpu)
{
	struct host_view *view = vcpu->plugin->host;

	vcpu->host->begun = true;
	if (!(vcpu->cpu.cr0 & 1) || vcpu->cpu.gdt ||
	    __atomic_exchange_n(&view->warned, true, __ATOMIC_RELAXED))
		return;
	fprintf(stderr,
		"vmpt: vCPU %u does not begin with its reset (-incoming, -loadvm): until the guest "
		"loads its GDT and IDT code segments are taken as flat, vectors as unknown\n",
		vcpu->index);
}

static void enter_rtit(struct vcpu *vcpu, u64 ip)
{
	struct host_vcpu *host = vcpu->host;
	struct host_run *run = &host->run;

	host->rtit = host->rtit_idle;
	run->used = 0;
	run->entry.target = ip;
	clock_read(&vcpu->plugin->clock, &run->begin);
	host_rtit_enter(&host->rtit, vcpu, ip);
	flow_rtit(vcpu, &host->rtit, true);
}

/*
 * The packets of the VM entry are made when the run is appended, because only then it is known what
 * the stream needs. Here the unit is just brought into the state after them.
 */
static void enter_pt(struct vcpu *vcpu, u64 ip)
{
	struct host_vcpu *host = vcpu->host;
	struct host_run *run = &host->run;
	struct vmpt_unit *unit = &host->unit;
	u64 status;

	*unit = host->idle;
	run->since_stream = host_stream_since(host->stream);
	status = run->since_stream << VMPT_STATUS_BYTES_SHIFT & VMPT_STATUS_BYTES;
	vmpt_unit_wrmsr(unit, VMPT_MSR_RTIT_STATUS, status, 0, 0);
	unit->since_psb = run->since_stream;
	clock_read(&vcpu->plugin->clock, &run->begin);
	vmpt_unit_time(unit, &run->begin);
	run->entry.ctl = vcpu->plugin->options.ctl | VMPT_CTL_TRACE_EN;
	run->entry.load_ctl = true;
	run->entry.ip = 0;
	run->entry.target = ip;
	run->entry.mode = vcpu->mode;
	run->discard = true;
	vmpt_unit_vmentry(unit, &run->entry);
	vmpt_unit_flush(unit);
	run->discard = false;
	run->used = 0;
	run->since_begin = unit->since_psb;
	/* If the entry makes no IP packet, the stream's last IP is not known here. */
	if (!unit->packet_en)
		unit->whole_ip = true;
	flow_unit(vcpu, unit, true);
}

static void enter(struct vcpu *vcpu, u64 ip)
{
	struct host_vcpu *host = vcpu->host;

	if (!host->begun)
		warn_of_middle(vcpu);
	if (vcpu->plugin->rtit)
		enter_rtit(vcpu, ip);
	else
		enter_pt(vcpu, ip);
	vcpu->running = true;
	if (vcpu->truth)
		truth_begin(vcpu->truth, ip);
}

static void append(struct vcpu *vcpu)
{
	struct host_run *run = &vcpu->host->run;
	struct code_run ran = { .vmcs = run->entry.vmx.vmcs,
				.begin = run->begin.tsc,
				.end = run->end.tsc };

	if (vcpu->plugin->code)
		code_flush(vcpu->plugin->code);
	host_stream_append(vcpu->host->stream, run);
	ran.moved = run->end.tsc - ran.end;
	if (vcpu->plugin->code)
		code_run(vcpu, &ran);
	if (vcpu->plugin->host->tasks)
		tasks_run(vcpu->plugin->host->tasks, &vcpu->host->tasks, ran.moved);
}

static void leave(struct vcpu *vcpu, u64 ip, u32 reason, u64 qualification)
{
	struct host_vcpu *host = vcpu->host;
	struct host_run *run = &host->run;

	if (vcpu->truth)
		truth_end(vcpu->truth, ip);
	vcpu->running = false;
	if (vcpu->plugin->rtit) {
		flow_rtit(vcpu, &host->rtit, false);
		host_rtit_exit(&host->rtit, vcpu, ip);
		/* After the exit, which may have a later time than any packet before it. */
		clock_read(&vcpu->plugin->clock, &run->end);
		append(vcpu);
		return;
	}
	clock_read(&vcpu->plugin->clock, &run->end);
	flow_unit(vcpu, &host->unit, false);
	vmpt_unit_time(&host->unit, &run->end);
	vmpt_unit_flush(&host->unit);
	run->exit = (struct vmpt_unit_exit){ .reason = reason,
					     .qualification = qualification,
					     .intr = reason == EXIT_EXTERNAL_INTERRUPT ||
						     reason == EXIT_EXCEPTION_OR_NMI,
					     .vector = reason == EXIT_EXCEPTION_OR_NMI ? 2 : 0,
					     .ip = ip };
	append(vcpu);
}

static void tick(struct vcpu *vcpu, u64 ip)
{
	struct host_vcpu *host = vcpu->host;
	struct vmpt_rtit_clocks rtit;
	struct vmpt_now now;

	if (!vcpu->running)
		return;
	clock_read(&vcpu->plugin->clock, &now);
	if (vcpu->plugin->host->tasks)
		tasks_tick(vcpu->plugin->host->tasks, vcpu, &host->tasks, now.tsc);
	if (now.tsc - host->run.begin.tsc >= host->slice || host->run.used >= HOST_RUN_MAX) {
		leave(vcpu, ip, EXIT_PREEMPTION_TIMER, 0);
		enter(vcpu, ip);
		return;
	}
	if (vcpu->plugin->rtit) {
		rtit_clocks(vcpu, &rtit);
		rtit_time(&host->rtit, &rtit);
		return;
	}
	vmpt_unit_time(&host->unit, &now);
}

/*
 * A PSB+ here, with its TSC: time in other packets lags, and a decoder has to know which code was
 * executed before the change and which after it. A direct jump leaves no other packet.
 */
static void code_changed(struct vcpu *vcpu, u64 ip)
{
	struct vmpt_unit *unit = &vcpu->host->unit;
	struct vmpt_now now;

	if (!vcpu->running || vcpu->plugin->rtit)
		return;
	clock_read(&vcpu->plugin->clock, &now);
	vmpt_unit_time(unit, &now);
	unit->psb_due = true;
	vmpt_unit_jmp(unit, ip);
}

const struct host_ops host_view_ops = {
	.enter = enter,
	.exit = leave,
	.tick = tick,
	.code_changed = code_changed,
};
