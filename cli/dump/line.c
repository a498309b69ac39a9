// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A line of vmpt dump, as text or as JSON. */
#include <string.h>

#include "cli/dump/dump.h"
#include "cli/sideinfo/sideinfo.h"

#define NAME_WIDTH  9 /* "MODE.Exec" */
#define BYTES_SHOWN 16

void dump_header(struct cli *cli, const struct dump_style *style)
{
	printf("%s%*s  %-*s  ", cli_paint(cli, CLI_BOLD), style->offset_width, "OFFSET",
	       style->owner_width, "OWNER");
	if (style->bytes)
		printf("%-*s  ", style->bytes_width, "BYTES");
	if (style->time)
		printf("%-*s  ", DUMP_TIME_WIDTH, "TSC");
	if (style->host_time)
		dump_time_header();
	printf("PACKET%s\n", cli_paint(cli, CLI_PLAIN));
}

void dump_print_padded(const char *text, size_t width)
{
	cli_print_padded(text, width, false);
}

void dump_print_where(struct cli *cli, struct dump_style *style, u64 offset,
		      const struct vmpt_owner *owner)
{
	char name[CLI_WHO + 2];
	size_t columns;

	cli_who(cli, owner, name);
	if (owner->kind != VMPT_OWNER_UNKNOWN && owner->sure == VMPT_ASSUMED)
		strcat(name, "~");
	if (owner->kind != VMPT_OWNER_UNKNOWN && owner->sure == VMPT_UNCERTAIN)
		strcat(name, "?");
	columns = cli_columns(name);
	if ((int)columns > style->owner_width)
		style->owner_width = (int)columns;
	printf("%*llx  %s", style->offset_width, (unsigned long long)offset,
	       cli_paint(cli, cli_owner_paint(owner)));
	dump_print_padded(name, (size_t)style->owner_width);
	printf("%s  ", cli_paint(cli, CLI_PLAIN));
}

void dump_print_bytes(struct cli *cli, struct dump_style *style, const char *text)
{
	size_t columns = cli_columns(text);

	if ((int)columns > style->bytes_width && style->bytes_grow)
		style->bytes_width = (int)columns;
	fputs(cli_paint(cli, CLI_DIM), stdout);
	dump_print_padded(text, (size_t)style->bytes_width);
	printf("%s  ", cli_paint(cli, CLI_PLAIN));
}

static void print_bytes(struct cli *cli, struct dump_style *style, const struct dump_line *line)
{
	const u8 *b = line->stream->data + line->offset;
	char text[3 * BYTES_SHOWN + 32], *at = text;
	u64 i, n = line->size < BYTES_SHOWN ? line->size : BYTES_SHOWN;

	text[0] = '\0';
	if (line->kind == VMPT_PT_PSB) {
		snprintf(text, sizeof(text), "02 82 ×8");
	} else if (line->kind == VMPT_PT_PAD && line->size > 1) {
		snprintf(text, sizeof(text), "00 ×%llu", (unsigned long long)line->size);
	} else {
		bool cut = line->kind == VMPT_ITEM_LOSS && line->size > 8;

		for (i = 0; i < (cut ? 7 : n); i++)
			at += sprintf(at, "%s%02x", i ? " " : "", b[i]);
		if (cut)
			strcpy(at, " …");
	}
	dump_print_bytes(cli, style, text);
}

static enum cli_paint kind_paint(unsigned int kind)
{
	unsigned int classes = vmpt_pt_table[kind].classes;

	switch (kind) {
	case VMPT_PT_PSB:
	case VMPT_PT_PSBEND:
		return CLI_BOLD;
	case VMPT_PT_PIP:
	case VMPT_PT_VMCS:
		return CLI_MAGENTA;
	case VMPT_PT_OVF:
	case VMPT_PT_TRACESTOP:
		return CLI_RED;
	case VMPT_PT_PAD:
		return CLI_DIM;
	default:
		return classes & VMPT_PT_TIMING	  ? CLI_YELLOW
		       : classes & VMPT_PT_HAS_IP ? CLI_CYAN
						  : CLI_PLAIN;
	}
}

/* @alone: nothing follows. */
static void print_name(struct cli *cli, unsigned int kind, bool alone)
{
	enum cli_paint paint = kind_paint(kind);

	printf("%s%-*s%s", paint ? cli_paint(cli, paint) : "", alone ? 0 : NAME_WIDTH,
	       vmpt_pt_name(kind), paint ? cli_paint(cli, CLI_PLAIN) : "");
}

static void print_packet(struct cli *cli, const struct dump_line *line)
{
	const struct vmpt_pt_packet *p = &line->pkt;
	const char *fields, *name;
	unsigned int i;
	char text[256];

	vmpt_pt_print(p, text, sizeof(text));
	fields = strchr(text, ' ');
	print_name(cli, line->kind, !fields && line->size == p->size);
	if (vmpt_pt_table[line->kind].classes & VMPT_PT_HAS_IP) {
		if (p->ip.ipbytes)
			printf(" 0x%llx%s ", (unsigned long long)line->full_ip,
			       cli_paint(cli, CLI_DIM));
		else
			printf(" no IP%s ", cli_paint(cli, CLI_DIM));
		for (i = 3; i--;)
			putchar('0' + (int)(p->ip.ipbytes >> i & 1));
		printf("b%s\n", cli_paint(cli, CLI_PLAIN));
		return;
	}
	if (line->kind == VMPT_PT_PAD && line->size > 1) {
		cli_print(" ×%llu\n", (unsigned long long)line->size);
		return;
	}
	fputs(fields ? fields : "", stdout);
	name = p->kind == VMPT_PT_BIP ? vmpt_pt_value_name(p, line->bbp_type) : NULL;
	if (name)
		printf(" (%s)", name);
	putchar('\n');
}

void dump_print_loss(struct cli *cli, const struct vmpt_stream *stream, u64 offset, u64 size,
		     unsigned int err)
{
	char text[160], buf[32];

	printf("%s%-*s%s %s bytes: %s\n", cli_paint(cli, CLI_RED), NAME_WIDTH, "LOST",
	       cli_paint(cli, CLI_PLAIN), cli_number(size, buf),
	       cli_loss_text(stream, offset, (int)err, text, sizeof(text)));
}

void dump_text(struct cli *cli, struct dump_style *style, const struct dump_line *line)
{
	dump_print_where(cli, style, line->offset, &line->owner);
	if (style->bytes)
		print_bytes(cli, style, line);
	if (style->host_time)
		dump_time_text(line);
	if (line->kind == VMPT_ITEM_LOSS)
		dump_print_loss(cli, line->stream, line->offset, line->size, line->loss);
	else
		print_packet(cli, line);
}

/* ---- JSON ---- */

static void json_bytes(struct cli *cli, json_t *o, const struct dump_line *line)
{
	const u8 *b = line->stream->data + line->offset;
	u64 i, n = line->size < BYTES_SHOWN ? line->size : BYTES_SHOWN;
	char text[2 * BYTES_SHOWN + 1] = "";

	for (i = 0; i < n; i++)
		sprintf(text + 2 * i, "%02x", b[i]);
	cli_json_string(cli, o, "raw", text);
}

static void json_taken(struct cli *cli, json_t *o, const struct vmpt_pt_packet *p)
{
	char text[65];
	u64 i, n = p->tnt.count < 64 ? p->tnt.count : 64;

	for (i = 0; i < n; i++)
		text[i] = p->tnt.bits >> (n - 1 - i) & 1 ? 'T' : 'N';
	text[n] = '\0';
	cli_json_string(cli, o, "bits", text);
}

static void json_field(struct cli *cli, json_t *o, const struct dump_line *line, unsigned int i)
{
	const struct vmpt_pt_field *f = &vmpt_pt_table[line->kind].field[i];
	const struct vmpt_pt_packet *p = &line->pkt;
	const char *name;

	if (f->coding == VMPT_PT_COUNT || (f->coding == VMPT_PT_IP && !p->ip.ipbytes))
		return;
	switch (f->format) {
	case VMPT_PT_TAKEN:
		json_taken(cli, o, p);
		break;
	case VMPT_PT_FLAG:
		/* Other packets' "ip" is an address. */
		cli_json_set(cli, o, strcmp(f->name, "ip") ? f->name : "ip_follows",
			     json_boolean(p->val[i]));
		break;
	case VMPT_PT_DEC:
	case VMPT_PT_BINARY:
		cli_json_number(cli, o, f->name, p->val[i]);
		break;
	default:
		cli_json_hex(cli, o, f->name, p->val[i]);
	}
	name = f->format == VMPT_PT_NAMED ? vmpt_pt_value_name(p, line->bbp_type) : NULL;
	if (name)
		cli_json_string(cli, o, "name", name);
}

static void json_packet(struct cli *cli, json_t *o, const struct dump_line *line)
{
	const struct vmpt_pt_desc *desc = &vmpt_pt_table[line->kind];
	unsigned int i;

	cli_json_string(cli, o, "packet", desc->name);
	for (i = 0; i < desc->fields; i++)
		json_field(cli, o, line, i);
	if ((desc->classes & VMPT_PT_HAS_IP) && line->pkt.ip.ipbytes)
		cli_json_hex(cli, o, "full_ip", line->full_ip);
	if (line->pkt.flags & VMPT_PT_RESERVED)
		cli_json_set(cli, o, "reserved", json_true());
}

void dump_json_loss(struct cli *cli, json_t *o, const struct vmpt_stream *stream, u64 offset,
		    unsigned int err)
{
	char text[160];

	cli_json_string(cli, o, "lost", vmpt_strerror((int)err));
	cli_json_string(cli, o, "text",
			cli_loss_text(stream, offset, (int)err, text, sizeof(text)));
}

void dump_json(struct cli *cli, const struct dump_style *style, const struct dump_line *line)
{
	json_t *o = json_object();

	cli_json_stream(cli, o, line->stream);
	cli_json_number(cli, o, "offset", line->offset);
	cli_json_number(cli, o, "size", line->size);
	cli_json_owner(cli, o, &line->owner);
	if (style->bytes && line->kind != VMPT_PT_PAD)
		json_bytes(cli, o, line);
	if (style->host_time)
		dump_time_json(cli, o, line);
	if (line->kind == VMPT_ITEM_LOSS) {
		dump_json_loss(cli, o, line->stream, line->offset, line->loss);
	} else {
		json_packet(cli, o, line);
	}
	cli_json_print(cli, o, stdout, true);
}
