// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The vmpt command: find the subcommand, run it, give its exit code. */
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const struct cli_command *const command[] = { &cli_dump, &cli_stat, &cli_vms, &cli_split };

static const struct cli_command *find(const char *name)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(command); i++)
		if (!strcmp(command[i]->name, name))
			return command[i];
	return NULL;
}

/* The action of vmpt domain. */
static const struct cli_command *find_domain(const char *name)
{
	const struct cli_command *const *cmd;

	for (cmd = cli_domain_commands; *cmd; cmd++)
		if (!strcmp((*cmd)->name + strlen("domain "), name))
			return *cmd;
	return NULL;
}

static void help(void)
{
	size_t i;

	printf("Usage: vmpt COMMAND [OPTION]... FILE[@CPU]...\n"
	       "\n"
	       "Read Intel PT traces of machines that run VMs: raw bytes, one file per CPU,\n"
	       "or a perf.data; and make such traces with VMs under QEMU.\n"
	       "\n"
	       "Commands:\n");
	for (i = 0; i < VMPT_ARRAY_SIZE(command); i++)
		printf("  %-6s %s\n", command[i]->name, command[i]->title);
	printf("  domain start, stop, show and trace VMs through libvirt\n"
	       "\n"
	       "Options:\n"
	       "  -h, --help     show this text and exit; after a COMMAND, its own\n"
	       "      --version  show the version and exit\n"
	       "\n"
	       "Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 finished, but parts of the\n"
	       "trace were lost.\n"
	       "\n"
	       "Examples:\n"
	       "  vmpt vms perf.data              who ran, on which CPU, and how much\n"
	       "  vmpt dump --head 40 trace.pt    the first packets, with their owners\n"
	       "  vmpt split -o out perf.data     one stream per VMCS and CPU\n"
	       "  vmpt help vms                   all about one command\n");
}

static void help_domain(void)
{
	const struct cli_command *const *cmd;

	printf("Usage: vmpt domain ACTION [OPTION]...\n"
	       "\n"
	       "Start, stop, show and trace VMs, which libvirt calls domains. Without --connect\n"
	       "libvirt's driver runs inside the command, and so does each VM no longer than it.\n"
	       "\n"
	       "Actions:\n");
	for (cmd = cli_domain_commands; *cmd; cmd++)
		printf("  %-7s %s\n", (*cmd)->name + strlen("domain "), (*cmd)->title);
	printf("\n"
	       "Examples:\n"
	       "  vmpt domain trace --help        all about one action\n"
	       "  vmpt domain list --connect=qemu:///system\n");
}

static int run(const struct cli_command *cmd, int argc, char **argv)
{
	struct cli cli = { .cmd = cmd };
	int code;

	if (cmd->own_size) {
		cli.own = calloc(1, cmd->own_size);
		if (!cli.own)
			return cli_no_memory(&cli);
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
	return code;
}

/* vmpt domain: @argv[0] is "domain". */
static int run_domain(int argc, char **argv)
{
	static const struct cli_command group = { .name = "domain" };
	const struct cli_command *cmd;
	struct cli none = { .cmd = &group };

	if (!cli_domain_commands[0])
		return cli_no_domains();
	if (argc < 2)
		return cli_usage(&none, "no action given");
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		help_domain();
		return cli_finish(&none, CLI_OK);
	}
	cmd = find_domain(argv[1]);
	if (cmd)
		return run(cmd, argc - 1, argv + 1);
	return cli_usage(&none, "unknown %s '%s'", argv[1][0] == '-' ? "option" : "action",
			 argv[1]);
}

/* What stands before a command: --help, --version, help. */
static int run_plain(const char *word, int argc, char **argv)
{
	struct cli none = { 0 };

	if (!strcmp(word, "--version")) {
		printf("vmpt %s\n", VMPT_VERSION);
		return cli_finish(&none, CLI_OK);
	}
	if (!strcmp(word, "-h") || !strcmp(word, "--help") || (!strcmp(word, "help") && argc < 3)) {
		help();
		return cli_finish(&none, CLI_OK);
	}
	if (!strcmp(word, "help")) {
		char *args[] = { argv[0], "--help", NULL };
		const struct cli_command *cmd = find(argv[2]);

		if (!strcmp(argv[2], "domain") && argc > 3)
			cmd = find_domain(argv[3]);
		else if (!strcmp(argv[2], "domain"))
			return run_domain(2, args);
		if (cmd)
			return run(cmd, 2, args);
		word = argv[2];
	}
	if (word[0] == '-')
		return cli_usage(&none, "unknown option '%s'", word);
	return cli_usage(&none, "unknown command '%s'", word);
}

int main(int argc, char **argv)
{
	const struct cli_command *cmd;

	setlocale(LC_CTYPE, "");
	/* A closed pipe is seen as EPIPE where stdout is written. */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		struct cli none = { 0 };

		return cli_usage(&none, "no command given");
	}
	if (!strcmp(argv[1], "domain"))
		return run_domain(argc - 1, argv + 1);
	cmd = find(argv[1]);
	if (!cmd)
		return run_plain(argv[1], argc, argv);
	return run(cmd, argc - 1, argv + 1);
}
