// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The filters of all commands; see filter.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sideinfo/filter.h"
#include "cli/sideinfo/sideinfo.h"

#define NAMES_LISTED 8

/* ---- the options ---- */

/* A word of a list of names, which outlives the list. */
static int take_name(struct cli *cli, struct cli_strings *list, char **own, const char *what,
		     const char *word)
{
	if (!*word) {
		cli_usage(cli, "%s: no name given", what);
		return -1;
	}
	if (list->count == CLI_STRINGS) {
		cli_usage(cli, "%s: more than %d", what, CLI_STRINGS);
		return -1;
	}
	own[list->count] = strdup(word);
	if (!own[list->count]) {
		cli_no_memory(cli);
		return -1;
	}
	list->s[list->count] = own[list->count];
	list->count++;
	return 0;
}

static int take_vm(struct cli *cli, void *to, const char *word)
{
	/* Until now this option gave a guest's TSC. */
	if (cli_clock_is_map(word)) {
		cli_usage(
			cli,
			"--vm: '%s' is a guest's TSC: that is --guest-tsc; --vm takes names of VMs",
			word);
		return -1;
	}
	return take_name(cli, to, cli_filter(cli)->vm_word, "--vm", word);
}

static int take_owner(struct cli *cli, void *to, const char *word)
{
	return take_name(cli, to, cli_filter(cli)->owner_word, "--owner", word);
}

/* A number at *@s, moved past it; -1: none. */
static int small(const char **s)
{
	char *end;
	unsigned long n;

	if (**s < '0' || **s > '9')
		return -1;
	n = strtoul(*s, &end, 10);
	*s = end;
	return n > 0x7fffffff ? -1 : (int)n;
}

static int take_vcpu(struct cli *cli, void *to, const char *word)
{
	struct cli_filter *f = cli_filter(cli);
	struct cli_cpu_range r;
	const char *s = word;

	(void)to;
	r.first = r.last = small(&s);
	if (r.first >= 0 && *s == '-') {
		s++;
		r.last = small(&s);
	}
	if (r.first < 0 || r.last < r.first || *s) {
		cli_usage(cli, "--vcpu: '%s' is not a number or range like 0,2-5", word);
		return -1;
	}
	if (f->vcpus == CLI_FILTER_VCPUS) {
		cli_usage(cli, "--vcpu: more than %d", CLI_FILTER_VCPUS);
		return -1;
	}
	f->vcpu[f->vcpus++] = r;
	return 0;
}

/* Hex, with 0x or without; false: it is not. */
static bool hex(const char *s, u64 *value)
{
	char *end;

	if (!strncmp(s, "0x", 2))
		s += 2;
	errno = 0;
	*value = strtoull(s, &end, 16);
	return !errno &&
	       ((*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'f') || (*s >= 'A' && *s <= 'F')) &&
	       !*end;
}

static int take_cr3(struct cli *cli, void *to, const char *word)
{
	struct cli_filter *f = cli_filter(cli);

	(void)to;
	if (f->cr3s == CLI_FILTER_CR3S) {
		cli_usage(cli, "--cr3: more than %d", CLI_FILTER_CR3S);
		return -1;
	}
	if (!hex(word, &f->cr3[f->cr3s])) {
		cli_usage(cli, "--cr3: '%s' is not a CR3 in hex", word);
		return -1;
	}
	f->cr3s++;
	return 0;
}

static const struct cli_option options[] = {
	{ "cpu", 0, CLI_OTHER, "LIST", "only these CPUs, like 0,2-5", .take = cli_take_cpu },
	{ "vm", 0, CLI_LIST, "LIST", "only these VMs, by name, or by a VMCS in hex",
	  CLI_AT(struct cli_filter, vm), .take = take_vm },
	{ "vcpu", 0, CLI_LIST, "LIST", "only vCPUs of these numbers, like 0,2-5",
	  .take = take_vcpu },
	{ "cr3", 0, CLI_LIST, "LIST", "only while CR3 was one of these, in hex; not for RTIT",
	  .take = take_cr3 },
	{ "owner", 0, CLI_LIST, "LIST",
	  "only these owners: host, vm (any), unknown, a VM's name, \"NAME vcpu N\", NAME:N, or a VMCS "
	  "in hex",
	  .words = "host, vm, unknown", CLI_AT(struct cli_filter, owner), .take = take_owner },
	{ "from", 0, CLI_STRING, "TIME",
	  "start at this time: 12.5s, ms, us or ns from the start, perf:969349.99, 14:03:07.25, RFC "
	  "3339, or tsc:0x...; not for RTIT",
	  CLI_AT(struct cli_filter, from) },
	{ "to", 0, CLI_STRING, "TIME", "stop before this time; not for RTIT",
	  CLI_AT(struct cli_filter, to) },
	{ 0 },
};

static void close_filter(struct cli *cli)
{
	struct cli_filter *f = cli_filter(cli);
	size_t i;

	for (i = 0; f && i < CLI_STRINGS; i++) {
		free(f->vm_word[i]);
		free(f->owner_word[i]);
	}
}

const struct cli_group cli_filter_group = {
	.title = "Filters",
	.option = options,
	.common = true,
	.size = sizeof(struct cli_filter),
	.close = close_filter,
};

/* ---- what is given ---- */

static bool is_kind(const char *word)
{
	return !strcmp(word, "host") || !strcmp(word, "vm") || !strcmp(word, "unknown");
}

bool cli_filter_owners(const struct cli *cli)
{
	const struct cli_filter *f = cli_filter(cli);

	return f && (f->vm.count || f->owner.count || f->vcpus);
}

bool cli_filter_any(const struct cli *cli)
{
	const struct cli_filter *f = cli_filter(cli);

	return cli_filter_owners(cli) || (f && (f->cr3s || f->from || f->to));
}

bool cli_filter_clocks(const struct cli *cli)
{
	const struct cli_filter *f = cli_filter(cli);
	size_t i;

	if (!f || cli_is_rtit(cli))
		return false;
	for (i = 0; i < f->owner.count; i++)
		if (!is_kind(f->owner.s[i]))
			return true;
	return f->from || f->to || f->vcpus || f->vm.count;
}

int cli_filter_check(struct cli *cli, unsigned int not, const char *why)
{
	const struct cli_filter *f = cli_filter(cli);
	size_t i;

	if (cli_is_rtit(cli) && (f->cr3s || f->from || f->to))
		return cli_usage(cli,
				 "%s: %s is RTIT; vmpt dump --start and --end choose a part of it",
				 f->cr3s   ? "--cr3"
				 : f->from ? "--from"
					   : "--to",
				 cli->file[0]);
	if (not &CLI_FILTER_CR3 && f->cr3s)
		return cli_usage(cli, "--cr3: %s", why);
	if (not &CLI_FILTER_TIME && (f->from || f->to))
		return cli_usage(cli, "%s: %s", f->from ? "--from" : "--to", why);
	for (i = 0; not &CLI_FILTER_OTHERS && i < f->owner.count; i++)
		if (is_kind(f->owner.s[i]) && strcmp(f->owner.s[i], "vm") != 0)
			return cli_usage(cli, "--owner=%s: %s", f->owner.s[i], why);
	return CLI_OK;
}

/* ---- owners ---- */

/* "NAME vcpu N", "NAME:N". */
static bool is_vcpu(const char *word, const char *vm, s64 vcpu)
{
	size_t len = strlen(vm);
	char number[24];

	if (vcpu < 0 || strncmp(word, vm, len) != 0)
		return false;
	snprintf(number, sizeof(number), "%lld", (long long)vcpu);
	return (word[len] == ':' && !strcmp(word + len + 1, number)) ||
	       (!strncmp(word + len, " vcpu ", 6) && !strcmp(word + len + 6, number));
}

/* Whether @word names the VM @vm, as it is or as it is shown; or its vCPU, if @vcpu is not -2. */
static bool names_vm(const char *word, const char *vm, s64 vcpu)
{
	char shown[CLI_WHO];

	if (!vm)
		return false;
	if (!strcmp(word, vm) || is_vcpu(word, vm, vcpu))
		return true;
	cli_safe_name(vm, shown);
	return !strcmp(word, shown) || is_vcpu(word, shown, vcpu);
}

static bool names_vmcs(const struct cli *cli, const char *word, const struct vmpt_owner *o)
{
	u64 vmcs;

	return !cli_is_rtit(cli) && o->kind == VMPT_OWNER_VM && hex(word, &vmcs) && vmcs == o->vmcs;
}

static bool fits_owner(const struct cli *cli, const char *word, const struct vmpt_owner *o,
		       const char *vm, s64 vcpu)
{
	if (!strcmp(word, "host"))
		return o->kind == VMPT_OWNER_HOST;
	if (!strcmp(word, "unknown"))
		return o->kind == VMPT_OWNER_UNKNOWN;
	if (!strcmp(word, "vm"))
		return o->kind == VMPT_OWNER_VM || o->kind == VMPT_OWNER_VM_ANY;
	return o->kind == VMPT_OWNER_VM && (names_vmcs(cli, word, o) || names_vm(word, vm, vcpu));
}

bool cli_filter_who(struct cli *cli, const struct vmpt_owner *o, const char *vm, s64 vcpu)
{
	struct cli_filter *f = cli_filter(cli);
	bool any;
	size_t i;

	for (any = !f->owner.count, i = 0; !any && i < f->owner.count; i++)
		any = fits_owner(cli, f->owner.s[i], o, vm, f->exact[i] ? -1 : vcpu);
	if (!any)
		return false;
	for (any = !f->vm.count, i = 0; !any && i < f->vm.count; i++)
		any = o->kind == VMPT_OWNER_VM &&
		      (names_vmcs(cli, f->vm.s[i], o) || names_vm(f->vm.s[i], vm, -1));
	if (!any)
		return false;
	for (any = !f->vcpus, i = 0; !any && i < f->vcpus; i++)
		any = o->kind == VMPT_OWNER_VM && vcpu >= f->vcpu[i].first &&
		      vcpu <= f->vcpu[i].last;
	return any;
}

bool cli_filter_owner(struct cli *cli, const struct vmpt_owner *owner, u64 tsc)
{
	struct cli_filter *f = cli_filter(cli);
	const struct cli_vcpu *v;
	const char *vm = NULL;
	s64 vcpu = -1;

	if (!cli_filter_owners(cli))
		return true;
	v = cli_side_record_vcpu(cli, owner);
	if (v) {
		vm = v->vm;
		vcpu = v->vcpu;
	} else if (f->clocks && owner->kind == VMPT_OWNER_VM) {
		cli_clocks_who(f->clocks, owner->vmcs, tsc == VMPT_TIME_NONE ? 0 : tsc, &vm, &vcpu);
	}
	if (f->has_last && vmpt_owner_same(owner, &f->last) && f->last_vm == vm &&
	    f->last_vcpu == vcpu)
		return f->last_wanted;
	f->has_last = true;
	f->last = *owner;
	f->last_vm = vm;
	f->last_vcpu = vcpu;
	f->last_wanted = cli_filter_who(cli, owner, vm, vcpu);
	f->seen |= f->last_wanted && cli_is_rtit(cli);
	return f->last_wanted;
}

bool cli_filter_vmcs(struct cli *cli, const struct vmpt_owner *o)
{
	const struct cli_filter *f = cli_filter(cli);
	const struct cli_clocks *c = f->clocks;
	const struct vmpt_vm_name *list;
	size_t i, count = 0;

	if (!cli_filter_owners(cli) || cli_is_rtit(cli) || !c || o->kind != VMPT_OWNER_VM)
		return cli_filter_owner(cli, o, VMPT_TIME_NONE);
	if (cli_filter_who(cli, o, NULL, -1))
		return true;
	for (i = 0; i < c->vcpus; i++)
		if (c->vcpu[i].vmcs == o->vmcs &&
		    cli_filter_who(cli, o, c->vcpu[i].vm, (s64)c->vcpu[i].vcpu))
			return true;
	list = c->names ? vmpt_names_list(c->names, &count) : NULL;
	for (i = 0; i < count; i++)
		if (list[i].vmcs == o->vmcs && cli_filter_who(cli, o, list[i].vm, list[i].vcpu))
			return true;
	return false;
}

/* ---- times, CR3s ---- */

bool cli_filter_time(const struct cli *cli, u64 tsc)
{
	const struct cli_filter *f = cli_filter(cli);

	if (tsc == VMPT_TIME_NONE)
		return !f->from;
	return tsc >= f->from_tsc && tsc < f->to_tsc;
}

/*
 * A PIP has bits 51:5 of CR3 (SDM 3 33.4.2.7). A value whose low 12 bits are 0 is that of the page
 * table, whatever the PCID.
 */
bool cli_filter_cr3(const struct cli *cli, bool known, u64 cr3)
{
	const struct cli_filter *f = cli_filter(cli);
	size_t i;

	if (!f->cr3s)
		return true;
	for (i = 0; known && i < f->cr3s; i++) {
		u64 mask = f->cr3[i] & 0xfff ? ~0x1fULL : ~0xfffULL;

		/* Bit 63 of MOV CR3's operand is not part of CR3. */
		if (!((f->cr3[i] ^ cr3) & mask & ((1ULL << 52) - 1)))
			return true;
	}
	return false;
}

/* ---- names that no VM has ---- */

struct names {
	const char *vm[NAMES_LISTED];
	size_t count;
	bool more, found;
	bool exact; /* the name is all of the word */
};

/* Look at VM @vm: is it @word? */
static void look(struct names *n, const char *word, const char *vm, s64 vcpu)
{
	size_t i;

	if (!vm)
		return;
	n->found |= names_vm(word, vm, vcpu);
	n->exact |= names_vm(word, vm, -1);
	for (i = 0; i < n->count; i++)
		if (!strcmp(n->vm[i], vm))
			return;
	if (n->count == NAMES_LISTED)
		n->more = true;
	else
		n->vm[n->count++] = vm;
}

static int check_name(struct cli *cli, const char *what, const char *word, bool vcpus, bool *exact)
{
	const struct cli_side_record *record = cli_side(cli)->record;
	const struct cli_clocks *c = cli_filter(cli)->clocks;
	struct names n = { 0 };
	const struct vmpt_vm_name *list;
	char text[512] = "";
	size_t i, count = 0, used = 0;
	u64 vmcs;

	for (i = 0; record && i < record->vcpus; i++)
		look(&n, word, record->vcpu[i].vm, vcpus ? (s64)record->vcpu[i].vcpu : -1);
	for (i = 0; c && i < c->vcpus; i++)
		look(&n, word, c->vcpu[i].vm, vcpus ? (s64)c->vcpu[i].vcpu : -1);
	list = c && c->names ? vmpt_names_list(c->names, &count) : NULL;
	for (i = 0; i < count; i++)
		look(&n, word, list[i].vm, vcpus ? list[i].vcpu : -1);
	*exact = n.exact;
	if (n.found || (!cli_is_rtit(cli) && hex(word, &vmcs)))
		return CLI_OK;
	for (i = 0; i < n.count && used + 64 < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.40s", i ? ", " : "",
					 n.vm[i]);
	if (n.count)
		return cli_usage(cli, "%s: no VM '%s' in the trace; it has %s%s", what, word, text,
				 n.more || i < n.count ? " and others" : "");
	return cli_usage(cli,
			 "%s: no VM has a name here: '%s' is not %s; --side-record gives names",
			 what, word,
			 cli_is_rtit(cli) ? "host, vm or unknown"
			 : vcpus	  ? "host, vm, unknown or a VMCS in hex"
					  : "a VMCS in hex");
}

/* ---- numbers that no vCPU has ---- */

#define NUMBERS_LISTED 16

struct numbers {
	s64 list[NUMBERS_LISTED];
	size_t count;
	bool more, found;
};

static void look_number(const struct cli_filter *f, struct numbers *n, s64 vcpu)
{
	size_t i, k;

	if (vcpu < 0)
		return;
	for (i = 0; i < f->vcpus; i++)
		n->found |= vcpu >= f->vcpu[i].first && vcpu <= f->vcpu[i].last;
	for (i = 0; i < n->count && n->list[i] < vcpu; i++)
		;
	if (i < n->count && n->list[i] == vcpu)
		return;
	if (n->count == NUMBERS_LISTED) {
		n->more = true;
		return;
	}
	for (k = n->count++; k > i; k--)
		n->list[k] = n->list[k - 1];
	n->list[i] = vcpu;
}

static int check_vcpus(struct cli *cli)
{
	const struct cli_side_record *record = cli_side(cli)->record;
	const struct cli_filter *f = cli_filter(cli);
	const struct cli_clocks *c = f->clocks;
	const struct vmpt_vm_name *list;
	struct numbers n = { 0 };
	char text[512] = "";
	size_t i, count = 0, used = 0;

	if (!f->vcpus)
		return CLI_OK;
	for (i = 0; record && i < record->vcpus; i++)
		look_number(f, &n, (s64)record->vcpu[i].vcpu);
	for (i = 0; c && i < c->vcpus; i++)
		look_number(f, &n, (s64)c->vcpu[i].vcpu);
	list = c && c->names ? vmpt_names_list(c->names, &count) : NULL;
	for (i = 0; i < count; i++)
		look_number(f, &n, list[i].vcpu);
	if (n.found)
		return CLI_OK;
	if (!n.count)
		return cli_usage(cli,
				 "--vcpu: no vCPU has a number here; --side-record gives numbers");
	for (i = 0; i < n.count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%lld", i ? ", " : "",
					 (long long)n.list[i]);
	return cli_usage(cli, "--vcpu: no such vCPU in the trace; it has %s%s", text,
			 n.more ? " and others" : "");
}

static int check_names(struct cli *cli)
{
	struct cli_filter *f = cli_filter(cli);
	int code = CLI_OK;
	bool unused;
	size_t i;

	for (i = 0; !code && i < f->vm.count; i++)
		code = check_name(cli, "--vm", f->vm.s[i], false, &unused);
	for (i = 0; !code && i < f->owner.count; i++)
		if (!is_kind(f->owner.s[i]))
			code = check_name(cli, "--owner", f->owner.s[i], true, &f->exact[i]);
	return code ? code : check_vcpus(cli);
}

static int take_time(struct cli *cli, const struct cli_times *when, const char *what,
		     const char *text, u64 *tsc)
{
	char why[160];

	if (!text)
		return CLI_OK;
	if (!when || vmpt_clocks_base(cli_filter(cli)->clocks->clocks) == VMPT_BASE_NONE)
		return cli_usage(cli, "%s: %s has no times", what, cli->file[0]);
	if (!cli_when_parse(when, text, tsc, why))
		return CLI_OK;
	return cli_usage(cli, "%s: '%s': %s", what, text, why);
}

int cli_filter_open(struct cli *cli, const struct cli_clocks *clocks, const struct cli_times *when)
{
	struct cli_filter *f = cli_filter(cli);
	int code;

	f->clocks = clocks;
	f->from_tsc = 0;
	f->to_tsc = VMPT_TIME_NONE;
	code = check_names(cli);
	if (!code)
		code = take_time(cli, when, "--from", f->from, &f->from_tsc);
	if (!code)
		code = take_time(cli, when, "--to", f->to, &f->to_tsc);
	/* 0: both are before all TSCs, and nothing fits. */
	if (!code && f->from && f->to && f->to_tsc <= f->from_tsc && f->to_tsc)
		code = cli_usage(cli, "--to must be after --from");
	return code;
}

int cli_filter_open_clocks(struct cli *cli, struct cli_clocks *clocks)
{
	const struct cli_filter *f = cli_filter(cli);
	struct cli_times when = { 0 };
	int code = CLI_OK;

	if (cli_filter_clocks(cli) && !clocks->clocks)
		code = cli_clocks_open(cli, clocks);
	if (!code && (f->from || f->to))
		code = cli_when_open(cli, clocks, CLI_WHEN_START, &when);
	if (!code)
		code = cli_filter_open(cli, clocks->clocks ? clocks : NULL,
				       f->from || f->to ? &when : NULL);
	cli_when_close(&when);
	return code;
}

void cli_filter_warn(const struct cli *cli)
{
	if (cli_filter_any(cli) && !cli_filter(cli)->seen)
		cli_warn(cli, "nothing in the trace fits the filters");
}
