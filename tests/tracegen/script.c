// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The script language: one event per line, "#" comments, blocks in braces. Lines
 * become a tree of nodes; the events parse their words. An unparsed word is an
 * error, so that a typo cannot hide.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/tracegen/internal.h"

/* Cut a line into words in place. */
static bool split_words(struct tracegen *g, struct tg_node *n, char *s)
{
	for (;;) {
		s += strspn(s, " \t\r");
		if (!*s)
			return true;
		if (n->argc == TG_ARGS) {
			tg_fail(g, "more than %d words", TG_ARGS);
			return false;
		}
		n->argv[n->argc++] = s;
		s += strcspn(s, " \t\r");
		if (!*s)
			return true;
		*s++ = '\0';
	}
}

struct parser {
	struct tracegen *g;
	char *at;
	int line, depth;
};

#define DEPTH_MAX 32

/* The next line without its comment, or NULL at the end. */
static char *next_line(struct parser *p)
{
	char *s = p->at, *end;

	if (!*s)
		return NULL;
	p->line++;
	end = s + strcspn(s, "\n");
	p->at = *end ? end + 1 : end;
	*end = '\0';
	s[strcspn(s, "#")] = '\0';
	return s;
}

static struct tg_node *parse_block(struct parser *p, int open_line);

static struct tg_node *parse_line(struct parser *p, char *s)
{
	struct tg_node *n = calloc(1, sizeof(*n));

	if (!n) {
		tg_fail(p->g, "out of memory");
		return NULL;
	}
	n->line = p->line;
	p->g->node = n;
	if (!split_words(p->g, n, s))
		return n;
	if (n->argc && !strcmp(n->argv[n->argc - 1], "{")) {
		n->argc--;
		n->block = true;
		if (!n->argc)
			tg_fail(p->g, "a block needs a word before its brace");
		else
			n->child = parse_block(p, p->line);
	}
	return n;
}

static struct tg_node *parse_block(struct parser *p, int open_line)
{
	struct tg_node *first = NULL, **link = &first, *n, here = { 0 };
	char *s;

	if (++p->depth > DEPTH_MAX)
		tg_fail(p->g, "blocks nest deeper than %d", DEPTH_MAX);
	while (!p->g->failed && (s = next_line(p))) {
		s += strspn(s, " \t\r");
		if (!*s)
			continue;
		here.line = p->line;
		p->g->node = &here;
		if (*s == '}') {
			if (s[1 + strspn(s + 1, " \t\r")])
				tg_fail(p->g, "words after a closing brace");
			else if (!open_line)
				tg_fail(p->g, "one closing brace too many");
			p->depth--;
			p->g->node = NULL;
			return first;
		}
		n = parse_line(p, s);
		if (!n)
			break;
		*link = n;
		link = &n->next;
	}
	if (open_line && !p->g->failed) {
		here.line = open_line;
		p->g->node = &here;
		tg_fail(p->g, "this block is not closed");
	}
	p->g->node = NULL;
	p->depth--;
	return first;
}

struct tg_node *tg_parse(struct tracegen *g, char *text)
{
	struct parser p = { .g = g, .at = text };

	return parse_block(&p, 0);
}

void tg_script_free(struct tg_node *node)
{
	while (node) {
		struct tg_node *next = node->next;

		tg_script_free(node->child);
		free(node);
		node = next;
	}
}

bool tg_number(const char *word, u64 *v)
{
	bool negative = *word == '-';
	char *end;

	word += negative;
	if (*word < '0' || *word > '9')
		return false;
	errno = 0;
	*v = strtoull(word, &end, 0);
	if (errno)
		return false;
	if (*end == 'K')
		*v <<= 10, end++;
	else if (*end == 'M')
		*v <<= 20, end++;
	if (negative)
		*v = 0 - *v;
	return !*end;
}

bool tg_key(struct tracegen *g, struct tg_node *n, const char *name, u64 *v)
{
	size_t len = strlen(name);
	int i;

	for (i = 1; i < n->argc; i++) {
		if (strncmp(n->argv[i], name, len) || n->argv[i][len] != '=')
			continue;
		n->used |= 1u << i;
		if (!tg_number(n->argv[i] + len + 1, v))
			tg_fail(g, "\"%s\": not a number", n->argv[i]);
		return true;
	}
	return false;
}

bool tg_word(struct tg_node *n, const char *word)
{
	int i;

	for (i = 1; i < n->argc; i++)
		if (!strcmp(n->argv[i], word)) {
			n->used |= 1u << i;
			return true;
		}
	return false;
}

const char *tg_next(struct tg_node *n)
{
	int i;

	for (i = 1; i < n->argc; i++)
		if (!(n->used & 1u << i) && !strchr(n->argv[i], '=')) {
			n->used |= 1u << i;
			return n->argv[i];
		}
	return NULL;
}

u64 tg_next_number(struct tracegen *g, struct tg_node *n, u64 otherwise)
{
	const char *word = tg_next(n);
	u64 v = otherwise;

	if (word && !tg_number(word, &v))
		tg_fail(g, "\"%s\": not a number", word);
	return v;
}
