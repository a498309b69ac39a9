// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lines as /proc/kallsyms has them, "ffffffff81000000 T name\t[module]", of functions only, and
 * "ffffffff82000000 A end" where none follows.
 */
#include "cli/symbols/tasks-symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/array.h"
#include "util/search.h"

#define BYTES_MAX (256LL << 20)

/* One line, without its end. -VMPT_E_NOMEM. */
static int take(struct tasks_symbols *s, char *line)
{
	char *end, *module;
	struct vmpt_guest_symbol one = { .address = strtoull(line, &end, 16) };

	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ' || !end[3])
		return 0;
	one.type = end[1];
	one.name = end + 3;
	module = strchr(end + 3, '\t');
	if (module && module[1] == '[') {
		*module = '\0';
		module[1 + strcspn(module + 1, "]")] = '\0';
		one.module = module + 2;
	}
	if (one.type == 'A')
		one.name = NULL;
	if (one.type == 'A' && strcmp(end + 3, "end") != 0)
		return 0;
	if (vmpt_grow(&s->symbol, s->count))
		return -VMPT_E_NOMEM;
	s->symbol[s->count++] = one;
	return 0;
}

static int by_address(const void *x, const void *y)
{
	const struct vmpt_guest_symbol *a = x, *b = y;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	/* As in the file, whose memory the names are in; an end comes first. */
	return a->name < b->name ? -1 : a->name > b->name;
}

int tasks_symbols_read(struct cli *cli, struct tasks_symbols *s, const char *path, FILE *f)
{
	struct stat st;
	char *line, *next;
	size_t n;

	if (fstat(fileno(f), &st) || st.st_size > BYTES_MAX) {
		cli_warn(cli, "%s: larger than 256 MiB: it is not used", path);
		return CLI_OK;
	}
	s->text = malloc((size_t)st.st_size + 1);
	if (!s->text)
		return cli_no_memory(cli);
	n = fread(s->text, 1, (size_t)st.st_size, f);
	s->text[n] = '\0';
	for (line = s->text; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (take(s, line))
			return cli_no_memory(cli);
	}
	if (s->count)
		qsort(s->symbol, s->count, sizeof(*s->symbol), by_address);
	return CLI_OK;
}

void tasks_symbols_free(struct tasks_symbols *s)
{
	free(s->symbol);
	free(s->text);
}

bool tasks_symbols_find(const struct tasks_symbols *s, u64 ip, struct vmpt_guest_symbol *symbol)
{
	size_t i = vmpt_search(k, 0, s->count, s->symbol[k].address <= ip);

	if (!i)
		return false;
	/* Of several at one address the first, as in an image. */
	while (i > 1 && s->symbol[i - 2].address == s->symbol[i - 1].address &&
	       s->symbol[i - 2].name)
		i--;
	*symbol = s->symbol[i - 1];
	return symbol->name != NULL;
}
