// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* One run of a subcommand, from its command line to the exit code. */
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"

/* Structs for the values of options. 0, or an exit code after a message. */
static int make_values(struct cli *cli)
{
	const struct cli_command *cmd = cli->cmd;
	size_t i;

	cli->data = calloc(1, cmd->data_size + 1);
	for (i = 0; cmd->group[i]; i++) {
		cli->values[i] = calloc(1, cmd->group[i]->size + 1);
		if (!cli->values[i])
			return cli_no_memory(cli);
	}
	return cli->data ? CLI_OK : cli_no_memory(cli);
}

static void free_values(struct cli *cli)
{
	size_t i;

	for (i = 0; i < CLI_GROUPS; i++)
		free(cli->values[i]);
	free(cli->data);
	json_decref(cli->warnings);
}

int cli_run(const struct cli_command *cmd, int argc, char **argv)
{
	struct cli cli = { .cmd = cmd, .warnings = json_array() };
	int code = make_values(&cli);

	if (!code)
		code = cli_options(&cli, argc, argv);
	if (code < 0) {
		cli_catch_sigbus(cmd->name);
		cli_output_start(&cli);
		code = cmd->args ? CLI_OK : cli_open(&cli);
		if (!code)
			code = cmd->run(&cli);
	}
	code = cli_finish(&cli, code);
	cli_close(&cli);
	free_values(&cli);
	return code;
}

/* ---- a second trace ---- */

int cli_other_open(struct cli *cli, const char *path, struct cli *other)
{
	const int n = cli->options_end;
	char **argv = calloc((size_t)n + 2, sizeof(*argv));
	int code;

	*other = (struct cli){ .cmd = cli->cmd, .warnings = json_incref(cli->warnings) };
	other->argv = argv; /* owned, unlike a command's */
	if (!argv || make_values(other))
		return cli_no_memory(cli);
	memcpy(argv, cli->argv, (size_t)n * sizeof(*argv));
	argv[n] = (char *)(uintptr_t)path; /* getopt() only moves it */
	/* getopt has put "--" before the files, if it was there. */
	code = cli_options(other, n + 1, argv);
	other->stdout_tty = cli->stdout_tty;
	other->paint_err = cli->paint_err;
	return code < 0 ? cli_open(other) : CLI_FAILED;
}

int cli_other_close(struct cli *other, int code)
{
	code = cli_finish(other, code);
	cli_close(other);
	free_values(other);
	free(other->argv);
	return code;
}
