// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Owners in words, the same in tables, options, file names and JSON. */
#include "cli/base/cli.h"
#include "cli/base/safe-text.h"

const char *cli_owner_name(const struct vmpt_owner *owner, char buf[32])
{
	if (owner->kind == VMPT_OWNER_VM)
		snprintf(buf, 32, "%llx", (unsigned long long)owner->vmcs);
	else
		snprintf(buf, 32, "%s",
			 owner->kind == VMPT_OWNER_VM_ANY ? "vm?" : cli_owner_kind(owner));
	return buf;
}

#define NAME_SHOWN 1024 /* bytes: room is left for a vCPU's number */

void cli_safe_name(const char *name, char buf[CLI_WHO])
{
	cli_safe_text(name, buf, CLI_WHO, NAME_SHOWN);
}

const char *cli_owner_kind(const struct vmpt_owner *owner)
{
	switch (owner->kind) {
	case VMPT_OWNER_HOST:
		return "host";
	case VMPT_OWNER_VM:
		return "vm";
	case VMPT_OWNER_VM_ANY:
		return "vm_any";
	default:
		return "unknown";
	}
}

const char *cli_sure_name(unsigned int sure)
{
	static const char *const name[] = {
		[VMPT_KNOWN] = "known",
		[VMPT_ASSUMED] = "assumed",
		[VMPT_UNCERTAIN] = "uncertain",
		[VMPT_UNKNOWN] = "unknown",
	};

	return sure < VMPT_ARRAY_SIZE(name) ? name[sure] : "unknown";
}

enum cli_paint cli_owner_paint(const struct vmpt_owner *owner)
{
	switch (owner->kind) {
	case VMPT_OWNER_HOST:
		return CLI_BLUE;
	case VMPT_OWNER_VM:
		return CLI_GREEN;
	case VMPT_OWNER_VM_ANY:
		return CLI_YELLOW;
	default:
		return CLI_DIM;
	}
}
