/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For tests of RTIT's decoding: bytes written out, and the packets and slices that are expected of
 * the decoder and the splitter.
 */
#ifndef VMPT_TESTS_RTIT_CHECK_H
#define VMPT_TESTS_RTIT_CHECK_H

#include "decoder/vmpt-decode.h"
#include "tests/support/support.h"

#define K(kind) (VMPT_ITEM_RTIT + VMPT_RTIT_##kind)
#define CYC	VMPT_ITEM_RTIT_CYC
#define PSB	0xc0, 0, 0, 0, 0, 0, 0, 0, 0

struct rtit_want {
	u64 offset, payload;
	u32 size;
	u8 kind, aux;
};

/* @stream's data are copied to the end of a page; the next page faults. */
void rtit_check(const struct vmpt_stream *stream, const struct vmpt_options *options,
		const struct rtit_want *want, size_t n);
/* Compare everything but padding. */
void rtit_check_slices(const struct vmpt_stream *stream, const struct vmpt_options *options,
		       const struct vmpt_slice *want, size_t n);

static inline struct vmpt_stream rtit_stream(const u8 *bytes, size_t size)
{
	return (struct vmpt_stream){
		.data = bytes, .size = size, .cpu = -1, .tid = -1, .isa = VMPT_ISA_RTIT
	};
}

/* Bytes, options, and the expected packets. */
#define CHECK(bytes, options, ...)                                              \
	do {                                                                    \
		const struct rtit_want want_[] = { __VA_ARGS__ };               \
		struct vmpt_stream stream_ = rtit_stream(bytes, sizeof(bytes)); \
		struct vmpt_options options_ = options;                         \
		rtit_check(&stream_, &options_, want_, VMPT_ARRAY_SIZE(want_)); \
	} while (0)

#define PLAIN  ((struct vmpt_options){ .cycle_acc = VMPT_CYCLE_ACC_NO })
#define CYCLES ((struct vmpt_options){ .cycle_acc = VMPT_CYCLE_ACC_YES })

/* aux with an erratum. */
#define BY(erratum)	VMPT_RTIT_AUX_BY(erratum)
#define IGNORE(erratum) (BY(erratum) | VMPT_RTIT_AUX_IGNORE)
#define NO_LIP		VMPT_RTIT_AUX_NO_LIP

#endif
