// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt coverage --diff: blocks and functions of this run that another had not, and the other way
 * round. VMCSs, CR3s and addresses of two runs are not the same: a block is known by its file and
 * the offset in it, else by its address.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/coverage/coverage.h"
#include "util/array.h"

struct known {
	char *module, *function; /* NULL: not known; not safe */
	u64 at;			 /* in the module, else an address */
	u32 size;
	bool found; /* in this run */
};

/* Each block and each function once. */
struct knowns {
	struct known *item;
	size_t count;
	struct vmpt_hash of;
};

struct diff {
	struct cli *cli;
	struct knowns before, now; /* blocks */
};

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static u64 hash_of(const struct coverage *d, const struct known *k)
{
	u64 hash = vmpt_mix64(d->seed ^ k->at);

	return k->module ? vmpt_mix64(vmpt_fnv1a(hash, k->module, strlen(k->module))) : hash;
}

static struct known *find(const struct coverage *d, const struct knowns *all, const struct known *k)
{
	u32 n = vmpt_hash_find(&all->of, hash_of(d, k), i,
			       all->item[i].at == k->at && all->item[i].size == k->size &&
				       same_text(all->item[i].module, k->module));

	return n == VMPT_HASH_NONE ? NULL : &all->item[n];
}

static int add(struct cli *cli, struct knowns *all, const struct known *k)
{
	const struct coverage *d = cli->data;
	struct known *n;

	if (find(d, all, k))
		return CLI_OK;
	if (all->count >= VMPT_HASH_ENTRIES || vmpt_grow(&all->item, all->count) ||
	    vmpt_hash_add(&all->of, hash_of(d, k), (u32)all->count))
		return cli_no_memory(cli);
	n = &all->item[all->count++];
	*n = (struct known){ .at = k->at, .size = k->size };
	n->module = k->module ? strdup(k->module) : NULL;
	n->function = k->function ? strdup(k->function) : NULL;
	return (k->module && !n->module) || (k->function && !n->function) ? cli_no_memory(cli)
									  : CLI_OK;
}

static void drop(struct knowns *all)
{
	while (all->count) {
		free(all->item[--all->count].module);
		free(all->item[all->count].function);
	}
	free(all->item);
	vmpt_hash_free(&all->of);
}

/* ---- the other run ---- */

static int take_line(struct diff *f, struct json_line *line, const json_t *o)
{
	struct known k = {
		.module = (char *)json_string_value(json_object_get(o, "module")),
		.function = (char *)json_string_value(json_object_get(o, "function")),
	};
	u64 size;

	if (json_line_u64(line, o, k.module ? "module_offset" : "ip", ~0ULL, &k.at) ||
	    json_line_u64(line, o, "size", 0xffffffff, &size))
		return CLI_FAILED;
	k.size = (u32)size;
	return add(f->cli, &f->before, &k);
}

/* The head, blocks, the end. */
static int read_lines(struct diff *f, FILE *file, const char *path)
{
	struct json_line line = { .cli = f->cli, .file = path };
	char *text = malloc(JSON_LINE_ROOM);
	bool ended = false;
	int code = text ? CLI_OK : cli_no_memory(f->cli);
	size_t n;

	while (!code && (n = cli_getline(text, JSON_LINE_ROOM, file)) > 0) {
		json_t *o;

		line.number++;
		o = json_line_parse(&line, text, n);
		if (!o) {
			code = CLI_FAILED;
		} else if (line.number == 1) {
			if (!same_text(json_string_value(json_object_get(o, "command")),
				       "coverage"))
				code = json_line_bad(&line,
						     "is no list of vmpt coverage --blocks --json");
		} else if (json_object_get(o, "losses")) {
			ended = true;
		} else if (!json_object_get(o, "ip")) {
			code = json_line_bad(&line, "has no block: --diff needs --blocks --json");
		} else {
			code = take_line(f, &line, o);
		}
		json_decref(o);
	}
	free(text);
	if (!code && !ended)
		cli_warn(f->cli, "%s: is not whole: blocks of the other run may be missing", path);
	return code;
}

static int read_before(struct diff *f, const char *path)
{
	int code = cli_note_input(f->cli, path);
	FILE *file = code ? NULL : fopen(path, "re");

	if (code)
		return code;
	if (!file) {
		cli_error(f->cli, "cannot open %s: %s", path, strerror(errno));
		return CLI_FAILED;
	}
	code = read_lines(f, file, path);
	fclose(file);
	return code;
}

/* ---- this run ---- */

static int read_now(struct diff *f)
{
	struct coverage *d = f->cli->data;
	int code = CLI_OK;
	size_t i;

	for (i = 0; i < d->block_count && !code; i++) {
		const struct coverage_block *b = &d->block[i];
		const struct coverage_module *m = coverage_module_at(d, b->space, b->ip);
		struct known k = { .at = b->ip, .size = b->size }, *before;
		struct names_found found;

		if (!m)
			return cli_no_memory(f->cli);
		if (m->space == COVERAGE_NONE) {
			k.module = m->name;
			k.at = b->ip - m->base;
		}
		if (code_names_find(f->cli, &d->t.names, coverage_names(d, b->space), b->ip,
				    &found))
			k.function = (char *)found.name;
		before = find(d, &f->before, &k);
		if (before)
			before->found = true;
		else
			code = add(f->cli, &f->now, &k);
	}
	return code;
}

/* ---- functions ---- */

/* Blocks of a function: of this run only, of the other only, of both. */
struct change {
	const char *module, *function;
	u64 fresh, gone, same;
};

struct changes {
	struct change *item;
	size_t count;
	struct vmpt_hash of;
};

static struct change *change_of(const struct coverage *d, struct changes *all,
				const struct known *k)
{
	u64 hash = vmpt_fnv1a(d->seed, k->function, strlen(k->function));
	u32 n;

	if (k->module)
		hash = vmpt_fnv1a(hash, k->module, strlen(k->module));
	hash = vmpt_mix64(hash);
	n = vmpt_hash_find(&all->of, hash, i,
			   same_text(all->item[i].function, k->function) &&
				   same_text(all->item[i].module, k->module));
	if (n != VMPT_HASH_NONE)
		return &all->item[n];
	if (all->count >= VMPT_HASH_ENTRIES || vmpt_grow(&all->item, all->count) ||
	    vmpt_hash_add(&all->of, hash, (u32)all->count))
		return NULL;
	all->item[all->count] = (struct change){ .module = k->module, .function = k->function };
	return &all->item[all->count++];
}

static int count_changes(const struct diff *f, struct changes *all)
{
	const struct coverage *d = f->cli->data;
	struct change *c;
	size_t i;

	for (i = 0; i < f->now.count + f->before.count; i++) {
		const bool fresh = i < f->now.count;
		const struct known *k = fresh ? &f->now.item[i] : &f->before.item[i - f->now.count];

		if (!k->function)
			continue;
		c = change_of(d, all, k);
		if (!c)
			return cli_no_memory(f->cli);
		if (fresh)
			c->fresh++;
		else if (k->found)
			c->same++;
		else
			c->gone++;
	}
	return CLI_OK;
}

/* ---- output ---- */

static int by_place(const void *x, const void *y)
{
	const struct known *a = x, *b = y;
	int order = strcmp(a->module ? a->module : "", b->module ? b->module : "");

	if (order)
		return order;
	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->size < b->size ? -1 : a->size > b->size;
}

static int by_name(const void *x, const void *y)
{
	const struct change *a = x, *b = y;
	int order = strcmp(a->module ? a->module : "", b->module ? b->module : "");

	return order ? order : strcmp(a->function, b->function);
}

static void put_block(struct cli *cli, const char *change, const struct known *k)
{
	char module[CLI_WHO] = "–", function[CLI_WHO] = "?";
	json_t *o;

	if (!cli->json) {
		if (k->module)
			cli_safe_name(k->module, module);
		if (k->function)
			cli_safe_name(k->function, function);
		cli_print("%-7s  %16llx  %5u  %-24s  %s\n", change, (unsigned long long)k->at,
			  k->size, module, function);
		return;
	}
	o = json_object();
	cli_json_string(cli, o, "change", change);
	if (k->module)
		cli_json_string(cli, o, "module", k->module);
	cli_json_hex(cli, o, k->module ? "module_offset" : "ip", k->at);
	cli_json_number(cli, o, "size", k->size);
	if (k->function)
		cli_json_string(cli, o, "function", k->function);
	cli_json_print(cli, o, stdout, true);
}

static void put_blocks(struct cli *cli, struct knowns *all, const char *change)
{
	size_t i;

	if (all->count)
		qsort(all->item, all->count, sizeof(*all->item), by_place);
	for (i = 0; i < all->count && !cli_output_failed(cli); i++)
		if (!all->item[i].found)
			put_block(cli, change, &all->item[i]);
}

static void put_change(struct cli *cli, const struct change *c)
{
	const char *word = !c->gone && !c->same	   ? "new"
			   : !c->fresh && !c->same ? "gone"
						   : "changed";
	char module[CLI_WHO] = "–", function[CLI_WHO];
	json_t *o;

	if (!cli->json) {
		if (c->module)
			cli_safe_name(c->module, module);
		cli_safe_name(c->function, function);
		cli_print("%-7s  %6llu  %6llu  %6llu  %-24s  %s\n", word,
			  (unsigned long long)c->fresh, (unsigned long long)c->gone,
			  (unsigned long long)c->same, module, function);
		return;
	}
	o = json_object();
	cli_json_string(cli, o, "change", word);
	if (c->module)
		cli_json_string(cli, o, "module", c->module);
	cli_json_string(cli, o, "function", c->function);
	cli_json_number(cli, o, "new", c->fresh);
	cli_json_number(cli, o, "gone", c->gone);
	cli_json_number(cli, o, "same", c->same);
	cli_json_print(cli, o, stdout, true);
}

static void put_changes(struct cli *cli, struct changes *all)
{
	size_t i;

	if (all->count)
		qsort(all->item, all->count, sizeof(*all->item), by_name);
	if (!cli->json && all->count)
		printf("\nCHANGE      NEW    GONE    SAME  %-24s  FUNCTION\n", "MODULE");
	for (i = 0; i < all->count && !cli_output_failed(cli); i++)
		if (all->item[i].fresh || all->item[i].gone)
			put_change(cli, &all->item[i]);
}

static void put_sums(const struct diff *f)
{
	u64 same = 0;
	char fresh[32], gone[32], both[32];
	size_t i;

	for (i = 0; i < f->before.count; i++)
		same += f->before.item[i].found;
	printf("blocks: %s new, %s gone, %s as before\n", cli_number(f->now.count, fresh),
	       cli_number(f->before.count - same, gone), cli_number(same, both));
	if (f->now.count + f->before.count > same)
		printf("\n%-7s  %16s  %5s  %-24s  FUNCTION\n", "CHANGE", "IP OR OFFSET", "SIZE",
		       "MODULE");
}

static void put_all(struct diff *f, struct changes *changes)
{
	struct cli *cli = f->cli;
	json_t *end;

	if (cli->json)
		cli_json_print(cli, cli_json_document(cli), stdout, true);
	else
		put_sums(f);
	put_blocks(cli, &f->now, "new");
	put_blocks(cli, &f->before, "gone");
	put_changes(cli, changes);
	if (!cli->json)
		return;
	end = json_object();
	cli_json_end(cli, end);
	cli_json_print(cli, end, stdout, true);
}

int coverage_diff(struct cli *cli)
{
	const struct coverage *d = cli->data;
	struct diff f = { .cli = cli };
	struct changes changes = { 0 };
	int code = read_before(&f, d->diff);

	if (!code)
		code = read_now(&f);
	if (!code)
		code = count_changes(&f, &changes);
	if (!code)
		put_all(&f, &changes);
	free(changes.item);
	vmpt_hash_free(&changes.of);
	drop(&f.before);
	drop(&f.now);
	return code;
}
