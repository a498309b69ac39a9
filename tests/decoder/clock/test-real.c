// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * decoder/clock/clock.c on a real host's trace, against libipt's query decoder: its time at each
 * event equals ours, and ours never goes back.
 */
#include <intel-pt.h>

#include "decoder/clock/clock.h"
#include "tests/support/support.h"

#define ITEMS 4096

static struct vmpt_trace *trace;
static const struct vmpt_stream *stream;
static struct vmpt_rates rates;

static struct {
	u64 offset;
	struct vmpt_time time;
	u8 kind;
} item[ITEMS];
static size_t items;

static void all_times(void)
{
	struct vmpt_clock_options how = { .rates = rates };
	static struct vmpt_time times[ITEMS];
	struct vmpt_decoder *dec;
	struct vmpt_clock clock;
	struct vmpt_batch b;
	u64 last = 0;
	size_t i;

	items = 0;
	vmpt_clock_init(&clock, &how);
	ck_assert_int_eq(vmpt_decoder_open(&dec, stream, NULL), 0);
	while (vmpt_batch_next(dec, &b) > 0) {
		ck_assert_uint_le(items + b.count, ITEMS);
		ck_assert_int_eq(vmpt_clock_batch(&clock, stream, &b, times, NULL), 0);
		for (i = 0; i < b.count; i++, items++) {
			item[items].offset = b.base + b.items[i].offset;
			item[items].time = times[i];
			item[items].kind = b.items[i].kind;
			if (times[i].tsc == VMPT_TIME_NONE)
				continue;
			ck_assert_uint_ge(times[i].tsc, last);
			last = times[i].tsc;
		}
	}
	vmpt_decoder_close(dec);
	ck_assert_uint_eq(clock.counts.contradictions, 0);
	ck_assert_uint_eq(clock.counts.tmas_bad, 0);
	ck_assert_uint_gt(clock.counts.mtcs, 100);
}

/* The next TIP.PGE or TIP.PGD of ours from @i on. */
static size_t next_of(size_t i, u8 kind)
{
	while (i < items && item[i].kind != kind)
		i++;
	ck_assert_uint_lt(i, items);
	return i;
}

START_TEST(as_libipt)
{
	const char *path = test_data("host-loopy.perf.data");
	const struct vmpt_trace_info *info;
	struct pt_query_decoder *dec;
	struct pt_config config;
	struct pt_event event;
	struct vmpt_diag diag;
	unsigned int compared = 0, steps = 0;
	uint64_t ip;
	int status, taken;
	size_t i = 0;

	if (!path)
		return;
	ck_assert_int_eq(vmpt_trace_open(&trace, path, -1, &diag), 0);
	stream = vmpt_trace_stream(trace, 0);
	info = vmpt_trace_info(trace);
	vmpt_rates_from_info(&rates, info);
	ck_assert(rates.tsc_num && rates.tsc_den && rates.has_mtc_freq && rates.nominal);
	all_times();

	pt_config_init(&config);
	config.begin = (uint8_t *)(uintptr_t)stream->data;
	config.end = config.begin + stream->size;
	config.cpuid_0x15_eax = rates.tsc_den;
	config.cpuid_0x15_ebx = rates.tsc_num;
	config.mtc_freq = rates.mtc_freq;
	config.nom_freq = (uint8_t)rates.nominal;
	dec = pt_qry_alloc_decoder(&config);
	ck_assert_ptr_nonnull(dec);
	status = pt_qry_sync_forward(dec, &ip);
	for (; status >= 0 && !(status & pts_eos); steps++) {
		ck_assert_uint_lt(steps, 10000);
		if (!(status & pts_event_pending)) {
			status = pt_qry_cond_branch(dec, &taken);
			if (status == -pte_bad_query)
				status = pt_qry_indirect_branch(dec, &ip);
			continue;
		}
		status = pt_qry_event(dec, &event, sizeof(event));
		if (status < 0)
			break;
		if (event.type != ptev_enabled && event.type != ptev_disabled &&
		    event.type != ptev_async_disabled)
			continue;
		/* libipt 2.1 on: whether PacketEn is 1 at a PSB. That is no TIP.PGE or TIP.PGD. */
		if (event.status_update)
			continue;
		i = next_of(i, event.type == ptev_enabled ? VMPT_PT_TIP_PGE : VMPT_PT_TIP_PGD);
		ck_assert(event.has_tsc);
		/* libipt's is the last known tick; it is rounded differently. */
		ck_assert_msg(event.tsc + 2 >= item[i].time.tsc &&
				      event.tsc <= item[i].time.tsc + 2,
			      "at %llx: libipt %llx, said %llx", (unsigned long long)item[i].offset,
			      (unsigned long long)event.tsc, (unsigned long long)item[i].time.tsc);
		compared++;
	}
	ck_assert_uint_eq(compared, 16); /* each TIP.PGE and TIP.PGD of the trace */
	pt_qry_free_decoder(dec);
	vmpt_trace_close(trace);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/clock-real");
	TCase *t = tcase_create("real");

	tcase_add_test(t, as_libipt);
	suite_add_tcase(s, t);
	return s;
}
