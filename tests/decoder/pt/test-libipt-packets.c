// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packet by packet agreement with libipt, on the real traces and on 2,000 pieces
 * of them damaged at random; and the counts of packets that were published with
 * those traces.
 */
#include <intel-pt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "decoder/pt/pt.h"
#include "tests/arch/pt-cases.h"
#include "tests/decoder/libipt-walk.h"
#include "tests/support/support.h"

static const struct vmpt_options scalar = { .scalar = true };
static const struct vmpt_options scalar_headless = { .scalar = true, .headless = true };

/* ---- real traces ---- */

static const struct {
	const char *file;
	u64 packets; /* 0: not published */
	u64 kind[VMPT_PT_KINDS];
	bool all; /* kinds not named here do not occur */
	u64 head; /* losses before the first PSB: it is not at 0 */
} published[] = {
	{ .file = "guest-two-vmcs.pt",
	  .packets = 1206987,
	  .all = true,
	  .kind = { [VMPT_PT_PAD] = 665461,
		    [VMPT_PT_PSB] = 12955,
		    [VMPT_PT_PSBEND] = 12955,
		    [VMPT_PT_VMCS] = 12955,
		    [VMPT_PT_PIP] = 16896,
		    [VMPT_PT_TNT_8] = 343290,
		    [VMPT_PT_TIP] = 80456,
		    [VMPT_PT_TIP_PGE] = 16964,
		    [VMPT_PT_TIP_PGD] = 16963,
		    [VMPT_PT_FUP] = 531,
		    [VMPT_PT_MODE_EXEC] = 1646,
		    [VMPT_PT_MODE_TSX] = 12955,
		    [VMPT_PT_CBR] = 12959,
		    [VMPT_PT_OVF] = 1 } },
	{ .file = "guest-mruby.pt",
	  .packets = 404969,
	  .all = true,
	  .kind = { [VMPT_PT_PSB] = 349,
		    [VMPT_PT_PSBEND] = 349,
		    [VMPT_PT_PIP] = 349,
		    [VMPT_PT_VMCS] = 349,
		    [VMPT_PT_CBR] = 349,
		    [VMPT_PT_MODE_EXEC] = 349,
		    [VMPT_PT_MODE_TSX] = 349,
		    [VMPT_PT_TNT_8] = 84256,
		    [VMPT_PT_TIP] = 44414,
		    [VMPT_PT_TIP_PGE] = 14290,
		    [VMPT_PT_TIP_PGD] = 14289,
		    [VMPT_PT_FUP] = 209,
		    [VMPT_PT_PAD] = 245067,
		    [VMPT_PT_OVF] = 1 } },
	{ .file = "guest-unzip.pt", .packets = 12497 },
	{ .file = "host-lldb.pt", .packets = 84, .head = 1 },
	{ .file = "host-loopy.perf.data",
	  .kind = { [VMPT_PT_TSC] = 10, [VMPT_PT_TMA] = 10, [VMPT_PT_MTC] = 454 } },
};

#define TRACES VMPT_ARRAY_SIZE(published)

/*
 * The trace in a perf.data: the bytes after its one AUXTRACE record (type 71), found by walking the
 * data section, independently of our reader.
 */
static u8 *cut_auxtrace(u8 *file, size_t *size)
{
	u64 at = vmpt_load64(file + 40), end = at + vmpt_load64(file + 48), n;

	ck_assert_mem_eq(file, "PERFILE2", 8);
	ck_assert_uint_le(end, *size);
	while (at + 8 <= end && vmpt_load32(file + at) != 71)
		at += vmpt_load16(file + at + 6);
	ck_assert_uint_le(at + 48, end);
	n = vmpt_load64(file + at + 8);
	at += vmpt_load16(file + at + 6);
	ck_assert_uint_le(at + n, end);
	memmove(file, file + at, n);
	*size = n;
	return file;
}

/* The bytes of trace @i, or NULL. free() them. */
static u8 *read_trace(size_t i, size_t *size)
{
	const char *path = test_data(published[i].file);
	u8 *data;

	if (!path)
		return NULL;
	data = test_read_file(path, size);
	return strstr(path, ".perf.data") ? cut_auxtrace(data, size) : data;
}

START_TEST(real_traces_agree_and_have_their_published_counts)
{
	struct libipt_walk sum = { 0 };
	size_t size, kind;
	u8 *data = read_trace((size_t)_i, &size);

	if (!data)
		return;
	libipt_walk(&sum, data, size, &scalar, published[_i].file);
	for (kind = 0; kind < VMPT_E_NR; kind++)
		ck_assert_uint_eq(sum.losses[kind], kind == VMPT_E_SYNC ? published[_i].head : 0);
	ck_assert_uint_eq(sum.excepted, 0);
	if (published[_i].packets)
		ck_assert_uint_eq(sum.packets, published[_i].packets);
	for (kind = 0; kind < VMPT_PT_KINDS; kind++)
		if (published[_i].all || published[_i].kind[kind])
			ck_assert_msg(sum.kind[kind] == published[_i].kind[kind], "%s: %llu",
				      vmpt_pt_name((unsigned int)kind),
				      (unsigned long long)sum.kind[kind]);
	free(data);
}
END_TEST

/* ---- packets written by hand ---- */

/* The real traces lack many kinds: here they are all in one stream. */
START_TEST(packets_written_by_hand_agree)
{
	struct libipt_walk sum = { 0 };
	u8 *data = malloc((1 + pt_case_count) * VMPT_PT_SIZE_MAX);
	size_t size = 0, i;

	ck_assert_ptr_nonnull(data);
	while (size < 16) {
		data[size++] = 0x02;
		data[size++] = 0x82;
	}
	for (i = 0; i < pt_case_count; i++) {
		/* Not in a packet block: libipt does not know blocks. */
		if (pt_cases[i].block || pt_cases[i].kind == VMPT_PT_BBP)
			continue;
		memcpy(data + size, pt_cases[i].wire, pt_cases[i].size);
		size += pt_cases[i].size;
	}
	libipt_walk(&sum, data, size, &scalar, "packets written by hand");
	for (i = 0; i < VMPT_E_NR; i++)
		ck_assert_uint_eq(sum.losses[i], 0);
	free(data);
}
END_TEST

/* ---- damaged copies ---- */

#define PIECE_MIN 4096
#define PIECE_MAX 16384

struct copy {
	u8 data[2 * PIECE_MAX];
	size_t size;
};

static u64 below(struct test_rng *rng, u64 n)
{
	return n ? test_random(rng) % n : 0;
}

static void random_bytes(struct test_rng *rng, u8 *p, size_t n)
{
	while (n--)
		*p++ = (u8)test_random(rng);
}

/* Escapes with any second byte, and MNT's three: kinds that are not in the traces. */
static void escapes(struct test_rng *rng, u8 *p, size_t n)
{
	random_bytes(rng, p, n);
	while (n > 2) {
		size_t step = 2 + below(rng, 10);

		p[0] = 0x02;
		if (!below(rng, 16)) {
			p[1] = 0xc3;
			p[2] = 0x88;
		}
		p += step;
		n = n > step ? n - step : 0;
	}
}

/* A packet block: BBP, possibly BIPs, and a BEP if there is room (33.4.1.1). */
static void block(struct test_rng *rng, u8 *p, size_t n)
{
	size_t i, item;

	random_bytes(rng, p, n);
	if (n < 16)
		return;
	p[0] = 0x02;
	p[1] = 0x63;
	item = p[2] & 0x80 ? 5 : 9;
	for (i = 3; i + item + 2 <= n; i += item)
		p[i] = (u8)((p[i] & 0xf8) | 0x04);
	p[i] = 0x02;
	p[i + 1] = p[i + 1] & 0x80 ? 0xb3 : 0x33;
}

static void insert(struct test_rng *rng, struct copy *c, size_t at, size_t n)
{
	if (c->size + n > sizeof(c->data))
		return;
	memmove(c->data + at + n, c->data + at, c->size - at);
	random_bytes(rng, c->data + at, n);
	c->size += n;
}

static void damage(struct test_rng *rng, struct copy *c)
{
	size_t at = below(rng, c->size), n = 1 + below(rng, 64), flips = 1 + below(rng, 8);

	if (at + n > c->size)
		n = c->size - at;
	switch (below(rng, 8)) {
	case 0:
		while (flips--)
			c->data[below(rng, c->size)] ^= (u8)(1u << below(rng, 8));
		break;
	case 1:
		insert(rng, c, at, n);
		break;
	case 2:
		memmove(c->data + at, c->data + at + n, c->size - at - n);
		c->size -= n;
		break;
	case 3:
		memset(c->data + at, 0, n);
		break;
	case 4:
		random_bytes(rng, c->data + at, n);
		break;
	case 5:
		escapes(rng, c->data + at, n);
		break;
	case 6:
		block(rng, c->data + at, n);
		break;
	default:
		if (at > 64)
			c->size = at;
	}
}

static void take_piece(struct test_rng *rng, struct copy *c, const u8 *trace, size_t size)
{
	size_t from;

	c->size = PIECE_MIN + below(rng, PIECE_MAX - PIECE_MIN);
	if (c->size > size)
		c->size = size;
	from = below(rng, size - c->size + 1);
	memcpy(c->data, trace + from, c->size);
}

/* VMPT_SOAK: continue for this many seconds. */
static int soak_seconds(void)
{
	const char *seconds = getenv("VMPT_SOAK");

	return seconds ? atoi(seconds) : 0;
}

START_TEST(damaged_copies_agree)
{
	time_t soak_end = time(NULL) + soak_seconds();
	static struct copy copy;
	struct test_rng rng = { 0x2005 };
	struct libipt_walk sum = { 0 };
	u8 *trace[TRACES];
	size_t size[TRACES], i, times;
	char what[80];
	int n;

	for (i = 0; i < TRACES; i++) {
		trace[i] = read_trace(i, &size[i]);
		if (!trace[i])
			return;
	}
	for (n = 0; n < 2000 || time(NULL) < soak_end; n++) {
		i = below(&rng, TRACES);
		take_piece(&rng, &copy, trace[i], size[i]);
		for (times = 1 + below(&rng, 4); times; times--)
			damage(&rng, &copy);
		snprintf(what, sizeof(what), "copy %d, of %s", n, published[i].file);
		libipt_walk(&sum, copy.data, copy.size, n & 1 ? &scalar_headless : &scalar, what);
	}
	printf("%d damaged copies: %llu packets, %llu excepted; losses: %llu cut, %llu opcode, "
	       "%llu IPBytes, %llu PTW size, %llu MODE leaf, %llu PSB, %llu CYC\n",
	       n, (unsigned long long)sum.packets, (unsigned long long)sum.excepted,
	       (unsigned long long)sum.losses[VMPT_E_TRUNCATED],
	       (unsigned long long)sum.losses[VMPT_E_OPCODE],
	       (unsigned long long)sum.losses[VMPT_E_IPBYTES],
	       (unsigned long long)sum.losses[VMPT_E_PTW_SIZE],
	       (unsigned long long)sum.losses[VMPT_E_MODE_LEAF],
	       (unsigned long long)sum.losses[VMPT_E_PSB],
	       (unsigned long long)sum.losses[VMPT_E_CYC]);
	/* The damage was effective: every kind of packet and of error occurred. */
	for (i = 0; i < VMPT_PT_KINDS; i++)
		ck_assert_msg(sum.kind[i] > 0, "no %s", vmpt_pt_name((unsigned int)i));
	for (i = VMPT_E_TRUNCATED; i <= VMPT_E_CYC; i++)
		ck_assert_msg(sum.losses[i] > 0, "no loss by \"%s\"", vmpt_strerror((int)i));
	for (i = 0; i < TRACES; i++)
		free(trace[i]);
}
END_TEST

/* ---- parts of traces put end to end ---- */

/* Bytes that libipt's packet decoder passes over between an error and where it resumes. */
static u64 lost_by_libipt(const u8 *data, u64 size)
{
	struct pt_packet_decoder *ipt;
	struct pt_packet packet;
	struct pt_config config;
	u64 lost = 0, at, next;
	int status;

	pt_config_init(&config);
	config.begin = (u8 *)(uintptr_t)data;
	config.end = config.begin + size;
	ipt = pt_pkt_alloc_decoder(&config);
	ck_assert_ptr_nonnull(ipt);
	ck_assert_int_eq(pt_pkt_sync_set(ipt, 0), 0);
	for (;;) {
		status = pt_pkt_next(ipt, &packet, sizeof(packet));
		if (status >= 0)
			continue;
		ck_assert_int_eq(pt_pkt_get_offset(ipt, &at), 0);
		next = size;
		if (pt_pkt_sync_forward(ipt) >= 0)
			ck_assert_int_eq(pt_pkt_get_offset(ipt, &next), 0);
		lost += next > at ? next - at : 0;
		if (next == size)
			break;
	}
	pt_pkt_free_decoder(ipt);
	return lost;
}

static u64 lost_by_us(const u8 *data, u64 size)
{
	struct vmpt_stream stream = { .data = data, .size = size, .cpu = -1, .tid = -1 };
	struct vmpt_options options = { 0 };
	struct vmpt_cursor at = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_packet pkt;
	u64 lost = 0;

	ck_assert_int_eq(vmpt_decoder_open(&dec, &stream, &options), 0);
	while (vmpt_packet_next(dec, &at, &pkt) > 0)
		lost += pkt.kind == VMPT_ITEM_LOSS ? pkt.payload : 0;
	vmpt_decoder_close(dec);
	return lost;
}

/* Add up to @max bytes of the trace, from a random PSB on. */
static void add_part(struct test_rng *rng, struct copy *c, const u8 *trace, size_t size, size_t max)
{
	u64 from = vmpt_psb_find(trace, below(rng, size), size);

	if (from == size)
		from = vmpt_psb_find(trace, 0, size);
	if (max > size - from)
		max = size - from;
	memcpy(c->data + c->size, trace + from, max);
	c->size += max;
}

/* head -c N a.pt; b.pt: only what lies around the join. */
START_TEST(a1_joins_of_real_traces)
{
	time_t soak_end = time(NULL) + soak_seconds();
	struct test_rng rng = { 0xa1 };
	struct libipt_walk sum = { 0 };
	static struct copy copy;
	u8 *trace[TRACES];
	size_t size[TRACES], i, k;
	u64 ours, theirs, more = 0;
	char what[80];
	int n;

	for (i = 0; i < TRACES; i++) {
		trace[i] = read_trace(i, &size[i]);
		if (!trace[i])
			return;
	}
	for (n = 0; n < 1000 || time(NULL) < soak_end; n++) {
		i = below(&rng, TRACES);
		k = below(&rng, TRACES);
		copy.size = 0;
		add_part(&rng, &copy, trace[i], size[i], 1 + below(&rng, n % 4 ? 3000 : 60));
		add_part(&rng, &copy, trace[k], size[k], 3000);
		snprintf(what, sizeof(what), "join %d, of %s and %s", n, published[i].file,
			 published[k].file);
		libipt_walk(&sum, copy.data, copy.size, &scalar, what);
		ours = lost_by_us(copy.data, copy.size);
		theirs = lost_by_libipt(copy.data, copy.size);
		ck_assert_msg(ours <= theirs + 32, "%s: %llu bytes lost, %llu by libipt", what,
			      (unsigned long long)ours, (unsigned long long)theirs);
		more += ours > theirs ? ours - theirs : 0;
	}
	printf("%d joins: %llu packets cut by a PSB; %llu bytes lost that libipt does not lose\n",
	       n, (unsigned long long)sum.losses[VMPT_E_CUT], (unsigned long long)more);
	ck_assert_uint_gt(sum.losses[VMPT_E_CUT], (unsigned int)n / 4);
	for (i = 0; i < TRACES; i++)
		free(trace[i]);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/libipt-packets");
	TCase *t = tcase_create("libipt");

	tcase_add_loop_test(t, real_traces_agree_and_have_their_published_counts, 0, TRACES);
	tcase_add_test(t, packets_written_by_hand_agree);
	tcase_add_test(t, a1_joins_of_real_traces);
	tcase_add_test(test_random_case(s), damaged_copies_agree);
	if (soak_seconds())
		tcase_add_test(test_random_case(s), a1_joins_of_real_traces);
	suite_add_tcase(s, t);
	return s;
}
