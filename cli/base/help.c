// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Output of the option tables: --help, and the JSON that cli/words.py turns into man pages and
 * shell completion.
 */
#include <string.h>

#include "cli/base/cli.h"

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

static int columns(const char *s, size_t n)
{
	int count = 0;

	for (; n; n--, s++)
		count += ((u8)*s & 0xc0) != 0x80;
	return count;
}

/* One option; its text wraps. */
static void help_option(const struct cli_option *o)
{
	char text[512];
	const char *word = text;
	int at, width;
	size_t n;

	print_text(text, sizeof(text), o);
	at = o->letter ? printf("  -%c, --%s", o->letter, o->name) : printf("      --%s", o->name);
	if (o->arg)
		at += printf("=%s", o->arg);
	at += printf("%*s", at < HELP_COLUMN - 1 ? HELP_COLUMN - 1 - at : 0, "");
	for (; *word; word += n + strspn(word + n, " ")) {
		n = strcspn(word, " ");
		width = columns(word, n);
		if (at + 1 + width > HELP_WIDTH)
			at = printf("\n%*s", HELP_COLUMN - 1, "") - 1;
		at += 1 + width;
		printf(" %.*s", (int)n, word);
	}
	putchar('\n');
}

int cli_help(const struct cli *cli)
{
	static const char codes[] =
		"Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 finished with losses.\n";
	const struct cli_command *cmd = cli->cmd;
	const struct cli_group *group;
	const struct cli_option *o;
	char title[64], before[64] = "";
	size_t i;

	printf("Usage: vmpt %s [OPTION]...%s%s\n\n%s\n", cmd->name,
	       cmd->args && !*cmd->args ? "" : " ", cmd->args ? cmd->args : "FILE[@CPU]...",
	       cmd->about);
	for (i = 0; (group = cli_group(cmd, i)) != NULL; i++) {
		print_title(title, sizeof(title), cmd, group);
		if (strcmp(title, before) != 0)
			printf("\n%s:\n", title);
		strcpy(before, title);
		for (o = group->option; o->name; o++)
			help_option(o);
	}
	if (!cmd->args)
		printf("\n"
		       "FILE is a perf.data, or the raw trace of one CPU, Intel PT or RTIT; \"-\" is\n"
		       "the standard input. The CPU of a raw FILE is the number after @, else that in a\n"
		       "name that ends in .cpuN, .cpuN.pt or .cpuN.rtit, or is cpuN.pt or cpuN.rtit; of\n"
		       "several files the others get the free numbers from 0.\n"
		       "If a file of the whole name exists, including @, that file is read.\n");
	printf("\n%s\nExamples:\n%s", codes, cmd->examples);
	return CLI_OK;
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
	return json_pack("{s:s, s:s, s:s, s:s?, s:s, s:s, s:o}", "name", o->name, "letter", letter,
			 "complete", complete, "arg", o->arg, "text", text, "words",
			 o->words ? o->words : "", "more_words", words);
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
