// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The filters of all commands: the same meaning everywhere, by a trace that is counted by hand. */
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

static const char record[] = "{\"vm\":\"web\",\"vcpu\":0,\"vmcs\":\"0xa000\"}\n"
			     "{\"vm\":\"db\",\"vcpu\":1,\"vmcs\":\"0xb000\"}\n";

/*
 * write_mixed()'s bytes by owner: host 36 + 23 (its exit's group, the VMCS packet and a TNT), a000
 * 24, b000 16. And by CR3: 1000 from offset 16 to 36 and 60 to 83, 2000 from 36 to 60, 3000
 * from 83.
 */
static const struct {
	const char *filter;
	u64 bytes;
} parts[] = {
	{ "--owner=host", 59 },
	{ "--owner=a000", 24 },
	{ "--owner=0xb000", 16 },
	{ "--owner=vm", 40 },
	{ "--owner=host,b000", 75 },
	{ "--owner=web", 24 },
	{ "--owner=db", 16 },
	{ "--owner=db:1", 16 },
	{ "--owner=db\tvcpu\t1", 16 },
	{ "--vm=web", 24 },
	{ "--vm=a000", 24 },
	{ "--vm=web,db", 40 },
	{ "--vm=web --vm=db", 40 },
	{ "--vcpu=1", 16 },
	{ "--vcpu=0-3", 40 },
	{ "--vcpu=0,7", 24 },
	{ "--cr3=2000", 24 },
	{ "--cr3=0x1000", 43 },
	{ "--cr3=2000,3000", 40 },
	{ "--vm=web --vcpu=0", 24 },
	{ "--vm=web --cr3=2000", 24 },
	{ "--owner=vm --vm=db", 16 },
	/* Nothing fits both. */
	{ "--vm=web --vcpu=1", 0 },
	{ "--vm=web --cr3=3000", 0 },
	{ "--owner=host --vm=web", 0 },
};

static u64 owners_bytes(json_t *doc)
{
	json_t *owners = json_at(doc, "owners");
	u64 sum = 0;
	size_t i;

	for (i = 0; i < json_array_size(owners); i++)
		sum += json_u64(json_array_get(owners, i), "bytes");
	return sum;
}

/* Lines of dump: each is an object with a size. */
static u64 dump_bytes(const char *text)
{
	u64 sum = 0;

	while ((text = strstr(text, "\"size\":")) != NULL) {
		text += strlen("\"size\":");
		sum += strtoull(text, NULL, 10);
	}
	return sum;
}

START_TEST(b10_one_meaning_everywhere)
{
	const char *filter = parts[_i].filter;
	const struct run *r;
	json_t *doc;

	write_mixed("x.pt");
	write_file("vms.jsonl", record, strlen(record));
	doc = run_json(vmpt("stat --json --side-record=vms.jsonl %s x.pt", filter));
	ck_assert_msg(json_u64(doc, "total/bytes") == parts[_i].bytes, "stat %s: %llu", filter,
		      (unsigned long long)json_u64(doc, "total/bytes"));
	json_decref(doc);
	doc = run_json(vmpt("vms --json --side-record=vms.jsonl %s x.pt", filter));
	ck_assert_msg(owners_bytes(doc) == parts[_i].bytes, "vms %s: %llu", filter,
		      (unsigned long long)owners_bytes(doc));
	json_decref(doc);
	r = vmpt("dump --json --side-record=vms.jsonl %s x.pt", filter);
	ck_assert_msg(dump_bytes(r->out) == parts[_i].bytes, "dump %s: %llu", filter,
		      (unsigned long long)dump_bytes(r->out));
	ck_assert_int_eq(r->code, 0);
	if (!parts[_i].bytes)
		ck_has(r->err, "nothing in the trace fits the filters");
	else
		ck_lacks(r->err, "fits the filters");
}
END_TEST

/* split writes the streams that are wanted, and no others. */
START_TEST(b10_split_of_one)
{
	const struct run *r;
	json_t *doc;

	write_mixed("x.pt");
	write_file("vms.jsonl", record, strlen(record));
	r = vmpt("split -o out --side-record=vms.jsonl --vm=web x.pt");
	ck_assert_int_eq(r->code, 0);
	ck_has(r->out, "\nvmcs-a000.pt ");
	ck_lacks(r->out, "b000");
	ck_lacks(r->out, "host");
	ck_has(r->out, "75 bytes do not fit the filters");
	doc = run_json(vmpt("index --json out"));
	ck_assert_uint_eq(json_u64(doc, "filtered_bytes"), 75);
	ck_assert_uint_eq(json_u64(doc, "left_out_bytes"), 0);
	ck_assert_uint_eq(json_u64(doc, "slices"), json_array_size(json_at(doc, "index")));
	ck_assert_uint_eq(json_u64(doc, "slices"), json_u64(doc, "streams/0/slices"));
	json_decref(doc);
	r = vmpt("split -f -o out --cr3=3000 x.pt");
	ck_has(r->out, "\nvmcs-b000.pt ");
	ck_lacks(r->out, "a000");
	/* What it writes is what the library writes without filters. */
	ck_assert_int_eq(vmpt("split -o all x.pt")->code, 0);
	ck_assert_int_eq(system("cmp -s out/vmcs-b000.pt all/vmcs-b000.pt"), 0);
}
END_TEST

/* A name that no VM has is wrong in every command, and the names that there are, are listed. */
START_TEST(b10_names_are_checked)
{
	static const char *const cmd[] = { "dump",   "stat",	 "vms",	 "split -o out",
					   "clocks", "timeline", "exits" };
	size_t i;

	write_mixed("x.pt");
	write_file("vms.jsonl", record, strlen(record));
	for (i = 0; i < VMPT_ARRAY_SIZE(cmd); i++) {
		const struct run *r = vmpt("%s --side-record=vms.jsonl --vm=mail x.pt", cmd[i]);

		ck_assert_msg(r->code == 2, "%s: %d", cmd[i], r->code);
		ck_has(r->err, "--vm: no VM 'mail' in the trace; it has web, db");
		r = vmpt("%s --side-record=vms.jsonl --owner=mail x.pt", cmd[i]);
		ck_assert_msg(r->code == 2, "%s: %d", cmd[i], r->code);
		r = vmpt("%s --side-record=vms.jsonl --vcpu=7-9 x.pt", cmd[i]);
		ck_assert_msg(r->code == 2, "%s: %d", cmd[i], r->code);
		ck_has(r->err, "--vcpu: no such vCPU in the trace; it has 0, 1\n");
		r = vmpt("%s --vcpu=0 x.pt", cmd[i]);
		ck_assert_msg(r->code == 2, "%s: %d", cmd[i], r->code);
		ck_has(r->err, "--vcpu: no vCPU has a number here");
		r = vmpt("%s --cpu=5 x.pt@1", cmd[i]);
		ck_assert_msg(r->code == 2, "%s: %d", cmd[i], r->code);
		ck_has(r->err, "--cpu: no such CPU in the trace; it has CPU 1 only");
		r = vmpt("%s --from=1 x.pt", cmd[i]);
		ck_assert_msg(r->code == 2, "%s: %d", cmd[i], r->code);
		ck_has(r->err, strcmp(cmd[i], "clocks")
				       ? "has no times"
				       : "--from: clocks are found by the whole trace");
	}
}
END_TEST

/* B4: CPUs in numerical order, whatever the order of the files. */
START_TEST(b4_cpus_in_order)
{
	const char *a, *b, *c;
	const struct run *r;

	write_mixed("x.pt");
	r = vmpt("stat x.pt@10 x.pt@2 x.pt@1");
	a = strstr(r->out, "CPU 1:");
	b = strstr(r->out, "CPU 2:");
	c = strstr(r->out, "CPU 10:");
	ck_assert(a && b && c && a < b && b < c);
}
END_TEST

/* B12: --time is an option of the commands that print such times, and of no other. */
START_TEST(b12_time_where_it_does_something)
{
	static const char *const with[] = { "timeline", "exits", "wait", "clocks" };
	static const char *const without[] = { "vms", "stat", "split" };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(with); i++)
		ck_assert_ptr_nonnull(strstr(vmpt("%s --help", with[i])->out, "--time"));
	for (i = 0; i < VMPT_ARRAY_SIZE(without); i++) {
		ck_assert_ptr_null(strstr(vmpt("%s --help", without[i])->out, "--time"));
		ck_assert_int_eq(vmpt("%s --time=wall x.pt", without[i])->code, 2);
		ck_assert_ptr_nonnull(strstr(vmpt("%s --time=wall x.pt", without[i])->err,
					     "unrecognized option '--time=wall'"));
	}
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("filter");
	TCase *tc = tcase_create("filter");

	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_loop_test(tc, b10_one_meaning_everywhere, 0, VMPT_ARRAY_SIZE(parts));
	tcase_add_test(tc, b10_split_of_one);
	tcase_add_test(tc, b10_names_are_checked);
	tcase_add_test(tc, b12_time_where_it_does_something);
	tcase_add_test(tc, b4_cpus_in_order);
	suite_add_tcase(s, tc);
	return s;
}
