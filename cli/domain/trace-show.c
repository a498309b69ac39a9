// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt domain trace: show its folder afterwards, with the contents of the side record vms.jsonl.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/domain/trace.h"

static int sort_names(const struct dirent **a, const struct dirent **b)
{
	/* Those of CPUs first. */
	unsigned int x = (unsigned int)trace_stream_of((*a)->d_name);
	unsigned int y = (unsigned int)trace_stream_of((*b)->d_name);

	return x == y ? strcmp((*a)->d_name, (*b)->d_name) : x < y ? -1 : 1;
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_type != DT_DIR &&
	       trace_cpu_of(entry->d_name, ".state") < 0;
}

static void take_record(struct trace *t, const char *line)
{
	json_t *o = json_loads(line, 0, NULL), *vcpu = json_object_get(o, "vcpu");
	const char *vm = json_string_value(json_object_get(o, "vm"));
	const char *vmcs = json_string_value(json_object_get(o, "vmcs"));
	size_t i;

	for (i = 0; vm && vmcs && json_is_integer(vcpu) && i < t->vcpus; i++)
		if (!strcmp(t->vcpu[i].vm, vm) && t->vcpu[i].vcpu == json_integer_value(vcpu))
			t->vcpu[i].vmcs = strtoull(vmcs, NULL, 16);
	json_decref(o);
}

/* The plugin's record: one JSON object per line. */
static int read_record(const struct cli *cli, struct trace *t)
{
	int fd = trace_open_file(t->dir_fd, TRACE_RECORD);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;

	if (!file) {
		cli_error(cli, "%s/" TRACE_RECORD ": %m", t->dir);
		fprintf(stderr,
			errno == EACCES
				? "  QEMU ran as another user: --mode=644 lets others read\n"
				: "  the plugin writes it: was it one with a host view?\n");
		if (fd >= 0)
			close(fd);
		return CLI_FAILED;
	}
	while (getline(&line, &room, file) > 0)
		take_record(t, line);
	free(line);
	fclose(file);
	return CLI_OK;
}

static void print_vcpus(struct cli *cli, const struct domain_run *run, const struct trace *t)
{
	static const struct cli_column column[] = {
		{ "DOMAIN", CLI_NAMES }, { "VCPU", true }, { "CPU", true },
		{ "VMCS", true },	 { "END", false },
	};
	struct cli_table *table = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	size_t i;

	for (i = 0; i < t->vcpus; i++) {
		const struct trace_vcpu *v = &t->vcpu[i];

		cli_cell(table, CLI_BOLD, "%s", run->domain[v->domain].shown);
		cli_cell_number(table, true, v->vcpu);
		cli_cell_number(table, true, v->cpu);
		if (v->vmcs)
			cli_cell(table, CLI_PLAIN, "%llx", (unsigned long long)v->vmcs);
		else
			cli_cell(table, CLI_DIM, "–");
		cli_cell(table, CLI_PLAIN, "%s", domain_end_text(&run->domain[v->domain]));
	}
	cli_table_print(table, "");
}

static u64 size_of(const struct trace *t, const char *name)
{
	struct stat st;

	return fstatat(t->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : (u64)st.st_size;
}

static void print_files(struct cli *cli, const struct trace *t, struct dirent **file, int files)
{
	static const struct cli_column column[] = { { "FILE", false }, { "BYTES", true } };
	struct cli_table *table = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	char dir[CLI_WHO], name[CLI_WHO];
	int i;

	printf("\n");
	for (i = 0; i < files; i++) {
		cli_safe_name(t->given, dir);
		cli_safe_name(file[i]->d_name, name);
		cli_cell(table, CLI_PLAIN, "%s/%s", dir, name);
		cli_cell_number(table, true, size_of(t, file[i]->d_name));
	}
	cli_table_print(table, "");
}

static int print_json(struct cli *cli, const struct domain_run *run, const struct trace *t,
		      struct dirent **file, int files)
{
	json_t *doc = domain_document(cli, run->link), *vcpus = json_array(), *list = json_array();
	size_t i;
	int k;

	cli_json_string(cli, doc, "directory", t->dir);
	for (i = 0; i < t->vcpus; i++) {
		const struct trace_vcpu *v = &t->vcpu[i];
		json_t *o = json_object();

		cli_json_string(cli, o, "vm", v->vm);
		cli_json_number(cli, o, "vcpu", v->vcpu);
		cli_json_number(cli, o, "cpu", v->cpu);
		if (v->vmcs)
			cli_json_hex(cli, o, "vmcs", v->vmcs);
		else
			cli_json_set(cli, o, "vmcs", json_null());
		cli_json_string(cli, o, "end", domain_end_text(&run->domain[v->domain]));
		cli_json_add(cli, vcpus, o);
	}
	for (k = 0; k < files; k++) {
		json_t *o = json_object();

		cli_json_string(cli, o, "file", file[k]->d_name);
		cli_json_number(cli, o, "size", size_of(t, file[k]->d_name));
		cli_json_add(cli, list, o);
	}
	cli_json_set(cli, doc, "vcpus", vcpus);
	cli_json_set(cli, doc, "outputs", list);
	cli_json_end(cli, doc);
	return cli_json_print(cli, doc, stdout, false);
}

int trace_show(struct cli *cli, const struct domain_run *run, struct trace *t)
{
	struct dirent **file = NULL;
	int files, i, code = read_record(cli, t), printed = CLI_OK;

	files = scandir(t->dir, &file, is_shown, sort_names);
	if (cli->json) {
		printed = print_json(cli, run, t, file, files);
	} else {
		print_vcpus(cli, run, t);
		print_files(cli, t, file, files);
	}
	for (i = 0; i < files; i++)
		free(file[i]);
	free(file);
	return code ? code : printed;
}
