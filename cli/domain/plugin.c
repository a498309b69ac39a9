// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Load the plugin into a domain: add or change the -plugin of the
 * <qemu:commandline> that libvirt passes to QEMU.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/domain/domain.h"

#define QEMU_NS	    "http://libvirt.org/schemas/domain/qemu/1.0"
#define PLUGIN_NAME "vmpt-plugin.so"

static bool is_element(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && !strcmp((const char *)node->name, name) &&
	       node->ns && !strcmp((const char *)node->ns->href, QEMU_NS);
}

/* <qemu:commandline>, added if missing. */
static xmlNode *command_line(xmlDoc *doc)
{
	xmlNode *root = xmlDocGetRootElement(doc), *at;
	xmlNs *ns;

	for (at = root->children; at; at = at->next)
		if (is_element(at, "commandline"))
			return at;
	ns = xmlSearchNsByHref(doc, root, BAD_CAST QEMU_NS);
	if (!ns)
		ns = xmlNewNs(root, BAD_CAST QEMU_NS, BAD_CAST "qemu");
	return ns ? xmlNewChild(root, ns, BAD_CAST "commandline", NULL) : NULL;
}

/* The length of an option's part up to the next comma; two commas are an escaped one. */
static size_t part(const char *s)
{
	size_t i;

	for (i = 0; s[i]; i++) {
		if (s[i] != ',')
			continue;
		if (s[i + 1] != ',')
			return i;
		i++;
	}
	return i;
}

/* Whether -plugin's value @value names our plugin; its file, still quoted. */
static bool is_ours(const char *value, const char **file, size_t *len)
{
	const size_t name = strlen(PLUGIN_NAME);

	*file = value + (strncmp(value, "file=", 5) ? 0 : 5);
	*len = part(*file);
	return *len >= name && !memcmp(*file + *len - name, PLUGIN_NAME, name) &&
	       (*len == name || (*file)[*len - name - 1] == '/');
}

/* The argument after our -plugin. */
static xmlNode *find_plugin(xmlNode *line)
{
	bool behind = false;
	xmlNode *at;

	for (at = line->children; at; at = at->next) {
		xmlChar *value;
		const char *file;
		size_t len;
		bool found;

		if (!is_element(at, "arg"))
			continue;
		value = xmlGetNoNsProp(at, BAD_CAST "value");
		found = behind && value && is_ours((char *)value, &file, &len);
		behind = value && !strcmp((char *)value, "-plugin");
		xmlFree(value);
		if (found)
			return at;
	}
	return NULL;
}

static void put_quoted(FILE *out, const char *s)
{
	for (; *s; s++) {
		if (*s == ',')
			fputc(',', out);
		fputc(*s, out);
	}
}

/* Whether one of our options has the name of @s, "name=…". */
static bool is_replaced(const struct domain_plugin *plugin, const char *s)
{
	size_t i, len = strcspn(s, "=,");

	for (i = 0; i < plugin->options; i++)
		if (!strncmp(plugin->option[i], s, len) && plugin->option[i][len] == '=')
			return true;
	return false;
}

/* The plugin of this program's build, else the installed one. */
static char *default_plugin(void)
{
	char self[4096], *path = NULL, *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		*slash = '\0';
		if (asprintf(&path, "%s/../qemu-plugin/" PLUGIN_NAME, self) < 0)
			return NULL;
		if (!access(path, R_OK))
			return path;
		free(path);
	}
	return strdup(VMPT_PLUGIN_INSTALLED);
}

/* The new argument: the file, the other options of @old, and ours. */
static char *make_argument(const struct domain_plugin *plugin, const char *path, const char *old)
{
	const char *file = NULL;
	char *text = NULL;
	size_t len = 0, size, i;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (old)
		is_ours(old, &file, &len);
	if (path)
		put_quoted(out, path);
	else
		fprintf(out, "%.*s", (int)len, file ? file : "");
	for (old = file ? file + len : ""; *old == ','; old += len) {
		old++;
		len = part(old);
		if (len && !is_replaced(plugin, old))
			fprintf(out, ",%.*s", (int)len, old);
	}
	for (i = 0; i < plugin->options; i++) {
		fputc(',', out);
		put_quoted(out, plugin->option[i]);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static bool add_argument(xmlNode *line, const char *value)
{
	xmlNode *arg = xmlNewChild(line, line->ns, BAD_CAST "arg", NULL);

	return arg && xmlNewProp(arg, BAD_CAST "value", BAD_CAST value);
}

/* KVM executes the guest itself: a plugin sees nothing. */
static int check_type(const struct cli *cli, xmlDoc *doc, const char *who)
{
	xmlChar *type = xmlGetNoNsProp(xmlDocGetRootElement(doc), BAD_CAST "type");
	bool fits = type && !strcmp((char *)type, "qemu");

	if (!fits)
		cli_error(cli, "%s: its type is '%s', but a plugin needs <domain type='qemu'>", who,
			  type ? (char *)type : "");
	xmlFree(type);
	return fits ? CLI_OK : CLI_FAILED;
}

static int check_file(const struct cli *cli, const char *who, const char *path)
{
	if (!access(path, R_OK))
		return CLI_OK;
	cli_error(cli, "%s: plugin %s: %m", who, path);
	fprintf(stderr, "  build it, or give it with --plugin=FILE\n");
	return CLI_FAILED;
}

int domain_xml_plugin(const struct cli *cli, xmlDoc *doc, const char *who,
		      const struct domain_plugin *plugin)
{
	xmlNode *line, *arg;
	xmlChar *old = NULL;
	char *path = NULL, *text = NULL;
	int code = check_type(cli, doc, who);
	bool done = false;

	if (code)
		return code;
	line = command_line(doc);
	if (!line)
		return cli_no_memory(cli);
	arg = find_plugin(line);
	if (arg)
		old = xmlGetNoNsProp(arg, BAD_CAST "value");
	if (plugin->file)
		path = strdup(plugin->file);
	else if (!arg)
		path = default_plugin();
	if (path)
		code = check_file(cli, who, path);
	if (!code)
		text = make_argument(plugin, path, (char *)old);
	if (text && arg)
		done = xmlSetProp(arg, BAD_CAST "value", BAD_CAST text);
	else if (text)
		done = add_argument(line, "-plugin") && add_argument(line, text);
	xmlFree(old);
	free(path);
	free(text);
	if (!code && !done)
		code = cli_no_memory(cli);
	return code;
}
