// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * JSON through jansson: what the documents of all commands share. docs/json.md has the rules and
 * each key, cli/schemas/ the schemas.
 */
#include <errno.h>
#include <string.h>

#include "cli/base/cli.h"
#include "decoder/vmpt-clock.h"

void cli_json_set(struct cli *cli, json_t *obj, const char *key, json_t *value)
{
	if (json_object_set_new(obj, key, value))
		cli->out_of_memory = true;
}

void cli_json_add(struct cli *cli, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value))
		cli->out_of_memory = true;
}

void cli_json_number(struct cli *cli, json_t *obj, const char *key, u64 value)
{
	if (value > CLI_JSON_EXACT)
		cli_json_hex(cli, obj, key, value);
	else
		cli_json_set(cli, obj, key, json_integer((json_int_t)value));
}

void cli_json_ns(struct cli *cli, json_t *obj, const char *key, double seconds)
{
	cli_json_number(cli, obj, key, (u64)(seconds * 1e9 + 0.5));
}

void cli_json_hertz(struct cli *cli, json_t *obj, double hertz)
{
	cli_json_set(cli, obj, "tsc_hz",
		     hertz > 0 ? json_integer((json_int_t)(hertz + 0.5)) : json_null());
}

void cli_json_signed(struct cli *cli, json_t *obj, const char *key, s64 value)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "%lld", (long long)value);
	cli_json_set(cli, obj, key, json_string(buf));
}

void cli_json_hex(struct cli *cli, json_t *obj, const char *key, u64 value)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)value);
	cli_json_set(cli, obj, key, json_string(buf));
}

void cli_json_string(struct cli *cli, json_t *obj, const char *key, const char *value)
{
	json_t *s = json_string(value);

	/* A file name need not be UTF-8; then jansson refuses it. */
	cli_json_set(cli, obj, key, s ? s : json_string("?"));
}

void cli_json_stream(struct cli *cli, json_t *obj, const struct vmpt_stream *stream)
{
	cli_json_set(cli, obj, "cpu", stream->cpu < 0 ? json_null() : json_integer(stream->cpu));
	if (stream->tid >= 0)
		cli_json_number(cli, obj, "tid", (u64)stream->tid);
}

void cli_json_back(struct cli *cli, json_t *obj, unsigned int back)
{
	static const char *const word[] = {
		[VMPT_BACK_GAP] = "gap",
		[VMPT_BACK_TSC_RESET] = "tsc_reset",
		[VMPT_BACK_MAP] = "map",
		[VMPT_BACK_CONTRADICTION] = "contradiction",
	};

	if (back && back < VMPT_ARRAY_SIZE(word))
		cli_json_string(cli, obj, "back", word[back]);
}

json_t *cli_json_head(struct cli *cli)
{
	json_t *doc = json_object();

	cli_json_number(cli, doc, "format", CLI_JSON_FORMAT);
	cli_json_string(cli, doc, "command", cli->cmd->name);
	cli_json_string(cli, doc, "version", VMPT_VERSION);
	return doc;
}

json_t *cli_json_document(struct cli *cli)
{
	json_t *doc = cli_json_head(cli), *files = json_array();
	const struct vmpt_trace_info *info = vmpt_trace_info(cli->trace);
	const struct cli_group *group;
	size_t k;
	int i;

	for (i = 0; i < cli->files; i++) {
		json_t *name = json_string(cli->file[i]);

		cli_json_add(cli, files, name ? name : json_string("?"));
	}
	cli_json_set(cli, doc, "files", files);
	cli_json_string(cli, doc, "file_format", info->format == VMPT_TRACE_PERF ? "perf" : "raw");
	cli_json_string(cli, doc, "isa", cli_is_rtit(cli) ? "rtit" : "pt");
	if (!cli_is_rtit(cli))
		cli_json_set(cli, doc, "host_only", json_boolean(cli->options.host_only));
	for (k = 0; (group = cli_group(cli->cmd, k)) != NULL; k++)
		if (group->document)
			group->document(cli, doc);
	return doc;
}

/* ---- the end of a document ---- */

static json_t *loss_object(struct cli *cli, enum cli_lost why, const struct cli_loss *loss)
{
	static const char *const name[] = {
		[CLI_LOST] = "lost",
		[CLI_UNPROVEN] = "unproven",
		[CLI_TOO_MANY] = "too_many_vmcss",
	};
	json_t *o = json_object(), *first = json_object();
	char text[160];

	cli_json_string(cli, o, "why", name[why]);
	cli_json_number(cli, o, "count", loss->count);
	cli_json_number(cli, o, "bytes", loss->bytes);
	cli_json_stream(cli, first, loss->stream);
	cli_json_number(cli, first, "offset", loss->offset);
	cli_json_number(cli, first, "size", loss->size);
	if (why == CLI_LOST)
		cli_json_string(
			cli, first, "text",
			cli_loss_text(loss->stream, loss->offset, loss->err, text, sizeof(text)));
	cli_json_set(cli, o, "first", first);
	return o;
}

void cli_json_end(struct cli *cli, json_t *doc)
{
	json_t *losses = json_array();
	enum cli_lost why;

	for (why = 0; why < CLI_LOSTS; why++)
		if (cli->loss[why].count)
			cli_json_add(cli, losses, loss_object(cli, why, &cli->loss[why]));
	cli_json_set(cli, doc, "warnings", json_incref(cli->warnings));
	cli_json_set(cli, doc, "losses", losses);
}

/* The table of --csv whose rows are the document's @key; NULL: any. */
static const struct cli_csv *csv_of(const struct cli *cli, const json_t *doc, const char *key)
{
	const struct cli_csv *csv = cli->cmd->csv;

	while (csv->list && (key ? strcmp(csv->list, key) : !json_object_get(doc, csv->list)))
		csv++;
	return csv->list ? csv : cli->cmd->csv;
}

static void print_csv(const struct cli *cli, const json_t *doc, FILE *out)
{
	const struct cli_csv *csv = csv_of(cli, doc, NULL);
	bool ns = json_is_integer(json_object_get(doc, "tsc_hz"));
	json_t *one;
	size_t i;

	cli_csv_header(csv, ns, out);
	json_array_foreach(json_object_get(doc, csv->list), i, one)
	{
		cli_csv_rows(csv, one, ns, out);
	}
}

int cli_json_print(struct cli *cli, json_t *doc, FILE *out, bool line)
{
	/* Names must not control a terminal; a reader gets them unchanged. */
	size_t flags = JSON_ENSURE_ASCII | (line ? JSON_COMPACT : JSON_INDENT(2));
	int ret;

	if (cli->out_of_memory) {
		json_decref(doc);
		return CLI_FAILED;
	}
	errno = 0;
	if (cli->csv && out == stdout) {
		print_csv(cli, doc, out);
		json_decref(doc);
		return CLI_OK;
	}
	ret = json_dumpf(doc, out, flags);
	json_decref(doc);
	/* A failed write shows in ferror(); any other failure is a lack of memory. */
	if (ret && !ferror(out))
		cli->out_of_memory = true;
	if (!ret)
		fputc('\n', out);
	return ret ? CLI_FAILED : CLI_OK;
}

/* One value on one line; takes it. */
static void dump(struct cli *cli, json_t *value, FILE *out)
{
	errno = 0;
	if (!value || json_dumpf(value, out, JSON_ENSURE_ASCII | JSON_COMPACT | JSON_ENCODE_ANY))
		cli->out_of_memory |= !ferror(out);
	json_decref(value);
}

/* The members of @doc, each on a line; takes it. @last: no comma after the last. */
static void dump_members(struct cli *cli, json_t *doc, bool last, FILE *out)
{
	void *at, *next;

	for (at = json_object_iter(doc); at; at = next) {
		next = json_object_iter_next(doc, at);
		fprintf(out, "\"%s\": ", json_object_iter_key(at));
		dump(cli, json_incref(json_object_iter_value(at)), out);
		fprintf(out, "%s\n", last && !next ? "" : ",");
	}
	json_decref(doc);
}

void cli_json_members(struct cli *cli, json_t *doc, FILE *out)
{
	fprintf(out, "{\n");
	dump_members(cli, doc, true, out);
	fprintf(out, "}\n");
}

void cli_json_list_open(struct cli *cli, json_t *doc, const char *key, FILE *out)
{
	if (cli->csv) {
		cli->csv_table = csv_of(cli, doc, key);
		cli->csv_ns = json_is_integer(json_object_get(doc, "tsc_hz"));
		cli_csv_header(cli->csv_table, cli->csv_ns, out);
		json_decref(doc);
		return;
	}
	fprintf(out, "{\n");
	dump_members(cli, doc, false, out);
	fprintf(out, "\"%s\": [", key);
}

void cli_json_list_add(struct cli *cli, json_t *o, bool first, FILE *out)
{
	if (cli->csv) {
		cli_csv_rows(cli->csv_table, o, cli->csv_ns, out);
		json_decref(o);
		return;
	}
	fputs(first ? "\n" : ",\n", out);
	dump(cli, o, out);
}

void cli_json_list_end(const struct cli *cli, FILE *out)
{
	if (!cli->csv)
		fprintf(out, "\n]\n}\n");
}

void cli_json_list_close(struct cli *cli, FILE *out)
{
	json_t *doc;

	if (cli->csv)
		return;
	doc = json_object();
	cli_json_end(cli, doc);
	fprintf(out, "\n],\n");
	dump_members(cli, doc, true, out);
	fprintf(out, "}\n");
}
