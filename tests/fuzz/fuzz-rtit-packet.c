// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * arch/rtit-packet.c on any bytes: packets are printed, encoded and decoded again to the same;
 * their LIPs are completed and compressed again to equivalent ones. Bit 0 of the input's first byte
 * is cycle accurate mode.
 */
#include "arch/rtit-packet.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define CHECK(what)                       \
	do {                              \
		if (!(what))              \
			__builtin_trap(); \
	} while (0)

/* A truncated text is the beginning of the whole one. */
static void check_print(const struct vmpt_rtit_packet *pkt, size_t cut_len)
{
	char whole[128], cut[32];
	size_t need = vmpt_rtit_print(pkt, whole, sizeof(whole));
	size_t fits = need < cut_len - 1 ? need : cut_len - 1;

	CHECK(need < sizeof(whole) && strlen(whole) == need);
	CHECK(vmpt_rtit_print(pkt, cut, cut_len) == need);
	CHECK(strlen(cut) == fits && !memcmp(whole, cut, fits));
}

static void check_encode(const struct vmpt_rtit_packet *pkt, const u8 *bytes, bool cycle_acc)
{
	struct vmpt_rtit_packet out = *pkt, again;
	u8 buf[VMPT_RTIT_SIZE_MAX];
	int size = vmpt_rtit_encode(&out, buf, sizeof(buf));

	/* A cycle count may have been sent with more bytes than it needs. */
	CHECK(size > 0 && size <= pkt->size && size == out.size);
	CHECK(size < pkt->size ? pkt->flags & VMPT_RTIT_CYCLES : !memcmp(buf, bytes, (size_t)size));
	CHECK(!vmpt_rtit_decode(&again, buf, (size_t)size, cycle_acc));
	CHECK(again.kind == pkt->kind && again.flags == pkt->flags && again.size == size);
	CHECK(again.cycles == pkt->cycles && !memcmp(again.val, pkt->val, sizeof(pkt->val)));
	CHECK(vmpt_rtit_encode(&out, buf, (size_t)size - 1) == -VMPT_E_SPACE);
	for (size_t len = 0; len < (size_t)size; len++)
		CHECK(vmpt_rtit_decode(&again, buf, len, cycle_acc) == -VMPT_E_TRUNCATED);
}

/* @last is the decoder's Last LIP. */
static void check_lip(struct vmpt_rtit_last_lip *last, const struct vmpt_rtit_packet *pkt)
{
	struct vmpt_rtit_last_lip before = *last, other = *last;
	struct vmpt_rtit_packet out = *pkt;
	u64 lip, again;

	if (!vmpt_rtit_lip_expand(last, pkt, &lip)) {
		CHECK(!before.valid && !pkt->ip.zext && pkt->ip.cnt < 2);
		CHECK(last->valid == before.valid && last->lip == before.lip);
		return;
	}
	CHECK(last->valid && !(lip >> VMPT_RTIT_LIP_BITS));
	vmpt_rtit_lip_compress(&other, lip, &out);
	CHECK(out.ip.cnt <= pkt->ip.cnt);
	CHECK(other.valid && other.lip >> 16 == lip >> 16);
	other = before;
	CHECK(vmpt_rtit_lip_expand(&other, &out, &again) && again == lip);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct vmpt_rtit_last_lip last = { 0 };
	struct vmpt_rtit_packet pkt;
	bool cycle_acc;
	size_t at = 1;

	if (!size)
		return 0;
	cycle_acc = data[0] & 1;
	while (at < size) {
		int err = vmpt_rtit_decode(&pkt, data + at, size - at, cycle_acc);

		if (err) {
			CHECK(err < 0);
			at++;
			last.valid = false;
			continue;
		}
		CHECK(pkt.kind < VMPT_RTIT_KINDS && pkt.size && pkt.size <= size - at);
		CHECK(cycle_acc || !(pkt.flags & VMPT_RTIT_CYCLES));
		check_print(&pkt, 1 + at % 32);
		check_encode(&pkt, data + at, cycle_acc);
		if (pkt.kind == VMPT_RTIT_PSB)
			last.valid = false;
		if (vmpt_rtit_table[pkt.kind].classes & VMPT_RTIT_HAS_LIP)
			check_lip(&last, &pkt);
		at += pkt.size;
	}
	return 0;
}
