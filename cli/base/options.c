// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Parse the command line with getopt_long(), by the option tables that a command lists, and store
 * each value according to its kind. --help is in help.c.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"

#define OPTIONS_MAX 64
#define THREADS_MAX 256
#define CPU_MAX	    65535

static bool read_u64(const char *arg, u64 *value)
{
	char *end;

	errno = 0;
	*value = strtoull(arg, &end, 0);
	return !errno && *arg >= '0' && *arg <= '9' && !*end;
}

int cli_parse_u64(struct cli *cli, const char *what, const char *arg, u64 *value)
{
	if (read_u64(arg, value))
		return 0;
	cli_usage(cli, "%s: '%s' is not a number (decimal, or hex with 0x)", what, arg);
	return -1;
}

/* ---- options of many commands ---- */

/* A CPU number at *@s, which is moved past it; -1 if there is none. */
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

int cli_take_cpu(struct cli *cli, void *to, const char *arg)
{
	const char *s = arg;

	(void)to;
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

/* Each in the order of its enum. */
#define WORDS_WHEN  "auto, yes, no"
#define WORDS_ISA   "auto, pt, rtit"
#define WORDS_COLOR "auto, always, never"

static const struct cli_option input_options[] = {
	{ "guest-only", 0, CLI_WORD, "WHEN",
	  "whether the trace holds guests only; auto: determined from the trace", "auto",
	  WORDS_WHEN, CLI_AT(struct cli, options.guest_only) },
	{ "host-only", 0, CLI_WORD, "WHEN",
	  "whether the trace holds no VMs, and all of it is the host's; auto: determined from the "
	  "packets of all CPUs",
	  "auto", WORDS_WHEN, CLI_AT(struct cli, host_only) },
	{ "format", 0, CLI_WORD, "WHAT",
	  "format of raw files; auto: by their PSBs, pt if nothing proves rtit", "auto", WORDS_ISA,
	  CLI_AT(struct cli, format) },
	{ "cycle-acc", 0, CLI_WORD, "WHEN",
	  "RTIT: whether cycle counts follow packets; auto: determined from the trace", "auto",
	  WORDS_WHEN, .rtit = true, CLI_AT(struct cli, options.cycle_acc) },
	{ "headless", 0, CLI_FLAG, NULL,
	  "treat the first byte as the start of a packet; default: start at the first PSB",
	  CLI_AT(struct cli, options.headless) },
	{ "threads", 'j', CLI_NUMBER, "N",
	  "decode with N threads; 0: one per processor that this process may use; at most 12 are "
	  "used",
	  "0", .max = THREADS_MAX, CLI_AT(struct cli, options.threads) },
	{ 0 },
};

static const struct cli_option output_options[] = {
	{ "json", 0, CLI_FLAG, NULL, "print JSON", CLI_AT(struct cli, json) },
	{ "wide", 0, CLI_FLAG, NULL,
	  "do not cut names; else they are cut, and stay different, where a terminal is too narrow",
	  CLI_AT(struct cli, wide) },
	{ "csv", 0, CLI_FLAG, NULL,
	  "print the table as CSV, with JSON's keys and values; not of vmpt dump",
	  CLI_AT(struct cli, csv) },
	{ 0 },
};

static int take_mode(struct cli *cli, void *to, const char *arg)
{
	size_t digits = strspn(arg, "01234567");
	unsigned long mode = strtoul(arg, NULL, 8);

	if (!digits || arg[digits] || mode > 0777 || (mode & 0600) != 0600) {
		cli_usage(cli, "--mode: '%s' is not an octal mode like 600 or 644", arg);
		return -1;
	}
	*(unsigned int *)to = (unsigned int)mode;
	return 0;
}

static const struct cli_option mode_options[] = {
	{ "mode", 0, CLI_OTHER, "MODE",
	  "permissions of the files written, in octal: they show what guests ran", "600",
	  .take = take_mode, CLI_AT(struct cli, mode) },
	{ 0 },
};

static const struct cli_option common_options[] = {
	{ "quiet", 'q', CLI_FLAG, NULL, "no warnings and no progress, only errors",
	  CLI_AT(struct cli, quiet) },
	{ "color", 0, CLI_WORD, "WHEN", "colour; auto: on a terminal", "auto", WORDS_COLOR,
	  CLI_AT(struct cli, color) },
	{ "help", 'h', CLI_FLAG, NULL, "show this text and exit", CLI_AT(struct cli, help) },
	{ "version", 0, CLI_FLAG, NULL, "show the version and exit", CLI_AT(struct cli, version) },
	{ 0 },
};

const struct cli_group cli_input_group = {
	.title = "Options for the trace", .option = input_options, .common = true, .in_cli = true
};
const struct cli_group cli_output_group = {
	.title = "Common options", .option = output_options, .common = true, .in_cli = true
};
const struct cli_group cli_mode_group = { .option = mode_options, .in_cli = true };
const struct cli_group cli_common_group = {
	.title = "Common options", .option = common_options, .common = true, .in_cli = true
};

/* ---- values ---- */

const struct cli_group *cli_group(const struct cli_command *cmd, size_t i)
{
	if (i && !cmd->group[i - 1])
		return NULL;
	return cmd->group[i] ? cmd->group[i] : &cli_common_group;
}

void *cli_values(const struct cli *cli, const struct cli_group *group)
{
	size_t i;

	for (i = 0; cli->cmd->group[i]; i++)
		if (cli->cmd->group[i] == group)
			return cli->values[i];
	return NULL;
}

static char *values(struct cli *cli, const struct cli_group *group)
{
	return group->in_cli ? (char *)cli : group->size ? cli_values(cli, group) : cli->data;
}

static void store(void *to, size_t size, u64 value)
{
	switch (size) {
	case 1:
		*(u8 *)to = (u8)value;
		break;
	case 2:
		*(u16 *)to = (u16)value;
		break;
	case 4:
		*(u32 *)to = (u32)value;
		break;
	default:
		*(u64 *)to = value;
	}
}

static int take_number(struct cli *cli, const struct cli_option *o, void *to, const char *arg)
{
	u64 value;

	if (!read_u64(arg, &value) || value < o->min || (o->max && value > o->max)) {
		if (o->max)
			cli_usage(cli, "--%s: '%s' is not a number from %llu to %llu", o->name, arg,
				  (unsigned long long)o->min, (unsigned long long)o->max);
		else
			cli_usage(cli, "--%s: '%s' is not a number of at least %llu", o->name, arg,
				  (unsigned long long)o->min);
		return -1;
	}
	store(to, o->size, value);
	return 0;
}

static int take_word(struct cli *cli, const struct cli_option *o, void *to, const char *arg)
{
	size_t n = strlen(arg), len;
	const char *word = o->words;
	u64 i;

	for (i = 0;; i++, word += len + strlen(", ")) {
		len = strcspn(word, ",");
		if (len == n && !memcmp(word, arg, n))
			break;
		if (!word[len]) {
			cli_usage(cli, "--%s: '%s' is not one of %s", o->name, arg, o->words);
			return -1;
		}
	}
	if (o->size == sizeof(arg))
		*(const char **)to = arg;
	else
		store(to, o->size, i);
	return 0;
}

static int take_list(struct cli *cli, const struct cli_option *o, void *to, const char *arg)
{
	char *copy = strdup(arg), *at, *word;
	int ret = 0;

	if (!copy) {
		cli_no_memory(cli);
		return -1;
	}
	for (at = copy; !ret && (word = strsep(&at, ",")) != NULL;)
		ret = o->take(cli, to, word);
	free(copy);
	return ret;
}

/* Note FILE as an input; also of [VM:]FILE and FILE[@ADDR]. */
static int note_file(struct cli *cli, const char *arg)
{
	const char *colon = strchr(arg, ':'), *file[] = { arg, colon ? colon + 1 : arg };
	int code = CLI_OK;
	char *cut, *at;
	size_t i;

	for (i = 0; !code && i < VMPT_ARRAY_SIZE(file); i++) {
		cut = strdup(file[i]);
		if (!cut)
			return cli_no_memory(cli);
		code = cli_note_input(cli, cut);
		at = strrchr(cut, '@');
		if (at)
			*at = '\0';
		if (at && !code)
			code = cli_note_input(cli, cut);
		free(cut);
	}
	return code;
}

static int take_string(struct cli *cli, const struct cli_option *o, void *to, const char *arg)
{
	struct cli_strings *many = o->size == sizeof(*many) ? to : NULL;

	if (o->kind == CLI_DIR && !*arg) {
		cli_usage(cli, "--%s: no folder given", o->name);
		return -1;
	}
	if (o->take && o->take(cli, to, arg))
		return -1;
	if (o->kind == CLI_FILE && note_file(cli, arg))
		return -1;
	if (many && many->count == CLI_STRINGS) {
		cli_usage(cli, "--%s: more than %d", o->name, CLI_STRINGS);
		return -1;
	}
	*(many ? &many->s[many->count++] : (const char **)to) = arg;
	return 0;
}

static int take(struct cli *cli, const struct cli_option *o, char *base, const char *arg)
{
	void *to = base + o->at;

	switch (o->kind) {
	case CLI_FLAG:
		*(bool *)to = true;
		return 0;
	case CLI_NUMBER:
		return take_number(cli, o, to, arg);
	case CLI_WORD:
		return take_word(cli, o, to, arg);
	case CLI_LIST:
		return take_list(cli, o, to, arg);
	case CLI_OTHER:
		return o->take(cli, to, arg);
	default:
		return take_string(cli, o, to, arg);
	}
}

/* ---- the command line ---- */

/* Tables for getopt_long(). */
struct parser {
	const struct cli_option *option[OPTIONS_MAX];
	char *base[OPTIONS_MAX]; /* of its values */
	struct option longs[OPTIONS_MAX + 1];
	char shorts[2 * OPTIONS_MAX + 1];
	int count;
};

/* Store the initial values. 0, or -1 after a message. */
static int add_options(struct cli *cli, struct parser *p, const struct cli_group *group)
{
	const struct cli_option *o;
	char *s = p->shorts + strlen(p->shorts);
	int n;

	for (o = group->option; o->name && p->count < OPTIONS_MAX; o++) {
		n = p->count++;
		p->option[n] = o;
		p->base[n] = values(cli, group);
		p->longs[n] = (struct option){
			.name = o->name,
			.has_arg = o->without ? optional_argument
				   : o->arg   ? required_argument
					      : no_argument,
			.val = 256 + n,
		};
		if (o->letter)
			s = stpcpy(s, (char[]){ o->letter, o->arg ? ':' : '\0', '\0' });
		if (o->initial && take(cli, o, p->base[n], o->initial))
			return -1;
	}
	return 0;
}

/* Which option getopt found; -1: none. */
static int find(const struct parser *p, int c)
{
	int i;

	if (c >= 256)
		return c - 256;
	for (i = p->count - 1; i >= 0 && p->option[i]->letter != c; i--)
		;
	return i;
}

static int parse(struct cli *cli, const struct parser *p, int argc, char **argv)
{
	int c, i;

	optind = 1;
	while ((c = getopt_long(argc, argv, p->shorts, p->longs, NULL)) != -1) {
		i = find(p, c);
		if (i < 0) {
			fprintf(stderr, "Try 'vmpt %s --help'.\n", cli->cmd->name);
			return CLI_USAGE;
		}
		if (take(cli, p->option[i], p->base[i], optarg ? optarg : p->option[i]->without))
			return CLI_USAGE;
		if (p->option[i]->given)
			*(bool *)(p->base[i] + p->option[i]->given) = true;
		if (cli->help)
			return cli_help(cli);
		if (cli->version) {
			printf("vmpt %s\n", VMPT_VERSION);
			return CLI_OK;
		}
	}
	cli->argv = argv;
	cli->options_end = optind;
	cli->file = argv + optind;
	cli->files = argc - optind;
	if (!cli->files && !cli->cmd->args)
		return cli_usage(cli, "no file given");
	if (!cli->files && cli->cmd->lacking)
		return cli_usage(cli, "%s", cli->cmd->lacking);
	return -1;
}

/* That this process may run on: taskset, cpuset cgroups. */
static unsigned int processors(void)
{
	cpu_set_t *set = CPU_ALLOC(CPU_MAX);
	size_t size = CPU_ALLOC_SIZE(CPU_MAX);
	int n = 0;

	if (set && !sched_getaffinity(0, size, set))
		n = CPU_COUNT_S(size, set);
	CPU_FREE(set);
	return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : (unsigned int)n;
}

int cli_options(struct cli *cli, int argc, char **argv)
{
	const struct cli_group *group;
	struct parser p = { 0 };
	char name[64], *self = argv[0];
	size_t i;
	int code;

	for (i = 0; (group = cli_group(cli->cmd, i)) != NULL; i++)
		if (add_options(cli, &p, group))
			return CLI_USAGE;
	/* getopt names the program in its messages. */
	snprintf(name, sizeof(name), "vmpt %s", cli->cmd->name);
	argv[0] = name;
	code = parse(cli, &p, argc, argv);
	argv[0] = self;
	if (!cli->options.threads)
		cli->options.threads = processors();
	if (code >= 0 || !cli->csv)
		return code;
	if (cli->json)
		return cli_usage(cli, "--json and --csv exclude each other");
	if (!cli->cmd->csv)
		return cli_usage(cli, "--csv: %s has no table; use --json", cli->cmd->name);
	cli->json = true;
	return code;
}
