// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Which process had a CR3, by the lists of a recording; see tasks.h. */
#include "cli/symbols/tasks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/symbols/tasks-read.h"
#include "util/array.h"

#define KPTI_USER 0x1000ULL
/* A process may run that much before its first line, in ticks: 10 ms, the longest run. */
#define BEFORE 10000000ULL

struct code_tasks {
	struct tasks_machine *machine;
	size_t machines;
};

/* ---- files ---- */

/* A file that the recording lists; NULL: it cannot be used. @path is free()d by the caller. */
static FILE *open_file(struct cli *cli, const json_t *o, const char *key, bool warn, char **path)
{
	const char *name = json_string_value(json_object_get(o, key));
	struct stat st;
	FILE *f = NULL;

	*path = NULL;
	if (!name || !*name || strchr(name, '/') ||
	    asprintf(path, "%s/%s", cli->folder->path, name) < 0) {
		cli_warn(cli, "%s: \"tasks\" has no name of a file in its folder: it is not used",
			 cli->folder->head);
		return NULL;
	}
	if (!lstat(*path, &st) && S_ISREG(st.st_mode) && !cli_note_input(cli, *path))
		f = fopen(*path, "re");
	if (!f && warn)
		cli_warn(cli, "%s: is missing or cannot be read, but " CLI_FOLDER_HEAD " lists it",
			 *path);
	return f;
}

static int add_machine(struct cli *cli, struct code_tasks *t, const json_t *o)
{
	const char *vm = json_string_value(json_object_get(o, "vm"));
	struct tasks_machine *m;
	int code = CLI_OK;
	char *path;
	FILE *f;

	if (!vm || vmpt_grow(&t->machine, t->machines))
		return vm ? cli_no_memory(cli) : CLI_OK;
	m = &t->machine[t->machines++];
	*m = (struct tasks_machine){ .vm = strdup(vm) };
	if (!m->vm)
		return cli_no_memory(cli);
	f = open_file(cli, o, "file", true, &path);
	if (f) {
		code = tasks_read(cli, m, path, f);
		fclose(f);
	}
	free(path);
	if (code)
		return code;
	/* There are none if no kernel was found. */
	f = open_file(cli, o, "symbols", false, &path);
	if (f) {
		code = tasks_symbols_read(cli, &m->symbols, path, f);
		fclose(f);
	}
	free(path);
	return code;
}

int code_tasks_open(struct cli *cli, struct code_tasks **tasks)
{
	const json_t *list = cli->folder ? json_object_get(cli->folder->doc, "tasks") : NULL;
	size_t i, n = json_array_size(list);
	int code = CLI_OK;

	*tasks = NULL;
	if (!n)
		return CLI_OK;
	*tasks = calloc(1, sizeof(**tasks));
	if (!*tasks)
		return cli_no_memory(cli);
	for (i = 0; i < n && !code; i++)
		code = add_machine(cli, *tasks, json_array_get(list, i));
	return code;
}

void code_tasks_close(struct code_tasks *t)
{
	while (t && t->machines) {
		struct tasks_machine *m = &t->machine[--t->machines];

		while (m->processes)
			free(m->process[--m->processes].map);
		while (m->texts)
			free(m->text[--m->texts]);
		while (m->ids)
			free(m->id[--m->ids]);
		vmpt_hash_free(&m->by_text);
		free(m->id);
		tasks_symbols_free(&m->symbols);
		free(m->process);
		free(m->text);
		free(m->state);
		free(m->reset);
		free(m->vm);
	}
	if (t)
		free(t->machine);
	free(t);
}

/* ---- lookups ---- */

static const struct tasks_machine *machine_of(const struct code_tasks *t, const char *vm)
{
	size_t i;

	for (i = 0; t && vm && i < t->machines; i++)
		if (!strcmp(t->machine[i].vm, vm))
			return &t->machine[i];
	return NULL;
}

static void find(const struct tasks_machine *m, u64 cr3, u64 tsc, struct code_tasks_found *found)
{
	size_t at = tasks_state_at(m, cr3, tsc), next;
	const struct tasks_state *s;

	*found = (struct code_tasks_found){ .to = ~0ULL };
	next = at ? at : vmpt_search(k, 0, m->states, m->state[k].cr3 < cr3);
	if (next < m->states && m->state[next].cr3 == cr3) {
		found->to = m->state[next].tsc;
		/* The first one, which may have run before it was looked at. */
		if (!at && found->to - tsc <= BEFORE)
			at = next + 1;
		else if (!at)
			found->to -= BEFORE;
	}
	if (!at)
		return;
	s = &m->state[at - 1];
	found->from = s->tsc < tsc ? s->tsc : tsc;
	if (s->tsc <= tsc && tasks_reset_before(m, s->tsc) != tasks_reset_before(m, tsc)) {
		found->from = tasks_reset_before(m, tsc);
		return;
	}
	found->task = &s->task;
	found->map = m->process[s->process].map;
	found->maps = m->process[s->process].count;
}

bool code_tasks_find(const struct code_tasks *t, const char *vm, u64 cr3, u64 tsc,
		     struct code_tasks_found *found)
{
	const struct tasks_machine *m = machine_of(t, vm);
	struct code_tasks_found other;

	if (!m)
		return false;
	cr3 &= TASKS_CR3;
	find(m, cr3, tsc, found);
	/* The same process in its own code, with page table isolation. */
	if (found->task || !(cr3 & KPTI_USER))
		return true;
	find(m, cr3 & ~KPTI_USER, tsc, &other);
	other.from = other.from > found->from ? other.from : found->from;
	other.to = other.to < found->to ? other.to : found->to;
	*found = other;
	return true;
}

bool code_tasks_symbol(const struct code_tasks *t, const char *vm, u64 ip,
		       struct vmpt_guest_symbol *symbol)
{
	const struct tasks_machine *m = machine_of(t, vm);

	return m && tasks_symbols_find(&m->symbols, ip, symbol);
}
