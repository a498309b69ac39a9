// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Streams of any trace: random ones made of packets in plausible and in arbitrary order, real ones,
 * damaged copies. The invariants are in check-streams.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "decoder/pt/pt.h"
#include "tests/decoder/check-streams.h"
#include "tests/decoder/ipt-flow.h"
#include "tests/decoder/notation.h"
#include "tests/support/support.h"

/* Pieces that random traces are made of; libipt does not know the last ones. */
static const char *const piece[] = {
	"psb exec:64 pip:1000 vmcs:a000 cbr:8 psbend",
	"psb exec:64 pip:2000:nr vmcs:a000 cbr:9 tsc:123 tma:1:2 psbend pad*7",
	"psb fup:8000 exec:64 pip:2000:nr vmcs:a000 cbr:9 psbend",
	"psb vmcs:b000 mtc:3 pip:3000:nr psbend",
	"psb cbr:4 psbend",
	"psb pip:1000 psbend",
	"pip:1000 tip:f010",
	"pip:1000",
	"exec:64 pip:1000 tip:f010",
	"pip:2000:nr tip:8000",
	"pip:2000:nr exec:32 mtc:9 cyc:44 tip:8000",
	"pip:2000:nr",
	"pip:2000:nr pge:8000",
	"pip:2000:nr pgd:-",
	"vmcs:a000",
	"vmcs:b000",
	"vmcs:b000 pip:3000:nr tip:9000",
	"vmcs:none",
	"pip:2000:nr pip:1000 tip:f300",
	"fup:8004",
	"fup:f004",
	"tip:8010",
	"tip:ffffffff81000010",
	"pge:8020",
	"pgd:-",
	"pgd:7000",
	"tnt:TNT",
	"tnt:TTTTTTTTTTNN",
	"tnt:T pad*3 tnt:N",
	"mtc:5",
	"cyc:5",
	"cyc:12345",
	"tsc:100",
	"tma:1:2",
	"cbr:a",
	"exec:16",
	"tsx:1 fup:8030",
	"ovf",
	"ovf fup:8040",
	"tracestop",
	"ptw:77",
	"mnt:5",
	"pad*20",
	"raw:05",
	/* not known to libipt 2.0.5 */
	"cfe:VMENTRY:ip fup:f004",
	"cfe:VMEXIT fup:8004",
	"cfe:VMEXIT_INTR:ip fup:8004 pgd:-",
	"evd:VMXQ:1",
	"bbp:4:0 bip:0:1 bip:1:2 bep",
	"bbp:1:1",
	"bip:1:2",
};

#define KNOWN_TO_LIBIPT 44

static void check(const struct vmpt_stream *stream, bool oracle)
{
	struct extracted e;
	u64 packets;
	int i, err;

	extract_to_memory(&e, stream, NULL);
	check_streams(stream, &e);
	for (i = 0; oracle && i < e.count; i++) {
		err = ipt_packets_check(e.streams[i].bytes, e.streams[i].size, &packets);
		ck_assert_int_eq(err, 0);
	}
	extracted_free(&e);
}

/*
 * A random trace in words, without the last piece: open blocks are not tracked. @oracle: only
 * packets that libipt knows.
 */
static void random_text(struct test_rng *rng, char *text, size_t size, bool oracle)
{
	unsigned int i, count = 2 + test_random(rng) % 60, kinds;
	size_t used = 0;
	const char *p;

	kinds = oracle ? KNOWN_TO_LIBIPT : VMPT_ARRAY_SIZE(piece) - 1;
	used += (size_t)snprintf(text, size, "%s", piece[test_random(rng) % 6]);
	for (i = 0; i < count; i++) {
		p = piece[test_random(rng) % kinds];
		used += (size_t)snprintf(text + used, size - used, " %s", p);
	}
}

START_TEST(random_traces)
{
	static struct notation n;
	struct test_rng rng = { (u64)_i };
	char text[8192];
	unsigned int i;

	for (i = 0; i < 100; i++) {
		random_text(&rng, text, sizeof(text), _i & 1);
		notation_read(&n, text);
		check(&n.stream, _i & 1);
	}
}
END_TEST

/* VMPT_SOAK: other seeds, in a fixed order, for this many seconds. */
static int soak_seconds(void)
{
	const char *seconds = getenv("VMPT_SOAK");

	return seconds ? atoi(seconds) : 0;
}

START_TEST(soak_random_traces)
{
	time_t end = time(NULL) + soak_seconds();
	static struct notation n;
	struct test_rng rng;
	char text[8192];
	u64 seed;

	for (seed = 1000; time(NULL) < end; seed++) {
		rng.state = seed;
		random_text(&rng, text, sizeof(text), seed & 1);
		if (seed % 1000 == 0) {
			printf("seeds from %llu\n", (unsigned long long)seed);
			fflush(stdout);
		}
		notation_read(&n, text);
		check(&n.stream, seed & 1);
	}
}
END_TEST

static const char *const real[] = { "guest-two-vmcs.pt", "guest-mruby.pt", "guest-unzip.pt",
				    "host-lldb.pt" };

START_TEST(real_traces)
{
	const char *path = test_data(real[_i]);
	struct vmpt_stream stream = { .tid = -1 };
	size_t size;
	u8 *bytes;

	if (!path)
		return;
	bytes = test_read_file(path, &size);
	stream.data = bytes;
	stream.size = size;
	check(&stream, true);
	free(bytes);
}
END_TEST

/* Bytes flipped, zeroed, cut out of a window of a real trace. */
static size_t damage(struct test_rng *rng, u8 *p, size_t n)
{
	unsigned int i, hits = 1 + test_random(rng) % 8;
	size_t at, len;

	for (i = 0; i < hits; i++) {
		at = test_random(rng) % n;
		len = 1 + test_random(rng) % 40;
		if (len > n - at)
			len = n - at;
		switch (test_random(rng) % 4) {
		case 0:
			p[at] ^= 1u << test_random(rng) % 8;
			break;
		case 1:
			memset(p + at, 0, len);
			break;
		case 2:
			while (len--)
				p[at + len] = (u8)test_random(rng);
			break;
		default:
			if (n - len < 64)
				break;
			memmove(p + at, p + at + len, n - at - len);
			n -= len;
		}
	}
	return n;
}

START_TEST(damaged_traces)
{
	const char *path = test_data(real[_i % 3]);
	struct test_rng rng = { (u64)_i * 77 };
	struct vmpt_stream stream = { .tid = -1 };
	size_t size, window, i;
	u8 *bytes, *copy;

	if (!path)
		return;
	bytes = test_read_file(path, &size);
	window = size < 8192 ? size : 8192;
	copy = malloc(window);
	for (i = 0; i < 100; i++) {
		memcpy(copy, bytes + test_random(&rng) % (size - window + 1), window);
		stream.data = copy;
		stream.size = damage(&rng, copy, window);
		check(&stream, false);
	}
	free(copy);
	free(bytes);
}
END_TEST

/* The owners of the packets are those of the slices that they lie in. */
static void check_owners(const struct vmpt_stream *stream)
{
	static const struct vmpt_options options;
	struct vmpt_cursor at = { 0 };
	struct vmpt_splitter *split;
	struct vmpt_decoder *dec;
	struct vmpt_packet p;
	struct vmpt_slice s = { 0 };

	ck_assert_int_eq(vmpt_splitter_open(&split, stream, &options), 0);
	ck_assert_int_eq(vmpt_decoder_open(&dec, stream, &options), 0);
	while (vmpt_packet_next(dec, &at, &p) > 0) {
		while (p.offset >= s.offset + s.size)
			ck_assert_int_eq(vmpt_split_next(split, &s), 1);
		if ((p.kind == VMPT_ITEM_LOSS) != (s.begin == VMPT_BEGIN_LOSS) ||
		    (p.kind == VMPT_ITEM_LOSS && (p.offset != s.offset || p.payload != s.size)))
			ck_abort_msg("a loss at %#llx, in a slice from %#llx",
				     (unsigned long long)p.offset, (unsigned long long)s.offset);
		if (p.owner.sure <= VMPT_ASSUMED && s.owner.sure <= VMPT_ASSUMED &&
		    (p.owner.kind != s.owner.kind || p.owner.vmcs != s.owner.vmcs))
			ck_abort_msg("owner %u at %#llx, %u in the slice from %#llx", p.owner.kind,
				     (unsigned long long)p.offset, s.owner.kind,
				     (unsigned long long)s.offset);
	}
	vmpt_decoder_close(dec);
	vmpt_splitter_close(split);
}

/* Parts of a trace put end to end at any byte: look-ahead must not run over the PSB either. */
START_TEST(a1_joins)
{
	const char *path = test_data(real[_i % 3]);
	struct test_rng rng = { 0xa1 + (u64)_i };
	struct vmpt_stream stream = { .tid = -1 };
	size_t size, n, from;
	u8 *bytes, *copy;
	int i, k;

	if (!path)
		return;
	bytes = test_read_file(path, &size);
	copy = malloc(8 * 256);
	for (i = 0; i < 100; i++) {
		for (k = 0, n = 0; k < 8; k++) {
			from = vmpt_psb_find(bytes, test_random(&rng) % (size - 256), size);
			if (from + 256 > size)
				continue;
			memcpy(copy + n, bytes + from, 256);
			n += 17 + test_random(&rng) % (k & 1 ? 40 : 239);
		}
		stream.data = copy;
		stream.size = n;
		check(&stream, false);
		check_owners(&stream);
	}
	free(copy);
	free(bytes);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/extract-property");
	TCase *t = tcase_create("streams");

	tcase_add_loop_test(test_random_case(s), random_traces, 0, 10);
	tcase_add_loop_test(t, real_traces, 0, VMPT_ARRAY_SIZE(real));
	tcase_add_loop_test(test_random_case(s), damaged_traces, 0, 9);
	tcase_add_loop_test(t, a1_joins, 0, 6);
	suite_add_tcase(s, t);
	if (soak_seconds())
		tcase_add_test(test_random_case(s), soak_random_traces);
	return s;
}
