// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Time in a stream that two vCPUs share, with isa=rtit: it does not decrease, wherever a vCPU's
 * thread has to wait. The test has its own clock and side record.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/rtit-packet.h"
#include "arch/rtit-regs.h"
#include "qemu-plugin/host/record.h"
#include "qemu-plugin/host/host.h"
#include "tests/qemu-plugin/stand-in.h"
#include "tests/support/support.h"

#define WAIT  10000000 /* ns; more than the plugin's limit for a stall */
#define READS 16       /* more than a run's reads of the clock */

static struct {
	char dir[64];
	struct vcpu other;
	u64 now;	      /* ns */
	unsigned int reads;   /* of the clock, since the run began */
	unsigned int wait_at; /* the read before which its thread waits, from 1; 0: none */
	u64 waited_from;
} t;

/* ---- in place of flow/clock.c and host/record.c ---- */

void __wrap_clock_read(const struct clock *clock, struct vmpt_now *now);

void __wrap_clock_read(const struct clock *clock, struct vmpt_now *now)
{
	(void)clock;
	if (++t.reads == t.wait_at) {
		t.waited_from = t.now;
		t.now += WAIT;
	}
	t.now += 100;
	*now = (struct vmpt_now){ .tsc = t.now, .cycles = t.now };
}

int host_record_add(const struct options *options, const char *vm, u32 vcpu, u64 since, u64 *vmcs)
{
	(void)options;
	(void)vm;
	(void)vcpu;
	(void)since;
	*vmcs = 0x1000;
	return 0;
}

int host_record_open(const struct options *options, const struct vmpt_rtit_record *who)
{
	(void)options;
	(void)who;
	return 0;
}

int host_record_run(int fd, const struct vmpt_rtit_record *who)
{
	(void)fd;
	(void)who;
	return 0;
}

u64 host_record_key(const struct vmpt_rtit_record *who)
{
	return who->vcpu + 1;
}

/* ---- two vCPUs on host CPU 0 ---- */

static void setup(void)
{
	struct plugin *plugin = &stand_in.plugin;

	stand_in_setup();
	memset(&t, 0, sizeof(t));
	t.now = 1000000000;
	snprintf(t.dir, sizeof(t.dir), "/tmp/vmpt-host-view.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(t.dir));
	plugin->rtit = true;
	plugin->options = (struct options){ .rtit = true,
					    .host_view = t.dir,
					    .vm = "test",
					    .cpu_count = 2,
					    .slice_us = 1000000,
					    .ctl = VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_USER |
						   VMPT_RTIT_CTL_STS_EN };
	ck_assert_int_eq(host_view_open(plugin), 0);
	t.other = stand_in.vcpu;
	t.other.index = 1;
	ck_assert_int_eq(host_vcpu_open(&stand_in.vcpu), 0);
	ck_assert_int_eq(host_vcpu_open(&t.other), 0);
}

static void teardown(void)
{
	static const char *const files[] = { "cpu0.rtit", "cpu0.state" };
	char path[96];

	for (unsigned int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", t.dir, files[i]);
		unlink(path);
	}
	rmdir(t.dir);
}

static void run(struct vcpu *vcpu)
{
	t.reads = 0;
	host_view_ops.enter(vcpu, 0x401000);
	host_view_ops.exit(vcpu, 0x401020, EXIT_IO, 0);
}

/* The STSs of the stream must not decrease. */
static unsigned int count_times(void)
{
	struct vmpt_rtit_packet pkt;
	unsigned int n = 0;
	char path[96];
	size_t size;
	u64 last = 0;
	u8 *bytes;

	snprintf(path, sizeof(path), "%s/cpu0.rtit", t.dir);
	bytes = test_read_file(path, &size);
	for (size_t at = 0; at < size; at += pkt.size) {
		ck_assert_int_eq(vmpt_rtit_decode(&pkt, bytes + at, size - at, false), 0);
		if (pkt.kind != VMPT_RTIT_STS)
			continue;
		ck_assert_msg(pkt.sts.tsc >= last, "read %u: time goes back from %llu to %llu",
			      t.wait_at, (unsigned long long)last, (unsigned long long)pkt.sts.tsc);
		last = pkt.sts.tsc;
		n++;
	}
	free(bytes);
	return n;
}

/* While one waits, in the middle of a run or at its end, the other has a whole run. */
START_TEST(other_runs_meanwhile)
{
	unsigned int waits = 0;
	u64 after;

	for (unsigned int at = 1; at <= READS; at++) {
		t.wait_at = at;
		t.waited_from = 0;
		run(&stand_in.vcpu);
		if (!t.waited_from)
			break;
		waits++;
		after = t.now;
		t.wait_at = 0;
		t.now = t.waited_from + 1000;
		run(&t.other);
		t.now = after + 1000000;
		t.wait_at = at;
		ck_assert_uint_ge(count_times(), 2 * waits);
	}
	/* The clock is read at entry and exit, and at the end of the exit. */
	ck_assert_uint_ge(waits, 4);
	ck_assert_uint_lt(waits, READS);
	host_view_close(&stand_in.plugin);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("qemu-plugin/host-view-time");
	TCase *tcase = tcase_create("rtit");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, other_runs_meanwhile);
	suite_add_tcase(suite, tcase);
	return suite;
}
