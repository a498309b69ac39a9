// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * perf.data: TRACING_DATA, which the perf tool copies from tracefs when it records tracepoints.
 * Only the formats of KVM's events in read_format() are read, which differ between kernels: the
 * places of vcpu_id, rip and other fields in a sample's raw data.
 */
#include <stdlib.h>

#include "decoder/trace/perf.h"

/* "name: kvm_entry\nID: 1234\nformat:\n\tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;..." */
#define LINE_MAX_BYTES 256

static const u8 magic[10] = { 23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g' };

struct cursor {
	const u8 *at, *end;
	bool bad; /* the data was malformed: the rest cannot be read */
};

static u64 take(struct cursor *c, unsigned int bytes)
{
	u64 v = 0;

	if (c->bad || (u64)(c->end - c->at) < bytes) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->at, bytes);
	c->at += bytes;
	return v;
}

/* @size bytes; none if fewer are left. */
static struct cursor take_bytes(struct cursor *c, u64 size)
{
	struct cursor part = { c->at, c->at, false };

	if (c->bad || (u64)(c->end - c->at) < size) {
		c->bad = true;
		return part;
	}
	c->at += size;
	part.end = c->at;
	return part;
}

/* A string and its terminating zero. Its length is part.end - part.at. */
static struct cursor take_string(struct cursor *c)
{
	const u8 *zero =
		c->bad || c->at == c->end ? NULL : memchr(c->at, 0, (size_t)(c->end - c->at));
	struct cursor part = { c->at, zero ? zero : c->at, false };

	if (zero)
		c->at = zero + 1;
	else
		c->bad = true;
	return part;
}

static bool is_string(const struct cursor *c, const char *string)
{
	size_t n = (size_t)(c->end - c->at);

	return n == strlen(string) && !memcmp(c->at, string, n);
}

/* Copy the next line of @c to @line, without leading blanks and line end. */
static bool next_line(struct cursor *c, char line[LINE_MAX_BYTES])
{
	const u8 *end;
	size_t n;

	while (c->at < c->end && (*c->at == '\n' || *c->at == '\t' || *c->at == ' '))
		c->at++;
	if (c->at == c->end)
		return false;
	end = memchr(c->at, '\n', (size_t)(c->end - c->at));
	end = end ? end : c->end;
	n = (size_t)(end - c->at) < LINE_MAX_BYTES ? (size_t)(end - c->at) : LINE_MAX_BYTES - 1;
	memcpy(line, c->at, n);
	line[n] = 0;
	c->at = end;
	return true;
}

static struct perf_field *field_of(struct perf_tracepoint *tp, const char *name, size_t n)
{
	const struct {
		const char *name;
		struct perf_field *field;
	} fields[] = {
		{ "vcpu_id", &tp->vcpu_id }, { "rip", &tp->rip },
		{ "guest_rip", &tp->rip },   { "info1", &tp->info1 },
		{ "info2", &tp->info2 },     { "exit_reason", &tp->exit_reason },
		{ "isa", &tp->isa },	     { "ecx", &tp->info1 },
		{ "gpa", &tp->info1 },	     { "fault_address", &tp->info1 },
	};
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(fields); i++)
		if (strlen(fields[i].name) == n && !memcmp(fields[i].name, name, n))
			return fields[i].field;
	return NULL;
}

/* "field:unsigned int vcpu_id;	offset:8;	size:4;	signed:0;" */
static void read_field(struct perf_tracepoint *tp, const char *line)
{
	const char *end = strchr(line, ';'), *name, *offset, *size;
	struct perf_field *field, read;

	if (!end)
		return;
	for (name = end; name > line && name[-1] != ' ' && name[-1] != ':'; name--)
		;
	offset = strstr(end, "offset:");
	size = strstr(end, "size:");
	field = field_of(tp, name, (size_t)(end - name));
	if (!field || !offset || !size)
		return;
	read.offset = (u32)strtoul(offset + strlen("offset:"), NULL, 10);
	read.size = (u32)strtoul(size + strlen("size:"), NULL, 10);
	if (read.offset <= UINT16_MAX &&
	    (read.size == 1 || read.size == 2 || read.size == 4 || read.size == 8))
		*field = read;
}

static void read_format(struct perf_tracepoint tps[PERF_TPS], struct cursor text)
{
	static const char *const names[PERF_TPS] = {
		[PERF_TP_KVM_ENTRY] = "name: kvm_entry",
		[PERF_TP_KVM_EXIT] = "name: kvm_exit",
		[PERF_TP_KVM_MSR] = "name: kvm_msr",
		[PERF_TP_KVM_PAGE_FAULT] = "name: kvm_page_fault",
		[PERF_TP_KVM_MMIO] = "name: kvm_mmio",
		[PERF_TP_KVM_FAST_MMIO] = "name: kvm_fast_mmio",
	};
	struct perf_tracepoint tp = { 0 };
	char line[LINE_MAX_BYTES];
	unsigned int i, kind = PERF_TPS;

	if (!next_line(&text, line))
		return;
	for (i = 0; i < PERF_TPS; i++)
		if (!strcmp(line, names[i]))
			kind = i;
	if (kind == PERF_TPS)
		return;
	while (next_line(&text, line)) {
		if (!strncmp(line, "ID:", 3)) {
			tp.id = strtoul(line + 3, NULL, 10);
			tp.known = true;
		} else if (!strncmp(line, "field:", 6)) {
			read_field(&tp, line);
		}
	}
	if (tp.known)
		tps[kind] = tp;
}

/* All systems with all recorded events; nothing after them is needed. */
static void read_systems(struct perf_tracepoint tps[PERF_TPS], struct cursor *c)
{
	u64 systems = take(c, 4), events;

	while (systems-- && !c->bad) {
		struct cursor system = take_string(c);

		for (events = take(c, 4); events && !c->bad; events--) {
			struct cursor text = take_bytes(c, take(c, 8));

			if (is_string(&system, "kvm"))
				read_format(tps, text);
		}
	}
}

void vmpt_perf_formats_read(struct perf_tracepoint tps[PERF_TPS], const u8 *data, u64 size)
{
	struct cursor c = { data, data + size, false };
	struct cursor head = take_bytes(&c, sizeof(magic));
	u64 n;

	if (c.bad || memcmp(head.at, magic, sizeof(magic)))
		return;
	take_string(&c); /* the version */
	if (take(&c, 1)) /* written on a big-endian machine */
		return;
	take(&c, 1 + 4); /* size of a long, of a page */
	take_string(&c); /* header_page */
	take_bytes(&c, take(&c, 8));
	take_string(&c); /* header_event */
	take_bytes(&c, take(&c, 8));
	for (n = take(&c, 4); n && !c.bad; n--) /* formats of ftrace's own events */
		take_bytes(&c, take(&c, 8));
	read_systems(tps, &c);
}
