// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The module that reads kdump-compressed dumps: a part of vmpt if it was built with libkdumpfile.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/symbols/symbols.h"
#include "decoder/kdump/kdump.h"

void *code_kdump_module(void)
{
	char self[4096], path[sizeof(self) + sizeof("/../decoder/" VMPT_KDUMP_MODULE)];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	void *module = NULL;

	/* In a build, else where it is installed. */
	if (n > 0) {
		self[n] = '\0';
		*strrchr(self, '/') = '\0';
		snprintf(path, sizeof(path), "%s/../decoder/" VMPT_KDUMP_MODULE, self);
		module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return module ? module : dlopen(VMPT_MODULES "/" VMPT_KDUMP_MODULE, RTLD_NOW | RTLD_LOCAL);
}

bool code_has_kdump(void)
{
	void *module = code_kdump_module();

	if (module)
		dlclose(module);
	return module != NULL;
}
