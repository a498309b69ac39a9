// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt domain list: the domains of a libvirt, and their resources. */
#include <stdlib.h>
#include <string.h>

#include "cli/domain/domain.h"

struct row {
	virDomainPtr ptr;
	virDomainInfo info;
	int id; /* -1: not running */
	char *emulator;
};

static const char *state_name(unsigned char state)
{
	static const char *const name[] = {
		[VIR_DOMAIN_RUNNING] = "running",	[VIR_DOMAIN_BLOCKED] = "blocked",
		[VIR_DOMAIN_PAUSED] = "paused",		[VIR_DOMAIN_SHUTDOWN] = "shutting down",
		[VIR_DOMAIN_SHUTOFF] = "shut off",	[VIR_DOMAIN_CRASHED] = "crashed",
		[VIR_DOMAIN_PMSUSPENDED] = "suspended",
	};

	return state < VMPT_ARRAY_SIZE(name) && name[state] ? name[state] : "unknown";
}

/* Those that run by their id, then the others by name. */
static int compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if ((x->id < 0) != (y->id < 0))
		return x->id < 0 ? 1 : -1;
	if (x->id >= 0)
		return x->id < y->id ? -1 : x->id > y->id;
	return strcmp(virDomainGetName(x->ptr), virDomainGetName(y->ptr));
}

/* False: the domain went away meanwhile. */
static bool fill_row(const struct cli *cli, struct row *row)
{
	unsigned int id = virDomainGetID(row->ptr);
	char *text, name[CLI_WHO];
	xmlDoc *doc;

	row->id = id == (unsigned int)-1 ? -1 : (int)id;
	if (virDomainGetInfo(row->ptr, &row->info))
		return false;
	text = virDomainGetXMLDesc(row->ptr, 0);
	cli_safe_name(virDomainGetName(row->ptr), name);
	doc = text ? domain_xml_parse(cli, name, text) : NULL;
	if (doc) {
		row->emulator = domain_xml_value(doc, "devices/emulator");
		xmlFreeDoc(doc);
	}
	free(text);
	return doc != NULL;
}

static void print_table(struct cli *cli, const struct row *row, size_t n)
{
	static const struct cli_column column[] = {
		{ "NAME", CLI_NAMES }, { "ID", true },	      { "STATE", false },
		{ "VCPUS", true },     { "MEMORY MB", true }, { "EMULATOR", false },
	};
	struct cli_table *t = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	size_t i;

	for (i = 0; i < n; i++) {
		bool runs = row[i].info.state == VIR_DOMAIN_RUNNING;
		char name[CLI_WHO];

		cli_safe_name(virDomainGetName(row[i].ptr), name);
		cli_cell(t, CLI_BOLD, "%s", name);
		cli_cell_number(t, row[i].id >= 0, (u64)row[i].id);
		cli_cell(t, runs ? CLI_GREEN : CLI_PLAIN, "%s", state_name(row[i].info.state));
		cli_cell_number(t, true, row[i].info.nrVirtCpu);
		cli_cell_number(t, true, row[i].info.maxMem / 1024);
		cli_safe_name(row[i].emulator ? row[i].emulator : "–", name);
		cli_cell(t, CLI_PLAIN, "%s", name);
	}
	cli_table_print(t, "");
}

static int print_json(struct cli *cli, const struct domain_link *link, const struct row *row,
		      size_t n)
{
	json_t *doc = domain_document(cli, link), *domains = json_array();
	size_t i;

	for (i = 0; i < n; i++) {
		json_t *o = json_object();

		cli_json_string(cli, o, "name", virDomainGetName(row[i].ptr));
		cli_json_set(cli, o, "id", row[i].id < 0 ? json_null() : json_integer(row[i].id));
		cli_json_string(cli, o, "state", state_name(row[i].info.state));
		cli_json_number(cli, o, "vcpus", row[i].info.nrVirtCpu);
		cli_json_number(cli, o, "memory_kib", row[i].info.maxMem);
		cli_json_set(cli, o, "emulator",
			     row[i].emulator ? json_string(row[i].emulator) : json_null());
		cli_json_add(cli, domains, o);
	}
	cli_json_set(cli, doc, "domains", domains);
	cli_json_end(cli, doc);
	return cli_json_print(cli, doc, stdout, false);
}

static int list(struct cli *cli, struct domain_link *link)
{
	virDomainPtr *found;
	struct row *row;
	int i, count = virConnectListAllDomains(link->conn, &found, 0), code = CLI_OK;
	size_t n = 0;

	if (count < 0)
		return domain_error(cli, link->uri, "does not list its domains");
	row = calloc((size_t)count + 1, sizeof(*row));
	for (i = 0; i < count && row; i++) {
		row[n].ptr = found[i];
		if (fill_row(cli, &row[n]))
			n++;
	}
	if (row) {
		qsort(row, n, sizeof(*row), compare);
		if (cli->json)
			code = print_json(cli, link, row, n);
		else
			print_table(cli, row, n);
		while (n--)
			free(row[n].emulator);
		free(row);
	} else {
		code = cli_no_memory(cli);
	}
	for (i = 0; i < count; i++)
		virDomainFree(found[i]);
	free(found);
	return code;
}

int domain_list(struct cli *cli)
{
	struct domain_link link;
	int code;

	if (cli->files)
		return cli_usage(cli, "unexpected argument '%s'", cli->file[0]);
	code = domain_connect(cli, &link);
	if (!code)
		code = list(cli, &link);
	domain_disconnect(&link);
	return code;
}
