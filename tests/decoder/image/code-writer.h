/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Writes code streams for tests, by docs/qemu-plugin/code-stream.md and not by the plugin's code.
 * Each record is a chunk of its own unless stream_open_chunk() keeps one open.
 */
#ifndef VMPT_TESTS_CODE_WRITER_H
#define VMPT_TESTS_CODE_WRITER_H

#include "tests/support/support.h"

struct stream {
	u8 file[1 << 17];
	size_t size;
	u32 number; /* of the next chunk */
	/* the chunk */
	u8 records[1 << 16];
	size_t used;
	bool open;
	u64 time, end, cr3, linear, physical;
};

static inline void stream_byte(struct stream *s, u8 byte)
{
	ck_assert_uint_lt(s->used, sizeof(s->records));
	s->records[s->used++] = byte;
}

static inline void stream_number(struct stream *s, u64 v)
{
	do {
		stream_byte(s, (u8)((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
		v >>= 7;
	} while (v);
}

static inline void stream_signed(struct stream *s, u64 from, u64 to)
{
	s64 d = (s64)(to - from);

	stream_number(s, d < 0 ? ~((u64)d << 1) : (u64)d << 1);
}

static inline void stream_chunk(struct stream *s)
{
	u64 sum = 0xcbf29ce484222325;
	u8 head[24] = "VMPTCOD1";
	u32 size = (u32)s->used;
	size_t i;

	memcpy(head + 8, &size, 4);
	memcpy(head + 12, &s->number, 4);
	for (i = 0; i < 16 + s->used; i++)
		sum = (sum ^ (i < 16 ? head[i] : s->records[i - 16])) * 0x100000001b3;
	memcpy(head + 16, &sum, 8);
	ck_assert_uint_le(s->size + 24 + s->used, sizeof(s->file));
	memcpy(s->file + s->size, head, 24);
	memcpy(s->file + s->size + 24, s->records, s->used);
	s->size += 24 + s->used;
	s->number++;
	s->used = 0;
	s->time = s->end = s->cr3 = s->linear = s->physical = 0;
}

static inline void stream_record(struct stream *s, u8 kind, u64 time)
{
	stream_byte(s, kind);
	stream_number(s, time - s->time);
	s->time = time;
}

static inline void stream_done(struct stream *s)
{
	if (!s->open)
		stream_chunk(s);
}

static inline void put_start(struct stream *s, u64 time, const char *vm)
{
	s->number = 0;
	stream_record(s, 1, time);
	stream_number(s, strlen(vm));
	for (; *vm; vm++)
		stream_byte(s, (u8)*vm);
	stream_done(s);
}

static inline void put_bytes(struct stream *s, u64 time, u64 physical, const char *text)
{
	stream_record(s, 2, time);
	stream_signed(s, s->end, physical);
	stream_number(s, strlen(text));
	s->end = physical + strlen(text);
	for (; *text; text++)
		stream_byte(s, (u8)*text);
	stream_done(s);
}

/* @mode: 16, 32, 64. Page numbers. */
static inline void put_map(struct stream *s, u64 time, unsigned int mode, u64 cr3, u64 linear,
			   u64 physical)
{
	stream_record(s, mode == 16 ? 3 : mode == 32 ? 4 : 5, time);
	stream_signed(s, s->cr3, cr3 >> 5);
	stream_signed(s, s->linear, linear);
	stream_signed(s, s->physical, physical);
	s->cr3 = cr3 >> 5;
	s->linear = linear;
	s->physical = physical;
	stream_done(s);
}

static inline void put_run(struct stream *s, u64 time, u64 vmcs, u64 begin, u64 end, u64 moved)
{
	stream_record(s, 6, time);
	stream_number(s, 0);
	stream_number(s, vmcs >> 12);
	stream_number(s, time - end);
	stream_number(s, end - begin);
	stream_number(s, moved);
	stream_done(s);
}

static inline void put_end(struct stream *s, u64 time, u64 why)
{
	stream_record(s, 7, time);
	stream_number(s, why);
	stream_done(s);
}

#endif
