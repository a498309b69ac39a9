/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Memory images of the command line and of recordings. */
#ifndef VMPT_CLI_SYMBOLS_IMAGE_H
#define VMPT_CLI_SYMBOLS_IMAGE_H

#include "cli/symbols/given.h"
#include "decoder/vmpt-image.h"

/* Open the image @given; @paging: enum vmpt_paging. 0, or an exit code after a message. */
int code_image_open(struct cli *cli, const struct code_given *given, u8 paging,
		    struct vmpt_image **image);

/* The row of --paging, a u8. */
#define CODE_PAGING(type, field)                                                                \
	{                                                                                       \
		"paging", 0, CLI_WORD, "MODE",                                                  \
			"of raw memory, and of dumps that do not say how linear addresses are " \
			"translated (auto: 4 levels, or as a Linux guest says)",                \
			"auto", "auto, none, 32, pae, 4, 5", CLI_AT(type, field)                \
	}

#endif
