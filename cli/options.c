// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The command line: the options all commands have, a command's own behind
 * them, both from tables that --help prints, so that no option lacks its help.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/clock-options.h"

#define OPTIONS_MAX 64
#define THREADS_MAX 256
#define CPU_MAX	    65535

int cli_parse_u64(struct cli *cli, const char *what, const char *arg, u64 *value)
{
	char *end;

	errno = 0;
	*value = strtoull(arg, &end, 0);
	if (errno || end == arg || *end || arg[0] == '-' || arg[0] == '+' || arg[0] == ' ') {
		cli_usage(cli, "%s: '%s' is not a number (decimal, or hex with 0x)", what, arg);
		return -1;
	}
	return 0;
}

int cli_set_json(struct cli *cli, const char *arg)
{
	(void)arg;
	cli->json = true;
	return 0;
}

static int set_quiet(struct cli *cli, const char *arg)
{
	(void)arg;
	cli->quiet = true;
	return 0;
}

static int set_headless(struct cli *cli, const char *arg)
{
	(void)arg;
	cli->options.headless = true;
	return 0;
}

static int set_threads(struct cli *cli, const char *arg)
{
	u64 n;

	if (cli_parse_u64(cli, "-j", arg, &n))
		return -1;
	if (!n) {
		long online = sysconf(_SC_NPROCESSORS_ONLN);

		n = online < 1 ? 1 : online > THREADS_MAX ? THREADS_MAX : (u64)online;
	}
	if (n > THREADS_MAX) {
		cli_usage(cli, "-j: at most %d threads", THREADS_MAX);
		return -1;
	}
	cli->options.threads = (unsigned int)n;
	return 0;
}

/* A CPU number at *@s, which is moved behind it; -1 if there is none. */
static int parse_cpu(const char **s)
{
	char *end;
	unsigned long n;

	if (**s < '0' || **s > '9')
		return -1;
	n = strtoul(*s, &end, 10);
	if (n > CPU_MAX)
		return -1;
	*s = end;
	return (int)n;
}

static int set_cpu(struct cli *cli, const char *arg)
{
	const char *s = arg;

	for (;;) {
		struct cli_cpu_range r;

		r.first = r.last = parse_cpu(&s);
		if (r.first >= 0 && *s == '-') {
			s++;
			r.last = parse_cpu(&s);
		}
		if (r.first < 0 || r.last < r.first || (*s && *s != ',')) {
			cli_usage(cli, "--cpu: '%s' is not a list like 0,2-5", arg);
			return -1;
		}
		if (cli->cpus == CLI_CPU_RANGES) {
			cli_usage(cli, "--cpu: more than %d ranges", CLI_CPU_RANGES);
			return -1;
		}
		cli->cpu[cli->cpus++] = r;
		if (!*s)
			return 0;
		s++;
	}
}

/* The index of @arg in @word[], or -1 after a message. */
static int choose(struct cli *cli, const char *what, const char *arg, const char *const word[3])
{
	int i;

	for (i = 0; i < 3; i++)
		if (!strcmp(arg, word[i]))
			return i;
	cli_usage(cli, "%s: '%s' is none of %s, %s, %s", what, arg, word[0], word[1], word[2]);
	return -1;
}

static int set_guest_only(struct cli *cli, const char *arg)
{
	static const char *const word[3] = { "auto", "yes", "no" };
	int i = choose(cli, "--guest-only", arg, word);

	cli->options.guest_only = i < 0 ? VMPT_GUEST_ONLY_AUTO : (enum vmpt_guest_only)i;
	return i < 0 ? -1 : 0;
}

static int set_format(struct cli *cli, const char *arg)
{
	static const char *const word[3] = { "auto", "pt", "rtit" };
	int i = choose(cli, "--format", arg, word);

	cli->format = i < 0 ? CLI_FORMAT_AUTO : (enum cli_format)i;
	return i < 0 ? -1 : 0;
}

static int set_cycle_acc(struct cli *cli, const char *arg)
{
	static const char *const word[3] = { "auto", "yes", "no" };
	int i = choose(cli, "--cycle-acc", arg, word);

	cli->options.cycle_acc = i < 0 ? VMPT_CYCLE_ACC_AUTO : (enum vmpt_cycle_acc)i;
	return i < 0 ? -1 : 0;
}

static int set_side_record(struct cli *cli, const char *arg)
{
	cli->side_record = arg;
	return 0;
}

static int set_color(struct cli *cli, const char *arg)
{
	static const char *const word[3] = { "auto", "always", "never" };
	int i = choose(cli, "--color", arg, word);

	cli->color = i < 0 ? CLI_COLOR_AUTO : (enum cli_color)i;
	return i < 0 ? -1 : 0;
}

/* Of the commands that read a trace. */
static const struct cli_option tracing[] = {
	{ "cpu", 0, "LIST", "only these CPUs, like 0,2-5", set_cpu },
	{ "guest-only", 0, "WHEN",
	  "whether the trace holds guests only: auto, yes, no;\n"
	  "auto asks the trace itself",
	  set_guest_only },
	{ "format", 0, "WHAT",
	  "what raw files hold: auto, pt, rtit;\n"
	  "auto goes by the first PSB, and by pt without one",
	  set_format },
	{ "cycle-acc", 0, "WHEN",
	  "RTIT: whether cycle counts follow packets: auto,\n"
	  "yes, no; auto asks the trace itself",
	  set_cycle_acc },
	{ "side-record", 0, "FILE",
	  "RTIT: who ran, by the VMM's side record, JSON lines;\n"
	  "without it all is taken for the host's.\n"
	  "Intel PT: names of VMs by their VMCS, for vms, split,\n"
	  "clocks, timeline, exits",
	  set_side_record },
	{ "headless", 0, NULL,
	  "take the first byte as the start of a packet;\n"
	  "else start at the first PSB",
	  set_headless },
	{ "threads", 'j', "N",
	  "decode with N threads, 0 for one per processor [1];\nmore than 12 are taken as 12",
	  set_threads },
	{ "json", 0, NULL, "print JSON", cli_set_json },
	{ 0 },
};

/* Of all commands. */
static const struct cli_option common[] = {
	{ "quiet", 'q', NULL, "no warnings and no progress, only errors", set_quiet },
	{ "color", 0, "WHEN", "auto, always, never; auto: on a terminal", set_color },
	{ "help", 'h', NULL, "show this text and exit", NULL },
	{ "version", 0, NULL, "show the version and exit", NULL },
	{ 0 },
};

static void help_options(const struct cli_option *o)
{
	for (; o && o->name; o++) {
		const char *line = o->help, *end;
		char left[48];

		snprintf(left, sizeof(left), "--%s%s%s", o->name, o->arg ? "=" : "",
			 o->arg ? o->arg : "");
		if (o->letter)
			printf("  -%c, %-20s", o->letter, left);
		else
			printf("      %-20s", left);
		while ((end = strchr(line, '\n')) != NULL) {
			printf(" %.*s\n%26s", (int)(end - line), line, "");
			line = end + 1;
		}
		printf(" %s\n", line);
	}
}

static int help(const struct cli *cli)
{
	static const char codes[] =
		"Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 finished with losses.\n";
	const struct cli_command *cmd = cli->cmd;

	printf("Usage: vmpt %s [OPTION]...%s%s\n\n%s\n", cmd->name,
	       cmd->args && !*cmd->args ? "" : " ", cmd->args ? cmd->args : "FILE[@CPU]...",
	       cmd->about);
	if (cmd->options && cmd->options->name) {
		printf("\nOptions of vmpt %s:\n", cmd->name);
		help_options(cmd->options);
		if (!cmd->args)
			help_options(cmd->group);
	}
	if (cmd->clock) {
		printf("\nOptions for times:\n");
		help_options(cli_clock_options);
	}
	printf("\nCommon options:\n");
	help_options(cmd->args ? cmd->group : tracing);
	help_options(common);
	if (cmd->args) {
		printf("\n%s\nExamples:\n%s", codes, cmd->examples);
		return CLI_OK;
	}
	printf("\n"
	       "FILE is a perf.data, or the raw trace of one CPU, Intel PT's or RTIT's; \"-\" is\n"
	       "the standard input. The CPU of a raw FILE is the number behind @, else that of a\n"
	       "name that ends in .cpuN, .cpuN.pt or .cpuN.rtit, or is cpuN.pt or cpuN.rtit; of\n"
	       "several files the others get the free numbers from 0 on.\n"
	       "If there is a file of the whole name, @ and all, it is that one.\n"
	       "\n"
	       "%s"
	       "\nExamples:\n%s",
	       codes, cmd->examples);
	return CLI_OK;
}

/* getopt's tables, made from ours. */
struct parser {
	const struct cli_option *option[OPTIONS_MAX];
	struct option longs[OPTIONS_MAX + 1];
	char shorts[3 * OPTIONS_MAX + 2];
	int count;
};

static void add_options(struct parser *p, const struct cli_option *o)
{
	char *s = p->shorts + strlen(p->shorts);

	for (; o && o->name && p->count < OPTIONS_MAX; o++) {
		p->option[p->count] = o;
		p->longs[p->count] = (struct option){
			.name = o->name,
			.has_arg = o->arg ? required_argument : no_argument,
			.val = 256 + p->count,
		};
		if (o->letter) {
			*s++ = o->letter;
			if (o->arg)
				*s++ = ':';
		}
		p->count++;
	}
	*s = '\0';
}

static const struct cli_option *find(const struct parser *p, int c)
{
	int i;

	if (c >= 256)
		return p->option[c - 256];
	for (i = 0; i < p->count; i++)
		if (p->option[i]->letter && p->option[i]->letter == c)
			return p->option[i];
	return NULL;
}

static int parse(struct cli *cli, const struct parser *p, int argc, char **argv)
{
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, p->shorts, p->longs, NULL)) != -1) {
		const struct cli_option *o = find(p, c);

		if (!o) {
			fprintf(stderr, "Try 'vmpt %s --help'.\n", cli->cmd->name);
			return CLI_USAGE;
		}
		if (!o->set) {
			if (o->letter)
				return help(cli);
			printf("vmpt %s\n", VMPT_VERSION);
			return CLI_OK;
		}
		if (o->set(cli, optarg))
			return CLI_USAGE;
	}
	cli->file = argv + optind;
	cli->files = argc - optind;
	if (!cli->files && !cli->cmd->args)
		return cli_usage(cli, "no file given");
	if (!cli->files && cli->cmd->lacking)
		return cli_usage(cli, "%s", cli->cmd->lacking);
	return -1;
}

int cli_options(struct cli *cli, int argc, char **argv)
{
	struct parser p = { 0 };
	char name[64], *self = argv[0];
	int code;

	add_options(&p, cli->cmd->options);
	if (!cli->cmd->args)
		add_options(&p, cli->cmd->group);
	if (cli->cmd->clock)
		add_options(&p, cli_clock_options);
	add_options(&p, cli->cmd->args ? cli->cmd->group : tracing);
	add_options(&p, common);
	/* getopt names the program in its messages. */
	snprintf(name, sizeof(name), "vmpt %s", cli->cmd->name);
	argv[0] = name;
	code = parse(cli, &p, argc, argv);
	argv[0] = self;
	return code;
}
