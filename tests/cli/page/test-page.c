// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The HTML page: what is in the file equals what the made-up trace was made of, whatever was
 * dropped or merged on the way; the file keeps to its size; names can do no harm.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cli/page/parts.h"
#include "tests/cli/page/fake.h"
#include "tests/cli/page/read.h"

static const char *const plain[2] = { "web", "db" };

static void write_page(struct read_page *read, struct page *page, json_t *meta)
{
	char *html = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&html, &size);

	ck_assert_int_eq(page_write(page, meta, out), 0);
	fclose(out);
	json_decref(meta);
	page_free(page);
	read_page(read, html, size);
}

static void make(struct read_page *read, const struct page_options *given, u64 rounds,
		 struct fake_sums *sums, const char *const vm[2])
{
	struct page_options options = *given;
	struct page *page;

	options.streams = FAKE_CPUS;
	options.reason_name = fake_reason;
	page = page_new(&options);
	ck_assert_int_eq(fake_spans(page, &fake_usual, 7, rounds, sums), 0);
	write_page(read, page, fake_meta(&fake_usual, sums, "t", vm));
}

/* Place in fake_exits of the page's reason @i. */
static unsigned int which(const struct read_page *read, size_t i)
{
	const json_t *reason = json_array_get(json_object_get(read->meta, "reasons"), i);
	const json_int_t wanted = json_integer_value(json_object_get(reason, "number"));
	unsigned int at, k = 0;

	for (at = 0; at < FAKE_REASONS; at++)
		if (fake_exits[at].reason == wanted)
			k = at;
	ck_assert_int_eq(fake_exits[k].reason, wanted);
	ck_assert_str_eq(json_string_value(json_object_get(reason, "name")), fake_exits[k].name);
	ck_assert_int_eq(json_integer_value(json_object_get(reason, "source")),
			 fake_exits[k].source);
	ck_assert_int_eq(json_is_true(json_object_get(reason, "halted")), fake_exits[k].halted);
	return k;
}

static void check_cpus(const struct read_page *read, const struct fake_sums *sums)
{
	size_t i, l;

	ck_assert_uint_eq(read->cpus, FAKE_CPUS);
	for (i = 0; i < FAKE_CPUS; i++) {
		u64 guest = 0;

		ck_assert_uint_eq(read->cpu[i].ticks[PAGE_RUNS], sums->host[i]);
		ck_assert_uint_eq(read->cpu[i].ticks[PAGE_LOST], sums->lost[i]);
		for (l = 0; l < FAKE_LINES; l++)
			guest += read->cpu[i].ticks[PAGE_STATES + l];
		ck_assert_uint_eq(guest, sums->guest[i]);
	}
}

static u64 sum_of(const struct read_page *read, size_t l, const char *key)
{
	const json_t *line = json_array_get(json_object_get(read->meta, "lines"), l);

	return (u64)json_integer_value(json_object_get(line, key));
}

/* The time out of the guest by what its CPU did: in the sums, the lanes, and by who had it. */
static void b13_waits(const struct read_page *read, const struct fake_sums *sums)
{
	u64 in_lane, waits, halted, host, all = 0;
	size_t l, k, vm;

	for (l = 0; l < FAKE_LINES; l++) {
		const json_t *on = json_object_get(
			json_array_get(json_object_get(read->meta, "lines"), l), "on");

		for (vm = waits = 0; vm < 2; vm++) {
			for (k = in_lane = 0; k < FAKE_LINES; k++)
				if (fake_vm(&fake_usual, (unsigned int)k) == vm)
					in_lane += sums->waits[l][k];
			ck_assert_uint_eq(read->line[l].ticks[READ_WAITS + vm], in_lane);
			waits += in_lane;
		}
		for (k = 0; k < json_array_size(on); k++) {
			const json_t *one = json_array_get(on, k);
			json_int_t who = json_integer_value(json_array_get(one, 0));

			ck_assert_uint_lt((u64)who, FAKE_LINES);
			ck_assert_uint_eq((u64)json_integer_value(json_array_get(one, 1)),
					  sums->waits[l][who]);
		}
		for (k = host = halted = 0; k < FAKE_REASONS; k++)
			*(fake_exits[k].halted ? &halted : &host) += sums->out[l][k];
		ck_assert_uint_eq(sum_of(read, l, "run"), sums->running[l]);
		ck_assert_uint_eq(sum_of(read, l, "wait"), waits);
		ck_assert_uint_eq(sum_of(read, l, "host"), host);
		ck_assert_uint_eq(sum_of(read, l, "halt"), halted);
		ck_assert_uint_eq(sum_of(read, l, "unknown"), sums->untraced[l]);
		all += waits;
	}
	ck_assert_uint_gt(all, sums->running[0] / 100);
}

static void check_lines(const struct read_page *read, const struct fake_sums *sums)
{
	size_t l, i;

	for (l = 0; l < FAKE_LINES; l++) {
		ck_assert_uint_eq(read->line[l].ticks[PAGE_RUNS], sums->running[l]);
		ck_assert_uint_eq(read->line[l].count[PAGE_RUNS], sums->runs[l]);
		for (i = 0; i < FAKE_REASONS; i++) {
			unsigned int k = which(read, i);

			ck_assert_uint_eq(read->line[l].ticks[PAGE_STATES + i], sums->out[l][k]);
			ck_assert_uint_eq(read->line[l].count[PAGE_STATES + i], sums->timed[l][k]);
		}
	}
	ck_assert_uint_eq(read->hists, FAKE_LINES * FAKE_REASONS);
	for (i = 0; i < read->hists; i++) {
		const struct read_hist *h = &read->hist[i];
		unsigned int k = which(read, h->reason);

		ck_assert_uint_eq(h->count, sums->exits[h->line][k]);
		ck_assert_uint_eq(h->timed, sums->timed[h->line][k]);
		ck_assert_uint_eq(h->in_bins, h->timed);
		ck_assert_uint_eq(h->ticks, sums->out[h->line][k]);
		ck_assert_uint_le(h->max, h->ticks);
	}
}

static void check_ips(const struct read_page *read, const struct fake_sums *sums)
{
	const json_t *ips = json_object_get(read->meta, "ips");
	size_t vm, i, k, at;

	ck_assert_uint_eq(json_array_size(ips), 2);
	for (vm = 0; vm < 2; vm++) {
		const json_t *list = json_object_get(json_array_get(ips, vm), "list");

		ck_assert_uint_eq(json_array_size(list), FAKE_REASONS);
		for (i = 0; i < FAKE_REASONS; i++) {
			const json_t *entry = json_array_get(list, i);
			const char *ip = json_string_value(json_object_get(entry, "ip"));

			for (at = k = 0; at < FAKE_REASONS; at++)
				if (fake_exits[at].ip == strtoull(ip, NULL, 0))
					k = at;
			ck_assert_uint_eq(fake_exits[k].ip, strtoull(ip, NULL, 0));
			ck_assert_uint_eq((u64)json_integer_value(json_object_get(entry, "count")),
					  sums->at_ip[vm][k]);
			ck_assert_uint_eq(which(read, (size_t)json_integer_value(
							      json_object_get(entry, "reason"))),
					  k);
		}
	}
}

static void check_all(const struct read_page *read, const struct fake_sums *sums)
{
	check_cpus(read, sums);
	check_lines(read, sums);
	b13_waits(read, sums);
	check_ips(read, sums);
	ck_assert_uint_eq((u64)json_integer_value(json_object_get(read->meta, "spans")),
			  sums->spans);
	ck_assert_uint_eq((u64)json_integer_value(json_object_get(read->meta, "duration")),
			  sums->end);
}

START_TEST(small_has_all)
{
	const struct page_options options = { 0 };
	struct read_page read;
	struct fake_sums sums;
	u64 lost = 0, moved = 0, holes = 0;
	size_t i;

	make(&read, &options, 3000, &sums, plain);
	check_all(&read, &sums);
	ck_assert_uint_eq(read.spans, sums.spans);
	for (i = 0; i < read.spans; i++) {
		lost += (read.kind[i] & 7) == VMPT_SPAN_LOST ? read.length[i] : 0;
		moved += read.flags[i] & PAGE_KEPT_MOVED;
		/* Of one stream they follow each other without holes. */
		if (i && read.stream[i] == read.stream[i - 1])
			holes += read.start[i] != read.start[i - 1] + read.length[i - 1];
	}
	ck_assert_uint_eq(holes, 0);
	ck_assert_uint_eq(lost, sums.lost[0] + sums.lost[1] + sums.lost[2] + sums.lost[3]);
	ck_assert_uint_eq(moved, sums.moves);
	read_page_free(&read);
}
END_TEST

/* The same sums from far fewer buckets and spans; what is notable stays. */
START_TEST(large_keeps_its_size)
{
	const struct page_options options = { .max_bytes = 400000, .max_spans = 4000 };
	struct read_page read;
	struct fake_sums sums;
	u64 moved = 0, shortest = ~0ULL, rest = 0;
	size_t i;

	make(&read, &options, 300000, &sums, plain);
	ck_assert_uint_gt(sums.spans, 600000);
	ck_assert_uint_le(read.size, 400000);
	check_all(&read, &sums);
	ck_assert_uint_gt(read.spans, 1000);
	ck_assert_uint_lt(read.spans, 8001);
	for (i = 0; i < read.spans; i++) {
		u64 longest = read.length[i] > read.gap[i] ? read.length[i] : read.gap[i];

		moved += read.flags[i] & PAGE_KEPT_MOVED;
		if ((read.kind[i] & 7) == VMPT_SPAN_LOST || read.flags[i] & PAGE_KEPT_MOVED)
			continue;
		rest++;
		if (longest < shortest)
			shortest = longest;
	}
	/* Only if all that is notable is there has something else room. */
	if (rest)
		ck_assert_uint_eq(moved, sums.moves);
	else
		ck_assert_uint_le(moved, sums.moves);
	ck_assert(!rest || shortest > sums.end / sums.spans);
	read_page_free(&read);
}
END_TEST

START_TEST(longest_is_kept)
{
	struct page_options options = { .streams = 1, .max_spans = 100 };
	struct test_rng rng = { 3 };
	struct page *page = page_new(&options);
	struct vmpt_span span = { .kind = VMPT_SPAN_HOST };
	struct timeline_span ts = { .span = &span,
				    .vcpu = TIMELINE_NONE,
				    .moved_from = TIMELINE_NONE };
	struct read_page read;
	size_t i, found = 0, bad = 0;

	for (i = 0; i < 50000; i++) {
		/* Every 5000th is long. */
		ts.end = ts.start + (i % 5000 == 77 ? 1000000 + i : test_random(&rng) % 10000);
		bad += page_add(page, &ts, TIMELINE_NONE) != 0;
		ts.start = ts.end;
		span.offset += 8;
	}
	ck_assert_uint_eq(bad, 0);
	write_page(&read, page, json_object());
	for (i = 0; i < read.spans; i++)
		found += read.length[i] >= 1000000;
	ck_assert_uint_eq(found, 10);
	ck_assert_uint_le(read.spans, 200);
	ck_assert_uint_ge(read.spans, 100);
	ck_assert_uint_eq(read.cpu[0].ticks[PAGE_RUNS], ts.end);
	ck_assert_uint_eq(read.cpu[0].count[PAGE_RUNS], 50000);
	read_page_free(&read);
}
END_TEST

static size_t count(const char *text, size_t size, const char *word)
{
	size_t i, n = 0, length = strlen(word);

	for (i = 0; i + length <= size; i++)
		n += !strncasecmp(text + i, word, length);
	return n;
}

START_TEST(names_are_harmless)
{
	static const char *const vm[2] = {
		"</script><script>alert(1)</script><!--<script>",
		"\xff\xc0\x80\xed\xa0\x80 \x01 \xe2\x80\xa8 & ]]> \" ' \\ \xf0\x9f\x90\xa7"
	};
	struct page_options options = { .streams = FAKE_CPUS };
	struct page *page = page_new(&options);
	struct fake_sums sums;
	struct read_page read;
	char *html = NULL;
	size_t size = 0, scripts;
	FILE *out = open_memstream(&html, &size);
	json_t *meta, *names;

	ck_assert_int_eq(fake_spans(page, &fake_usual, 7, 10, &sums), 0);
	meta = fake_meta(&fake_usual, &sums, "</SCRIPT><img src=x onerror=alert(1)>", vm);
	ck_assert_int_eq(page_write(page, meta, out), 0);
	fclose(out);
	json_decref(meta);
	page_free(page);
	scripts = count(html, size, "</script");
	/* The facts, the data, the script; nothing of theirs. */
	ck_assert_uint_eq(scripts, 3);
	ck_assert_uint_eq(count(html, size, "<img"), 0);
	ck_assert_uint_eq(count(html, size, "alert(1)\\u003c"), 1 + 3); /* a VM, three vCPUs */
	ck_assert_uint_eq(count(html, size, "\xff"), 0);
	read_page(&read, html, size);
	names = json_object_get(read.meta, "vms");
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(names, 0), "name")),
			 vm[0]);
	/* Each byte that is not UTF-8, the control character and the newline are shown. */
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(names, 1), "name")),
			 "\\xff\\xc0\\x80\\xed\\xa0\\x80 \\u0001 \\u2028 & ]]> \" ' \\ "
			 "\xf0\x9f\x90\xa7");
	read_page_free(&read);
}
END_TEST

/* Times of any size, many vCPUs, IPs without end: bounded, and no sum gets lost. */
START_TEST(hostile_spans)
{
	struct page_options options = { .streams = 2, .max_bytes = 600000, .max_spans = 20000 };
	struct test_rng rng = { 11 };
	struct page *page = page_new(&options);
	struct vmpt_span span = { .kind = VMPT_SPAN_GUEST, .ended = VMPT_EDGE_EXIT };
	struct timeline_span ts = { .span = &span, .moved_from = TIMELINE_NONE };
	char *html = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&html, &size);
	json_t *meta = json_object();
	u32 i, bad = 0;

	for (i = 0; i < 60000; i++) {
		span.stream = (u32)(test_random(&rng) % 4); /* 2 and 3 are not there */
		span.exit.reason = (u16)test_random(&rng);
		span.exit.source = (u8)test_random(&rng);
		span.exit.ip = test_random(&rng);
		span.exit.cr3 = test_random(&rng);
		span.exit.has_ip = span.exit.has_qualification = true;
		span.exit.qualification = test_random(&rng);
		span.offset = test_random(&rng);
		span.size = test_random(&rng);
		span.start.early = (u32)test_random(&rng);
		span.owner.sure = (u8)(test_random(&rng) % 4);
		ts.vcpu = (u32)(test_random(&rng) % 3000);
		ts.start = test_random(&rng) >> (test_random(&rng) % 64);
		ts.end = ts.start + (test_random(&rng) >> (test_random(&rng) % 64));
		/* Parts that are longer than the whole, too. */
		ts.has_left = test_random(&rng) % 2;
		ts.out[TIMELINE_WAIT].ticks = test_random(&rng) >> (test_random(&rng) % 64);
		ts.out[TIMELINE_UNTRACED].ticks = test_random(&rng) >> (test_random(&rng) % 64);
		bad += page_add(page, &ts, ts.vcpu) != 0;
	}
	ck_assert_uint_eq(bad, 0);
	ck_assert_int_eq(page_write(page, meta, out), 0);
	fclose(out);
	ck_assert_uint_le(size, 600000);
	ck_assert_int_gt(json_integer_value(json_object_get(meta, "untold")), 5000);
	json_decref(meta);
	page_free(page);
	free(html);
}
END_TEST

/* One IP has a third of the exits, all others are different. */
START_TEST(frequent_ip_is_found)
{
	struct page_options options = { .streams = 1 };
	struct page *page = page_new(&options);
	struct vmpt_span span = { .kind = VMPT_SPAN_GUEST, .ended = VMPT_EDGE_EXIT };
	struct timeline_span ts = { .span = &span, .moved_from = TIMELINE_NONE };
	struct read_page read;
	const json_t *ips, *first;
	u64 i, n, missed, bad = 0;

	span.exit.has_ip = true;
	for (i = 0; i < 90000; i++) {
		span.exit.ip = i % 3 ? 0x100000 + i * 16 : 0xffffffff81000000;
		ts.start = i * 10;
		ts.end = ts.start + 5;
		span.offset = i;
		bad += page_add(page, &ts, 0) != 0;
	}
	ck_assert_uint_eq(bad, 0);
	write_page(&read, page, json_object());
	ips = json_array_get(json_object_get(read.meta, "ips"), 0);
	first = json_array_get(json_object_get(ips, "list"), 0);
	missed = (u64)json_integer_value(json_object_get(ips, "missed"));
	n = (u64)json_integer_value(json_object_get(first, "count"));
	ck_assert_str_eq(json_string_value(json_object_get(first, "ip")), "0xffffffff81000000");
	ck_assert_uint_le(n, 30000);
	ck_assert_uint_ge(n + missed, 30000);
	ck_assert_uint_lt(missed, 1000);
	ck_assert_int_eq(json_integer_value(json_object_get(ips, "total")), 90000);
	read_page_free(&read);
}
END_TEST

/* A vCPU that was not seen to come back, or with a loss between, has no host time. */
START_TEST(unseen_return_is_unknown)
{
	struct page_options options = { .streams = 1 };
	struct page *page = page_new(&options);
	struct vmpt_span span = { .kind = VMPT_SPAN_GUEST, .ended = VMPT_EDGE_EXIT };
	struct timeline_span ts = { .span = &span, .moved_from = TIMELINE_NONE, .end = 100 };
	struct read_page read;

	ck_assert_int_eq(page_add(page, &ts, 0), 0);
	ts.start = 150;
	ts.end = 200;
	span.offset = 1;
	ck_assert_int_eq(page_add(page, &ts, 0), 0); /* without .has_left */
	ts.start = 270;
	ts.end = 300;
	ts.has_left = true;
	span.offset = 2;
	ck_assert_int_eq(page_add(page, &ts, 0), 0);
	write_page(&read, page, json_object());
	ck_assert_uint_eq(read.line[0].ticks[PAGE_RUNS], 100 + 50 + 30);
	ck_assert_uint_eq(read.line[0].ticks[PAGE_UNKNOWN], 50);
	ck_assert_uint_eq(read.line[0].ticks[PAGE_STATES], 70);
	ck_assert_uint_eq(read.hists, 1);
	ck_assert_uint_eq(read.hist[0].count, 3);
	ck_assert_uint_eq(read.hist[0].timed, 1);
	ck_assert_uint_eq(read.hist[0].ticks, 70);
	read_page_free(&read);
}
END_TEST

/* By hand: one tick each up to 15, then eight an octave. */
START_TEST(bins)
{
	static const struct {
		u64 ticks;
		u32 bin;
	} want[] = { { 0, 0 },
		     { 7, 7 },
		     { 8, 8 },
		     { 15, 15 },
		     { 16, 16 },
		     { 17, 16 },
		     { 18, 17 },
		     { 31, 23 },
		     { 32, 24 },
		     { 1024, 64 },
		     { 1151, 64 },
		     { 1152, 65 },
		     { 1ULL << 63, 488 },
		     { ~0ULL, PAGE_BINS - 1 } };
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(want); i++)
		ck_assert_uint_eq(page_bin(want[i].ticks), want[i].bin);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("page");
	TCase *tcase = tcase_create("page");

	tcase_add_test(tcase, small_has_all);
	tcase_add_test(tcase, large_keeps_its_size);
	tcase_add_test(tcase, longest_is_kept);
	tcase_add_test(tcase, names_are_harmless);
	tcase_add_test(tcase, hostile_spans);
	tcase_add_test(tcase, frequent_ip_is_found);
	tcase_add_test(tcase, unseen_return_is_unknown);
	tcase_add_test(tcase, bins);
	suite_add_tcase(suite, tcase);
	return suite;
}
