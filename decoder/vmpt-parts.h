/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libvmpt-decode: a trace of PT that comes in parts, as it is recorded: from a file that grows, a
 * pipe, a socket. All packets, with their owners, are those of the whole trace, each is returned
 * once, and memory is bounded.
 *
 * Open a decoder, then add bytes and take batches, in turn:
 *
 *	vmpt_decoder_open_parts(&dec, NULL);
 *	while ((n = read(fd, buf, sizeof(buf))) > 0) {
 *		vmpt_decoder_add(dec, buf, n);
 *		while (vmpt_batch_next(dec, &batch) == 1)
 *			...
 *	}
 *	vmpt_decoder_end(dec);
 *	while (vmpt_batch_next(dec, &batch) == 1)
 *		...
 */
#ifndef VMPT_DECODE_PARTS_H
#define VMPT_DECODE_PARTS_H

#include "decoder/vmpt-decode.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * A packet is held back while later ones may decide whose it is, or whether it is one: at least the
 * last 64 bytes, and up to the last TNT, TIP, or other packet that neither belongs to a PSB+ (SDM 3
 * 33.3.7) or a group (Table 33-14) nor only tells the time. If there is none in this many bytes,
 * owners are decided by what is there, as at the end of a trace.
 */
#define VMPT_PARTS_HELD (1u << 20)

/*
 * Open a decoder of PT without bytes. @options: of those of vmpt_decoder_open() headless,
 * guest_only, host_only and progress; or NULL. It uses one thread and the plain loop. Close it with
 * vmpt_decoder_close(). 0, -VMPT_E_NOMEM, -VMPT_E_INVAL or -VMPT_E_VERSION.
 */
int vmpt_decoder_open_parts_abi(struct vmpt_decoder **dec, const struct vmpt_options *options,
				u64 abi);
#define vmpt_decoder_open_parts(dec, options) \
	vmpt_decoder_open_parts_abi(dec, options, VMPT_DECODE_ABI)

/*
 * The next @size bytes of the trace, which are copied. A batch returned before is no longer valid.
 * After vmpt_batch_next() has returned 0, which here means that it needs more bytes, at most 2 *
 * VMPT_PARTS_HELD bytes from before are kept. The bytes of a loss may not be: batch.data is of no
 * use for it. 0; -VMPT_E_NOMEM with nothing added; -VMPT_E_STATE: after vmpt_decoder_end(), or @dec
 * was opened otherwise.
 */
int vmpt_decoder_add(struct vmpt_decoder *dec, const u8 *bytes, size_t size);

/* There are no more bytes: vmpt_batch_next() returns the rest, then 0. 0 or -VMPT_E_STATE. */
int vmpt_decoder_end(struct vmpt_decoder *dec);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
