/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt guest: what images of guests' memory say of their kernels and processes. */
#ifndef VMPT_CLI_GUEST_H
#define VMPT_CLI_GUEST_H

#include "cli/symbols/symbols.h"
#include "decoder/vmpt-guest.h"

struct guest_options {
	bool threads, modules, maps, symbols, has_pid;
	u64 pid;
	u8 paging; /* enum vmpt_paging */
};

/* An image and the guest in it. */
struct guest_one {
	const struct code_given *given;
	struct vmpt_image *image;
	struct vmpt_guest *guest;
	struct vmpt_guest_kernel kernel;
};

struct guest {
	struct guest_options o;
	struct code_files files;
};

/* What is not known, each with its cost: call with @i from 0 up to NULL. */
const char *guest_lack(u32 lacks, unsigned int i, const char **key);
/* Whether the options want @task. */
bool guest_wanted(const struct guest_options *o, const struct vmpt_guest_task *task);
void guest_hex(const u8 *bytes, size_t size, char text[2 * 64 + 1]);

/* ---- text.c, json.c ---- */

/* Exit codes. */
int guest_print(struct cli *cli, const struct guest_one *one);
int guest_json(struct cli *cli, const struct guest_one *one, json_t *o);

#endif
