// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Runs the scenarios in turn, and prints for each on the serial port: "ok NAME", "not ok NAME: why"
 * or "skipped NAME: why". The words in the ROM image's slot (see scenario_slot) select scenarios by
 * the beginnings of their names; default: all.
 */
#include "scenarios.h"
#include "vmx.h"

const char *scenario_name = "start";
/* "choose" writes here: after the mark, 240 bytes, words separated by spaces, then NULs. */
char scenario_slot[256] __attribute__((section(".data"))) = "VMPT-SCENARIOS:\0";
static const char *skipped;

void skip(const char *why)
{
	skipped = why;
}

static const struct scenario *const lists[] = {
	vmx_scenarios,	  system_scenarios,   guest_only_scenarios, fail_scenarios,
	caps_scenarios,	  gpa_scenarios,      gpa_exit_scenarios,   pmi_scenarios,
	time_scenarios,	  ptwrite_scenarios,  modes_scenarios,	    suite_scenarios,
	second_scenarios, ept_scenarios,      memory_scenarios,	    event_scenarios,
	list_scenarios,	  gpa_trap_scenarios, fail_late_scenarios,  legacy_scenarios,
};

static bool starts(const char *name, const char *word)
{
	while (*word && *word != ' ') {
		if (*name++ != *word++)
			return false;
	}
	return true;
}

static bool chosen(const struct scenario *s)
{
	const char *word = scenario_slot + 16;

	if (!*word)
		return !(s->needs & NEEDS_NAME);
	for (;;) {
		while (*word == ' ')
			word++;
		if (!*word)
			return false;
		if (starts(s->name, word))
			return true;
		while (*word && *word != ' ')
			word++;
	}
}

static bool has_vmx(void)
{
	return cpuid(1, 0).ecx & 1 << 5;
}

static bool has_pt(void)
{
	return cpuid(7, 0).ebx & 1u << 25;
}

static bool has_vpt(void)
{
	return has_vmx() && msr_read(MSR_VMX_MISC) & 1 << 14;
}

static const char *lacks(u32 needs)
{
	if (needs & (NEEDS_VMX | NEEDS_VPT) && !has_vmx())
		return "the processor has no VMX";
	if (needs & (NEEDS_PT | NEEDS_VPT) && !has_pt())
		return "the processor has no PT";
	if (needs & NEEDS_VPT && !has_vpt())
		return "IA32_VMX_MISC[14] is 0";
	if (needs & NEEDS_LOAD_CLEAR && !vmx_allows(MSR_VMX_TRUE + 3, ENTRY_LOAD_RTIT_CTL))
		return "the processor has no load and clear of IA32_RTIT_CTL";
	if (needs & NEEDS_GPA && !vmx_allows_secondary(SECONDARY_PT_USES_GPA))
		return "the processor's PT cannot use guest physical addresses";
	return NULL;
}

/* Each one starts in the state after power-on, as far as it can observe it. */
static void run_one(const struct scenario *s)
{
	scenario_name = s->name;
	skipped = lacks(s->needs);
	memset((void *)trap_count, 0, sizeof(trap_count));
	if (!skipped) {
		if (s->needs & NEEDS_VMX) {
			vmx_on();
			ept_init();
		}
		s->run();
		if (vmx_is_on())
			vmx_off();
	}
	if (is_wrong())
		return;
	print(skipped ? "skipped %s: %s\n" : "ok %s\n", s->name, skipped);
}

void bare_main(void)
{
	traps_init();
	text_init();
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (const struct scenario *s = lists[i]; s->name; s++) {
			if (chosen(s))
				run_one(s);
		}
	}
	print("end\n");
	power_off(0);
}
