/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* vmpt dump: its options and one line of output; for Intel PT and RTIT. */
#ifndef VMPT_CLI_DUMP_H
#define VMPT_CLI_DUMP_H

#include "cli/base/base.h"
#include "cli/sideinfo/sideinfo.h"
#include "decoder/vmpt-clock.h"

#define DUMP_TIME_WIDTH 16	     /* "12ab34cd56 ±127" */
#define DUMP_LOSS_BIT	(1ULL << 63) /* in kinds */

/* The content of a line: a packet, several consecutive PADs, or a loss. */
struct dump_line {
	const struct vmpt_stream *stream;
	u64 offset, size;
	struct vmpt_owner owner;
	unsigned int kind;	   /* enum vmpt_pt_kind or VMPT_ITEM_LOSS */
	unsigned int loss;	   /* VMPT_ITEM_LOSS: enum vmpt_error */
	u64 full_ip;		   /* of a kind with an IP */
	struct vmpt_pt_packet pkt; /* the decoded packet */
	unsigned int bbp_type;	   /* of the block a BIP is in */
	struct vmpt_time time;	   /* --time */
	u64 guest;		   /* the guest's clock then; VMPT_TIME_NONE: not known */
	u8 back;		   /* enum vmpt_back */
};

/* The layout of lines. */
struct dump_style {
	bool bytes;
	int offset_width;
	int owner_width; /* grows with the owners seen */
	int bytes_width;
	bool bytes_grow; /* too, with the bytes */
	bool time;	 /* a column of RTIT's */
	bool host_time;	 /* columns of --time */
};

/* What differs between Intel PT and RTIT. */
struct dump_ops {
	enum vmpt_isa isa;
	const char *name;
	/* All return 0, or an exit code after a message. */
	int (*check)(struct cli *cli); /* the options; finds owners */
	int (*open)(struct cli *cli);  /* things shared by all streams; or NULL */
	/* Print the selected packets of stream number @i. 0 or a negative error. */
	int (*stream)(struct cli *cli, size_t i);
};

extern const struct dump_ops dump_pt, dump_rtit;

/* The options and the current state. */
struct dump {
	u64 start, end; /* of the stream; end 0: its end */
	u64 head;	/* lines; 0: all */
	u64 kinds[2];	/* by enum vmpt_isa: bits by its kinds; both 0: all */
	u8 clock;	/* --time: 0: in ticks, else 1 + enum cli_when_clocks */
	bool no_bytes, no_pad, expand_pad, time;

	const struct dump_ops *ops;
	u64 wanted;		  /* of .kinds */
	struct cli_clocks clocks; /* for --time or filters, of all streams */
	struct cli_times when;
	struct cli_filter_walk *walk; /* of the stream at work */
	struct dump_style style;
	struct dump_line pad; /* PADs not printed yet; size 0: none */
	u64 lines;
	unsigned int bbp_type;
};

/* ---- dump.c ---- */

/* Stream number @i begins: its name and the header. @style: all but what the streams share. */
void dump_start(struct cli *cli, size_t i, const struct dump_style *style);
/* Whether no line is wanted any more. */
bool dump_enough(struct cli *cli);
/* Whether all of @size bytes at @offset are before --start; a loss may have the size 0. */
bool dump_too_early(const struct dump *d, u64 offset, u64 size);

/* ---- line.c ---- */

void dump_header(struct cli *cli, const struct dump_style *style);
void dump_text(struct cli *cli, struct dump_style *style, const struct dump_line *line);
void dump_json(struct cli *cli, const struct dump_style *style, const struct dump_line *line);
/* Parts of a line: its offset and owner; @text in the column of bytes; a loss, to the end. */
void dump_print_where(struct cli *cli, struct dump_style *style, u64 offset,
		      const struct vmpt_owner *owner);
void dump_print_bytes(struct cli *cli, struct dump_style *style, const char *text);
void dump_print_loss(struct cli *cli, const struct vmpt_stream *stream, u64 offset, u64 size,
		     unsigned int err);
/* A loss's members. */
void dump_json_loss(struct cli *cli, json_t *o, const struct vmpt_stream *stream, u64 offset,
		    unsigned int err);
/* Print and pad to @width columns; "×" and "…" are one column each. */
void dump_print_padded(const char *text, size_t width);

/* ---- time.c ---- */

/* Packets with times, or without. All 0 to start but for one of .dec and .timed. */
struct dump_source {
	struct vmpt_decoder *dec;
	struct vmpt_timed *timed;
	struct vmpt_timed_batch batch;
	struct vmpt_cursor at;
};

/* With --time or filters: open the clocks of all streams. 0, or an exit code after a message. */
int dump_time_open(struct cli *cli);
/* The next packet; @line's time is filled. 1, 0 at the end, or a negative error. */
int dump_next(struct cli *cli, struct dump_source *source, struct vmpt_packet *pkt,
	      struct dump_line *line);
void dump_time_header(const struct dump *d);
void dump_time_text(const struct dump *d, const struct dump_line *line);
void dump_time_json(struct cli *cli, json_t *o, const struct dump_line *line);

#endif
