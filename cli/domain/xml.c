// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The XML of a domain, with libxml2: reading it, replacing a template's @NAME@
 * by values, and looking up an element.
 */
#include <libxml/parser.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/domain/domain.h"

#define PARSE_FLAGS (XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING)

/* ---- reading and writing ---- */

/* @doc if it is a domain's. */
static xmlDoc *check(const struct cli *cli, const char *who, xmlDoc *doc)
{
	const xmlError *err = xmlGetLastError();
	const xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;

	if (!doc) {
		const char *says = err && err->message ? err->message : "cannot be read\n";

		if (err && err->domain == XML_FROM_PARSER)
			cli_error(cli, "%s: line %d: %.*s", who, err->line,
				  (int)strcspn(says, "\n"), says);
		else
			cli_error(cli, "%s: %.*s", who, (int)strcspn(says, "\n"), says);
		return NULL;
	}
	if (!root || strcmp((const char *)root->name, "domain")) {
		cli_error(cli, "%s: not a domain's XML: the outermost element is <%s>", who,
			  root ? (const char *)root->name : "");
		xmlFreeDoc(doc);
		return NULL;
	}
	return doc;
}

xmlDoc *domain_xml_read(const struct cli *cli, const char *path)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	xmlDoc *doc;

	if (!file) {
		cli_error(cli, "%s: %m", path);
		return NULL;
	}
	if (!fstat(fileno(file), &st) && S_ISDIR(st.st_mode)) {
		cli_error(cli, "%s: is a folder, not a domain's XML", path);
		fclose(file);
		return NULL;
	}
	xmlResetLastError();
	doc = xmlReadFd(fileno(file), path, NULL, PARSE_FLAGS);
	fclose(file);
	return check(cli, path, doc);
}

xmlDoc *domain_xml_parse(const struct cli *cli, const char *who, const char *text)
{
	xmlResetLastError();
	return check(cli, who, xmlReadDoc(BAD_CAST text, NULL, NULL, PARSE_FLAGS));
}

char *domain_xml_text(const struct cli *cli, xmlDoc *doc)
{
	xmlChar *text = NULL;
	char *copy;
	int size;

	xmlDocDumpMemory(doc, &text, &size);
	copy = text ? strdup((char *)text) : NULL;
	xmlFree(text);
	if (!copy)
		cli_no_memory(cli);
	return copy;
}

static xmlNode *child(const xmlNode *node, const char *name, size_t len)
{
	xmlNode *at;

	for (at = node->children; at; at = at->next)
		if (at->type == XML_ELEMENT_NODE && strlen((const char *)at->name) == len &&
		    !memcmp(at->name, name, len))
			return at;
	return NULL;
}

char *domain_xml_value(xmlDoc *doc, const char *path)
{
	const xmlNode *at = xmlDocGetRootElement(doc);
	xmlChar *text;
	char *copy;

	while (at && *path) {
		size_t len = strcspn(path, "/");

		at = child(at, path, len);
		path += len + (path[len] == '/');
	}
	text = at ? xmlNodeGetContent(at) : NULL;
	copy = text ? strdup((char *)text) : NULL;
	xmlFree(text);
	return copy;
}

/* ---- @NAME@ ---- */

#define UPPER	   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME_CHARS UPPER "0123456789_"

struct filler {
	const struct cli *cli;
	const char *path, *name;
	char missing[256]; /* " @A@ @B@" */
};

/* A placeholder at @s (on '@'): the length of its name, and where it ends; 0: none. */
static size_t placeholder(const char *s, const char **fallback, const char **end)
{
	size_t len = strspn(s + 1, UPPER) ? strspn(s + 1, NAME_CHARS) : 0;

	*fallback = NULL;
	*end = s + 1 + len;
	if (len && **end == '=') {
		*fallback = *end + 1;
		*end = strchr(*end, '@');
	}
	return *end && **end == '@' ? len : 0;
}

/* The value of --set; one for the domain overrides others, a later one earlier ones. Marks all as
 * used. */
static const char *value_of(const struct filler *f, const char *name, size_t len)
{
	struct domain_options *o = f->cli->data;
	const char *general = NULL, *own = NULL;
	size_t i, who = strlen(f->name);

	for (i = 0; i < o->set.count; i++) {
		const char *s = o->set.s[i];

		if (!strncmp(s, name, len) && s[len] == '=')
			general = s + len + 1;
		else if (!strncmp(s, f->name, who) && s[who] == ':' &&
			 !strncmp(s + who + 1, name, len) && s[who + 1 + len] == '=')
			own = s + who + 1 + len + 1;
		else
			continue;
		o->set_used[i] = true;
	}
	if (!own && !general && len == 4 && !memcmp(name, "NAME", 4))
		return f->name;
	return own ? own : general;
}

static void note_missing(struct filler *f, const char *name, size_t len)
{
	char word[64];
	size_t used = strlen(f->missing);

	snprintf(word, sizeof(word), " @%.*s@", (int)len, name);
	if (!strstr(f->missing, word))
		snprintf(f->missing + used, sizeof(f->missing) - used, "%s", word);
}

static int fill_text(struct filler *f, xmlNode *node)
{
	const char *s = (const char *)node->content, *end, *fallback;
	size_t size, len;
	char *text = NULL;
	FILE *out;

	if (!s || !strchr(s, '@'))
		return CLI_OK;
	out = open_memstream(&text, &size);
	if (!out)
		return cli_no_memory(f->cli);
	for (; *s; s++) {
		const char *value;

		len = *s == '@' ? placeholder(s, &fallback, &end) : 0;
		if (!len) {
			fputc(*s, out);
			continue;
		}
		value = value_of(f, s + 1, len);
		if (!value && !fallback && len == 4 && !memcmp(s + 1, "QEMU", 4))
			value = domain_qemu_path(f->cli);
		if (value)
			fputs(value, out);
		else if (fallback)
			fprintf(out, "%.*s", (int)(end - fallback), fallback);
		else
			note_missing(f, s + 1, len);
		s = end;
	}
	if (fclose(out) || !text) {
		free(text);
		return cli_no_memory(f->cli);
	}
	xmlNodeSetContent(node, BAD_CAST text);
	free(text);
	return CLI_OK;
}

/* All text below @node and in its attributes. libxml2 bounds the depth of a document. */
static int fill_node(struct filler *f, xmlNode *node)
{
	int code = CLI_OK;
	xmlNode *at;
	xmlAttr *attr;

	if (node->type == XML_TEXT_NODE || node->type == XML_CDATA_SECTION_NODE)
		return fill_text(f, node);
	if (node->type != XML_ELEMENT_NODE)
		return CLI_OK;
	for (attr = node->properties; attr && !code; attr = attr->next)
		for (at = attr->children; at && !code; at = at->next)
			code = at->type == XML_TEXT_NODE ? fill_text(f, at) : CLI_OK;
	for (at = node->children; at && !code; at = at->next)
		code = fill_node(f, at);
	return code;
}

int domain_xml_fill(const struct cli *cli, xmlDoc *doc, const char *path, const char *name)
{
	struct filler f = { .cli = cli, .path = path, .name = name };
	int code = fill_node(&f, xmlDocGetRootElement(doc));

	if (code || !f.missing[0])
		return code;
	cli_error(cli, "%s: no value for%s", path, f.missing);
	fprintf(stderr, "  give one with --set NAME=VALUE\n");
	if (strstr(f.missing, " @QEMU@"))
		fprintf(stderr, "  vmpt domain qemu prints one that fits the plugin\n");
	return CLI_FAILED;
}

int domain_xml_unused(const struct cli *cli)
{
	const struct domain_options *o = cli->data;
	int code = CLI_OK;
	size_t i;

	for (i = 0; i < o->set.count; i++) {
		int len = (int)strcspn(o->set.s[i], "=");
		const char *colon = memrchr(o->set.s[i], ':', (size_t)len);
		const char *name = colon ? colon + 1 : o->set.s[i];

		if (o->set_used[i])
			continue;
		cli_error(cli, "--set %.*s: no such placeholder", len, o->set.s[i]);
		if (colon)
			fprintf(stderr, "  no file of a domain %.*s has @%.*s@\n",
				(int)(colon - o->set.s[i]), o->set.s[i],
				(int)(o->set.s[i] + len - name), name);
		else
			fprintf(stderr, "  no file given has @%.*s@\n", len, name);
		code = CLI_FAILED;
	}
	return code;
}
