// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* JSON through jansson: members shared by the documents of several commands. */
#include <errno.h>
#include <string.h>

#include "cli/base/cli.h"

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
	cli_json_set(cli, obj, key, json_integer((json_int_t)value));
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

json_t *cli_json_document(struct cli *cli)
{
	json_t *doc = json_object(), *files = json_array();
	const struct vmpt_trace_info *info = vmpt_trace_info(cli->trace);
	const struct cli_group *group;
	size_t k;
	int i;

	for (i = 0; i < cli->files; i++) {
		json_t *name = json_string(cli->file[i]);

		cli_json_add(cli, files, name ? name : json_string("?"));
	}
	cli_json_string(cli, doc, "command", cli->cmd->name);
	cli_json_string(cli, doc, "version", VMPT_VERSION);
	cli_json_set(cli, doc, "files", files);
	cli_json_string(cli, doc, "format", info->format == VMPT_TRACE_PERF ? "perf" : "raw");
	cli_json_string(cli, doc, "isa", cli_is_rtit(cli) ? "rtit" : "pt");
	if (!cli_is_rtit(cli))
		cli_json_set(cli, doc, "host_only", json_boolean(cli->options.host_only));
	for (k = 0; (group = cli_group(cli->cmd, k)) != NULL; k++)
		if (group->document)
			group->document(cli, doc);
	return doc;
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

void cli_json_list_open(struct cli *cli, json_t *doc, const char *key, FILE *out)
{
	void *at;

	fprintf(out, "{\n");
	for (at = json_object_iter(doc); at; at = json_object_iter_next(doc, at)) {
		fprintf(out, "\"%s\": ", json_object_iter_key(at));
		dump(cli, json_incref(json_object_iter_value(at)), out);
		fprintf(out, ",\n");
	}
	json_decref(doc);
	fprintf(out, "\"%s\": [", key);
}

void cli_json_list_add(struct cli *cli, json_t *o, bool first, FILE *out)
{
	fputs(first ? "\n" : ",\n", out);
	dump(cli, o, out);
}

void cli_json_list_close(FILE *out)
{
	fprintf(out, "\n]\n}\n");
}

void cli_json_list_close_warned(struct cli *cli, FILE *out)
{
	fprintf(out, "\n],\n\"warnings\": ");
	dump(cli, json_incref(cli->warnings), out);
	fprintf(out, "\n}\n");
}

void cli_json_warnings(struct cli *cli, json_t *obj)
{
	cli_json_set(cli, obj, "warnings", json_incref(cli->warnings));
}
