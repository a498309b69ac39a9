// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * index.json of vmpt split. It is written slice by slice, one object per line:
 * a long trace has more slices than fit in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/split/split.h"

/* IA32_RTIT_CTL.DisRETC: the same bit in perf's config. */
#define DIS_RETC (1ULL << 11)

static const char *begin_name(unsigned int begin)
{
	static const char *const name[] = {
		[VMPT_BEGIN_START] = "start", [VMPT_BEGIN_ENTRY] = "entry",
		[VMPT_BEGIN_EXIT] = "exit",   [VMPT_BEGIN_SWITCH] = "switch",
		[VMPT_BEGIN_PSB] = "psb",     [VMPT_BEGIN_DOUBT] = "doubt",
		[VMPT_BEGIN_LOSS] = "loss",
	};

	return begin < VMPT_ARRAY_SIZE(name) ? name[begin] : "?";
}

static int index_failed(struct cli *cli)
{
	const struct split *s = cli->data;

	if (cli->out_of_memory)
		cli_no_memory(cli);
	else
		cli_error(cli, "%s/index.json: %s", s->dir, strerror(errno ? errno : EIO));
	return 1;
}

static void write_member(struct cli *cli, const char *key, json_t *value, bool last)
{
	struct split *s = cli->data;

	fprintf(s->index, "\"%s\": ", key);
	if (!value ||
	    json_dumpf(value, s->index, JSON_ENSURE_ASCII | JSON_COMPACT | JSON_ENCODE_ANY))
		cli->out_of_memory |= !ferror(s->index);
	fprintf(s->index, "%s\n", last ? "" : ",");
}

int split_index_start(struct cli *cli)
{
	static const char *const clock_name[] = { "as-is", "host", "guest" };
	struct split *s = cli->data;
	const struct vmpt_trace_info *info = vmpt_trace_info(cli->trace);
	bool off = info->has_config && info->config & DIS_RETC;
	json_t *doc = cli_json_document(cli);
	void *at;

	s->index = split_create(cli, "index.json.part");
	if (!s->index) {
		json_decref(doc);
		return 1;
	}
	cli_json_set(cli, doc, "conceal", json_boolean(s->conceal));
	cli_json_set(cli, doc, "perf", json_boolean(s->perf));
	cli_json_string(cli, doc, "stream_clock", clock_name[s->on_clock]);
	cli_json_string(cli, doc, "ret_compression", off ? "off" : "possible");
	fprintf(s->index, "{\n");
	for (at = json_object_iter(doc); at; at = json_object_iter_next(doc, at))
		write_member(cli, json_object_iter_key(at), json_object_iter_value(at), false);
	json_decref(doc);
	fprintf(s->index, "\"slices\": [");
	return ferror(s->index) || cli->out_of_memory ? index_failed(cli) : 0;
}

/* Only those present: most slices have none of these. */
static void number_if(struct cli *cli, json_t *o, const char *key, u64 value)
{
	if (value)
		cli_json_number(cli, o, key, value);
}

static void flag_if(struct cli *cli, json_t *o, const char *key, bool value)
{
	if (value)
		cli_json_set(cli, o, key, json_true());
}

static void json_rtit(struct cli *cli, json_t *o, const struct vmpt_slice *slice)
{
	json_t *errata = NULL;
	unsigned int i;
	char name[16];

	number_if(cli, o, "enables", slice->enables);
	number_if(cli, o, "disables", slice->disables);
	for (i = 1; i <= VMPT_RTIT_ERRATA; i++) {
		if (!slice->errata[i])
			continue;
		if (!errata)
			errata = json_object();
		snprintf(name, sizeof(name), "E%u", i);
		cli_json_number(cli, errata, name, slice->errata[i]);
	}
	if (errata)
		cli_json_set(cli, o, "errata", errata);
}

static void json_slice(struct cli *cli, json_t *o, const struct vmpt_slice *slice)
{
	json_t *cr3s = json_array();
	u32 i;

	cli_json_owner(cli, o, &slice->owner);
	cli_json_number(cli, o, "offset", slice->offset);
	cli_json_number(cli, o, "size", slice->size);
	cli_json_string(cli, o, "begin", begin_name(slice->begin));
	if (slice->begin == VMPT_BEGIN_LOSS)
		cli_json_string(cli, o, "lost", vmpt_strerror(slice->loss));
	if (slice->has_tsc) {
		cli_json_hex(cli, o, "first_tsc", slice->first_tsc);
		cli_json_hex(cli, o, "last_tsc", slice->last_tsc);
	}
	for (i = 0; i < slice->cr3_count && i < VMPT_SLICE_CR3S; i++) {
		char buf[24];

		snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)slice->cr3[i]);
		cli_json_add(cli, cr3s, json_string(buf));
	}
	cli_json_set(cli, o, "cr3s", cr3s);
	flag_if(cli, o, "more_cr3s", slice->cr3_count > VMPT_SLICE_CR3S);
	number_if(cli, o, "overflows", slice->overflows);
	number_if(cli, o, "failed_entries", slice->failed_entries);
	number_if(cli, o, "doubts", slice->doubts);
	json_rtit(cli, o, slice);
}

static void json_extracted(struct cli *cli, json_t *o, const struct vmpt_extracted *x)
{
	const struct split *s = cli->data;
	const struct split_out *out = &s->out[s->first + (size_t)x->stream];
	/* The first slice has the PSB after which bytes are added. */
	u64 added = s->perf && x->out_offset ? PERF_OUT_ADDED : 0;

	cli_json_string(cli, o, "file", out->name);
	cli_json_number(cli, o, "out_offset", x->out_offset + added);
	cli_json_number(cli, o, "out_size", x->out_size);
	flag_if(cli, o, "head", x->head);
	flag_if(cli, o, "returned", x->returned);
	flag_if(cli, o, "enabled", x->enabled);
	flag_if(cli, o, "left", x->left);
	flag_if(cli, o, "returns_may_lack_calls", x->lacks_calls);
	number_if(cli, o, "others_mtc", x->others_mtc);
	number_if(cli, o, "others_cbr", x->others_cbr);
	number_if(cli, o, "others_cyc", x->others_cyc);
	number_if(cli, o, "others_cycles", x->others_cycles);
	number_if(cli, o, "others_tsc", x->others_tsc);
	number_if(cli, o, "others_tsc_kept", x->others_tsc_kept);
	number_if(cli, o, "tscs_rewritten", x->tscs_rewritten);
	number_if(cli, o, "tscs_unmapped", x->tscs_unmapped);
	number_if(cli, o, "fups_dropped", x->fups_dropped);
	number_if(cli, o, "ips_reencoded", x->ips_reencoded);
	number_if(cli, o, "flow_dropped", x->flow_dropped);
	number_if(cli, o, "tips_enabling", x->tips_enabling);
	number_if(cli, o, "concealed_packets", x->concealed);
	number_if(cli, o, "dropped_packets", x->dropped);
	number_if(cli, o, "lips_unknown", x->lips_unknown);
}

int split_index_slice(struct cli *cli, const struct vmpt_extracted *x)
{
	struct split *s = cli->data;
	json_t *o = json_object();

	cli_json_stream(cli, o, cli->stream[s->stream]);
	json_slice(cli, o, &x->slice);
	if (x->stream >= 0)
		json_extracted(cli, o, x);
	errno = 0;
	fputs(s->slices ? ",\n" : "\n", s->index);
	if (json_dumpf(o, s->index, JSON_ENSURE_ASCII | JSON_COMPACT))
		cli->out_of_memory |= !ferror(s->index);
	json_decref(o);
	s->slices++;
	return ferror(s->index) || cli->out_of_memory ? index_failed(cli) : 0;
}

json_t *split_json_streams(struct cli *cli)
{
	struct split *s = cli->data;
	json_t *streams = json_array();
	size_t i;

	for (i = 0; i < s->outs; i++) {
		const struct split_out *out = &s->out[i];
		json_t *o = json_object();

		cli_json_string(cli, o, "file", out->name);
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

static void write_index_vms(struct cli *cli)
{
	json_t *vms = split_json_vms(cli);

	write_member(cli, "vms", vms, false);
	json_decref(vms);
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
		name = i < s->outs ? s->out[i].name : split_vm_name(s, i - s->outs);
		if (!name)
			return files;
		if (fstatat(s->new_fd, name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		o = json_object();
		cli_json_string(cli, o, "file", name);
		cli_json_number(cli, o, "size", (u64)st.st_size);
		cli_json_add(cli, files, o);
	}
}

int split_index_finish(struct cli *cli)
{
	struct split *s = cli->data;
	json_t *streams = split_json_streams(cli), *files, *end = json_object();
	FILE *f = s->index;
	int err;

	errno = 0;
	fprintf(f, "%s],\n", s->slices ? "\n" : "");
	fprintf(f, "\"left_out_bytes\": %llu,\n", (unsigned long long)s->left_out);
	files = outputs_json(cli);
	write_member(cli, "outputs", files, false);
	json_decref(files);
	if (s->per_vm)
		write_index_vms(cli);
	write_member(cli, "streams", streams, false);
	json_decref(streams);
	cli_json_end(cli, end);
	write_member(cli, "warnings", json_object_get(end, "warnings"), false);
	write_member(cli, "losses", json_object_get(end, "losses"), true);
	json_decref(end);
	fprintf(f, "}\n");
	err = ferror(f) || cli->out_of_memory;
	s->index = NULL;
	if (fclose(f) || err)
		return index_failed(cli);
	return 0;
}
