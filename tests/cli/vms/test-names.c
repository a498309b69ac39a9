// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt vms and vmpt split with names of VMs: by a side record, whose VMCSs may be used again, and
 * by the events of a perf.data. The machine (tests/decoder/timeline-machine.h) knows what ran when.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli-run.h"
#include "tests/decoder/perf-writer.h"
#include "tests/decoder/timeline-machine.h"

#define FILES "a.cpu0.pt a.cpu1.pt"
#define CPUS  2

static struct tl_machine *m;
static const struct tl_run *run;
static size_t runs;

static void setup(void)
{
	static const struct tl_options o = {
		.cpus = CPUS, .guests = 3, .runs = 300, .seed = 27, .cyc = true
	};
	unsigned int cpu;

	cli_setup();
	m = tl_new(&o);
	tl_go(m);
	run = tl_runs(m, &runs);
	for (cpu = 0; cpu < CPUS; cpu++) {
		const struct vmpt_stream *s = tl_stream(m, cpu);
		char name[32];

		snprintf(name, sizeof(name), "a.cpu%u.pt", cpu);
		write_file(name, s->data, s->size);
	}
}

static void teardown(void)
{
	tl_free(m);
	cli_clean();
}

/* ---- a side record ---- */

static char record[4096];

static void tell(const char *vm, int vcpu, unsigned int guest, u64 since)
{
	size_t n = strlen(record);

	snprintf(record + n, sizeof(record) - n,
		 "{\"vm\":\"%s\",\"vcpu\":%d,\"vmcs\":\"0x%llx\",\"since\":\"0x%llx\"}\n", vm, vcpu,
		 (unsigned long long)tl_vmcs(guest), (unsigned long long)since);
}

static void write_record(void)
{
	write_file("vms.jsonl", record, strlen(record));
	record[0] = '\0';
}

/* What "owners" or "streams" has of a guest, the first. */
static json_t *of_guest(json_t *list, unsigned int guest)
{
	char vmcs[24];
	size_t i;
	json_t *o;

	snprintf(vmcs, sizeof(vmcs), "0x%llx", (unsigned long long)tl_vmcs(guest));
	json_array_foreach(list, i, o)
	{
		const char *is = json_string_value(json_object_get(o, "vmcs"));

		if (is && !strcmp(is, vmcs))
			return o;
	}
	ck_abort_msg("no VMCS %s", vmcs);
}

/* The time between two runs of @guest, the first of which is number @n of its runs. */
static u64 between(unsigned int guest, size_t n)
{
	u64 after = 0, before = ~0ULL;
	size_t i, k = 0;

	/* Its entries by time: the one after which n others come first. */
	for (k = 0; k <= n; k++) {
		u64 least = ~0ULL;

		for (i = 0; i < runs; i++)
			if (run[i].guest == guest && run[i].entry > after && run[i].entry < least)
				least = run[i].entry;
		after = least;
	}
	for (i = 0; i < runs; i++)
		if (run[i].guest == guest && run[i].entry > after && run[i].entry < before)
			before = run[i].entry;
	ck_assert(before != ~0ULL);
	return before - 1;
}

START_TEST(names_of_record)
{
	const struct run *r;
	json_t *doc;

	/* A line more for a new TSC offset is no other name. */
	tell("web", 0, 0, 0);
	tell("web", 0, 0, between(0, 5));
	tell("web", 1, 1, 0);
	write_record();
	r = vmpt("vms --side-record=vms.jsonl " FILES);
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "VMCS       VM          CPUS");
	ck_has(r->out, "web vcpu 0  ");
	ck_has(r->out, "web vcpu 1  ");
	ck_lacks(r->out, "more");
	doc = run_json(vmpt("vms --json --side-record=vms.jsonl " FILES));
	ck_assert_str_eq(json_text(of_guest(json_at(doc, "owners"), 1), "vm"), "web");
	ck_assert_uint_eq(json_u64(of_guest(json_at(doc, "owners"), 1), "vcpu"), 1);
	/* The third was not given. */
	ck_assert(!json_object_get(of_guest(json_at(doc, "owners"), 2), "vm"));
	ck_assert(!json_object_get(of_guest(json_at(doc, "owners"), 2), "names"));
	json_decref(doc);
	/* Without a record there is no column. */
	r = vmpt("vms " FILES);
	ck_has(r->out, "VMCS");
	ck_lacks(r->out, " VM ");
	r = vmpt("split -o out " FILES);
	ck_has(r->out, "FILE");
	ck_lacks(r->out, " VM\n");
}
END_TEST

START_TEST(split_names)
{
	const struct run *r;
	char name[64];
	json_t *doc, *o;

	tell("web", 0, 0, 0);
	tell("db", 3, 1, 0);
	write_record();
	r = vmpt("split -o out --side-record=vms.jsonl " FILES);
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "  VM\n");
	ck_has(r->out, "  db vcpu 3\n");
	doc = json_load_file("out/index.json", 0, NULL);
	o = of_guest(json_at(doc, "streams"), 1);
	ck_assert_str_eq(json_text(o, "vm"), "db");
	ck_assert_uint_eq(json_u64(o, "vcpu"), 3);
	/* Files go by the VMCS as before. */
	snprintf(name, sizeof(name), "vmcs-%llx.cpu", (unsigned long long)tl_vmcs(1));
	ck_has(json_text(o, "file"), name);
	json_decref(doc);
	/* With --clock the clocks are open already. */
	r = vmpt("split -f -o out --clock=host --side-record=vms.jsonl " FILES);
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "  db vcpu 3\n");
	/* A bad record is reported before anything is written. */
	write_file("bad.jsonl", "{}\n", 3);
	ck_assert_int_eq(vmpt("split -o new --side-record=bad.jsonl " FILES)->code, 1);
	ck_assert_int_eq(vmpt("split -o new " FILES)->code, 0);
}
END_TEST

/* The page of a VMCS was one VM's and then another's. */
START_TEST(used_again)
{
	u64 at = between(0, 20);
	const struct run *r;
	char hex[24];
	json_t *doc, *o;

	tell("early", 0, 0, 0);
	tell("late", 1, 0, at);
	/* When nothing was recorded any more */
	tell("never", 0, 0, at << 8);
	write_record();
	r = vmpt("vms --side-record=vms.jsonl " FILES);
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "  early vcpu 0, +1 more  ");
	doc = run_json(vmpt("vms --json --side-record=vms.jsonl " FILES));
	o = of_guest(json_at(doc, "owners"), 0);
	ck_assert(!json_object_get(o, "vm"));
	ck_assert_uint_eq(json_array_size(json_at(o, "names")), 2);
	ck_assert_str_eq(json_text(o, "names/0/vm"), "early");
	ck_assert_str_eq(json_text(o, "names/1/vm"), "late");
	ck_assert_uint_eq(json_u64(o, "names/1/vcpu"), 1);
	snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)at);
	ck_assert_str_eq(json_text(o, "names/0/to_tsc"), hex);
	ck_assert_str_eq(json_text(o, "names/1/from_tsc"), hex);
	json_decref(doc);
	/* It all happened before the trace: one name is left. */
	tell("old", 0, 0, 0);
	tell("new", 0, 0, 1);
	write_record();
	doc = run_json(vmpt("vms --json --side-record=vms.jsonl " FILES));
	ck_assert_str_eq(json_text(of_guest(json_at(doc, "owners"), 0), "vm"), "new");
	json_decref(doc);
}
END_TEST

START_TEST(hostile_names)
{
	static const char longest[] = "a-name-that-is-much-longer-than-any-table-has-room-for";
	const struct run *r;
	char text[80];

	tell(longest, 65535, 0, 0);
	tell("\\u001b[31m", 0, 1, 0);
	write_record();
	r = vmpt("vms --side-record=vms.jsonl " FILES);
	/* Not on a terminal: whole. */
	snprintf(text, sizeof(text), "%s vcpu 65535  ", longest);
	ck_has(r->out, text);
	ck_lacks(r->out, "\033");
	ck_has(r->out, "\\u001b[31m vcpu 0");
}
END_TEST

START_TEST(other_recording)
{
	const struct run *r;

	tell("web", 0, 77, 0);
	write_record();
	r = vmpt("vms --side-record=vms.jsonl " FILES);
	ck_assert_int_eq(r->code, 0);
	ck_has(r->err, "none of its VMCSs ran in this trace");
	r = vmpt("split -o out --side-record=vms.jsonl " FILES);
	ck_has(r->err, "none of its VMCSs ran in this trace");
	ck_assert_int_eq(vmpt("vms --side-record=absent.jsonl " FILES)->code, 1);
}
END_TEST

/* ---- events ---- */

/* As tools/perf has it: time_zero + tsc * time_mult >> time_shift. */
static u64 perf_time(u64 tsc)
{
	u64 quot = tsc >> WRITER_SHIFT, rem = tsc & ((1ULL << WRITER_SHIFT) - 1);

	return WRITER_ZERO + quot * WRITER_MULT + (rem * WRITER_MULT >> WRITER_SHIFT);
}

/* The machine's rates, over the last members of the record that was just written. */
static void set_rates(struct perf_writer *w)
{
	const u64 rates[] = { 100, 1, 2 /* the cyc bit */, 20, 0 };

	memcpy(w->buf + w->size - sizeof(rates), rates, sizeof(rates));
}

/* Guest n is a process of its own, 700 + n, "vmm-n". @kvm: with KVM's events. */
static void write_perf(bool kvm)
{
	struct perf_writer w;
	unsigned int i;
	char comm[16];

	writer_start_kvm(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
	set_rates(&w);
	for (i = 0; i < 3; i++) {
		struct writer_at start = { 700 + i, 700 + i, 0, perf_time(run[0].entry) - 900 };

		snprintf(comm, sizeof(comm), "vmm-%u", i);
		writer_comm(&w, true, comm, 700 + i, 700 + i, &start);
	}
	for (i = 0; i < runs; i++) {
		const struct tl_run *r = &run[i];
		struct writer_at in = { 700 + r->guest, 700 + r->guest, r->cpu,
					perf_time(r->entry - 150) };
		struct writer_at out = in;

		out.time = perf_time(r->exit + 150);
		writer_switch(&w, false, false, &in);
		if (kvm)
			writer_kvm_entry(&w, 4, r->entry_ip, &in);
		writer_switch(&w, true, false, &out);
	}
	for (i = 0; i < CPUS; i++) {
		const struct vmpt_stream *s = tl_stream(m, i);

		writer_aux(&w, (int)i, -1, 0, s->size, 0);
		writer_auxtrace(&w, (int)i, -1, 0, s->data, s->size);
	}
	writer_finish(&w);
	write_file("perf.data", w.buf, w.size);
	writer_free(&w);
}

START_TEST(names_of_events)
{
	const struct run *r;
	json_t *doc, *o;

	write_perf(true);
	doc = run_json(vmpt("vms --json perf.data"));
	o = of_guest(json_at(doc, "owners"), 2);
	ck_assert_str_eq(json_text(o, "vm"), "vmm-2/702");
	ck_assert_uint_eq(json_u64(o, "vcpu"), 4);
	json_decref(doc);
	r = vmpt("split -o out perf.data");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "  vmm-0/700 vcpu 4\n");
	/* Switches give the process, but not the vCPU's number. */
	write_perf(false);
	doc = run_json(vmpt("vms --json perf.data"));
	o = of_guest(json_at(doc, "owners"), 1);
	ck_assert_str_eq(json_text(o, "vm"), "vmm-1/701");
	ck_assert(json_is_null(json_at(o, "vcpu")));
	json_decref(doc);
	/* A side record's name comes first, of others the events'. */
	tell("web", 9, 0, 0);
	write_record();
	r = vmpt("vms --side-record=vms.jsonl perf.data");
	ck_has(r->out, "web vcpu 9  ");
	ck_lacks(r->out, "vmm-0");
	ck_has(r->out, "vmm-1/701 ");
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("vms-names");
	TCase *tc = tcase_create("names");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, names_of_record);
	tcase_add_test(tc, split_names);
	tcase_add_test(tc, used_again);
	tcase_add_test(tc, hostile_names);
	tcase_add_test(tc, other_recording);
	tcase_add_test(tc, names_of_events);
	suite_add_tcase(s, tc);
	return s;
}
