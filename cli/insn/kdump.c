// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt insn: kdump-compressed dumps, by a module that is loaded for them only (decoder/kdump/). */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/insn/insn.h"
#include "decoder/kdump/kdump.h"

bool insn_is_kdump(const char *path)
{
	u8 head[16];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);

	if (fd >= 0)
		close(fd);
	return n > 0 && vmpt_kdump_is(head, (size_t)n);
}

/* In a build, else where it is installed. */
static void *load(void)
{
	char self[4096], path[sizeof(self) + sizeof("/../decoder/" VMPT_KDUMP_MODULE)];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	void *module = NULL;

	if (n > 0) {
		self[n] = '\0';
		*strrchr(self, '/') = '\0';
		snprintf(path, sizeof(path), "%s/../decoder/" VMPT_KDUMP_MODULE, self);
		module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return module ? module : dlopen(VMPT_MODULES "/" VMPT_KDUMP_MODULE, RTLD_NOW | RTLD_LOCAL);
}

int insn_open_kdump(struct vmpt_image **image, const char *path, struct vmpt_diag *diag)
{
	struct vmpt_image_source source;
	vmpt_kdump_open_fn *open_dump;
	void *module = load();
	int ret;

	*diag = (struct vmpt_diag){ 0 };
	/* It stays loaded as long as the image. */
	*(void **)&open_dump = module ? dlsym(module, VMPT_KDUMP_OPEN) : NULL;
	if (!open_dump) {
		snprintf(diag->text, sizeof(diag->text),
			 "a kdump-compressed dump, and this vmpt was built without libkdumpfile; "
			 "makedumpfile -E makes an ELF dump of it");
		return -VMPT_E_UNSUPPORTED;
	}
	ret = open_dump(path, &source, diag);
	if (ret)
		return ret;
	ret = vmpt_image_make(image, &source, NULL);
	if (ret)
		source.close(source.opaque);
	return ret;
}
