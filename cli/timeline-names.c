// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Whose a VMCS is: lines of a side record (vmm-lib's vmpt_record_print(), vms.jsonl of the QEMU
 * plugin, vmpt record). A page of a VMCS is freed and used again: a name holds from its "since" on
 * until another line names the same VMCS.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/timeline-own.h"

#define NAMES_MAX 1000000

u64 timeline_seed(void)
{
	u64 seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (u64)time(NULL);
	return seed;
}

/* ---- the side record ---- */

static int bad_line(const struct cli *cli, u32 line, const char *what)
{
	cli_error(cli, "%s: line %u: %s", cli->side_record, line, what);
	return CLI_FAILED;
}

/* "0x…" or a number of 0 or more. */
static bool take_u64(json_t *v, u64 *value)
{
	const char *s = json_string_value(v);
	char *end;

	if (json_is_integer(v) && json_integer_value(v) >= 0) {
		*value = (u64)json_integer_value(v);
		return true;
	}
	if (!s || s[0] != '0' || s[1] != 'x' || !s[2] ||
	    s[2 + strspn(s + 2, "0123456789abcdefABCDEF")])
		return false;
	errno = 0;
	*value = strtoull(s, &end, 16);
	return !errno;
}

static int add(struct cli *cli, struct timeline_names *names, const struct timeline_name *name)
{
	size_t room = names->room ? 2 * names->room : 16;
	struct timeline_name *more;

	if (names->count == names->room) {
		more = realloc(names->name, room * sizeof(*more));
		if (!more)
			return cli_no_memory(cli);
		names->name = more;
		names->room = room;
	}
	names->name[names->count++] = *name;
	return CLI_OK;
}

static int take_line(struct cli *cli, struct timeline_names *names, json_t *o, u32 line)
{
	json_t *vmcs = json_object_get(o, "vmcs"), *vcpu = json_object_get(o, "vcpu");
	json_t *since = json_object_get(o, "since");
	const char *vm = json_string_value(json_object_get(o, "vm"));
	struct timeline_name name = { .to = ~0ULL, .line = line, .vcpu = TIMELINE_NONE };
	u64 number = TIMELINE_NONE;
	char buf[CLI_WHO];

	if (json_object_get(o, "rtit"))
		return bad_line(cli, line, "this is a side record of an RTIT trace");
	/* Lines of other things may be there. */
	if (!vmcs || !vm)
		return CLI_OK;
	if (!take_u64(vmcs, &name.vmcs))
		return bad_line(cli, line, "\"vmcs\" is not a number, like \"0x1f000\"");
	if (vcpu && (!take_u64(vcpu, &number) || number >= TIMELINE_NONE))
		return bad_line(cli, line, "\"vcpu\" is not a number of 32 bits");
	if (since && !take_u64(since, &name.from))
		return bad_line(cli, line, "\"since\" is not a number, like \"0x1f000\"");
	if (!vm[0])
		return bad_line(cli, line, "\"vm\" is an empty name");
	name.vcpu = (u32)number;
	cli_safe_name(vm, buf);
	name.shown = strdup(buf);
	if (!name.shown)
		return cli_no_memory(cli);
	if (names->count == NAMES_MAX || add(cli, names, &name)) {
		free(name.shown);
		return names->count == NAMES_MAX ? bad_line(cli, line, "too many names")
						 : CLI_FAILED;
	}
	return CLI_OK;
}

static int read_lines(struct cli *cli, struct timeline_names *names, FILE *file)
{
	char *text = NULL;
	size_t room = 0;
	int code = CLI_OK;
	ssize_t n;
	u32 line = 0;

	while (!code && (n = getline(&text, &room, file)) > 0) {
		json_error_t error;
		json_t *o;

		line++;
		if (text[strspn(text, " \t\r\n")] == '\0')
			continue;
		o = json_loadb(text, (size_t)n, 0, &error);
		if (!json_is_object(o))
			code = bad_line(cli, line, o ? "no JSON object" : error.text);
		else
			code = take_line(cli, names, o, line);
		json_decref(o);
	}
	if (!code && ferror(file)) {
		cli_error(cli, "%s: %s", cli->side_record, strerror(errno));
		code = CLI_FAILED;
	}
	free(text);
	return code;
}

static int by_vmcs(const void *a, const void *b)
{
	const struct timeline_name *x = a, *y = b;

	if (x->vmcs != y->vmcs)
		return x->vmcs < y->vmcs ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static bool same_name(const struct timeline_name *a, const struct timeline_name *b)
{
	return a->vcpu == b->vcpu && !strcmp(a->shown, b->shown);
}

/* A name ends where the next one of its VMCS begins; of two from the same time the later line. */
static void set_ends(const struct cli *cli, struct timeline_names *names)
{
	size_t i, n = 0;

	if (names->count)
		qsort(names->name, names->count, sizeof(*names->name), by_vmcs);
	for (i = 0; i < names->count; i++) {
		struct timeline_name *name = &names->name[i],
				     *last = n ? &names->name[n - 1] : NULL;

		if (last && last->vmcs == name->vmcs && last->from == name->from) {
			if (!same_name(last, name))
				cli_warn(cli,
					 "%s: line %u and line %u name VMCS 0x%llx from the same "
					 "time on: the latter is taken",
					 cli->side_record, last->line, name->line,
					 (unsigned long long)name->vmcs);
			free(last->shown);
			*last = *name;
			continue;
		}
		if (last && last->vmcs == name->vmcs)
			last->to = name->from - 1;
		names->name[n++] = *name;
	}
	names->count = n;
	/* Before the first word of it the VMCS was already somebody's: the same one's. */
	for (i = 0; i < n; i++)
		if (!i || names->name[i - 1].vmcs != names->name[i].vmcs)
			names->name[i].from = 0;
}

int timeline_names_open(struct cli *cli, struct timeline_names *names)
{
	FILE *file;
	int code;

	memset(names, 0, sizeof(*names));
	if (!cli->side_record)
		return CLI_OK;
	file = fopen(cli->side_record, "re");
	if (!file) {
		cli_error(cli, "cannot open %s: %s", cli->side_record, strerror(errno));
		return CLI_FAILED;
	}
	code = read_lines(cli, names, file);
	fclose(file);
	if (!code)
		set_ends(cli, names);
	return code;
}

void timeline_names_close(struct timeline_names *names)
{
	size_t i;

	for (i = 0; i < names->count; i++)
		free(names->name[i].shown);
	free(names->name);
}

const struct timeline_name *timeline_names_find(struct timeline_names *names, u64 vmcs, u64 tsc,
						u64 *from, u64 *to)
{
	size_t low = 0, high = names->count;

	if (tsc == VMPT_TIME_NONE)
		tsc = 0;
	/* The last one that begins at or before it. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct timeline_name *n = &names->name[mid];

		if (n->vmcs < vmcs || (n->vmcs == vmcs && n->from <= tsc))
			low = mid + 1;
		else
			high = mid;
	}
	*from = 0;
	*to = ~0ULL;
	if (!low || names->name[low - 1].vmcs != vmcs)
		return NULL;
	names->name[low - 1].seen = true;
	*from = names->name[low - 1].from;
	*to = names->name[low - 1].to;
	return &names->name[low - 1];
}

void timeline_names_tell(const struct cli *cli, const struct timeline_names *names)
{
	const struct timeline_name *first = NULL;
	size_t i, unseen = 0;

	for (i = 0; i < names->count; i++) {
		if (names->name[i].seen)
			continue;
		unseen++;
		if (!first || names->name[i].line < first->line)
			first = &names->name[i];
	}
	/* VMs that did not run are no news; none at all that did is another recording's record. */
	if (first && unseen == names->count)
		cli_warn(cli,
			 "%s: none of its VMCSs ran in this trace: is it the same recording's?",
			 cli->side_record);
}
