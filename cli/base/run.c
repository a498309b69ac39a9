// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* One run of a subcommand, from its command line to the exit code. */
#include <stdlib.h>

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

int cli_run(const struct cli_command *cmd, int argc, char **argv)
{
	struct cli cli = { .cmd = cmd, .warnings = json_array() };
	size_t i;
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
	for (i = 0; i < CLI_GROUPS; i++)
		free(cli.values[i]);
	free(cli.data);
	json_decref(cli.warnings);
	return code;
}
