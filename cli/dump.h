/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* One line of vmpt dump. */
#ifndef VMPT_CLI_DUMP_H
#define VMPT_CLI_DUMP_H

#include "cli/cli.h"

/* What a line tells: a packet, several PADs in a row, or a loss. */
struct dump_line {
	const struct vmpt_stream *stream;
	u64 offset, size;
	struct vmpt_owner owner;
	unsigned int kind;	   /* enum vmpt_pt_kind or VMPT_ITEM_LOSS */
	unsigned int loss;	   /* VMPT_ITEM_LOSS: enum vmpt_error */
	u64 full_ip;		   /* of a kind with an IP */
	struct vmpt_pt_packet pkt; /* the packet, taken apart */
	unsigned int bbp_type;	   /* of the block a BIP stands in */
};

/* How lines look. */
struct dump_style {
	bool bytes;
	int offset_width;
	int owner_width; /* grows with the owners seen */
};

void dump_header(struct cli *cli, const struct dump_style *style);
void dump_text(struct cli *cli, struct dump_style *style, const struct dump_line *line);
void dump_json(struct cli *cli, const struct dump_style *style, const struct dump_line *line);

#endif
