// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The owner of a VMCS: by the side record (cli/sideinfo/clock-open.h), else by the trace's events
 * and the record of vmpt record (cli/sideinfo/recording.h). A VMCS's page may be freed and reused,
 * so a name is valid for an interval of time.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/timeline/internal.h"
#include "util/array.h"
#include "util/search.h"

u64 timeline_seed(void)
{
	u64 seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (u64)time(NULL);
	return seed;
}

static int add(struct cli *cli, struct timeline_names *names, const char *vm,
	       const struct timeline_name *name)
{
	struct timeline_name *more;
	char buf[CLI_WHO];

	if (vmpt_grow(&names->name, names->count))
		return cli_no_memory(cli);
	cli_safe_name(vm, buf);
	more = &names->name[names->count];
	*more = *name;
	more->vm = strdup(vm);
	more->shown = strdup(buf);
	names->count++;
	if (!more->vm || !more->shown)
		return cli_no_memory(cli);
	return CLI_OK;
}

/* ---- the side record ---- */

static bool same_name(const struct cli_clock_vcpu *a, const struct cli_clock_vcpu *b)
{
	return a->vcpu == b->vcpu && !strcmp(a->vm, b->vm);
}

/*
 * A name ends where the next one of its VMCS begins; the first one also applies before its record.
 * Of two from the same time the last is used.
 */
static int add_record(struct cli *cli, struct timeline_names *names, const struct cli_clocks *c)
{
	int code = CLI_OK;
	size_t i;

	for (i = 0; i < c->vcpus && !code; i++) {
		const struct cli_clock_vcpu *v = &c->vcpu[i], *next = v + 1;
		struct timeline_name name = { .vmcs = v->vmcs, .to = ~0ULL, .vcpu = v->vcpu };
		bool more = i + 1 < c->vcpus && next->vmcs == v->vmcs;

		if (more && next->since == v->since) {
			if (!same_name(v, next))
				cli_warn(cli,
					 "%s: names VMCS 0x%llx twice from the same time: the "
					 "latter is used",
					 cli_side(cli)->file, (unsigned long long)v->vmcs);
			continue;
		}
		if (i && v[-1].vmcs == v->vmcs && v[-1].since < v->since)
			name.from = v->since;
		if (more)
			name.to = next->since - 1;
		code = add(cli, names, v->vm, &name);
	}
	names->from_record = names->count;
	return code;
}

/* ---- events ---- */

static bool has_record(const struct timeline_names *names, u64 vmcs)
{
	size_t n = vmpt_search(i, 0, names->from_record, names->name[i].vmcs < vmcs);

	return n < names->from_record && names->name[n].vmcs == vmcs;
}

static int add_found(struct cli *cli, struct timeline_names *names, const struct vmpt_names *found)
{
	size_t n, i;
	const struct vmpt_vm_name *list = vmpt_names_list(found, &n);
	int code = CLI_OK;

	for (i = 0; i < n && !code; i++) {
		struct timeline_name name = {
			.vmcs = list[i].vmcs,
			.from = list[i].from,
			.to = list[i].to == ~0ULL ? ~0ULL : list[i].to - 1,
			.vcpu = list[i].vcpu < 0 ? TIMELINE_NONE : (u32)list[i].vcpu,
		};

		if (list[i].vm && !has_record(names, name.vmcs))
			code = add(cli, names, list[i].vm, &name);
	}
	return code;
}

static int by_vmcs(const void *a, const void *b)
{
	const struct timeline_name *x = a, *y = b;

	if (x->vmcs != y->vmcs)
		return x->vmcs < y->vmcs ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

int timeline_names_make(struct cli *cli, struct timeline_names *names,
			const struct cli_clocks *clocks, const struct vmpt_names *found)
{
	int code = add_record(cli, names, clocks);

	if (!code && found)
		code = add_found(cli, names, found);
	if (names->count)
		qsort(names->name, names->count, sizeof(*names->name), by_vmcs);
	return code;
}

void timeline_names_close(struct timeline_names *names)
{
	size_t i;

	for (i = 0; i < names->count; i++) {
		free(names->name[i].vm);
		free(names->name[i].shown);
	}
	free(names->name);
}

const struct timeline_name *timeline_names_find(struct timeline_names *names, u64 vmcs, u64 tsc,
						u64 *from, u64 *to)
{
	struct timeline_name *name = names->name;
	size_t n;

	if (tsc == VMPT_TIME_NONE)
		tsc = 0;
	/* The last one that begins at or before it. */
	n = vmpt_search(i, 0, names->count,
			name[i].vmcs < vmcs || (name[i].vmcs == vmcs && name[i].from <= tsc));
	*from = 0;
	*to = ~0ULL;
	if (n < names->count && name[n].vmcs == vmcs)
		*to = name[n].from - 1;
	if (!n || name[n - 1].vmcs != vmcs)
		return NULL;
	name += n - 1;
	if (name->to < tsc) {
		*from = name->to + 1;
		return NULL;
	}
	name->seen = true;
	*from = name->from;
	*to = name->to;
	return name;
}

void timeline_names_tell(const struct cli *cli, const struct timeline_names *names, bool part)
{
	size_t i;

	/* Some VMs may not have run; if none did, the record is of another recording. */
	for (i = 0; i < names->count; i++)
		if (names->name[i].seen)
			return;
	if (names->from_record)
		cli_warn(
			cli,
			"%s: none of its VMCSs ran in this trace%s: is it from the same recording?",
			cli_side(cli)->file, part ? " at that time" : "");
}
