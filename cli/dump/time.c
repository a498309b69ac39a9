// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt dump --time: the time of each packet on the host's clock, and on its guest's. */
#include <string.h>

#include "cli/sideinfo/sideinfo.h"
#include "cli/dump/dump.h"

#define TIME_WIDTH  26 /* "12ab34cd56ef -1234 +5678" */
#define GUEST_WIDTH 16

int dump_time_open(struct cli *cli)
{
	struct vmpt_clocks_options options;
	struct dump *d = cli->data;
	int ret;

	if (!d->time)
		return CLI_OK;
	cli_clock_settings(cli, &options);
	ret = vmpt_clocks_open(&d->clocks, cli->stream, cli->streams, &options);
	if (ret) {
		cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
		return CLI_FAILED;
	}
	cli_clock_warn(cli, d->clocks);
	cli_clock_doubts(cli, d->clocks);
	return CLI_OK;
}

static int next_timed(struct dump_source *s, struct vmpt_packet *pkt, struct dump_line *line)
{
	int ret;

	while (s->at.item >= s->at.batch.count) {
		ret = vmpt_timed_next(s->timed, &s->batch);
		if (ret <= 0)
			return ret;
		s->at = (struct vmpt_cursor){ .batch = s->batch.batch };
	}
	line->time = s->batch.time[s->at.item];
	if (s->batch.back && s->batch.back_item == s->at.item && !s->at.byte)
		line->back = s->batch.back;
	return vmpt_packet_next(NULL, &s->at, pkt);
}

int dump_next(struct cli *cli, struct dump_source *s, struct vmpt_packet *pkt,
	      struct dump_line *line)
{
	const struct dump *d = cli->data;
	const struct vmpt_epoch *e;
	int ret;

	*line = (struct dump_line){ .time.tsc = VMPT_TIME_NONE, .guest = VMPT_TIME_NONE };
	if (!s->timed)
		return vmpt_packet_next(s->dec, &s->at, pkt);
	ret = next_timed(s, pkt, line);
	if (ret <= 0 || pkt->owner.kind != VMPT_OWNER_VM || line->time.tsc == VMPT_TIME_NONE)
		return ret;
	e = vmpt_clocks_at(d->clocks, pkt->owner.vmcs, line->time.tsc);
	if (e)
		line->guest = vmpt_tsc_to_guest(&e->map, line->time.tsc);
	return ret;
}

void dump_time_header(void)
{
	printf("%-*s  %-*s  ", TIME_WIDTH, "HOST TSC", GUEST_WIDTH, "GUEST TSC");
}

static void bound(char *text, size_t size, char sign, u32 ticks)
{
	size_t len = strlen(text);

	if (ticks == VMPT_TIME_OPEN)
		snprintf(text + len, size - len, " %c…", sign);
	else
		snprintf(text + len, size - len, " %c%u", sign, ticks);
}

void dump_time_text(const struct dump_line *line)
{
	char text[80] = "–", guest[24] = "";

	if (line->time.tsc != VMPT_TIME_NONE) {
		snprintf(text, sizeof(text), "%llx", (unsigned long long)line->time.tsc);
		bound(text, sizeof(text), '-', line->time.early);
		bound(text, sizeof(text), '+', line->time.late);
		if (line->back)
			strcat(text, " <");
	}
	if (line->guest != VMPT_TIME_NONE)
		snprintf(guest, sizeof(guest), "%llx", (unsigned long long)line->guest);
	dump_print_padded(text, TIME_WIDTH);
	printf("  %-*s  ", GUEST_WIDTH, guest);
}

static void json_bound(struct cli *cli, json_t *o, const char *key, u32 ticks)
{
	if (ticks == VMPT_TIME_OPEN)
		cli_json_set(cli, o, key, json_null());
	else
		cli_json_number(cli, o, key, ticks);
}

void dump_time_json(struct cli *cli, json_t *o, const struct dump_line *line)
{
	if (line->time.tsc == VMPT_TIME_NONE)
		return;
	cli_json_hex(cli, o, "host_tsc", line->time.tsc);
	json_bound(cli, o, "early", line->time.early);
	json_bound(cli, o, "late", line->time.late);
	if (line->guest != VMPT_TIME_NONE)
		cli_json_hex(cli, o, "guest_tsc", line->guest);
	cli_json_back(cli, o, line->back);
}
