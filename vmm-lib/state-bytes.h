/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The bytes of a saved state (docs/vmm-lib/state.md): a header, then fields with a tag and a
 * length, little-endian, written and read byte by byte. Reading never goes beyond the end.
 */
#ifndef VMPT_VMM_STATE_BYTES_H
#define VMPT_VMM_STATE_BYTES_H

#include "arch/error.h"
#include "vmm-lib/caps-rules.h"

#define HEADER_SIZE 12
/* A reader that does not know a tag with this bit must refuse the whole state. */
#define NEEDED 0x8000

struct writer {
	u8 *buf;
	size_t len, used;
};

static inline void put(struct writer *w, u64 value, unsigned int bytes)
{
	for (; bytes--; value >>= 8, w->used++)
		if (w->used < w->len)
			w->buf[w->used] = (u8)value;
}

/* Make room for a field's header; its length is filled in when the field is complete. */
static inline size_t begin(struct writer *w, u32 tag)
{
	put(w, tag, 2);
	put(w, 0, 2);
	return w->used;
}

static inline void end(const struct writer *w, size_t start)
{
	struct writer head = { w->buf, w->len, start - 2 };

	put(&head, w->used - start, 2);
}

struct reader {
	const u8 *p;
	size_t left;
	bool bad; /* read past the end, or a flag that is neither 0 nor 1 */
};

static inline u64 get(struct reader *r, unsigned int bytes)
{
	u64 value = 0;
	unsigned int i;

	if (bytes > r->left) {
		r->bad = true;
		r->left = 0;
		return 0;
	}
	for (i = 0; i < bytes; i++)
		value |= (u64)r->p[i] << 8 * i;
	r->p += bytes;
	r->left -= bytes;
	return value;
}

static inline u8 get_flag(struct reader *r)
{
	u8 flag = (u8)get(r, 1);

	if (flag > 1)
		r->bad = true;
	return flag;
}

/* The header of @version; the size is filled in when everything is written. */
static inline void put_header(struct writer *w, const u8 magic[4], u32 version)
{
	put(w, vmpt_load32(magic), 4);
	put(w, version, 2);
	put(w, 0, 2 + 4);
}

/* The result of a save: the size, now also in the header, or -VMPT_E_SPACE. */
static inline int put_size(const struct writer *w)
{
	struct writer size = { w->buf, w->len, HEADER_SIZE - 4 };

	put(&size, w->used, 4);
	return w->used > w->len ? -VMPT_E_SPACE : (int)w->used;
}

/* The header; on return @r holds the fields. */
static inline int get_header(struct reader *r, const u8 magic[4], u32 newest,
			     struct vmpt_refusal *why)
{
	u32 first = (u32)get(r, 4), version = (u32)get(r, 2), zero = (u32)get(r, 2);
	u64 size = get(r, 4);

	if (r->bad)
		return vmpt_refuse(why, VMPT_E_TRUNCATED, "header of the state", "cut", 0, 0);
	if (first != vmpt_load32(magic))
		return vmpt_refuse(why, VMPT_E_FORMAT, "magic of the state",
				   "not the state of a vCPU", first, vmpt_load32(magic));
	if (version > newest)
		return vmpt_refuse(why, VMPT_E_UNSUPPORTED, "version of the state",
				   "newer than this library", version, newest);
	if (!version || zero || size < HEADER_SIZE)
		return vmpt_refuse(why, VMPT_E_FORMAT, "header of the state", "an invalid value",
				   version, newest);
	if (size - HEADER_SIZE > r->left)
		return vmpt_refuse(why, VMPT_E_TRUNCATED, "size of the state",
				   "larger than the input", size, r->left + HEADER_SIZE);
	r->left = (size_t)size - HEADER_SIZE;
	return 0;
}

/* The next field: its tag in *@tag, its contents in @field. */
static inline int get_next(struct reader *r, u32 *tag, struct reader *field,
			   struct vmpt_refusal *why)
{
	*tag = (u32)get(r, 2);
	*field = (struct reader){ NULL, (size_t)get(r, 2), false };
	if (r->bad || field->left > r->left)
		return vmpt_refuse(why, VMPT_E_FORMAT, "field of the state", "goes beyond the end",
				   *tag, 0);
	field->p = r->p;
	r->p += field->left;
	r->left -= field->left;
	return 0;
}

/* A field with a tag that the reader does not know. */
static inline int get_unknown(u32 tag, struct vmpt_refusal *why)
{
	if (tag & NEEDED)
		return vmpt_refuse(why, VMPT_E_UNSUPPORTED, "field of the state",
				   "required, but unknown to this library", tag, 0);
	return 0;
}

/*
 * End of @field: was it valid, and the first with its tag? Bit n of *@has: tag n, without NEEDED.
 */
static inline int get_field_end(const struct reader *field, u32 tag, u16 *has,
				struct vmpt_refusal *why)
{
	u16 bit = (u16)(1u << (tag & 0xf));

	if (field->bad || field->left || *has & bit)
		return vmpt_refuse(why, VMPT_E_FORMAT, "field of the state",
				   "wrong length or flag, or a duplicate", tag, 0);
	*has |= bit;
	return 0;
}

/* End of the state: were all required fields present? */
static inline int check_all(u16 has, u16 all, struct vmpt_refusal *why)
{
	if ((has & all) == all)
		return 0;
	return vmpt_refuse(why, VMPT_E_FORMAT, "fields of the state", "one is missing", has, all);
}

static inline int invalid(struct vmpt_refusal *why, const char *field, const char *rule, u64 value)
{
	return vmpt_refuse(why, VMPT_E_INVAL, field, rule, value, 0);
}

#endif
