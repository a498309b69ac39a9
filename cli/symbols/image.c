// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Memory images of the command line and of recordings; kdump-compressed dumps by a module that is
 * loaded for them only (decoder/kdump/).
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/symbols/symbols.h"
#include "decoder/kdump/kdump.h"

static bool is_kdump(const char *path)
{
	u8 head[16];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof(head), 0);

	if (fd >= 0)
		close(fd);
	return n > 0 && vmpt_kdump_is(head, (size_t)n);
}

static int open_kdump(struct vmpt_image **image, const char *path,
		      const struct vmpt_image_options *options, struct vmpt_diag *diag)
{
	struct vmpt_image_source source;
	vmpt_kdump_open_fn *open_dump;
	void *module = code_module("decoder", VMPT_KDUMP_MODULE);
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
	if (options->has_address) {
		snprintf(diag->text, sizeof(diag->text),
			 "a dump has its own addresses: only raw bytes and ELF programs take an "
			 "address, and a perf.data a process id");
		return -VMPT_E_INVAL;
	}
	ret = open_dump(path, &source, diag);
	if (ret)
		return ret;
	ret = vmpt_image_make(image, &source, options);
	if (ret)
		source.close(source.opaque);
	return ret;
}

/* x.dump is raw pages, whatever the first one looks like: x.addr has their addresses. */
static void suggest_pages(struct cli *cli, const char *path)
{
	size_t n = strlen(path);
	char *addr;

	if (n < 5 || strcmp(path + n - 5, ".dump") != 0 ||
	    asprintf(&addr, "%.*s.addr", (int)(n - 5), path) < 0)
		return;
	if (!access(addr, F_OK))
		cli_warn(cli,
			 "%s: is it a set of pages? There is a list of their addresses: give %s",
			 path, addr);
	free(addr);
}

int code_image_open(struct cli *cli, const struct code_given *g, u8 paging,
		    struct vmpt_image **image)
{
	const struct vmpt_image_options options = { .has_address = g->has_address,
						    .address = g->address,
						    .paging = paging };
	struct vmpt_diag diag;
	int ret;

	suggest_pages(cli, g->path);
	ret = is_kdump(g->path) ? open_kdump(image, g->path, &options, &diag)
				: vmpt_image_open(image, g->path, &options, &diag);
	if (ret) {
		cli_error(cli, "%s: %s", g->path, diag.text);
		return CLI_FAILED;
	}
	if (*diag.text)
		cli_warn(cli, "%s: %s", g->path, diag.text);
	return CLI_OK;
}
