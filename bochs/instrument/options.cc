// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which PT the PC's processors have: a superset of a Tiger Lake's, less the features that the
 * words in VMPT_BOCHS_PT remove.
 */
#include "pc.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct pc_options pc_options;

/* A word "no-NAME" clears a field of leaf 14H or of VMX. */
static const struct {
	const char *word;
	enum vmpt_pt_cap cap;
} caps[] = {
	{ "no-cr3-filter", VMPT_CAP_CR3_FILTER },   { "no-psb-cyc", VMPT_CAP_PSB_CYC },
	{ "no-ip-filter", VMPT_CAP_IP_FILTER },	    { "no-mtc", VMPT_CAP_MTC },
	{ "no-ptwrite", VMPT_CAP_PTWRITE },	    { "no-power", VMPT_CAP_POWER },
	{ "no-preserve", VMPT_CAP_PRESERVE },	    { "no-event", VMPT_CAP_EVENT },
	{ "no-tnt-disable", VMPT_CAP_TNT_DISABLE }, { "no-topa", VMPT_CAP_TOPA },
	{ "no-topa-multi", VMPT_CAP_TOPA_MULTI },   { "no-single-range", VMPT_CAP_SINGLE_RANGE },
};

static const struct {
	const char *word;
	bool pc_options::*option;
} parts[] = {
	{ "no-pt", &pc_options::pt },		{ "no-vmx-pt", &pc_options::vmx_pt },
	{ "no-conceal", &pc_options::conceal }, { "no-load-clear", &pc_options::load_clear },
	{ "no-gpa", &pc_options::gpa },
};

static const struct {
	const char *word;
	bool vmpt_unit_options::*option;
} choices[] = {
	{ "deferred-tips", &vmpt_unit_options::deferred_tips },
	{ "long-tnt", &vmpt_unit_options::long_tnt },
	{ "no-ip-compression", &vmpt_unit_options::no_ip_compression },
	{ "careful-retc", &vmpt_unit_options::careful_retc },
};

static void defaults(void)
{
	struct vmpt_pt_cpuid *cpuid = &pc_options.cpuid;

	pc_options = {};
	pc_options.pt = pc_options.vmx_pt = pc_options.conceal = true;
	pc_options.load_clear = pc_options.gpa = true;
	cpuid->present = 1;
	cpuid->maxphyaddr = BX_PHY_ADDRESS_WIDTH;
	cpuid->linear_bits = 48;
	vmpt_pt_cap_set(cpuid, VMPT_CAP_MAX_SUBLEAF, 1);
	for (const auto &c : caps)
		vmpt_pt_cap_set(cpuid, c.cap, 1);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_LIP, 1);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_RANGES, 2);
	/* Tiger Lake's encodings */
	vmpt_pt_cap_set(cpuid, VMPT_CAP_MTC_PERIODS, 0x0249);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_CYC_THRESHOLDS, 0x3fff);
	vmpt_pt_cap_set(cpuid, VMPT_CAP_PSB_FREQS, 0x003f);
}

static bool take(const char *word)
{
	unsigned int ranges;
	char end;

	for (const auto &c : caps) {
		if (!strcmp(word, c.word)) {
			vmpt_pt_cap_set(&pc_options.cpuid, c.cap, 0);
			return true;
		}
	}
	for (const auto &p : parts) {
		if (!strcmp(word, p.word)) {
			pc_options.*p.option = false;
			return true;
		}
	}
	for (const auto &c : choices) {
		if (!strcmp(word, c.word)) {
			pc_options.unit.*c.option = true;
			return true;
		}
	}
	if (sscanf(word, "ranges=%u%c", &ranges, &end) == 1 && ranges <= VMPT_PT_RANGES_MAX) {
		vmpt_pt_cap_set(&pc_options.cpuid, VMPT_CAP_RANGES, ranges);
		return true;
	}
	return false;
}

static void usage(const char *word)
{
	fprintf(stderr, "VMPT_BOCHS_PT: \"%s\" is not known; words are:", word);
	for (const auto &p : parts)
		fprintf(stderr, " %s", p.word);
	for (const auto &c : caps)
		fprintf(stderr, " %s", c.word);
	for (const auto &c : choices)
		fprintf(stderr, " %s", c.word);
	fprintf(stderr, " ranges=0..4\n");
	exit(2);
}

/* Remove features that depend on removed ones. */
static void settle(void)
{
	if (!pc_options.pt)
		pc_options.cpuid.present = 0;
	if (!pc_options.pt || !pc_options.vmx_pt)
		pc_options.vmx_pt = pc_options.conceal = pc_options.load_clear = false;
	if (!pc_options.load_clear)
		pc_options.gpa = false;
}

void pc_options_read(void)
{
	static bool done;
	const char *env = getenv("VMPT_BOCHS_PT");
	char *words, *word, *rest;

	if (done)
		return;
	done = true;
	defaults();
	words = strdup(env ? env : "");
	for (word = strtok_r(words, ", ", &rest); word; word = strtok_r(nullptr, ", ", &rest)) {
		if (!take(word))
			usage(word);
	}
	free(words);
	settle();
}
