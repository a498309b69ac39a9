// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * All commands count what is lost by one definition (docs/decoder.md, "Errors"): the same losses
 * and the same bytes without a proven owner, on damaged traces written by hand, generated and real.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cli/cli-run.h"
#include "tests/decoder/perf-writer.h"
#include "tests/decoder/streams.h"
#include "tests/support/support.h"

#define TEXT 400

/* The warning with @word, without the command's name and with its second line; "" if none. */
static void warning(const char *err, const char *word, char text[TEXT])
{
	const char *line, *end = err;

	text[0] = '\0';
	while ((line = strstr(end, "warning: ")) != NULL) {
		end = strchr(line, '\n');
		ck_assert_ptr_nonnull(end);
		if (!memmem(line, (size_t)(end - line), word, strlen(word)))
			continue;
		end = strchr(end + 1, '\n');
		ck_assert_ptr_nonnull(end);
		snprintf(text, TEXT, "%.*s", (int)(end - line), line);
		return;
	}
}

/* The numbers in a split's index, or in the lines of a dump. */
static void check_slices(const char *file, u64 losses, u64 lost_bytes)
{
	u64 count = 0, bytes = 0;
	json_t *lines = run_packets(vmpt("dump --json --kinds=lost %s", file)), *line;
	size_t i;

	json_array_foreach(lines, i, line)
	{
		bytes += json_u64(line, "size");
		count++;
	}
	json_decref(lines);
	ck_assert_uint_eq(count, losses);
	ck_assert_uint_eq(bytes, lost_bytes);
}

/* The commands agree; adds to @seen the losses and the warnings of no proven owner. */
static void agree(const char *file, u64 *seen)
{
	static const char *const command[] = { "stat --json",	 "clocks", "vms",
					       "timeline",	 "exits",  "dump",
					       "split -f -o out" };
	char lost[TEXT] = "", unproven[TEXT] = "", text[TEXT] = "";
	u64 losses, lost_bytes, of_timeline = 0;
	const struct run *r;
	json_t *doc;
	size_t i, k;

	for (i = 0; i < VMPT_ARRAY_SIZE(command); i++) {
		r = vmpt("%s %s", command[i], file);
		warning(r->err, ": lost ", i ? text : lost);
		if (i)
			ck_assert_msg(!strcmp(text, lost), "%s %s: '%s', not '%s'", command[i],
				      file, text, lost);
		/* The others do not ask for owners. */
		if (i >= 2)
			warning(r->err, "no proven owner", i == 2 ? unproven : text);
		if (i > 2)
			ck_assert_msg(!strcmp(text, unproven), "%s %s: '%s', not '%s'", command[i],
				      file, text, unproven);
		/* To a dump, too, only bytes that are no packets are lost. */
		ck_assert_int_eq(r->code, *lost || (*unproven && i != 5) ? 3 : 0);
	}
	doc = run_json(vmpt("stat --json %s", file));
	losses = json_u64(doc, "total/loss_count");
	lost_bytes = json_u64(doc, "total/lost_bytes");
	json_decref(doc);
	ck_assert_int_eq(losses > 0, *lost != '\0');
	check_slices(file, losses, lost_bytes);
	doc = run_json(vmpt("timeline --summary --json %s", file));
	for (k = 0; k < json_array_size(json_at(doc, "cpus")); k++)
		of_timeline += json_u64(json_array_get(json_at(doc, "cpus"), k), "loss_count");
	json_decref(doc);
	ck_assert_uint_eq(of_timeline, losses);
	seen[0] += losses;
	seen[1] += *unproven != '\0';
}

/* Bytes overwritten, taken out, or an OVF or a TIP.PGD() put in their place. */
static size_t damage(struct test_rng *rng, u8 *p, size_t n)
{
	size_t at, len, hits = 2 + test_random(rng) % 4;

	while (hits-- && n > 64) {
		at = 1 + test_random(rng) % (n - 32);
		len = 1 + test_random(rng) % 20;
		switch (test_random(rng) % 4) {
		case 0:
			p[at] = 0x02;
			p[at + 1] = 0xf3;
			break;
		case 1:
			p[at] = 0x01;
			break;
		case 2:
			p[at] ^= (u8)test_random(rng);
			break;
		default:
			memmove(p + at, p + at + len, n - at - len);
			n -= len;
		}
	}
	return n;
}

static void agree_damaged(const u8 *bytes, size_t n, struct test_rng *rng, u64 seen[2])
{
	u8 *copy = malloc(n);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, bytes, n);
	n = damage(rng, copy, n);
	write_file("x.pt", copy, n);
	agree("x.pt", seen);
	free(copy);
}

/* Of write_mixed(), and of its bytes put end to end at any byte. */
START_TEST(a7_commands_agree_on_damage)
{
	struct test_rng rng = { 0xa7 + (u64)_i };
	u64 seen[2] = { 0 };
	size_t n, at, part;
	u8 *bytes, all[8 * MIXED_SIZE];
	int i, k;

	write_mixed("m.pt");
	bytes = test_read_file("m.pt", &n);
	for (i = 0; i < test_rounds(50, 2); i++) {
		for (k = 0, at = 0; k < 8; k++) {
			part = test_random(&rng) % 3 ? n : 1 + test_random(&rng) % n;
			memcpy(all + at, bytes, part);
			at += part;
		}
		agree_damaged(all, at, &rng, seen);
	}
	ck_assert_uint_gt(seen[0] + seen[1], 0);
	free(bytes);
}
END_TEST

/* Doubts that time with tracing off cuts, or that no PSB ends, are in these. */
START_TEST(a7_commands_agree_on_generated_traces)
{
	static const char *const script[] = { "context",   "ip-filter",		"kinds",
					      "ovf-other", "guest-only-no-pip", "damage" };
	struct test_rng rng = { 0x70 + (u64)_i };
	u64 seen[2] = { 0 };
	char command[TEXT];
	size_t n;
	u8 *bytes;
	int i;

	snprintf(command, sizeof(command), "\"$TRACEGEN\" -o g.pt \"$SCRIPTS/%s.trace\"",
		 script[_i]);
	ck_assert_int_eq(system(command), 0);
	agree("g.pt", seen);
	/* Where nothing says that there are VMs all is the host's, and whole. */
	ck_assert_int_eq(seen[0] + seen[1] > 0, strcmp(script[_i], "guest-only-no-pip") != 0);
	bytes = test_read_file("g.pt", &n);
	for (i = 0; i < test_rounds(20, 1); i++)
		agree_damaged(bytes, n, &rng, seen);
	free(bytes);
}
END_TEST

/* A packet cut by a gap, the gap, bytes before the next PSB: three losses, one after the other. */
START_TEST(a7_commands_agree_on_gaps)
{
	struct perf_writer w = { 0 };
	u64 seen[2] = { 0 };
	char path[WRITER_PATH];
	u8 *bytes;
	size_t n;

	write_mixed_times("m.pt", 4, 0);
	bytes = test_read_file("m.pt", &n);
	writer_start(&w, false);
	writer_info(&w, false, WRITER_PRIVS);
	writer_auxtrace(&w, 0, 1, 0, bytes, 48);
	writer_auxtrace(&w, 0, 1, 64, bytes + 64, n - 64);
	writer_auxtrace(&w, 1, 1, 0, bytes, 64);
	writer_finish(&w);
	writer_save(&w, path);
	writer_free(&w);
	agree(path, seen);
	ck_assert_uint_ge(seen[0], 3);
	remove(path);
	free(bytes);
}
END_TEST

static const char *const real[] = { "guest-two-vmcs.pt", "guest-mruby.pt", "guest-unzip.pt" };

START_TEST(a7_commands_agree_on_real_traces)
{
	const char *path = test_data(real[_i]);
	struct test_rng rng = { 0x17 + (u64)_i };
	u64 seen[2] = { 0 };
	size_t size, n;
	u8 *bytes;
	int i;

	if (!path)
		return;
	bytes = test_read_file(path, &size);
	n = size < 20000 ? size : 20000;
	for (i = 0; i < test_rounds(30, 2); i++)
		agree_damaged(bytes + test_random(&rng) % (size - n + 1), n, &rng, seen);
	ck_assert_uint_gt(seen[0] + seen[1], 0);
	free(bytes);
}
END_TEST

/* The first loss has its own size, not that of all. */
START_TEST(a7_clocks_names_the_first_loss)
{
	static const u8 bad[] = { 0x02, 0x7f, 0x06, 0x06, 0x06 };
	u8 *bytes, all[3 * MIXED_SIZE + 8];
	size_t n;

	write_mixed("m.pt");
	bytes = test_read_file("m.pt", &n);
	memcpy(all, bytes, n);
	memcpy(all + n, bad, 3);
	memcpy(all + n + 3, bytes, n);
	memcpy(all + 2 * n + 3, bad, 5);
	memcpy(all + 2 * n + 8, bytes, n);
	write_file("x.pt", all, 3 * n + 8);
	free(bytes);
	ck_assert_ptr_nonnull(strstr(vmpt("clocks x.pt")->err,
				     "x.pt: lost 8 bytes in 2 places\n"
				     "  first at 0x63, 3 bytes: unknown opcode 02 7f\n"));
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli losses");
	TCase *tc = test_long_case(suite);

	tcase_add_checked_fixture(tc, cli_setup, cli_clean);
	tcase_add_loop_test(tc, a7_commands_agree_on_damage, 0, 3);
	tcase_add_loop_test(tc, a7_commands_agree_on_generated_traces, 0, 6);
	tcase_add_test(tc, a7_commands_agree_on_gaps);
	tcase_add_loop_test(tc, a7_commands_agree_on_real_traces, 0, 3);
	tcase_add_test(tc, a7_clocks_names_the_first_loss);
	suite_add_tcase(suite, tc);
	return suite;
}
