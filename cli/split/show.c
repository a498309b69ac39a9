// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt index: print the index that vmpt split wrote, as one document of JSON. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/base.h"
#include "cli/split/slices.h"

#define INDEX_MAX (64L << 20) /* bytes of index.json */

struct index {
	char dir[PATH_MAX];
	json_t *doc;				  /* index.json */
	json_t *cpus, *owners, *errors, *streams; /* of it */
};

static const char *begin_name(u64 begin)
{
	static const char *const name[] = {
		[VMPT_BEGIN_START] = "start", [VMPT_BEGIN_ENTRY] = "entry",
		[VMPT_BEGIN_EXIT] = "exit",   [VMPT_BEGIN_SWITCH] = "switch",
		[VMPT_BEGIN_PSB] = "psb",     [VMPT_BEGIN_DOUBT] = "doubt",
		[VMPT_BEGIN_LOSS] = "loss",
	};

	return begin < VMPT_ARRAY_SIZE(name) ? name[begin] : "?";
}

static void set_counts(struct cli *cli, json_t *o, const struct slices_row *row)
{
	const char *name;
	json_t *errata = NULL;
	unsigned int i;
	char key[16];

	for (i = 0; (name = slices_count_name(i)) != NULL; i++)
		if (row->v[SLICES_COUNTS + i])
			cli_json_number(cli, o, name, row->v[SLICES_COUNTS + i]);
	for (i = 0; i < VMPT_RTIT_ERRATA; i++) {
		if (!row->v[SLICES_ERRATA + i])
			continue;
		if (!errata)
			errata = json_object();
		snprintf(key, sizeof(key), "E%u", i + 1);
		cli_json_number(cli, errata, key, row->v[SLICES_ERRATA + i]);
	}
	if (errata)
		cli_json_set(cli, o, "errata", errata);
}

static void set_slice(struct cli *cli, json_t *o, const struct index *x,
		      const struct slices_row *row)
{
	u64 flags = row->v[SLICES_FLAGS];
	json_t *cr3s = json_array(), *lost;
	char buf[24];
	u64 i;

	json_object_update(o, json_array_get(x->cpus, row->v[SLICES_CPU]));
	json_object_update(o, json_array_get(x->owners, row->v[SLICES_OWNER]));
	if (strcmp(json_string_value(json_object_get(o, "owner")), "unknown"))
		cli_json_string(cli, o, "sure", cli_sure_name(flags & SLICES_SURE));
	if (flags & SLICES_CONCEALED)
		cli_json_set(cli, o, "concealed", json_true());
	cli_json_number(cli, o, "offset", row->v[SLICES_OFFSET]);
	cli_json_number(cli, o, "size", row->v[SLICES_SIZE]);
	cli_json_string(cli, o, "begin", begin_name(row->v[SLICES_BEGIN]));
	lost = json_array_get(x->errors, row->v[SLICES_LOST] - 1);
	if (row->v[SLICES_LOST] && lost)
		cli_json_set(cli, o, "lost", json_incref(lost));
	if (flags & SLICES_HAS_TSC) {
		cli_json_hex(cli, o, "first_tsc", row->v[SLICES_FIRST_TSC]);
		cli_json_hex(cli, o, "last_tsc", row->v[SLICES_LAST_TSC]);
	}
	for (i = 0; i < row->v[SLICES_CR3S]; i++) {
		snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)row->cr3[i]);
		cli_json_add(cli, cr3s, json_string(buf));
	}
	cli_json_set(cli, o, "cr3s", cr3s);
	if (flags & SLICES_MORE_CR3S)
		cli_json_set(cli, o, "more_cr3s", json_true());
}

static json_t *slice_object(struct cli *cli, const struct index *x, const struct slices_row *row)
{
	json_t *o = json_object(), *stream, *part;
	const char *name;
	unsigned int i;

	set_slice(cli, o, x, row);
	if (row->v[SLICES_FILE_NUMBER]) {
		stream = json_array_get(x->streams, row->v[SLICES_FILE_NUMBER] - 1);
		part = json_object_get(stream, "part");
		cli_json_set(cli, o, "file", json_incref(json_object_get(stream, "file")));
		if (part)
			cli_json_set(cli, o, "part", json_incref(part));
		cli_json_number(cli, o, "out_offset", row->v[SLICES_OUT_OFFSET]);
		cli_json_number(cli, o, "out_size", row->v[SLICES_OUT_SIZE]);
	}
	for (i = SLICES_FLAG_NAMES; (name = slices_flag_name(i)) != NULL; i++)
		if (row->v[SLICES_FLAGS] >> i & 1)
			cli_json_set(cli, o, name, json_true());
	set_counts(cli, o, row);
	return o;
}

/* ---- the files ---- */

static int bad(const struct cli *cli, const struct index *x, const char *file, const char *why)
{
	cli_error(cli, "%s/%s: %s", x->dir, file, why);
	return CLI_FAILED;
}

static int open_file(const struct index *x, const char *name)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/%s", x->dir, name);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static bool are_objects(const json_t *array, const char *key)
{
	json_t *o;
	size_t i;

	json_array_foreach(array, i, o)
	{
		if (!json_is_object(o) || (key && !json_is_string(json_object_get(o, key))))
			return false;
	}
	return json_is_array(array);
}

static int read_index(struct cli *cli, struct index *x)
{
	int fd = open_file(x, "index.json");
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	struct stat st;

	if (!f || fstat(fd, &st)) {
		bad(cli, x, "index.json", strerror(errno));
		if (f)
			fclose(f);
		else if (fd >= 0)
			close(fd);
		return CLI_FAILED;
	}
	if (S_ISREG(st.st_mode) && st.st_size <= INDEX_MAX)
		x->doc = json_loadf(f, JSON_REJECT_DUPLICATES, NULL);
	fclose(f);
	if (json_is_array(json_object_get(x->doc, "slices")))
		return bad(cli, x, "index.json",
			   "an earlier version's, which has the slices itself");
	x->cpus = json_object_get(x->doc, "cpus");
	x->owners = json_object_get(x->doc, "owners");
	x->errors = json_object_get(x->doc, "errors");
	x->streams = json_object_get(x->doc, "streams");
	if (json_integer_value(json_object_get(x->doc, "format")) != CLI_JSON_FORMAT ||
	    !are_objects(x->cpus, NULL) || !are_objects(x->owners, "owner") ||
	    !are_objects(x->streams, "file"))
		return bad(cli, x, "index.json", "not the index of a vmpt split of this version");
	if (!json_is_string(json_object_get(x->doc, "slices_file")))
		return bad(cli, x, "index.json", "written with --no-index: there are no slices");
	return CLI_OK;
}

static int print_slices(struct cli *cli, const struct index *x, struct slices *slices)
{
	size_t owners = json_array_size(x->owners), streams = json_array_size(x->streams);
	u64 n = 0, want = (u64)json_integer_value(json_object_get(x->doc, "slices"));
	struct slices_row row;
	int ret = 0;

	cli_json_list_open(cli, json_incref(x->doc), "index", stdout);
	while (!cli->out_of_memory && !cli_output_failed(cli)) {
		ret = owners ? slices_read(slices, owners, streams, &row) : 0;
		if (ret <= 0)
			break;
		cli_json_list_add(cli, slice_object(cli, x, &row), !n++, stdout);
	}
	if (ret == -ENOMEM)
		return cli_no_memory(cli);
	if (ret < 0 || (n != want && !cli_output_failed(cli)))
		return bad(cli, x, SLICES_FILE, "damaged");
	cli_json_list_end(cli, stdout);
	return CLI_OK;
}

static int run(struct cli *cli)
{
	struct index *x = cli->data;
	struct slices *slices;
	int code, fd;

	if (cli->files != 1)
		return cli_usage(cli, "one directory, of one vmpt split");
	if (strlen(cli->file[0]) >= sizeof(x->dir))
		return cli_usage(cli, "%.40s…: too long", cli->file[0]);
	strcpy(x->dir, cli->file[0]);
	code = read_index(cli, x);
	if (!code) {
		fd = open_file(x, SLICES_FILE);
		slices = fd < 0 ? NULL : slices_open(fd, false);
		code = fd < 0	 ? bad(cli, x, SLICES_FILE, strerror(errno))
		       : !slices ? cli_no_memory(cli)
				 : print_slices(cli, x, slices);
		slices_close(slices);
	}
	json_decref(x->doc);
	return code;
}

static const char *const csv_slices[] = {
	"cpu",	  "tid",  "owner",	"vmcs",	    "vm",	 "vcpu",     "sure",
	"offset", "size", "begin",	"lost",	    "first_tsc", "last_tsc", "cr3s",
	"file",	  "part", "out_offset", "out_size", NULL,
};

static const struct cli_csv csv[] = { { "index", NULL, csv_slices }, { 0 } };

const struct cli_command cli_index = {
	.name = "index",
	.title = "print the index that vmpt split wrote, as JSON",
	.about = "Print index.json of a split with its slices as one document of JSON, with --csv\n"
		 "the slices alone: each one's owner, how sure that is, where it comes from and\n"
		 "where it went, and what was changed at its edges.",
	.examples = "  vmpt index out | jq '.index[] | select(.owner == \"unknown\")'\n"
		    "  vmpt index --csv out >slices.csv\n",
	.args = "DIR",
	.lacking = "no directory given",
	.group = { &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct index),
	.run = run,
};
