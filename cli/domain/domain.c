// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt domain: its actions, their options, and the program. It is a separate one, executed by vmpt,
 * because libvirt has many libraries that the other commands do not need.
 */
#include <locale.h>
#include <signal.h>
#include <string.h>

#include "cli/domain/trace.h"

#define SECONDS_MAX 1000000

/* ---- options ---- */

static int take_connect(struct cli *cli, void *to, const char *arg)
{
	(void)to;
	if (*arg)
		return 0;
	cli_usage(cli, "--connect: no URI given, like qemu:///system;"
		       " leave it out for the embedded driver");
	return -1;
}

static int take_set(struct cli *cli, void *to, const char *arg)
{
	const char *equals = strchr(arg, '='), *name = arg, *colon;
	size_t len;

	(void)to;
	if (equals) {
		colon = memrchr(arg, ':', (size_t)(equals - arg));
		name = colon ? colon + 1 : arg;
	}
	len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	if (equals && len && name + len == equals && name[0] >= 'A')
		return 0;
	cli_usage(cli, "--set: '%s' is not [DOMAIN:]NAME=VALUE, NAME in capitals", arg);
	return -1;
}

static int take_cpus(struct cli *cli, void *to, const char *arg)
{
	unsigned int cpu[TRACE_CPUS];
	size_t n;

	*(const char **)to = arg;
	return domain_parse_cpus(cli, arg, cpu, &n);
}

#define OPTION_SET                                                                             \
	{                                                                                      \
		"set", 0, CLI_STRING, "NAME=VALUE",                                            \
			"replace @NAME@ in files by VALUE; DOMAIN:NAME=VALUE for one of them", \
			CLI_AT(struct domain_options, set), .take = take_set                   \
	}

static const struct cli_option connecting_options[] = {
	{ "connect", 0, CLI_STRING, "URI", "a libvirt, like qemu:///system [embedded]",
	  CLI_AT(struct domain_options, connect), .take = take_connect },
	{ "root", 0, CLI_DIR, "DIR", "embedded: libvirt's folder [~/.local/state/vmpt/libvirt]",
	  CLI_AT(struct domain_options, root) },
	{ 0 },
};

static const struct cli_option start_options[] = {
	OPTION_SET,
	{ "console", 0, CLI_FLAG, NULL, "show its serial console; ^] leaves",
	  CLI_AT(struct domain_options, console) },
	{ 0 },
};

static const struct cli_option stop_options[] = {
	{ "force", 'f', CLI_FLAG, NULL, "do not ask the guest",
	  CLI_AT(struct domain_options, force) },
	{ "seconds", 0, CLI_NUMBER, "N", "give the guest this long to shut down", "10", .min = 1,
	  .max = SECONDS_MAX, CLI_AT(struct domain_options, seconds) },
	{ 0 },
};

static const struct cli_option trace_options[] = {
	OPTION_SET,
	{ "output", 'o', CLI_DIR, "DIR", "the trace's folder", "vmpt-trace",
	  CLI_AT(struct domain_options, output) },
	{ "force", 'f', CLI_FLAG, NULL, "remove an earlier trace from it",
	  CLI_AT(struct domain_options, force) },
	{ "cpus", 0, CLI_OTHER, "LIST",
	  "host CPUs that run the vCPUs, like 0,2-5; assigned round-robin [0 to the largest VM's]",
	  CLI_AT(struct domain_options, cpus), .take = take_cpus },
	{ "plugin", 0, CLI_FILE, "FILE", "the plugin [the XML's, else vmpt's own]",
	  CLI_AT(struct domain_options, plugin) },
	{ "isa", 0, CLI_WORD, "WHAT", "kind of trace; rtit: of the Atoms of 2013 to 2015",
	  .words = "pt, rtit", CLI_AT(struct domain_options, isa) },
	{ "host", 0, CLI_WORD, "WHAT", "the host's trace between guests",
	  .words = "none, synthetic", CLI_AT(struct domain_options, host) },
	{ "perf-data", 0, CLI_FLAG, NULL, "write a perf.data instead of cpuN.pt",
	  CLI_AT(struct domain_options, perf_data) },
	{ "no-code", 0, CLI_FLAG, NULL, "do not keep the code that the guests execute",
	  CLI_AT(struct domain_options, no_code) },
	{ "no-tasks", 0, CLI_FLAG, NULL,
	  "do not keep which processes a Linux guest has, and its kernel's functions",
	  CLI_AT(struct domain_options, no_tasks) },
	{ "seconds", 0, CLI_NUMBER, "N", "stop the domains after this time", .min = 1,
	  .max = SECONDS_MAX, CLI_AT(struct domain_options, seconds) },
	{ 0 },
};

/* Of all actions but qemu. */
static const struct cli_group connecting = { .title = "Options for the connection",
					     .option = connecting_options };
static const struct cli_group starting = { .option = start_options };
static const struct cli_group stopping = { .option = stop_options };
static const struct cli_group for_trace = { .option = trace_options };

/* ---- actions ---- */

#define DOMAINS "NAME | FILE.xml | NAME=FILE.xml"

static const char *const csv_domains[] = {
	"name", "id", "state", "vcpus", "memory_kib", "emulator", NULL,
};

static const struct cli_csv csv_list[] = { { "domains", NULL, csv_domains }, { 0 } };

static const char *const csv_vcpus[] = { "vm", "vcpu", "cpu", "vmcs", "end", NULL };

static const struct cli_csv csv_trace[] = { { "vcpus", NULL, csv_vcpus }, { 0 } };

static const struct cli_command list = {
	.name = "domain list",
	.title = "show the domains of a libvirt",
	.about =
		"Show all domains: name, id, state, vCPUs, memory and emulator. A dash means that\n"
		"a domain that is not running has no such value.",
	.examples = "  vmpt domain list --connect=qemu:///system\n"
		    "  vmpt domain list --connect=qemu:///session --json | jq '.domains[].name'\n",
	.args = "",
	.group = { &connecting, &cli_output_group },
	.csv = csv_list,
	.data_size = sizeof(struct domain_options),
	.run = domain_list,
};

static const struct cli_command start = {
	.name = "domain start",
	.title = "start domains, from XML files or by name",
	.about = "Start domains: those of FILE.xml, where @NAME@ is replaced as --set says, or\n"
		 "those that libvirt knows by NAME. Embedded, the command runs until they have\n"
		 "ended, and Ctrl-C stops them; else they belong to libvirt, and it returns.",
	.examples = "  vmpt domain start --console --set MEMORY=512 web.xml\n"
		    "  vmpt domain start --connect=qemu:///system web\n",
	.args = "{" DOMAINS "}...",
	.lacking = "no domain given",
	.group = { &starting, &connecting },
	.data_size = sizeof(struct domain_options),
	.run = domain_start,
};

static const struct cli_command stop = {
	.name = "domain stop",
	.title = "shut domains down, or stop them",
	.about = "Ask the guests to shut down by ACPI, and stop those that do not do so in time.",
	.examples = "  vmpt domain stop --connect=qemu:///system web db\n"
		    "  vmpt domain stop --connect=qemu:///system --force web\n",
	.args = "NAME...",
	.lacking = "no domain given",
	.group = { &stopping, &connecting },
	.data_size = sizeof(struct domain_options),
	.run = domain_stop,
};

static const struct cli_command console = {
	.name = "domain console",
	.title = "connect to a domain's serial console",
	.about = "Connect stdin and stdout to the serial console of a running domain. ^] leaves.",
	.examples = "  vmpt domain console --connect=qemu:///system web\n",
	.args = "NAME",
	.lacking = "no domain given",
	.group = { &connecting },
	.data_size = sizeof(struct domain_options),
	.run = domain_console_run,
};

static const struct cli_command tracing = {
	.name = "domain trace",
	.title = "run domains and trace them from outside",
	.about = "Start domains with the plugin that traces them, as the host they share would,\n"
		 "and wait until all have ended, or for --seconds or Ctrl-C. The folder is then\n"
		 "a recording, which each command of vmpt takes as its FILE: the trace of each\n"
		 "host CPU, cpuN.pt, the owner of each VMCS, vms.jsonl, and recording.json.",
	.examples = "  vmpt domain trace -o out a.xml b.xml\n"
		    "  vmpt domain trace a=linux.xml b=linux.xml --set b:CMDLINE='run=work'\n"
		    "  vmpt vms vmpt-trace             who ran, and how much\n",
	.args = "{" DOMAINS "}...",
	.lacking = "no domain given",
	.group = { &for_trace, &cli_mode_group, &connecting, &cli_output_group },
	.csv = csv_trace,
	.data_size = sizeof(struct domain_options),
	.run = domain_trace,
};

static const struct cli_command qemu = {
	.name = "domain qemu",
	.title = "find or fetch a QEMU that fits the plugin",
	.about = "Print the path of a QEMU that can load the plugin: the installed one, or one\n"
		 "fetched earlier, or fetched now from newer suites of apt's mirror, into\n"
		 "~/.cache/vmpt. It is the default of @QEMU@ in an XML file.",
	.examples = "  vmpt domain qemu\n"
		    "  vmpt domain start --set QEMU=$(vmpt domain qemu) web.xml\n",
	.args = "",
	.data_size = sizeof(struct domain_options),
	.run = domain_qemu,
};

static const struct cli_command *const action[] = {
	&list, &start, &stop, &console, &tracing, &qemu
};

/* ---- the program ---- */

static const char *action_name(const struct cli_command *cmd)
{
	return cmd->name + strlen("domain ");
}

static const struct cli_command *find(const char *name)
{
	size_t i;

	for (i = 0; i < VMPT_ARRAY_SIZE(action); i++)
		if (!strcmp(action_name(action[i]), name))
			return action[i];
	return NULL;
}

static void help(void)
{
	size_t i;

	printf("Usage: vmpt domain ACTION [OPTION]...\n"
	       "\n"
	       "Start, stop, show and trace VMs, which libvirt calls domains. Without --connect\n"
	       "libvirt's driver runs inside the command, and no VM runs longer than it.\n"
	       "\n"
	       "Actions:\n");
	for (i = 0; i < VMPT_ARRAY_SIZE(action); i++)
		printf("  %-7s %s\n", action_name(action[i]), action[i]->title);
	printf("\n"
	       "Examples:\n"
	       "  vmpt domain trace --help        all about one action\n"
	       "  vmpt domain list --connect=qemu:///system\n");
}

int main(int argc, char **argv)
{
	static const struct cli_command group = { .name = "domain" };
	const struct cli_command *cmd;
	struct cli none = { .cmd = &group };

	setlocale(LC_CTYPE, "");
	/* A closed pipe is seen as EPIPE where stdout is written. */
	signal(SIGPIPE, SIG_IGN);
	/* A limit on the size of files is seen as EFBIG. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2)
		return cli_usage(&none, "no action given");
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		help();
		return cli_finish(&none, CLI_OK);
	}
	/* For cli/words.py */
	if (!strcmp(argv[1], "--format=json"))
		return cli_describe(action, VMPT_ARRAY_SIZE(action));
	cmd = find(argv[1]);
	if (cmd)
		return cli_run(cmd, argc - 1, argv + 1);
	return cli_usage(&none, "unknown %s '%s'", argv[1][0] == '-' ? "option" : "action",
			 argv[1]);
}
