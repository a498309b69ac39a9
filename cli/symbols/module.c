// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Modules, which are parts of vmpt if their libraries were there when it was built: what reads
 * kdump-compressed dumps, and what reads source lines.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/symbols/symbols.h"
#include "decoder/kdump/kdump.h"

void *code_module(const char *folder, const char *name)
{
	char self[4096], path[sizeof(self) + 128];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	void *module = NULL;

	/* In a build, else where it is installed. */
	if (n > 0) {
		self[n] = '\0';
		*strrchr(self, '/') = '\0';
		snprintf(path, sizeof(path), "%s/../%s/%s", self, folder, name);
		module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (module)
		return module;
	snprintf(path, sizeof(path), VMPT_MODULES "/%s", name);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

bool code_has_kdump(void)
{
	void *module = code_module("decoder", VMPT_KDUMP_MODULE);

	if (module)
		dlclose(module);
	return module != NULL;
}
