// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The vmpt command: find the subcommand, run it, give its exit code. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"

#define DOMAIN "vmpt-domain"
#define CALLED "vmpt domain" /* what ps shows for it */

/* vmpt-domain: nothing runs here. */
static const struct cli_command domain = {
	.name = "domain",
	.title = "start, stop, show and trace VMs through libvirt",
};

static const struct cli_command *const command[] = {
	&cli_dump,  &cli_stat,	 &cli_vms,    &cli_split, &cli_timeline, &cli_exits,
	&cli_wait,  &cli_insn,	 &cli_hot,    &cli_calls, &cli_latency,	 &cli_coverage,
	&cli_guest, &cli_clocks, &cli_record, &cli_index, &domain
};

static const struct cli_command *find(const char *name)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(command); i++)
		if (!strcmp(command[i]->name, name))
			return command[i];
	return NULL;
}

static void help(void)
{
	size_t i;

	printf("Usage: vmpt COMMAND [OPTION]... FILE[@CPU]...\n"
	       "\n"
	       "Read Intel PT traces of machines that run VMs: raw bytes, one file per CPU,\n"
	       "or a perf.data; and make such traces with VMs under QEMU. Read RTIT traces,\n"
	       "of the Atoms of 2013 to 2015, too.\n"
	       "\n"
	       "Commands:\n");
	for (i = 0; i < VMPT_ARRAY_SIZE(command); i++)
		printf("  %-8s %s\n", command[i]->name, command[i]->title);
	printf("\n"
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
	       "  vmpt help vms                   all about one command\n"
	       "  vmpt help common                options of all commands: filters, times, the trace\n"
	       "  vmpt help rtit                  what is for RTIT only\n");
}

/*
 * Become vmpt-domain, which alone needs libvirt: it is beside this program in a build, else
 * where it is installed. @args: its command line. Returns an exit code if that fails.
 */
static int run_domain(char **args)
{
	static const char *const place[] = { ".", VMPT_LIBEXEC };
	char self[4096], path[sizeof(self) + sizeof(VMPT_LIBEXEC "/" DOMAIN)];
	struct cli none = { .cmd = &domain };
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i;

	if (!*VMPT_LIBEXEC) {
		cli_error(&none, "built without libvirt: install libvirt-dev and build again");
		return CLI_FAILED;
	}
	if (n <= 0) {
		cli_error(&none, "/proc/self/exe: %s", strerror(errno));
		return CLI_FAILED;
	}
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (i = 0; i < VMPT_ARRAY_SIZE(place); i++) {
		snprintf(path, sizeof(path), "%s/%s/" DOMAIN, place[i][0] == '/' ? "" : self,
			 place[i]);
		execv(path, args);
		if (errno != ENOENT)
			break;
	}
	cli_error(&none, "cannot run %s: %s", path, strerror(errno));
	return CLI_FAILED;
}

/* Words before a command: --help, --version, help. */
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
	/* For cli/words.py */
	if (!strcmp(word, "help") && !strcmp(argv[2], "--format=json"))
		return cli_describe(command, VMPT_ARRAY_SIZE(command));
	if (!strcmp(word, "help")) {
		char *args[] = { argv[0], "--help", NULL };
		char *action = argc > 3 ? argv[3] : "--help";
		char *domain_args[] = { CALLED, action, "--help", NULL };
		const struct cli_command *cmd = find(argv[2]);

		if (cmd == &domain)
			return run_domain(domain_args);
		if (cmd)
			return cli_run(cmd, 2, args);
		if (cli_help_topic(argv[2], command, VMPT_ARRAY_SIZE(command)))
			return cli_finish(&none, CLI_OK);
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
	/* A limit on the size of files is seen as EFBIG. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		struct cli none = { 0 };

		return cli_usage(&none, "no command given");
	}
	cmd = find(argv[1]);
	if (!cmd)
		return run_plain(argv[1], argc, argv);
	if (cmd == &domain) {
		argv[1] = CALLED;
		return run_domain(argv + 1);
	}
	return cli_run(cmd, argc - 1, argv + 1);
}
