// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/decoder/streams.h"
#include "util/array.h"

static void room_open(struct room *r, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t whole = (size + page - 1) / page * page;

	r->map_size = whole + page;
	r->map =
		mmap(NULL, r->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(r->map != MAP_FAILED, "mmap failed");
	must(!mprotect(r->map + whole, page, PROT_NONE), "mprotect failed");
	r->data = r->map + whole - size;
	r->size = size;
}

void room_close(struct room *r)
{
	munmap(r->map, r->map_size);
}

void room_copy(struct room *r, const u8 *bytes, size_t size)
{
	room_open(r, size);
	if (size)
		memcpy(r->data, bytes, size);
}

void build_bytes(struct builder *b, const void *bytes, size_t n)
{
	must(!vmpt_reserve(&b->buf, &b->max, b->size + n), "no memory");
	memcpy(b->buf + b->size, bytes, n);
	b->size += n;
}

void build(struct builder *b, struct vmpt_pt_packet *pkt)
{
	u8 bytes[VMPT_PT_SIZE_MAX];
	int n = vmpt_pt_encode(pkt, bytes, sizeof(bytes), b->block);

	must(n > 0, "cannot encode kind %u: %d", pkt->kind, n);
	build_bytes(b, bytes, (size_t)n);
	b->block = vmpt_pt_block_after(pkt, b->block);
}

void build_kind(struct builder *b, unsigned int kind)
{
	struct vmpt_pt_packet pkt = { .kind = (u8)kind };

	build(b, &pkt);
}

void build_random(struct builder *b, struct test_rng *rng, unsigned int kind)
{
	static const u8 ipbytes[] = { 0, 1, 2, 3, 4, 6 };
	const struct vmpt_pt_desc *d = &vmpt_pt_table[kind];
	struct vmpt_pt_packet pkt = { .kind = (u8)kind };
	unsigned int i, bits;

	for (i = 0; i < d->fields; i++)
		pkt.val[i] = (test_random(rng) & vmpt_mask64(d->field[i].width))
			     << d->field[i].shift;
	if (kind == VMPT_PT_TNT_8 || kind == VMPT_PT_TNT_64) {
		pkt.tnt.count = 1 + test_random(rng) % (kind == VMPT_PT_TNT_8 ? 6 : 47);
		pkt.tnt.bits = test_random(rng) & vmpt_mask64((unsigned int)pkt.tnt.count);
	} else if (d->size_rule == VMPT_PT_SIZE_IP) {
		pkt.ip.ipbytes = ipbytes[test_random(rng) % sizeof(ipbytes)];
		bits = 8 * vmpt_pt_ip_size((unsigned int)pkt.ip.ipbytes);
		pkt.ip.ip = test_random(rng) & vmpt_mask64(bits);
	} else if (d->size_rule == VMPT_PT_SIZE_PTW) {
		pkt.ptw.payload_bytes = test_random(rng) & 1;
		pkt.ptw.payload &= vmpt_mask64(pkt.ptw.payload_bytes ? 64 : 32);
	} else if (d->size_rule == VMPT_PT_SIZE_TRIG) {
		pkt.trig.icnt = pkt.trig.icntv ? pkt.trig.icnt : 0;
	} else if (d->size_rule == VMPT_PT_SIZE_CYC) {
		pkt.cyc.cycles >>= test_random(rng) % 64;
	} else if (d->size_rule == VMPT_PT_SIZE_BIP) {
		pkt.bip.payload &= vmpt_mask64(8 * vmpt_pt_block_item_size(b->block));
	}
	build(b, &pkt);
}

void build_mix(struct builder *b, struct test_rng *rng, size_t size, size_t psb)
{
	size_t end = b->size + size;
	unsigned int kind;

	while (b->size < end) {
		if (psb && !(test_random(rng) % (psb / 4 + 1)))
			build_kind(b, VMPT_PT_PSB);
		kind = test_random(rng) % VMPT_PT_KINDS;
		if (kind == VMPT_PT_PSB || (kind == VMPT_PT_BIP && !b->block))
			kind = VMPT_PT_TNT_8;
		/* Inside a block mostly items, or blocks are short. */
		if (b->block && test_random(rng) % 4)
			kind = VMPT_PT_BIP;
		build_random(b, rng, kind);
	}
}

void damage_bytes(u8 *bytes, size_t size, struct test_rng *rng)
{
	u64 n = 1 + test_random(rng) % 24;
	size_t at, from, len;

	while (n--) {
		at = test_random(rng) % size;
		len = 1 + test_random(rng) % (test_random(rng) & 3 ? 2 : 300);
		if (len > size - at)
			len = size - at;
		from = test_random(rng) % (size - len + 1);
		switch (test_random(rng) % 3) {
		case 0:
			bytes[at] = (u8)test_random(rng);
			break;
		case 1:
			memmove(bytes + at, bytes + from, len);
			break;
		default:
			memset(bytes + at, (u8)test_random(rng), len);
		}
	}
}

static int by_offset(const void *a, const void *b)
{
	const struct vmpt_gap *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

size_t random_gaps(struct vmpt_gap gaps[GAPS_MAX], size_t size, struct test_rng *rng)
{
	size_t n = test_random(rng) & 1 ? test_random(rng) % (GAPS_MAX + 1) : 0, i;

	for (i = 0; i < n; i++)
		gaps[i] = (struct vmpt_gap){ .offset = test_random(rng) % (size + 1) };
	if (n > 1 && test_random(rng) & 1)
		gaps[1].offset = gaps[0].offset;
	qsort(gaps, n, sizeof(*gaps), by_offset);
	return n;
}
