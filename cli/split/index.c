// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The index of vmpt split: index.json, which lists files and owners and is written last, and
 * slices.gz, written slice by slice: a long trace has more than fit in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/split/split.h"
#include "util/array.h"

/* IA32_RTIT_CTL.DisRETC: the same bit in perf's config. */
#define DIS_RETC (1ULL << 11)

static int index_failed(struct cli *cli)
{
	const struct split *s = cli->data;

	if (cli->out_of_memory)
		cli_no_memory(cli);
	else
		cli_error(cli, "%s/index.json: %s", s->dir, strerror(errno ? errno : EIO));
	return 1;
}

static int slices_failed(struct cli *cli)
{
	const struct split *s = cli->data;

	cli_error(cli, "%s/" SLICES_FILE ": %s", s->dir, strerror(errno ? errno : EIO));
	return 1;
}

int split_index_start(struct cli *cli)
{
	struct split *s = cli->data;
	FILE *f;
	int fd;

	s->owners = json_array();
	s->errors = json_array();
	if (s->no_index)
		return 0;
	f = split_create(cli, SLICES_FILE);
	if (!f)
		return 1;
	errno = 0;
	fd = dup(fileno(f));
	fclose(f);
	s->index = fd < 0 ? NULL : slices_open(fd, true);
	return s->index ? 0 : slices_failed(cli);
}

/* ---- slices ---- */

/* The number of @owner in .owners, in the order of their first slices. */
static u64 owner_number(struct cli *cli, const struct vmpt_owner *owner)
{
	struct split *s = cli->data;
	size_t i, n = json_array_size(s->owners);
	json_t *o;

	for (i = 0; i < n; i++)
		if (vmpt_owner_same(&s->owner[i], owner))
			return i;
	if (vmpt_grow(&s->owner, n)) {
		cli->out_of_memory = true;
		return 0;
	}
	s->owner[n] = *owner;
	o = json_object();
	cli_json_string(cli, o, "owner", cli_owner_kind(owner));
	cli_json_vm(cli, o, owner);
	cli_json_add(cli, s->owners, o);
	return n;
}

/* The number of the loss's cause in .errors, plus 1. */
static u64 error_number(struct cli *cli, unsigned int err)
{
	struct split *s = cli->data;

	if (err >= VMPT_E_NR)
		err = VMPT_E_SYNC;
	if (!s->error[err]) {
		cli_json_add(cli, s->errors, json_string(vmpt_strerror((int)err)));
		s->error[err] = (u8)json_array_size(s->errors);
	}
	return s->error[err];
}

static void take_slice(struct cli *cli, struct slices_row *row, const struct vmpt_slice *slice)
{
	unsigned int i;

	row->v[SLICES_FLAGS] = slice->owner.sure |
			       (slice->owner.concealed ? SLICES_CONCEALED : 0u) |
			       (slice->has_tsc ? SLICES_HAS_TSC : 0u) |
			       (slice->cr3_count > VMPT_SLICE_CR3S ? SLICES_MORE_CR3S : 0u);
	row->v[SLICES_BEGIN] = slice->begin;
	if (slice->begin == VMPT_BEGIN_LOSS)
		row->v[SLICES_LOST] = error_number(cli, slice->loss);
	row->v[SLICES_OFFSET] = slice->offset;
	row->v[SLICES_SIZE] = slice->size;
	if (slice->has_tsc) {
		row->v[SLICES_FIRST_TSC] = slice->first_tsc;
		row->v[SLICES_LAST_TSC] = slice->last_tsc;
	}
	row->v[SLICES_CR3S] =
		slice->cr3_count > VMPT_SLICE_CR3S ? VMPT_SLICE_CR3S : slice->cr3_count;
	memcpy(row->cr3, slice->cr3, sizeof(row->cr3));
	for (i = 1; i <= VMPT_RTIT_ERRATA; i++)
		row->v[SLICES_ERRATA + i - 1] = slice->errata[i];
}

/* In the order of slices_count_name(). */
static void take_counts(u64 *v, const struct vmpt_extracted *x)
{
	const struct vmpt_slice *s = &x->slice;
	const u64 count[] = {
		s->overflows,	  s->failed_entries, s->doubts,		 s->enables,
		s->disables,	  x->others_mtc,     x->others_cbr,	 x->others_cyc,
		x->others_cycles, x->others_tsc,     x->others_tsc_kept, x->tscs_rewritten,
		x->tscs_unmapped, x->fups_dropped,   x->ips_reencoded,	 x->flow_dropped,
		x->tips_enabling, x->concealed,	     x->dropped,	 x->lips_unknown,
	};

	/* What a slice that is in no file would have had there means nothing. */
	memcpy(v, count, (x->stream < 0 ? 5 : VMPT_ARRAY_SIZE(count)) * sizeof(*v));
}

static void take_extracted(struct cli *cli, struct slices_row *row, const struct vmpt_extracted *x)
{
	const bool flag[] = { x->head, x->returned, x->enabled, x->left, x->lacks_calls };
	const struct split *s = cli->data;
	size_t i;

	row->v[SLICES_FILE_NUMBER] = s->first + (size_t)x->stream + 1;
	/* The first slice has the PSB after which bytes are added. */
	row->v[SLICES_OUT_OFFSET] = x->out_offset + (s->perf && x->out_offset ? PERF_OUT_ADDED : 0);
	row->v[SLICES_OUT_SIZE] = x->out_size;
	for (i = 0; i < VMPT_ARRAY_SIZE(flag); i++)
		row->v[SLICES_FLAGS] |= (u64)flag[i] << (SLICES_FLAG_NAMES + i);
}

int split_index_slice(struct cli *cli, const struct vmpt_extracted *x)
{
	struct split *s = cli->data;
	struct slices_row row = { .v = { [SLICES_CPU] = s->stream } };
	struct split_out *out = x->stream >= 0 ? &s->out[s->first + (size_t)x->stream] : NULL;

	s->slices++;
	if (s->no_index)
		return 0;
	if (out && !out->owner_known)
		out->owner_number = owner_number(cli, &x->slice.owner);
	if (out)
		out->owner_known = true;
	row.v[SLICES_OWNER] = out ? out->owner_number : owner_number(cli, &x->slice.owner);
	take_slice(cli, &row, &x->slice);
	take_counts(row.v + SLICES_COUNTS, x);
	if (out)
		take_extracted(cli, &row, x);
	errno = 0;
	if (!slices_write(s->index, &row) && !cli->out_of_memory)
		return 0;
	return cli->out_of_memory ? index_failed(cli) : slices_failed(cli);
}

/* ---- index.json ---- */

json_t *split_json_streams(struct cli *cli)
{
	struct split *s = cli->data;
	json_t *streams = json_array();
	size_t i;

	for (i = 0; i < s->outs; i++) {
		const struct split_out *out = &s->out[i];
		json_t *o = json_object();

		cli_json_string(cli, o, "file", out->name);
		if (out->joined)
			cli_json_number(cli, o, "part", out->perf_part);
		cli_json_stream(cli, o, cli->stream[out->stream]);
		cli_json_string(cli, o, "owner", cli_owner_kind(&out->owner));
		cli_json_vm(cli, o, &out->owner);
		if (out->owner.kind == VMPT_OWNER_VM)
			cli_vm_names_json(cli, &s->names, o, out->owner.vmcs);
		cli_json_number(cli, o, "slices", out->slices);
		cli_json_number(cli, o, "source_bytes", out->source_bytes);
		cli_json_number(cli, o, "bytes", out->bytes);
		cli_json_add(cli, streams, o);
	}
	return streams;
}

/* All files but the index, with their sizes: what a later split may replace. */
static json_t *outputs_json(struct cli *cli)
{
	const struct split *s = cli->data;
	json_t *files = json_array(), *o;
	const char *name;
	struct stat st;
	size_t i;

	for (i = 0;; i++) {
		name = !i		 ? SLICES_FILE
		       : i - 1 < s->outs ? s->out[i - 1].name
					 : split_vm_name(s, i - 1 - s->outs);
		if (!name)
			return files;
		/* A VM's file is in the list of VMs. */
		if (i && i - 1 < s->outs && s->out[i - 1].joined)
			continue;
		if (fstatat(s->new_fd, name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		o = json_object();
		cli_json_string(cli, o, "file", name);
		cli_json_number(cli, o, "size", (u64)st.st_size);
		cli_json_add(cli, files, o);
	}
}

/* The members, one a line: dir.c finds "outputs" after "left_out_bytes". */
static json_t *index_document(struct cli *cli)
{
	static const char *const clock_name[] = { "as-is", "host", "guest" };
	const struct vmpt_trace_info *info = vmpt_trace_info(cli->trace);
	bool off = info->has_config && info->config & DIS_RETC;
	json_t *doc = cli_json_document(cli), *cpus = json_array(), *o;
	struct split *s = cli->data;
	size_t i;

	for (i = 0; i < cli->streams; i++) {
		o = json_object();
		cli_json_stream(cli, o, cli->stream[i]);
		cli_json_add(cli, cpus, o);
	}
	cli_json_set(cli, doc, "conceal", json_boolean(s->conceal));
	cli_json_set(cli, doc, "perf", json_boolean(s->perf));
	cli_json_string(cli, doc, "stream_clock", clock_name[s->on_clock]);
	cli_json_string(cli, doc, "ret_compression", off ? "off" : "possible");
	cli_json_set(cli, doc, "slices_file", s->no_index ? json_null() : json_string(SLICES_FILE));
	cli_json_number(cli, doc, "slices", s->slices);
	cli_json_set(cli, doc, "cpus", cpus);
	cli_json_set(cli, doc, "owners", json_incref(s->owners));
	cli_json_set(cli, doc, "errors", json_incref(s->errors));
	cli_json_number(cli, doc, "filtered_bytes", s->filtered);
	cli_json_number(cli, doc, "left_out_bytes", s->left_out);
	cli_json_set(cli, doc, "outputs", outputs_json(cli));
	if (s->per_vm)
		cli_json_set(cli, doc, "vms", split_json_vms(cli));
	cli_json_set(cli, doc, "streams", split_json_streams(cli));
	cli_vm_names_tell(cli, &s->names);
	cli_json_end(cli, doc);
	return doc;
}

int split_index_finish(struct cli *cli)
{
	struct split *s = cli->data;
	struct slices *slices = s->index;
	json_t *doc;
	FILE *f;
	int err;

	s->index = NULL;
	errno = 0;
	if (slices_close(slices))
		return slices_failed(cli);
	f = split_create(cli, "index.json.part");
	if (!f)
		return 1;
	doc = index_document(cli);
	errno = 0;
	cli_json_members(cli, doc, f);
	err = ferror(f) || cli->out_of_memory;
	if (fclose(f) || err)
		return index_failed(cli);
	return 0;
}
