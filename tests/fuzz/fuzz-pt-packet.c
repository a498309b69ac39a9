// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/pt-packet*.c on any bytes: packets are printed, encoded and decoded again to the same;
 * errors have names. The input's first byte is the initial block context.
 */
#include "arch/pt-packet.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

/* A truncated text is the beginning of the whole one; @need counts without the NUL. */
static void check_text(const char *whole, size_t need, const char *cut, size_t cut_len)
{
	size_t fits = need < cut_len - 1 ? need : cut_len - 1;

	CHECK(strlen(whole) == need);
	CHECK(strlen(cut) == fits && !memcmp(cut, whole, fits));
}

static void check_print(const struct vmpt_pt_packet *pkt, size_t cut_len)
{
	char whole[256], cut[32];
	size_t need = vmpt_pt_print(pkt, whole, sizeof(whole));

	CHECK(vmpt_pt_print(pkt, cut, cut_len) == need);
	check_text(whole, need, cut, cut_len);
}

static void check_print_error(int err, const u8 *bytes, size_t n, size_t cut_len)
{
	char whole[256], cut[32];
	size_t need = vmpt_pt_print_error(err, bytes, n, whole, sizeof(whole));

	CHECK(vmpt_pt_print_error(err, bytes, n, cut, cut_len) == need);
	check_text(whole, need, cut, cut_len);
}

static void check_encode(const struct vmpt_pt_packet *pkt, unsigned int block)
{
	struct vmpt_pt_packet out = *pkt, again;
	u8 buf[VMPT_PT_SIZE_MAX];
	int size = vmpt_pt_encode(&out, buf, sizeof(buf), block);

	/* decode accepts a long TNT without a branch; encode does not write it. */
	if (pkt->kind == VMPT_PT_TNT_64 && !pkt->tnt.count) {
		CHECK(size == -VMPT_E_INVAL);
		return;
	}
	/* A count may have been sent with more bytes than it needs. */
	CHECK(pkt->kind == VMPT_PT_CYC ? size > 0 && size <= pkt->size : size == pkt->size);
	CHECK(!vmpt_pt_decode(&again, buf, (size_t)size, block));
	CHECK(again.kind == pkt->kind && again.flags == pkt->flags && again.size == size);
	CHECK(!memcmp(again.val, pkt->val, sizeof(pkt->val)));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_pt_packet pkt;
	unsigned int block;
	size_t at = 1;
	int err;

	if (!size)
		return 0;
	block = data[0] & 0x40 ? data[0] & 0x7f : 0;
	while (at < size) {
		size_t cut_len = 1 + at % 32;

		err = vmpt_pt_decode(&pkt, data + at, size - at, block);
		if (err) {
			check_print_error(err, data + at, size - at, cut_len);
			at++;
			block = 0;
			continue;
		}
		CHECK(pkt.kind < VMPT_PT_KINDS && pkt.size && pkt.size <= size - at);
		check_print(&pkt, cut_len);
		check_encode(&pkt, block);
		block = vmpt_pt_block_after(&pkt, block);
		at += pkt.size;
	}
	return 0;
}
