/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A hash over the elements of an array: from a key to an element's index, by open addressing. It
 * stores 32 bits of each key's hash, so that it grows without the elements and compares few but the
 * right one. The caller hashes a key with vmpt_mix64(), including a random seed if the input must
 * not choose colliding keys.
 */
#ifndef VMPT_UTIL_HASH_H
#define VMPT_UTIL_HASH_H

#include <stdlib.h>

#include "arch/error.h"
#include "arch/types.h"

#define VMPT_HASH_NONE	  (~0U)
#define VMPT_HASH_MIN	  32u	     /* slots */
#define VMPT_HASH_ENTRIES (1u << 30) /* at most */

struct vmpt_hash_slot {
	u32 hash;
	u32 index; /* + 1; 0: free */
};

/* All 0: empty. */
struct vmpt_hash {
	struct vmpt_hash_slot *slot;
	size_t slots; /* a power of two, or 0 */
	size_t count; /* at most half of them */
};

/* Each bit of @x changes about half of the result's: splitmix64's finalizer, a bijection. */
static inline u64 vmpt_mix64(u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

#define VMPT_FNV1A 0xcbf29ce484222325ULL

/* 64-bit FNV-1a of @n bytes, continuing @hash: VMPT_FNV1A, or what the bytes before gave. */
static inline u64 vmpt_fnv1a(u64 hash, const void *bytes, size_t n)
{
	const u8 *byte = bytes;

	for (; n; n--)
		hash = (hash ^ *byte++) * 0x100000001b3ULL;
	return hash;
}

static inline void vmpt_hash_put(const struct vmpt_hash *h, struct vmpt_hash_slot entry)
{
	size_t at = entry.hash & (h->slots - 1);

	while (h->slot[at].index)
		at = (at + 1) & (h->slots - 1);
	h->slot[at] = entry;
}

/*
 * Add element @index under its key's hash @hash, of which 32 bits are used. It must not be in the
 * hash yet. 0, or -VMPT_E_NOMEM with the hash unchanged.
 */
static inline int vmpt_hash_add(struct vmpt_hash *h, u64 hash, u32 index)
{
	struct vmpt_hash more = { .slots = h->slots ? 2 * h->slots : VMPT_HASH_MIN };
	size_t i;

	if (h->count >= VMPT_HASH_ENTRIES)
		return -VMPT_E_NOMEM;
	if (2 * h->count >= h->slots) {
		more.slot = calloc(more.slots, sizeof(*more.slot));
		if (!more.slot)
			return -VMPT_E_NOMEM;
		for (i = 0; i < h->slots; i++)
			if (h->slot[i].index)
				vmpt_hash_put(&more, h->slot[i]);
		free(h->slot);
		h->slot = more.slot;
		h->slots = more.slots;
	}
	vmpt_hash_put(h, (struct vmpt_hash_slot){ (u32)hash, index + 1 });
	h->count++;
	return 0;
}

/*
 * The index of the element with hash @key_hash for which @is, an expression of the index @i, is
 * true; VMPT_HASH_NONE if there is none.
 *
 *	n = vmpt_hash_find(&h, vmpt_mix64(key), i, list[i].key == key);
 */
#define vmpt_hash_find(h, key_hash, i, is)                                                   \
	({                                                                                   \
		const struct vmpt_hash *hash_ = (h);                                         \
		const u32 want_ = (u32)(key_hash);                                           \
		size_t at_ = want_;                                                          \
		u32 found_ = VMPT_HASH_NONE;                                                 \
                                                                                             \
		for (; hash_->slots && hash_->slot[at_ & (hash_->slots - 1)].index; at_++) { \
			const struct vmpt_hash_slot *slot_ =                                 \
				&hash_->slot[at_ & (hash_->slots - 1)];                      \
			const u32 i = slot_->index - 1;                                      \
                                                                                             \
			if (slot_->hash == want_ && (is)) {                                  \
				found_ = i;                                                  \
				break;                                                       \
			}                                                                    \
		}                                                                            \
		found_;                                                                      \
	})

/* Remove all elements; the memory is kept for new ones. */
static inline void vmpt_hash_clear(struct vmpt_hash *h)
{
	if (h->count)
		memset(h->slot, 0, h->slots * sizeof(*h->slot));
	h->count = 0;
}

static inline void vmpt_hash_free(struct vmpt_hash *h)
{
	free(h->slot);
	*h = (struct vmpt_hash){ 0 };
}

#endif
