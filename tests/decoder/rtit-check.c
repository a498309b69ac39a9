// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Expected results for RTIT's bytes; see rtit-check.h. */
#include "tests/decoder/rtit-check.h"
#include "tests/decoder/streams.h"

static void check_packets(const struct vmpt_stream *stream, const struct vmpt_options *options,
			  const struct rtit_want *want, size_t n)
{
	struct vmpt_cursor at = { 0 };
	struct vmpt_decoder *dec;
	struct vmpt_packet pkt;
	size_t i;
	int ret;

	ck_assert_int_eq(vmpt_decoder_open(&dec, stream, options), 0);
	for (i = 0; (ret = vmpt_packet_next(dec, &at, &pkt)) == 1; i++) {
		must(i < n, "packet %zu: more than %zu", i, n);
		must(pkt.offset == want[i].offset && pkt.payload == want[i].payload &&
			     pkt.size == want[i].size && pkt.kind == want[i].kind &&
			     pkt.aux == want[i].aux,
		     "packet %zu: at 0x%llx size %u kind %u aux 0x%x payload 0x%llx, "
		     "want at 0x%llx size %u kind %u aux 0x%x payload 0x%llx",
		     i, (unsigned long long)pkt.offset, pkt.size, pkt.kind, pkt.aux,
		     (unsigned long long)pkt.payload, (unsigned long long)want[i].offset,
		     want[i].size, want[i].kind, want[i].aux, (unsigned long long)want[i].payload);
		must((pkt.owner.sure == VMPT_UNKNOWN) == (pkt.kind == VMPT_ITEM_LOSS),
		     "packet %zu: a loss is nobody's, and nothing else is", i);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(i, n);
	vmpt_decoder_close(dec);
}

void rtit_check(const struct vmpt_stream *stream, const struct vmpt_options *options,
		const struct rtit_want *want, size_t n)
{
	struct vmpt_stream copy = *stream;
	struct room room;

	room_copy(&room, stream->data, stream->size);
	copy.data = room.data;
	check_packets(&copy, options, want, n);
	room_close(&room);
}

static void check_slice(const struct vmpt_slice *got, const struct vmpt_slice *want, size_t i)
{
	size_t e;

	must(got->offset == want->offset && got->size == want->size,
	     "slice %zu: [0x%llx, +0x%llx), want [0x%llx, +0x%llx)", i,
	     (unsigned long long)got->offset, (unsigned long long)got->size,
	     (unsigned long long)want->offset, (unsigned long long)want->size);
	must(got->owner.kind == want->owner.kind && got->owner.sure == want->owner.sure &&
		     got->owner.vmcs == want->owner.vmcs,
	     "slice %zu: owner %u %u 0x%llx", i, got->owner.kind, got->owner.sure,
	     (unsigned long long)got->owner.vmcs);
	must(got->begin == want->begin && got->loss == want->loss, "slice %zu: begin %u loss %u", i,
	     got->begin, got->loss);
	must(got->enables == want->enables && got->disables == want->disables &&
		     got->overflows == want->overflows,
	     "slice %zu: %u enables, %u disables, %u overflows", i, got->enables, got->disables,
	     got->overflows);
	for (e = 0; e <= VMPT_RTIT_ERRATA; e++)
		must(got->errata[e] == want->errata[e], "slice %zu: E%zu %u times", i, e,
		     got->errata[e]);
	must(got->has_tsc == want->has_tsc && got->first_tsc == want->first_tsc &&
		     got->last_tsc == want->last_tsc,
	     "slice %zu: TSC 0x%llx to 0x%llx", i, (unsigned long long)got->first_tsc,
	     (unsigned long long)got->last_tsc);
	must(got->cr3_count == want->cr3_count && !memcmp(got->cr3, want->cr3, sizeof(got->cr3)),
	     "slice %zu: %u CR3s", i, got->cr3_count);
}

void rtit_check_slices(const struct vmpt_stream *stream, const struct vmpt_options *options,
		       const struct vmpt_slice *want, size_t n)
{
	struct vmpt_splitter *split;
	struct vmpt_slice slice;
	size_t i;
	int ret;

	ck_assert_int_eq(vmpt_splitter_open(&split, stream, options), 0);
	for (i = 0; (ret = vmpt_split_next(split, &slice)) == 1; i++) {
		must(i < n, "slice %zu: more than %zu", i, n);
		check_slice(&slice, &want[i], i);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(i, n);
	vmpt_splitter_close(split);
}
