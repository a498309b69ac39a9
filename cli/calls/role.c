// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What functions of the Linux kernel mean for a stack, by their names. */
#include <string.h>

#include "cli/calls/calls.h"

/* "*" at the end: any end. */
static const char *const thunks[] = {
	/* Retpolines and what replaced them (arch/x86/lib/retpoline.S) */
	"__x86_indirect_thunk_*",
	"__x86_indirect_call_thunk_*",
	"__x86_indirect_jump_thunk_*",
	"__x86_indirect_its_thunk_*",
	"__x86_indirect_paranoid_thunk_*",
	/* Returns */
	"__x86_return_thunk",
	"__x86_return_skl",
	"call_depth_return_thunk",
	"retbleed_return_thunk",
	"its_return_thunk",
	"warn_thunk_thunk",
	"srso_return_thunk",
	"srso_alias_return_thunk",
	"srso_safe_ret",
	"srso_alias_safe_ret",
	"zen_untrain_ret",
	"retbleed_untrain_ret",
	"srso_untrain_ret",
	"srso_alias_untrain_ret",
	/* Static calls, and the tracer's trampolines */
	"__SCT__*",
	"__fentry__",
	"ftrace_caller*",
	"ftrace_regs_caller*",
	"ftrace_call",
	"ftrace_regs_call",
	"ftrace_graph_call",
	"ftrace_epilogue",
	"ftrace_stub*",
	"ftrace_trampoline*",
};

static bool fits(const char *name, const char *pattern)
{
	size_t n = strlen(pattern);

	return pattern[n - 1] == '*' ? !strncmp(name, pattern, n - 1) : !strcmp(name, pattern);
}

unsigned int calls_role(const char *name)
{
	size_t i;

	if (!strcmp(name, "__switch_to_asm"))
		return VMPT_ROLE_SWITCH;
	for (i = 0; i < VMPT_ARRAY_SIZE(thunks); i++)
		if (fits(name, thunks[i]))
			return VMPT_ROLE_THUNK;
	return VMPT_ROLE_PLAIN;
}

static bool ends_with(const char *name, size_t n, const char *end)
{
	size_t k = strlen(end);

	return n > k && !memcmp(name + n - k, end, k);
}

size_t calls_part(const char *name)
{
	/* The compiler's; labels inside the kernel's entries. */
	static const char *const ends[] = { ".cold", "_after_hwframe", "_safe_stack" };
	size_t n = strlen(name), i, k;

	/* GCC 8 and before: ".cold.12" */
	for (k = n; k && name[k - 1] >= '0' && name[k - 1] <= '9';)
		k--;
	if (k < n && ends_with(name, k, ".cold."))
		return k - strlen(".cold.");
	for (i = 0; i < VMPT_ARRAY_SIZE(ends); i++)
		if (ends_with(name, n, ends[i]))
			return n - strlen(ends[i]);
	return 0;
}
