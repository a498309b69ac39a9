// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt_tsc_rewrite() on any bytes in any pieces, and lanes over any pages: equal to a rewrite of
 * the whole, packet by packet. The input's first 16 bytes: repetitions of the rest (for lanes), the
 * size of pieces, bits 63:56, the multiplier and the offset.
 */
#include <stdlib.h>

#include "tests/vmm-lib/tsc-oracle.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define HEAD	  16
#define BYTES_MAX 65536

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

static void rewrite(struct vmpt_tsc_scan *scan, const struct vmpt_tsc_change *change, u8 *buf,
		    size_t len, size_t piece)
{
	size_t at, n, cut;

	for (at = 0; at < len; at += n) {
		n = piece && piece < len - at ? piece : len - at;
		cut = scan->cut_size;
		vmpt_tsc_rewrite(scan, change, buf + at, n);
		CHECK(!scan->patched || (scan->patched == cut && cut <= at));
		memcpy(buf + at - scan->patched, scan->patch, scan->patched);
	}
}

static void check(const struct vmpt_tsc_scan *scan, const struct tsc_oracle *sum, const u8 *out,
		  const u8 *want, size_t len)
{
	CHECK(!memcmp(out, want, len));
	CHECK(scan->packets == sum->packets && scan->tscs == sum->tscs && scan->tmas == sum->tmas &&
	      scan->errors == sum->errors && scan->lost_bytes == sum->lost_bytes);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_tsc_change change;
	struct vmpt_tsc_scan scan = { 0 };
	struct tsc_oracle sum = { 0 };
	size_t i, len, copies;
	u64 rng = 1;
	u8 *in, *want, *out;

	if (size <= HEAD)
		return 0;
	change.multiplier = vmpt_load64(data + 4) >> 8;
	change.offset = (u64)vmpt_load32(data + 12) << 20;
	change.high = data[3];
	size -= HEAD;
	copies = 1 + data[0];
	copies = copies * size > BYTES_MAX ? BYTES_MAX / size : copies;
	len = size * (copies ? copies : 1);
	in = malloc(len);
	want = malloc(len);
	out = malloc(len);
	CHECK(in && want && out);
	for (i = 0; i < len; i += size)
		memcpy(in + i, data + HEAD, size);
	memcpy(want, in, len);
	memcpy(out, in, len);
	tsc_oracle(&sum, &change, in, want, 0, len);
	rewrite(&scan, &change, out, len, vmpt_load16(data + 1));
	check(&scan, &sum, out, want, len);
	memcpy(out, in, len);
	scan = (struct vmpt_tsc_scan){ 0 };
	tsc_in_pages(&scan, &change, out, len, &rng);
	check(&scan, &sum, out, want, len);
	free(in);
	free(want);
	free(out);
	return 0;
}
