// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt guest --json: one object of the list "guests". */
#include "cli/guest/guest.h"

static void set_id(struct cli *cli, json_t *o, const u8 *id, size_t size)
{
	char text[2 * 64 + 1];

	guest_hex(id, size, text);
	if (*text)
		cli_json_string(cli, o, "build_id", text);
}

static void set_kernel(struct cli *cli, const struct guest_one *one, json_t *o)
{
	const struct vmpt_guest_kernel *k = &one->kernel;
	json_t *missing = json_array();
	const char *key;
	unsigned int i;

	cli_json_string(cli, o, "release", k->release);
	if (k->banner)
		cli_json_string(cli, o, "banner", k->banner);
	set_id(cli, o, k->build_id, k->build_id_size);
	if (k->end) {
		cli_json_hex(cli, o, "start", k->start);
		cli_json_hex(cli, o, "end", k->end);
	}
	cli_json_hex(cli, o, "kaslr_offset", k->offset);
	cli_json_hex(cli, o, "cr3", k->cr3);
	cli_json_number(cli, o, "symbol_count", k->symbols);
	for (i = 0; guest_lack(k->lacks, i, &key); i++)
		cli_json_add(cli, missing, json_string(key));
	cli_json_set(cli, o, "missing", missing);
}

static json_t *map_object(struct cli *cli, const struct vmpt_guest_map *m)
{
	json_t *o = json_object();
	const char rights[] = { m->read ? 'r' : '-', m->write ? 'w' : '-', m->exec ? 'x' : '-',
				m->shared ? 's' : 'p', '\0' };

	cli_json_hex(cli, o, "start", m->start);
	cli_json_hex(cli, o, "end", m->end);
	cli_json_string(cli, o, "rights", rights);
	cli_json_number(cli, o, "offset", m->offset);
	if (m->file)
		cli_json_string(cli, o, "file", m->file);
	set_id(cli, o, m->build_id, m->build_id_size);
	return o;
}

/* Of a process, with its first thread. */
static int set_maps(struct cli *cli, const struct guest_one *one, const struct vmpt_guest_task *t,
		    json_t *o)
{
	json_t *maps = json_array();
	const struct vmpt_guest_map *map;
	size_t n, i;
	bool cut;

	cli_json_set(cli, o, "maps", maps);
	if (vmpt_guest_maps(one->guest, t, &map, &n, &cut))
		return cli_no_memory(cli);
	for (i = 0; i < n; i++)
		cli_json_add(cli, maps, map_object(cli, &map[i]));
	cli_json_set(cli, o, "maps_cut", json_boolean(cut));
	return CLI_OK;
}

static json_t *task_object(struct cli *cli, const struct vmpt_guest_task *t)
{
	json_t *o = json_object();

	cli_json_number(cli, o, "pid", t->pid);
	cli_json_number(cli, o, "tgid", t->tgid);
	cli_json_number(cli, o, "parent", t->parent);
	cli_json_string(cli, o, "comm", t->comm);
	cli_json_set(cli, o, "kernel", json_boolean(t->kernel));
	if (t->cr3)
		cli_json_hex(cli, o, "cr3", t->cr3);
	else
		cli_json_set(cli, o, "cr3", json_null());
	cli_json_number(cli, o, "start_ns", t->start);
	if (t->program)
		cli_json_string(cli, o, "program", t->program);
	return o;
}

static int set_tasks(struct cli *cli, const struct guest_one *one, json_t *o)
{
	const struct guest_options *options = &((const struct guest *)cli->data)->o;
	const struct vmpt_guest_task *t, *last = NULL;
	json_t *tasks = json_array();
	int code = CLI_OK;
	u32 i;

	cli_json_set(cli, o, "tasks", tasks);
	for (i = 0; !code && (t = vmpt_guest_task(one->guest, i)) != NULL; i++) {
		json_t *task;

		if (!guest_wanted(options, t))
			continue;
		task = task_object(cli, t);
		if (options->maps && t->mm && (!last || last->tgid != t->tgid))
			code = set_maps(cli, one, t, task);
		cli_json_add(cli, tasks, task);
		last = t;
	}
	return code;
}

static void set_modules(struct cli *cli, const struct guest_one *one, json_t *o)
{
	const struct vmpt_guest_module *m;
	json_t *modules = json_array();
	u32 i;

	for (i = 0; (m = vmpt_guest_module(one->guest, i)) != NULL; i++) {
		json_t *module = json_object();

		cli_json_string(cli, module, "name", m->name);
		cli_json_hex(cli, module, "text", m->text);
		cli_json_number(cli, module, "text_size", m->text_size);
		cli_json_number(cli, module, "size", m->size);
		set_id(cli, module, m->build_id, m->build_id_size);
		cli_json_add(cli, modules, module);
	}
	cli_json_set(cli, o, "modules", modules);
}

static void set_symbols(struct cli *cli, const struct guest_one *one, json_t *o)
{
	json_t *symbols = json_array();
	struct vmpt_guest_symbol s;
	u32 i;

	for (i = 0; vmpt_guest_symbol(one->guest, i, &s); i++) {
		const char type[] = { s.type > ' ' && s.type < 0x7f ? s.type : '?', '\0' };
		json_t *symbol = json_object();

		cli_json_hex(cli, symbol, "address", s.address);
		cli_json_string(cli, symbol, "type", type);
		cli_json_string(cli, symbol, "name", s.name);
		if (s.module)
			cli_json_string(cli, symbol, "module", s.module);
		cli_json_add(cli, symbols, symbol);
	}
	cli_json_set(cli, o, "symbols", symbols);
}

int guest_json(struct cli *cli, const struct guest_one *one, json_t *o)
{
	cli_json_string(cli, o, "file", one->given->path);
	if (one->given->vm)
		cli_json_string(cli, o, "vm", one->given->vm);
	set_kernel(cli, one, o);
	set_modules(cli, one, o);
	if (((const struct guest *)cli->data)->o.symbols)
		set_symbols(cli, one, o);
	return set_tasks(cli, one, o);
}
