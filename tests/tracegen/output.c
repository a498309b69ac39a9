// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The truth as JSON lines, and the code pages as files (docs/tracegen.md). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "arch/error.h"
#include "tests/tracegen/internal.h"

static const char *owner_name(const struct tracegen *g, int owner)
{
	if (owner == TRACEGEN_NONE)
		return "none";
	return owner == TRACEGEN_HOST ? "host" : g->vm_info[owner].name;
}

static void write_ranges(const struct tracegen *g, FILE *f, const struct tracegen_stream *s)
{
	size_t i;

	for (i = 0; i < s->range_count; i++)
		fprintf(f,
			"{\"type\":\"range\",\"cpu\":%d,\"offset\":%" PRIu64 ",\"size\":%" PRIu64
			",\"owner\":\"%s\"}\n",
			s->cpu, s->ranges[i].offset, s->ranges[i].size,
			owner_name(g, s->ranges[i].owner));
}

static void write_packets(const struct tracegen *g, FILE *f, const struct tracegen_stream *s)
{
	size_t i;

	for (i = 0; i < s->packet_count; i++) {
		const struct tracegen_packet *p = &s->packets[i];

		fprintf(f,
			"{\"type\":\"packet\",\"cpu\":%d,\"offset\":%" PRIu64 ",\"size\":%u,"
			"\"kind\":\"%s\",\"owner\":\"%s\",\"ip\":\"0x%" PRIx64
			"\",\"next\":\"0x%" PRIx64 "\",\"cr3\":\"0x%" PRIx64 "\",\"nr\":%s,",
			s->cpu, p->offset, p->size,
			p->kind < VMPT_PT_KINDS ? vmpt_pt_name(p->kind) : "raw",
			owner_name(g, p->owner), p->ip, p->exec_ip, p->cr3,
			p->nr ? "true" : "false");
		if (p->vmcs == VMPT_PT_VMCS_NONE)
			fputs("\"vmcs\":null,", f);
		else
			fprintf(f, "\"vmcs\":\"0x%" PRIx64 "\",", p->vmcs);
		fprintf(f, "\"tsc\":%" PRIu64 ",\"depth\":%u,\"in_psb\":%s}\n", p->tsc, p->depth,
			p->flags & TRACEGEN_IN_PSB ? "true" : "false");
	}
}

static void write_rets(const struct tracegen *g, FILE *f, const struct tracegen_stream *s)
{
	size_t i;

	for (i = 0; i < s->ret_count; i++) {
		const struct tracegen_ret *r = &s->rets[i];

		fprintf(f,
			"{\"type\":\"ret\",\"cpu\":%d,\"offset\":%" PRIu64 ",\"bit\":%u,"
			"\"owner\":\"%s\",\"ip\":\"0x%" PRIx64 "\",\"target\":\"0x%" PRIx64
			"\",\"call\":%" PRIu64 ",\"call_owner\":\"%s\",\"call_ip\":\"0x%" PRIx64
			"\",\"call_offset\":%" PRIu64 "}\n",
			s->cpu, r->offset, r->bit, owner_name(g, r->owner), r->ip, r->target,
			r->call, owner_name(g, r->call_owner), r->call_ip, r->call_offset);
	}
}

static void write_losses(const struct tracegen *g, FILE *f, const struct tracegen_stream *s)
{
	size_t i;

	for (i = 0; i < s->loss_count; i++) {
		const struct tracegen_loss *l = &s->losses[i];

		fprintf(f,
			"{\"type\":\"loss\",\"cpu\":%d,\"offset\":%" PRIu64 ",\"kind\":\"%s\","
			"\"owner_before\":\"%s\",\"owner_after\":\"%s\",\"packets\":%u}\n",
			s->cpu, l->offset, l->overflow ? "overflow" : "drop",
			owner_name(g, l->owner_before), owner_name(g, l->owner_after), l->packets);
	}
}

static void write_count(const struct tracegen *g, FILE *f, int cpu, int owner,
			const struct tracegen_count *c)
{
	fprintf(f, "{\"type\":\"count\",\"cpu\":%d,\"owner\":\"%s\",", cpu, owner_name(g, owner));
	if (owner >= 0)
		fprintf(f,
			"\"entries\":%" PRIu64 ",\"exits\":%" PRIu64 ",\"seen_entries\":%" PRIu64
			",\"seen_exits\":%" PRIu64 ",\"failed_early\":%" PRIu64
			",\"failed_late\":%" PRIu64 ",",
			c->entries, c->exits, c->seen_entries, c->seen_exits, c->failed_early,
			c->failed_late);
	fprintf(f,
		"\"calls\":%" PRIu64 ",\"rets\":%" PRIu64 ",\"compressed\":%" PRIu64
		",\"instructions\":%" PRIu64 ",\"hash\":\"%016" PRIx64 "\"}\n",
		c->calls, c->rets, c->compressed, c->insns, c->insn_hash);
}

int tracegen_write_truth(const struct tracegen *g, FILE *f)
{
	size_t i, v;

	for (v = 0; v < g->vm_count; v++)
		fprintf(f,
			"{\"type\":\"vm\",\"name\":\"%s\",\"vmcs\":\"0x%" PRIx64
			"\",\"tsc_offset\":%" PRId64 ",\"tsc_mult\":%" PRIu64 "}\n",
			g->vm_info[v].name, g->vm_info[v].vmcs, (s64)g->vm_info[v].tsc_offset,
			g->vm_info[v].tsc_mult);
	for (i = 0; i < g->stream_count; i++) {
		const struct tracegen_stream *s = g->streams[i];

		fprintf(f, "{\"type\":\"stream\",\"cpu\":%d,\"bytes\":%" PRIu64 "}\n", s->cpu,
			s->size);
		write_ranges(g, f, s);
		write_packets(g, f, s);
		write_rets(g, f, s);
		write_losses(g, f, s);
		write_count(g, f, s->cpu, TRACEGEN_HOST, &s->host);
		for (v = 0; v < g->vm_count; v++)
			write_count(g, f, s->cpu, (int)v, &s->vms[v]);
	}
	return ferror(f) ? -VMPT_E_IO : 0;
}

static bool write_page(const char *path, const struct tracegen_code *code)
{
	FILE *f = fopen(path, "wb");
	bool good;

	if (!f)
		return false;
	good = fwrite(code->bytes, 1, code->size, f) == code->size;
	return !fclose(f) && good;
}

/* One file per page; the index has a line for each: base, size, owner, VMCS or -, file. */
static bool write_pages(const struct tracegen *g, const char *dir, FILE *index)
{
	struct tracegen_code code;
	char path[4096];
	size_t i;

	for (i = 0; tracegen_code(g, i, &code); i++) {
		const char *name = owner_name(g, code.owner);

		fprintf(index, "0x%" PRIx64 " %zu %s ", code.base, code.size, name);
		if (code.owner >= 0)
			fprintf(index, "0x%" PRIx64, g->vm_info[code.owner].vmcs);
		else
			fputc('-', index);
		fprintf(index, " %s-%" PRIx64 ".bin\n", name, code.base);
		if ((size_t)snprintf(path, sizeof(path), "%s/%s-%" PRIx64 ".bin", dir, name,
				     code.base) >= sizeof(path) ||
		    !write_page(path, &code))
			return false;
	}
	return !ferror(index);
}

int tracegen_write_code(const struct tracegen *g, const char *dir)
{
	char path[4096];
	FILE *index;
	bool good;

	if (mkdir(dir, 0777) && errno != EEXIST)
		return -VMPT_E_IO;
	if ((size_t)snprintf(path, sizeof(path), "%s/index", dir) >= sizeof(path))
		return -VMPT_E_IO;
	index = fopen(path, "w");
	if (!index)
		return -VMPT_E_IO;
	good = write_pages(g, dir, index);
	return fclose(index) || !good ? -VMPT_E_IO : 0;
}
