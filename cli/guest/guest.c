// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt guest: the kernel, its modules and processes in images of guests' memory. */
#include <stdlib.h>
#include <string.h>

#include "cli/guest/guest.h"

static const struct cli_option options[] = {
	{ "threads", 't', CLI_FLAG, NULL, "a row for each thread, not for each process",
	  CLI_AT(struct guest, o.threads) },
	{ "modules", 0, CLI_FLAG, NULL, "list modules", CLI_AT(struct guest, o.modules) },
	{ "maps", 0, CLI_FLAG, NULL, "list what each process has mapped",
	  CLI_AT(struct guest, o.maps) },
	{ "symbols", 0, CLI_FLAG, NULL, "list symbols, as /proc/kallsyms does",
	  CLI_AT(struct guest, o.symbols) },
	{ "pid", 'p', CLI_NUMBER, "PID", "only of this process", NULL, CLI_AT(struct guest, o.pid),
	  CLI_GIVEN(struct guest, o.has_pid), .max = 0xffffffff },
	CODE_PAGING(struct guest, o.paging),
	{ 0 },
};

static const struct cli_group group = { .option = options };

/* ---- what both outputs use ---- */

const char *guest_lack(u32 lacks, unsigned int i, const char **key)
{
	static const struct {
		u32 lack;
		const char *key, *text;
	} all[] = {
		{ VMPT_GUEST_SYMBOLS_MISSING, "symbols",
		  "no kallsyms (a kernel before 6.0, or the image lacks them): neither functions "
		  "nor processes are known" },
		{ VMPT_GUEST_SYMBOLS_CUT, "symbols_cut",
		  "kallsyms leads out of the image, or is damaged: the functions from there on "
		  "are missing, and what only they lead to" },
		{ VMPT_GUEST_TYPES_MISSING, "types",
		  "no BTF (CONFIG_DEBUG_INFO_BTF is off, or the image lacks it): processes and "
		  "modules are not known" },
		{ VMPT_GUEST_DATA_MISSING, "data",
		  "the kernel has names of functions only (CONFIG_KALLSYMS_ALL is off): processes "
		  "and modules are not known" },
		{ VMPT_GUEST_TASKS_CUT, "tasks_cut",
		  "the list of processes leads out of the image: some are missing" },
		{ VMPT_GUEST_MODULES_CUT, "modules_cut",
		  "the list of modules leads out of the image: some are missing, or their "
		  "symbols" },
	};
	unsigned int k;

	for (k = 0; k < VMPT_ARRAY_SIZE(all); k++) {
		if (!(lacks & all[k].lack) || i--)
			continue;
		*key = all[k].key;
		return all[k].text;
	}
	return NULL;
}

bool guest_wanted(const struct guest_options *o, const struct vmpt_guest_task *task)
{
	return !o->has_pid || task->tgid == o->pid;
}

void guest_hex(const u8 *bytes, size_t size, char text[2 * 64 + 1])
{
	size_t i;

	*text = '\0';
	for (i = 0; i < size && i < 64; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- */

static int open_one(struct cli *cli, struct guest_one *one)
{
	struct guest *d = cli->data;
	struct vmpt_diag diag;
	const char *text, *key;
	unsigned int i;
	int code = code_image_open(cli, one->given, d->o.paging, &one->image);

	if (code)
		return code;
	if (vmpt_guest_open(&one->guest, one->image, &diag)) {
		cli_error(cli, "%s: %s", one->given->path, diag.text);
		return CLI_FAILED;
	}
	vmpt_guest_kernel(one->guest, &one->kernel);
	for (i = 0; (text = guest_lack(one->kernel.lacks, i, &key)) != NULL; i++)
		cli_warn(cli, "%s: %s", one->given->path, text);
	return CLI_OK;
}

static void close_one(struct guest_one *one)
{
	vmpt_guest_close(one->guest);
	vmpt_image_close(one->image);
}

static bool has_pid(const struct guest_one *one, u64 pid)
{
	const struct vmpt_guest_task *t;
	u32 i;

	for (i = 0; (t = vmpt_guest_task(one->guest, i)) != NULL; i++)
		if (t->tgid == pid)
			return true;
	return false;
}

static int show_one(struct cli *cli, const struct code_given *given, json_t *list)
{
	const struct guest *d = cli->data;
	struct guest_one one = { .given = given };
	int code = open_one(cli, &one);

	if (!code && d->o.has_pid && !has_pid(&one, d->o.pid))
		cli_warn(cli, "%s: it has no process %llu", given->path,
			 (unsigned long long)d->o.pid);
	if (!code && cli->json) {
		json_t *o = json_object();

		code = guest_json(cli, &one, o);
		cli_json_add(cli, list, o);
	} else if (!code) {
		code = guest_print(cli, &one);
	}
	close_one(&one);
	return code;
}

/* Of a recording: its images of memory. */
static int open_folder(struct cli *cli)
{
	int cpu = -1;

	cli->path = calloc(1, sizeof(*cli->path));
	if (!cli->path || !(cli->path[0] = strdup(cli->file[0])))
		return cli_no_memory(cli);
	return cli_folder_open(cli, &cpu);
}

static int open_files(struct cli *cli)
{
	struct guest *d = cli->data;
	struct cli_strings list = { 0 };
	struct stat st;
	int i, code = CLI_OK;

	if (cli->files == 1 && !stat(cli->file[0], &st) && S_ISDIR(st.st_mode))
		code = open_folder(cli);
	else if (cli->files > CLI_STRINGS)
		return cli_usage(cli, "more than %d images", CLI_STRINGS);
	else
		for (i = 0; i < cli->files; i++)
			list.s[list.count++] = cli->file[i];
	if (!code)
		code = code_images_open(cli, &list, &d->files);
	if (code || d->files.count)
		return code;
	cli_error(cli,
		  "%s: the recording has no image of a guest's memory in " CLI_FOLDER_IMAGES
		  "/: vmpt record --guest-memory saves one",
		  cli->file[0]);
	return CLI_FAILED;
}

static int run(struct cli *cli)
{
	struct guest *d = cli->data;
	json_t *list = json_array(), *doc, *files;
	int code = open_files(cli), one;
	size_t i;
	int k;

	for (i = 0; i < d->files.count && code != CLI_USAGE; i++) {
		if (!cli->json && d->files.count > 1)
			printf("%s%s:\n", i ? "\n" : "", d->files.given[i].path);
		one = show_one(cli, &d->files.given[i], list);
		code = code ? code : one;
	}
	code_files_close(&d->files);
	if (!cli->json || (code && !json_array_size(list))) {
		json_decref(list);
		return code;
	}
	doc = cli_json_head(cli);
	files = json_array();
	for (k = 0; k < cli->files; k++) {
		json_t *name = json_string(cli->file[k]);

		cli_json_add(cli, files, name ? name : json_string("?"));
	}
	cli_json_set(cli, doc, "files", files);
	cli_json_set(cli, doc, "guests", list);
	cli_json_set(cli, doc, "warnings", json_incref(cli->warnings));
	one = cli_json_print(cli, doc, stdout, false);
	return code ? code : one;
}

static const char *const csv_tasks[] = { "file",   "vm",  "pid",      "tgid",	 "parent", "comm",
					 "kernel", "cr3", "start_ns", "program", NULL };

static const struct cli_csv csv[] = {
	{ "guests", "tasks", csv_tasks },
	{ 0 },
};

const struct cli_command cli_guest = {
	.name = "guest",
	.title = "show the kernel and the processes in an image of a guest's memory",
	.about = "Read an image of a Linux guest's memory: its kernel, processes with their page\n"
		 "tables, modules, symbols and what processes have mapped, all from the image\n"
		 "alone. Of a recording the images in its images/ are read.",
	.examples = "  vmpt guest web.core                   the kernel and all processes\n"
		    "  vmpt guest --maps --pid=1 ram.img     what a process has mapped\n"
		    "  vmpt guest --symbols web.core         as the guest's /proc/kallsyms\n",
	.args = "[VM:]IMAGE...|RECORDING",
	.lacking = "no image given",
	.group = { &group, &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct guest),
	.run = run,
};
