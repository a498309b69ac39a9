// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* One run of a subcommand, from its command line to the exit code. */
#include <stdlib.h>

#include "cli/cli.h"

int cli_run(const struct cli_command *cmd, int argc, char **argv)
{
	struct cli cli = { .cmd = cmd, .warnings = json_array() };
	int code;

	if (cmd->own_size) {
		cli.own = calloc(1, cmd->own_size);
		if (!cli.own) {
			json_decref(cli.warnings);
			return cli_no_memory(&cli);
		}
	}
	code = cli_options(&cli, argc, argv);
	if (code < 0) {
		cli_output_start(&cli);
		code = cmd->args ? CLI_OK : cli_open(&cli);
		if (!code)
			code = cmd->run(&cli);
	}
	code = cli_finish(&cli, code);
	cli_close(&cli);
	free(cli.own);
	json_decref(cli.warnings);
	return code;
}
