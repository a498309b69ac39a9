// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt clocks: the timing in a trace. The rates, the timing packets of each CPU, and for each VMCS
 * how its TSC follows from the host's, over which period, by which source, how exactly.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/sideinfo/sideinfo.h"

/* What is shown; the command's struct. */
struct clocks {
	struct cli_clocks c;
	struct cli_times when;
	double hertz; /* 0: not known */
};

static const struct vmpt_epoch *epochs_of(const struct clocks *s, size_t i, size_t *n)
{
	return vmpt_clocks_epochs(s->c.clocks, i, n);
}

static double ratio_of(const struct vmpt_epoch *e)
{
	return (double)e->map.multiplier / (double)VMPT_TSC_UNSCALED;
}

/* Whether .from and .to are positions in the trace, not "from the start" and "still". */
static bool has_times(const struct vmpt_epoch *e)
{
	return e->to != ~0ULL;
}

/* A time at which the VMCS had the owner of this epoch. */
static u64 middle_of(const struct vmpt_epoch *e)
{
	return has_times(e) && e->to > e->from ? e->from + (e->to - e->from) / 2 : e->from;
}

/* Whether filters want the epoch of a VMCS. */
static bool is_wanted(struct cli *cli, u64 vmcs, const struct vmpt_epoch *e)
{
	const struct vmpt_owner owner = { .kind = VMPT_OWNER_VM, .vmcs = vmcs };

	if (!cli_filter_owner(cli, &owner, middle_of(e)))
		return false;
	cli_filter(cli)->seen = true;
	return true;
}

/* ---- text ---- */

static void print_wrong_rates(const struct clocks *s)
{
	const struct vmpt_rates_wrong *wrong = vmpt_clocks_rates_wrong(s->c.clocks);

	if (!wrong)
		return;
	printf("given, but contradicted by the trace:");
	if (wrong->tsc_ratio)
		printf(" %u/%u TSC ticks", wrong->given.tsc_num, wrong->given.tsc_den);
	if (wrong->mtc_freq)
		printf("%s MTCFreq %u", wrong->tsc_ratio ? ";" : "", wrong->given.mtc_freq);
	printf("\n");
}

static void print_rates(const struct clocks *s)
{
	const struct vmpt_rates *r = vmpt_clocks_rates(s->c.clocks);
	enum vmpt_time_base base = vmpt_clocks_base(s->c.clocks);

	if (base == VMPT_BASE_HOST)
		printf("time line: the host's TSC\n");
	else if (base == VMPT_BASE_GUEST)
		printf("time line: the TSC of VMCS %llx, as no TSC is the host's\n",
		       (unsigned long long)vmpt_clocks_base_vmcs(s->c.clocks));
	else
		printf("time line: none, as there is no TSC packet\n");
	if (r->tsc_num)
		printf("crystal clock: %u/%u TSC ticks%s", r->tsc_num, r->tsc_den,
		       r->found ? ", found in the trace" : "");
	else
		printf("crystal clock: not known; give --tsc-ratio");
	if (r->has_mtc_freq)
		printf("; an MTC every %u (MTCFreq %u)", 1u << r->mtc_freq, r->mtc_freq);
	else
		printf("; MTCFreq not known");
	if (r->nominal)
		printf("; nominal ratio %u", r->nominal);
	if (s->hertz > 0)
		printf("; TSC %.3f MHz", s->hertz / 1e6);
	printf("\n");
	print_wrong_rates(s);
}

static void print_streams(struct cli *cli, const struct clocks *s)
{
	static const struct cli_column column[] = {
		{ "CPU", false },
		{ "TSC", true },
		{ "OF GUESTS", true },
		{ "UNMAPPED", true },
		{ "TMA", true },
		{ "BAD", true },
		{ "MTC", true },
		{ "LOST", true },
		{ "CYC", true },
		{ "CBR", true },
		{ "OVF", true },
		{ "BACK", true },
		{ "CONTRADICTIONS", true },
	};
	struct cli_table *t = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	char buf[32];
	size_t i;

	for (i = 0; i < cli->streams; i++) {
		const struct vmpt_clock_counts *n = vmpt_clocks_counts(s->c.clocks, i);

		cli_cell(t, CLI_PLAIN, "%s", cli_stream_cpu(cli->stream[i], buf));
		cli_cell_number(t, true, n->tscs);
		cli_cell_number(t, true, n->guest_tscs);
		cli_cell_number(t, true, n->unmapped);
		cli_cell_number(t, true, n->tmas);
		cli_cell_number(t, true, n->tmas_bad);
		cli_cell_number(t, true, n->mtcs);
		cli_cell_number(t, true, n->mtcs_lost);
		cli_cell_number(t, true, n->cycs);
		cli_cell_number(t, true, n->cbrs);
		cli_cell_number(t, true, n->ovfs);
		cli_cell_number(t, true, n->backs);
		cli_cell_number(t, true, n->contradictions);
	}
	printf("\n");
	cli_table_print(t, "");
}

static void cell_tick(struct cli_table *t, const struct clocks *s, bool valid, u64 tick)
{
	char buf[CLI_WHEN];

	if (!valid)
		cli_cell(t, CLI_DIM, "–");
	else
		cli_cell(t, CLI_PLAIN, "%s", cli_when_text(&s->when, tick, buf));
}

static void cell_vcpu(struct cli_table *t, const struct clocks *s, u64 vmcs, u64 at)
{
	char name[CLI_WHO];
	const char *vm;
	s64 vcpu;

	if (!cli_clocks_who(&s->c, vmcs, at, &vm, &vcpu)) {
		cli_cell(t, CLI_DIM, "–");
		return;
	}
	cli_safe_name(vm, name);
	if (vcpu < 0)
		cli_cell(t, CLI_PLAIN, "%s", name);
	else
		cli_cell(t, CLI_PLAIN, "%s vcpu %lld", name, (long long)vcpu);
}

static void print_epoch(struct cli_table *t, const struct clocks *s, u64 vmcs,
			const struct vmpt_epoch *e)
{
	bool known = e->source != VMPT_MAP_NONE;
	char buf[32];

	cli_cell(t, CLI_CYAN, "%llx", (unsigned long long)vmcs);
	cell_vcpu(t, s, vmcs, middle_of(e));
	cell_tick(t, s, e->from || has_times(e), e->from);
	cell_tick(t, s, has_times(e), e->to);
	if (known)
		cli_cell(t, CLI_PLAIN, "%lld", (long long)e->map.offset);
	else
		cli_cell(t, CLI_YELLOW, "not known");
	if (known && e->offset_error != ~0ULL)
		cli_cell(t, CLI_PLAIN, "%s", cli_number(e->offset_error, buf));
	else
		cli_cell(t, CLI_DIM, "–");
	if (known && e->scaled)
		cli_cell(t, CLI_PLAIN, "%.9f", ratio_of(e));
	else
		cli_cell(t, CLI_PLAIN, known ? "1" : "");
	if (known && e->multiplier_ppm >= 0)
		cli_cell(t, CLI_PLAIN, "%.4f", e->multiplier_ppm);
	else
		cli_cell(t, CLI_DIM, "–");
	cli_cell(t, CLI_PLAIN, "%s", cli_clocks_source(e->source));
	cli_cell_number(t, true, e->pairs);
	cli_cell_number(t, true, e->outliers);
}

static void print_epochs(struct cli *cli, const struct clocks *s)
{
	char title[CLI_WHEN], from[CLI_WHEN + 8], to[CLI_WHEN + 8];
	const char *unit = strchr(cli_when_title(&s->when, title), '(');
	const struct cli_column column[] = {
		{ "VMCS", false },  { "VM", CLI_NAMES }, { from, true },	 { to, true },
		{ "OFFSET", true }, { "±", true },	 { "MULTIPLIER", true }, { "±PPM", true },
		{ "BY", false },    { "PAIRS", true },	 { "OUTLIERS", true },
	};
	size_t vmcss = vmpt_clocks_vmcs_count(s->c.clocks), i, k, n;
	struct cli_table *t;

	if (!vmcss)
		return;
	snprintf(from, sizeof(from), "FROM %s", unit ? unit : "(perf)");
	snprintf(to, sizeof(to), "TO %s", unit ? unit : "(perf)");
	t = cli_table_new(cli, column, VMPT_ARRAY_SIZE(column));
	for (i = 0; i < vmcss; i++) {
		static const struct vmpt_epoch none = { .to = ~0ULL };
		u64 vmcs = vmpt_clocks_vmcs(s->c.clocks, i);
		const struct vmpt_epoch *e = epochs_of(s, i, &n);

		for (k = 0; k < n; k++)
			if (is_wanted(cli, vmcs, &e[k]))
				print_epoch(t, s, vmcs, &e[k]);
		if (!n && is_wanted(cli, vmcs, &none))
			print_epoch(t, s, vmcs, &none);
	}
	printf("\n");
	cli_table_print(t, "");
}

/* ---- JSON ---- */

static void json_rates(struct cli *cli, json_t *doc, const struct clocks *s)
{
	static const char *const base[] = { "none", "host", "guest" };
	const struct vmpt_rates *r = vmpt_clocks_rates(s->c.clocks);
	const struct vmpt_rates_wrong *wrong = vmpt_clocks_rates_wrong(s->c.clocks);
	json_t *o = json_object(), *given = json_object();

	cli_json_string(cli, doc, "base", base[vmpt_clocks_base(s->c.clocks)]);
	if (vmpt_clocks_base(s->c.clocks) == VMPT_BASE_GUEST)
		cli_json_hex(cli, doc, "base_vmcs", vmpt_clocks_base_vmcs(s->c.clocks));
	cli_json_hertz(cli, doc, s->hertz);
	cli_json_number(cli, o, "tsc_numerator", r->tsc_num);
	cli_json_number(cli, o, "tsc_denominator", r->tsc_den);
	cli_json_set(cli, o, "mtc_freq", r->has_mtc_freq ? json_integer(r->mtc_freq) : json_null());
	cli_json_number(cli, o, "nominal", r->nominal);
	cli_json_set(cli, o, "found", json_boolean(r->found));
	if (wrong && wrong->tsc_ratio) {
		cli_json_number(cli, given, "tsc_numerator", wrong->given.tsc_num);
		cli_json_number(cli, given, "tsc_denominator", wrong->given.tsc_den);
	}
	if (wrong && wrong->mtc_freq)
		cli_json_number(cli, given, "mtc_freq", wrong->given.mtc_freq);
	cli_json_set(cli, o, "given_wrong", wrong ? json_incref(given) : json_null());
	json_decref(given);
	cli_json_set(cli, doc, "rates", o);
}

static json_t *json_streams(struct cli *cli, const struct clocks *s)
{
	json_t *array = json_array();
	size_t i;

	for (i = 0; i < cli->streams; i++) {
		const struct vmpt_clock_counts *n = vmpt_clocks_counts(s->c.clocks, i);
		json_t *o = json_object();

		cli_json_stream(cli, o, cli->stream[i]);
		cli_json_number(cli, o, "tscs", n->tscs);
		cli_json_number(cli, o, "guest_tscs", n->guest_tscs);
		cli_json_number(cli, o, "unmapped", n->unmapped);
		cli_json_number(cli, o, "tmas", n->tmas);
		cli_json_number(cli, o, "tmas_bad", n->tmas_bad);
		cli_json_number(cli, o, "mtcs", n->mtcs);
		cli_json_number(cli, o, "mtcs_lost", n->mtcs_lost);
		cli_json_number(cli, o, "cycs", n->cycs);
		cli_json_number(cli, o, "cbrs", n->cbrs);
		cli_json_number(cli, o, "ovfs", n->ovfs);
		cli_json_number(cli, o, "backs", n->backs);
		cli_json_number(cli, o, "contradictions", n->contradictions);
		cli_json_add(cli, array, o);
	}
	return array;
}

static json_t *json_epoch(struct cli *cli, const struct clocks *s, u64 vmcs,
			  const struct vmpt_epoch *e)
{
	json_t *o = json_object();
	const char *vm;
	s64 vcpu;

	if (cli_clocks_who(&s->c, vmcs, middle_of(e), &vm, &vcpu)) {
		cli_json_string(cli, o, "vm", vm);
		cli_json_set(cli, o, "vcpu", vcpu < 0 ? json_null() : json_integer(vcpu));
	}
	cli_json_hex(cli, o, "from_tsc", e->from);
	if (has_times(e))
		cli_json_hex(cli, o, "to_tsc", e->to);
	else
		cli_json_set(cli, o, "to_tsc", json_null());
	cli_json_string(cli, o, "source", cli_clocks_source(e->source));
	if (e->source == VMPT_MAP_NONE)
		return o;
	cli_json_signed(cli, o, "tsc_offset", e->map.offset);
	if (e->offset_error >> 62)
		cli_json_set(cli, o, "tsc_offset_error", json_null());
	else
		cli_json_number(cli, o, "tsc_offset_error", e->offset_error);
	cli_json_hex(cli, o, "multiplier", e->map.multiplier);
	cli_json_set(cli, o, "ratio", json_real(ratio_of(e)));
	cli_json_set(cli, o, "multiplier_ppm",
		     e->multiplier_ppm < 0 ? json_null() : json_real(e->multiplier_ppm));
	cli_json_set(cli, o, "scaled", json_boolean(e->scaled));
	cli_json_number(cli, o, "pairs", e->pairs);
	cli_json_number(cli, o, "outliers", e->outliers);
	return o;
}

static json_t *json_vmcss(struct cli *cli, const struct clocks *s)
{
	size_t vmcss = vmpt_clocks_vmcs_count(s->c.clocks), i, k, n;
	json_t *array = json_array();

	for (i = 0; i < vmcss; i++) {
		const struct vmpt_epoch *e = epochs_of(s, i, &n);
		u64 vmcs = vmpt_clocks_vmcs(s->c.clocks, i);
		json_t *o = json_object(), *epochs = json_array();

		cli_json_hex(cli, o, "vmcs", vmcs);
		for (k = 0; k < n; k++)
			if (is_wanted(cli, vmcs, &e[k]))
				cli_json_add(cli, epochs, json_epoch(cli, s, vmcs, &e[k]));
		cli_json_set(cli, o, "epochs", epochs);
		cli_json_add(cli, array, o);
	}
	return array;
}

static void json_map(struct cli *cli, json_t *o, const char *key, const struct vmpt_tsc_map *map)
{
	json_t *m = json_object();

	cli_json_signed(cli, m, "tsc_offset", map->offset);
	cli_json_hex(cli, m, "multiplier", map->multiplier);
	cli_json_set(cli, o, key, m);
}

static json_t *json_wrong(struct cli *cli, const struct clocks *s)
{
	const struct vmpt_given_wrong *wrong;
	json_t *array = json_array();
	size_t i, n;

	wrong = vmpt_clocks_wrong(s->c.clocks, &n);
	for (i = 0; i < n; i++) {
		json_t *o = json_object();

		cli_json_hex(cli, o, "vmcs", wrong[i].vmcs);
		cli_json_string(cli, o, "source", cli_clocks_source(wrong[i].source));
		json_map(cli, o, "given", &wrong[i].given);
		json_map(cli, o, "found", &wrong[i].found);
		cli_json_string(cli, o, "by", cli_clocks_source(wrong[i].by));
		if (wrong[i].at != VMPT_TIME_NONE)
			cli_json_hex(cli, o, "at_tsc", wrong[i].at);
		else
			cli_json_set(cli, o, "at_tsc", json_null());
		cli_json_add(cli, array, o);
	}
	return array;
}

static int print_json(struct cli *cli, const struct clocks *s)
{
	json_t *doc = cli_json_document(cli);

	json_rates(cli, doc, s);
	cli_json_set(cli, doc, "streams", json_streams(cli, s));
	cli_json_set(cli, doc, "vmcss", json_vmcss(cli, s));
	cli_json_set(cli, doc, "given_contradicted", json_wrong(cli, s));
	cli_json_end(cli, doc);
	return cli_json_print(cli, doc, stdout, false);
}

static void tell_losses(struct cli *cli, const struct clocks *s)
{
	size_t i;

	for (i = 0; i < cli->streams; i++)
		cli_lose_all(cli, CLI_LOST, cli->stream[i],
			     &vmpt_clocks_counts(s->c.clocks, i)->lost);
}

static int run(struct cli *cli)
{
	struct clocks *s = cli->data;
	int code;

	if (cli_is_rtit(cli))
		return cli_usage(cli, "%s: RTIT has the hardware's TSC: nothing to find",
				 cli->file[0]);
	code = cli_filter_check(cli, CLI_FILTER_CR3 | CLI_FILTER_OTHERS, "clocks are those of VMs");
	if (!code)
		code = cli_filter_check(cli, CLI_FILTER_TIME,
					"clocks are found by the whole trace; vmpt clocks shows "
					"from when to when each holds");
	if (!code)
		code = cli_clocks_open(cli, &s->c);
	if (!code)
		code = cli_when_open(cli, &s->c, cli_when_clock(cli), &s->when);
	if (!code)
		code = cli_filter_open(cli, &s->c, &s->when);
	if (!code) {
		if (vmpt_clocks_base(s->c.clocks) != VMPT_BASE_HOST)
			s->when.hz = 0;
		s->hertz = s->when.hz;
		tell_losses(cli, s);
		if (cli->json) {
			code = print_json(cli, s);
		} else {
			print_rates(s);
			print_streams(cli, s);
			print_epochs(cli, s);
		}
	}
	if (!code)
		cli_filter_warn(cli);
	cli_when_close(&s->when);
	cli_clocks_close(&s->c);
	return code;
}

static const char *const csv_epochs[] = {
	"vmcs",
	"vm",
	"vcpu",
	"from_tsc",
	"to_tsc",
	"source",
	"tsc_offset",
	"tsc_offset_error",
	"multiplier",
	"ratio",
	"multiplier_ppm",
	"scaled",
	"pairs",
	"outliers",
	NULL,
};

static const struct cli_csv csv[] = {
	{ "vmcss", "epochs", csv_epochs },
	{ 0 },
};

const struct cli_command cli_clocks = {
	.name = "clocks",
	.title = "show the timing in the trace, and how VMs' TSCs follow from the host's",
	.about =
		"Show the timing packets, their rates, and for each VMCS the offset and the\n"
		"multiplier that derive its TSC from the host's: by a side record, --guest-tsc or\n"
		"the trace; from when to when, how exact, and by how many packets.\n"
		"Warn when a given value contradicts the trace: the trace wins.",
	.examples = "  vmpt clocks perf.data\n"
		    "  vmpt clocks --tsc-ratio=176/2 --mtc-freq=3 cpu0.pt cpu1.pt\n"
		    "  vmpt clocks trace    a recording's folder\n"
		    "  vmpt clocks --guest-tsc=a000:-123456789 --json cpu0.pt\n",
	.group = { &cli_filter_group, &cli_when_group, &cli_clock_group, &cli_input_group,
		   &cli_side_group, &cli_output_group },
	.csv = csv,
	.data_size = sizeof(struct clocks),
	.run = run,
};
