// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt domain: its actions, their options, and the program, which is one of its own: libvirt's
 * libraries are many, and the other commands need none of them. vmpt executes it.
 */
#include <locale.h>
#include <signal.h>
#include <string.h>

#include "cli/domain-trace.h"

/* ---- options ---- */

static int set_connect(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;

	if (!*arg) {
		cli_usage(cli, "--connect: no URI is named, like qemu:///system;"
			       " leave it out for the embedded driver");
		return -1;
	}
	o->connect = arg;
	return 0;
}

static int set_root(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;

	if (!*arg) {
		cli_usage(cli, "--root: no folder is named");
		return -1;
	}
	o->root = arg;
	return 0;
}

static int set_set(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;
	const char *equals = strchr(arg, '='), *name = arg, *colon;
	size_t len;

	if (equals) {
		colon = memrchr(arg, ':', (size_t)(equals - arg));
		name = colon ? colon + 1 : arg;
	}
	len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	if (!equals || !len || name + len != equals || name[0] < 'A') {
		cli_usage(cli, "--set: '%s' is not [DOMAIN:]NAME=VALUE, NAME in capitals", arg);
		return -1;
	}
	if (o->sets == DOMAIN_SETS) {
		cli_usage(cli, "--set: more than %d", DOMAIN_SETS);
		return -1;
	}
	o->set[o->sets++] = arg;
	return 0;
}

static int set_console(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;

	(void)arg;
	o->console = true;
	return 0;
}

static int set_force(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;

	(void)arg;
	o->force = true;
	return 0;
}

static int set_perf_data(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;

	(void)arg;
	o->perf_data = true;
	return 0;
}

static int set_seconds(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;

	if (cli_parse_u64(cli, "--seconds", arg, &o->seconds))
		return -1;
	if (!o->seconds || o->seconds > 1000000) {
		cli_usage(cli, "--seconds: '%s' is not between 1 and 1000000", arg);
		return -1;
	}
	o->has_seconds = true;
	return 0;
}

static int set_output(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;

	if (!*arg) {
		cli_usage(cli, "--output: no folder is named");
		return -1;
	}
	o->output = arg;
	return 0;
}

static int set_plugin(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;

	o->plugin = arg;
	return 0;
}

static int set_cpus(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;
	unsigned int cpu[TRACE_CPUS];
	size_t n;

	o->cpus = arg;
	return domain_parse_cpus(cli, arg, cpu, &n);
}

static int set_host(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;

	if (strcmp(arg, "none") && strcmp(arg, "synthetic")) {
		cli_usage(cli, "--host: '%s' is none of none, synthetic", arg);
		return -1;
	}
	o->host = arg;
	return 0;
}

static int set_isa(struct cli *cli, const char *arg)
{
	struct domain_options *o = cli->own;

	if (strcmp(arg, "pt") && strcmp(arg, "rtit")) {
		cli_usage(cli, "--isa: '%s' is none of pt, rtit", arg);
		return -1;
	}
	o->isa = arg;
	return 0;
}

#define OPTION_SET                                                 \
	{                                                          \
		"set", 0, "NAME=VALUE",                            \
			"put VALUE in place of @NAME@ in files;\n" \
			"DOMAIN:NAME=VALUE for one of them",       \
			set_set                                    \
	}

/* Of all actions. */
static const struct cli_option connecting[] = {
	{ "connect", 0, "URI", "a libvirt, as qemu:///system [embedded]", set_connect },
	{ "root", 0, "DIR", "embedded: libvirt's folder\n[~/.local/state/vmpt/libvirt]", set_root },
	{ 0 },
};

static const struct cli_option list_options[] = {
	{ "json", 0, NULL, "print JSON", cli_set_json },
	{ 0 },
};

static const struct cli_option start_options[] = {
	OPTION_SET,
	{ "console", 0, NULL, "show its serial console; ^] leaves", set_console },
	{ 0 },
};

static const struct cli_option stop_options[] = {
	{ "force", 'f', NULL, "do not ask the guest", set_force },
	{ "seconds", 0, "N", "give the guest so long to shut down [10]", set_seconds },
	{ 0 },
};

static const struct cli_option trace_options[] = {
	OPTION_SET,
	{ "output", 'o', "DIR", "the trace's folder [vmpt-trace]", set_output },
	{ "force", 'f', NULL, "remove an earlier trace from it", set_force },
	{ "cpus", 0, "LIST",
	  "host CPUs that run the vCPUs, as 0,2-5;\ndealt in turn [0 to the largest VM's]",
	  set_cpus },
	{ "plugin", 0, "FILE", "the plugin [the XML's, else vmpt's own]", set_plugin },
	{ "isa", 0, "WHAT", "what traces: pt, rtit (the Atoms of 2013 to 2015)", set_isa },
	{ "host", 0, "WHAT", "trace of the host between: none, synthetic", set_host },
	{ "perf-data", 0, NULL, "write a perf.data instead of cpuN.pt", set_perf_data },
	{ "seconds", 0, "N", "stop the domains after so long", set_seconds },
	{ "json", 0, NULL, "print JSON", cli_set_json },
	{ 0 },
};

/* ---- actions ---- */

#define DOMAINS "NAME | FILE.xml | NAME=FILE.xml"

static const struct cli_command list = {
	.name = "domain list",
	.title = "show the domains of a libvirt",
	.about =
		"Show all domains: name, id, state, vCPUs, memory and emulator. A dash stands for\n"
		"what a domain that does not run lacks.",
	.examples = "  vmpt domain list --connect=qemu:///system\n"
		    "  vmpt domain list --connect=qemu:///session --json | jq '.domains[].name'\n",
	.args = "",
	.options = list_options,
	.group = connecting,
	.own_size = sizeof(struct domain_options),
	.run = domain_list,
};

static const struct cli_command start = {
	.name = "domain start",
	.title = "start domains, from XML files or by name",
	.about = "Start domains: those of FILE.xml, where @NAME@ is replaced as --set says, or\n"
		 "those that libvirt knows by NAME. Embedded, the command stays until they\n"
		 "ended, and Ctrl-C stops them; else they are libvirt's, and it returns.",
	.examples = "  vmpt domain start --console --set MEMORY=512 web.xml\n"
		    "  vmpt domain start --connect=qemu:///system web\n",
	.args = "{" DOMAINS "}...",
	.lacking = "no domain given",
	.options = start_options,
	.group = connecting,
	.own_size = sizeof(struct domain_options),
	.run = domain_start,
};

static const struct cli_command stop = {
	.name = "domain stop",
	.title = "shut domains down, or off",
	.about = "Ask the guests to shut down by ACPI, and stop those that do not in time.",
	.examples = "  vmpt domain stop --connect=qemu:///system web db\n"
		    "  vmpt domain stop --connect=qemu:///system --force web\n",
	.args = "NAME...",
	.lacking = "no domain given",
	.options = stop_options,
	.group = connecting,
	.own_size = sizeof(struct domain_options),
	.run = domain_stop,
};

static const struct cli_command console = {
	.name = "domain console",
	.title = "be on a domain's serial console",
	.about = "Connect stdin and stdout to the serial console of a domain that runs. ^] leaves.",
	.examples = "  vmpt domain console --connect=qemu:///system web\n",
	.args = "NAME",
	.lacking = "no domain given",
	.group = connecting,
	.own_size = sizeof(struct domain_options),
	.run = domain_console_run,
};

static const struct cli_command tracing = {
	.name = "domain trace",
	.title = "run domains and trace them from outside",
	.about = "Start domains with the plugin that traces them, as the host they share would,\n"
		 "and wait until all ended, or for --seconds or Ctrl-C. The folder then holds\n"
		 "the trace of each host CPU, cpuN.pt, and who had which VMCS, vms.jsonl.",
	.examples = "  vmpt domain trace -o out a.xml b.xml\n"
		    "  vmpt domain trace a=linux.xml b=linux.xml --set b:CMDLINE='run=work'\n"
		    "  vmpt vms vmpt-trace/cpu*.pt     who ran, and how much\n",
	.args = "{" DOMAINS "}...",
	.lacking = "no domain given",
	.options = trace_options,
	.group = connecting,
	.own_size = sizeof(struct domain_options),
	.run = domain_trace,
};

static const struct cli_command qemu = {
	.name = "domain qemu",
	.title = "find or fetch a QEMU that fits the plugin",
	.about = "Print the path of a QEMU that takes the plugin: the installed one, or one that\n"
		 "was fetched, or is fetched now from newer suites of apt's mirror, into\n"
		 "~/.cache/vmpt. It is what @QEMU@ stands for in an XML file without --set.",
	.examples = "  vmpt domain qemu\n"
		    "  vmpt domain start --set QEMU=$(vmpt domain qemu) web.xml\n",
	.args = "",
	.own_size = sizeof(struct domain_options),
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
	       "libvirt's driver runs inside the command, and so does each VM no longer than it.\n"
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
	if (argc < 2)
		return cli_usage(&none, "no action given");
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		help();
		return cli_finish(&none, CLI_OK);
	}
	cmd = find(argv[1]);
	if (cmd)
		return cli_run(cmd, argc - 1, argv + 1);
	return cli_usage(&none, "unknown %s '%s'", argv[1][0] == '-' ? "option" : "action",
			 argv[1]);
}
