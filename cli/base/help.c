// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Output of the option tables: --help, and the JSON that cli/words.py turns into man pages and
 * shell completion.
 */
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/text.h"

#define HELP_COLUMN 27 /* where texts of options begin */
#define HELP_WIDTH  80

static void print_title(char *buf, size_t len, const struct cli_command *cmd,
			const struct cli_group *group)
{
	if (group->title)
		snprintf(buf, len, "%s", group->title);
	else
		snprintf(buf, len, "Options of vmpt %s", cmd->name);
}

/* An option's help, with its words (before a ';'), default and "may be repeated" added. */
static void print_text(char *buf, size_t len, const struct cli_option *o)
{
	bool words = o->kind == CLI_WORD, many = o->size == sizeof(struct cli_strings);
	size_t n = strcspn(o->help, words ? ";" : "");

	snprintf(buf, len, "%.*s%s%s%s%s%s%s%s", (int)n, o->help, words ? ": " : "",
		 words ? o->words : "", o->help + n, many ? "; may be repeated" : "",
		 o->initial ? " [" : "", o->initial ? o->initial : "", o->initial ? "]" : "");
}

/* The words of @text from column @at on, wrapped before column @indent; the last column. */
static int print_wrapped(const char *text, int at, int indent)
{
	const char *word = text;
	size_t n;
	int width;

	for (; *word; word += n + strspn(word + n, " ")) {
		char one[64];

		n = strcspn(word, " ");
		snprintf(one, sizeof(one), "%.*s", (int)n, word);
		width = (int)cli_columns(one);
		if (at + 1 + width > HELP_WIDTH)
			at = printf("\n%*s", indent - 1, "") - 1;
		at += 1 + width;
		printf(" %s", one);
	}
	return at;
}

/* One option; its text wraps. */
static void help_option(const struct cli_option *o)
{
	char text[512], *local;
	int at;

	print_text(text, sizeof(text), o);
	local = cli_local(text);
	at = o->letter ? printf("  -%c, --%s", o->letter, o->name) : printf("      --%s", o->name);
	if (o->arg)
		at += printf(o->without ? "[=%s]" : "=%s", o->arg);
	at += printf("%*s", at < HELP_COLUMN - 1 ? HELP_COLUMN - 1 - at : 0, "");
	print_wrapped(local ? local : "", at, HELP_COLUMN);
	cli_local_free(local, text);
	putchar('\n');
}

static bool in_help(const struct cli_group *group, const struct cli_option *o, bool rtit)
{
	return rtit ? o->rtit : group->common && !o->rtit;
}

/* The names of @cmd's options that are in vmpt help common, or vmpt help rtit. */
static void help_names(const struct cli_command *cmd, bool rtit)
{
	const struct cli_group *group;
	const struct cli_option *o;
	char one[80];
	bool any = false;
	int at = 0;
	size_t i;

	for (i = 0; (group = cli_group(cmd, i)) != NULL; i++)
		for (o = group->option; o->name; o++) {
			if (!in_help(group, o, rtit))
				continue;
			if (!any)
				at = printf("%s:", rtit ? "vmpt help rtit" : "vmpt help common");
			any = true;
			snprintf(one, sizeof(one), "--%s", o->name);
			at = print_wrapped(one, at, 3);
		}
	if (any)
		putchar('\n');
}

static const char files_text[] =
	"FILE is a recording's folder or a trace in it, a perf.data, or the raw trace of\n"
	"one CPU, Intel PT or RTIT; \"-\" is the standard input. The CPU of a raw FILE is\n"
	"the number after @, else that in a name that ends in .cpuN, .cpuN.pt or\n"
	".cpuN.rtit, or is cpuN.pt or cpuN.rtit; of several files the others get the free\n"
	"numbers from 0.\n"
	"If a file of the whole name exists, including @, that file is read.\n";

int cli_help(const struct cli *cli)
{
	const struct cli_command *cmd = cli->cmd;
	const struct cli_group *group;
	const struct cli_option *o;
	char title[64], before[64] = "";
	size_t i;

	printf("Usage: vmpt %s [OPTION]...%s%s\n\n", cmd->name, cmd->args && !*cmd->args ? "" : " ",
	       cmd->args ? cmd->args : "FILE[@CPU]...");
	cli_print("%s\n", cmd->about);
	for (i = 0; (group = cli_group(cmd, i)) != NULL; i++) {
		if (group->common)
			continue;
		print_title(title, sizeof(title), cmd, group);
		if (strcmp(title, before) != 0)
			printf("\n%s:\n", title);
		strcpy(before, title);
		for (o = group->option; o->name; o++)
			if (!o->rtit)
				help_option(o);
	}
	printf("\nMore options:\n");
	help_names(cmd, false);
	help_names(cmd, true);
	printf("\nExamples:\n%s", cmd->examples);
	return CLI_OK;
}

/* The options of @group for a topic. @before: the last title. */
static void help_group(const struct cli_command *cmd, const struct cli_group *group, bool rtit,
		       char before[64])
{
	const struct cli_option *o;
	char title[64];

	print_title(title, sizeof(title), cmd, group);
	for (o = group->option; o->name; o++) {
		if (!in_help(group, o, rtit))
			continue;
		if (strcmp(title, before) != 0)
			printf("\n%s:\n", title);
		strcpy(before, title);
		help_option(o);
	}
}

static bool listed(const struct cli_group *const *list, size_t count, const struct cli_group *group)
{
	while (count--)
		if (list[count] == group)
			return true;
	return false;
}

bool cli_help_topic(const char *topic, const struct cli_command *const *cmd, size_t count)
{
	const struct cli_group *done[4 * CLI_GROUPS], *group;
	bool rtit = !strcmp(topic, "rtit");
	const struct cli_command *of[4 * CLI_GROUPS];
	char title[2][64], before[64] = "";
	size_t i, k, n = 0;

	if (!rtit && strcmp(topic, "common") != 0)
		return false;
	if (rtit)
		printf("RTIT is the Real Time Instruction Trace of the Atoms of 2013 to 2015. vmpt finds\n"
		       "out whether a raw file holds it; --format says so. It names no owners: who ran\n"
		       "comes from --side-record. --tsc-ratio is one number, --kinds of vmpt dump are\n"
		       "RTIT's. vmpt timeline, exits, wait and clocks are for Intel PT only; --vm,\n"
		       "--vcpu and --owner are by the side record, and --cr3, --from and --to are not\n"
		       "for RTIT.\n");
	else
		printf("%s", files_text);
	for (i = 0; i < count; i++)
		for (k = 0; cmd[i]->run && (group = cli_group(cmd[i], k)) != NULL; k++) {
			if (listed(done, n, group) || n == VMPT_ARRAY_SIZE(done))
				continue;
			of[n] = cmd[i];
			done[n++] = group;
		}
	/* Groups of one title together, where the first is. */
	for (i = 0; i < n; i++)
		for (k = 0; k < n; k++) {
			print_title(title[0], sizeof(title[0]), of[i], done[i]);
			print_title(title[1], sizeof(title[1]), of[k], done[k]);
			if (strcmp(title[0], title[1]) != 0)
				continue;
			if (k < i)
				break;
			help_group(of[k], done[k], rtit, before);
		}
	if (!rtit)
		printf("\nExit codes: 0 fine, 1 failed, 2 wrong usage, 3 finished with losses.\n");
	return true;
}

static json_t *describe_option(const struct cli_option *o)
{
	const char *complete = o->kind == CLI_FILE || o->kind == CLI_OUTPUT ? "file"
			       : o->kind == CLI_DIR			    ? "dir"
			       : o->kind == CLI_LIST			    ? "list"
									    : "words";
	json_t *words = json_array();
	char text[512], letter[2] = { o->letter, '\0' };
	unsigned int i;

	print_text(text, sizeof(text), o);
	for (i = 0; o->word && o->word(i); i++)
		json_array_append_new(words, json_string(o->word(i)));
	return json_pack("{s:s, s:s, s:s, s:s?, s:b, s:s, s:s, s:o}", "name", o->name, "letter",
			 letter, "complete", complete, "arg", o->arg, "optional",
			 o->without != NULL, "text", text, "words", o->words ? o->words : "",
			 "more_words", words);
}

static json_t *describe(const struct cli_command *cmd)
{
	json_t *groups = json_array(), *options;
	const struct cli_group *group;
	const struct cli_option *o;
	char title[64];
	size_t i;

	for (i = 0; cmd->run && (group = cli_group(cmd, i)) != NULL; i++) {
		options = json_array();
		for (o = group->option; o->name; o++)
			json_array_append_new(options, describe_option(o));
		print_title(title, sizeof(title), cmd, group);
		json_array_append_new(groups,
				      json_pack("{s:s, s:o}", "title", title, "options", options));
	}
	return json_pack("{s:s, s:s, s:o}", "name", cmd->name, "title", cmd->title, "groups",
			 groups);
}

int cli_describe(const struct cli_command *const *cmd, size_t count)
{
	struct cli none = { 0 };
	json_t *all = json_array();
	size_t i;

	for (i = 0; i < count; i++)
		cli_json_add(&none, all, describe(cmd[i]));
	cli_json_print(&none, all, stdout, false);
	return cli_finish(&none, CLI_OK);
}
