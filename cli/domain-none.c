// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* In place of vmpt domain where libvirt was not there to build it. */
#include "cli/cli.h"

const struct cli_command *const cli_domain_commands[] = { NULL };

int cli_no_domains(void)
{
	static const struct cli_command group = { .name = "domain" };
	struct cli none = { .cmd = &group };

	cli_error(&none, "built without libvirt: install libvirt-dev and build again");
	return CLI_FAILED;
}
