// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * recording.json: the host, the rates of its clocks, and the times at which they were read. What
 * cannot be used is warned of and left out: the trace can be read without it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sideinfo/recording-head.h"
#include "util/array.h"

#define PAIRS_MAX 65536
#define NS	  1000000000ULL
/*
 * CLOCK_REALTIME is slewed by at most 500 ppm, by some programs more; CLOCK_MONOTONIC_RAW is off by
 * the crystal's error. What differs by more than this was set.
 */
#define SET_PPM 2000
#define SET_NS	10000000
/* A recording that was killed lacks its last pairs: their distance is at most this. */
#define KILLED_NS (130 * NS)

int recording_u64(struct json_line *line, const json_t *o, const char *key, u64 max, u64 *value,
		  bool *has)
{
	*value = 0;
	*has = json_object_get(o, key) && !json_is_null(json_object_get(o, key));
	return *has ? json_line_u64(line, o, key, max, value) : CLI_OK;
}

static int take_u32(struct json_line *line, const json_t *o, const char *key, u32 *value)
{
	u64 v;
	bool has;
	int err = recording_u64(line, o, key, UINT32_MAX, &v, &has);

	if (!err && has)
		*value = (u32)v;
	return err;
}

int recording_host(struct json_line *line, const json_t *o, struct cli_recording *rec)
{
	struct cli_recording host = *rec;
	struct {
		const char *key;
		u32 *value;
	} field[] = {
		{ "tsc_art_numerator", &host.tsc_num },
		{ "tsc_art_denominator", &host.tsc_den },
		{ "max_nonturbo_ratio", &host.nominal },
		{ "family", &host.family },
		{ "model", &host.model },
		{ "stepping", &host.stepping },
		{ "cpus", &host.cpus },
	};
	size_t i;
	int err = CLI_OK;

	for (i = 0; !err && i < VMPT_ARRAY_SIZE(field); i++)
		err = take_u32(line, o, field[i].key, field[i].value);
	if (!err)
		*rec = host;
	return err;
}

static int take_rates(struct json_line *line, const json_t *o, struct cli_recording *rec)
{
	u64 khz, freq;
	bool has;
	int err = recording_u64(line, o, "tsc_khz", 999999999, &khz, &has);

	if (!err)
		rec->tsc_khz = khz;
	if (!err)
		err = recording_u64(line, o, "mtc_freq", 15, &freq, &has);
	if (!err && has) {
		rec->mtc_freq = (u32)freq;
		rec->has_mtc_freq = true;
	}
	return err;
}

/* ---- pairs ---- */

static int take_pair(struct json_line *line, const json_t *o, struct cli_recording *rec)
{
	struct cli_clock_pair pair;
	u64 spread;
	bool has;
	int err = json_line_u64(line, o, "tsc", ~0ULL, &pair.tsc);

	if (!err)
		err = json_line_u64(line, o, "monotonic_raw_ns", INT64_MAX, &pair.mono_raw_ns);
	if (!err)
		err = recording_u64(line, o, "realtime_ns", INT64_MAX, &pair.real_ns, &has);
	if (!err)
		err = recording_u64(line, o, "cpu_spread_ns", INT64_MAX, &spread, &has);
	if (err)
		return err;
	if (rec->pairs && (pair.tsc <= rec->pair[rec->pairs - 1].tsc ||
			   pair.mono_raw_ns <= rec->pair[rec->pairs - 1].mono_raw_ns))
		return json_line_bad(line, "the clocks of pair %zu are not after those before it",
				     rec->pairs + 1);
	if (vmpt_grow(&rec->pair, rec->pairs))
		return cli_no_memory(line->cli);
	rec->pair[rec->pairs++] = pair;
	if (spread > rec->spread_ns)
		rec->spread_ns = spread;
	return CLI_OK;
}

/* All or none: a part of them would be the time of something else. */
static int take_pairs(struct json_line *line, const json_t *list, struct cli_recording *rec)
{
	size_t i;
	int err = CLI_OK;

	if (!list)
		return CLI_OK;
	if (!json_is_array(list) || json_array_size(list) > PAIRS_MAX)
		return json_line_bad(line, "\"clocks\" is no list of up to %d", PAIRS_MAX);
	for (i = 0; !err && i < json_array_size(list); i++)
		err = take_pair(line, json_array_get(list, i), rec);
	if (err)
		rec->pairs = 0;
	return err;
}

/* The first step of CLOCK_REALTIME against CLOCK_MONOTONIC_RAW, which nothing sets. */
static void check_set(const struct json_line *line, const struct cli_recording *rec)
{
	size_t i, steps = 0;
	s64 step = 0, by;
	u64 at = 0;

	for (i = 1; i < rec->pairs; i++) {
		const struct cli_clock_pair *a = &rec->pair[i - 1], *b = a + 1;
		u64 raw = b->mono_raw_ns - a->mono_raw_ns;

		if (!a->real_ns || !b->real_ns)
			continue;
		by = (s64)(b->real_ns - a->real_ns - raw);
		if ((u64)llabs(by) <= SET_NS + raw / 1000000 * SET_PPM)
			continue;
		if (!steps++) {
			step = by;
			at = a->mono_raw_ns - rec->pair[0].mono_raw_ns;
		}
	}
	if (!steps)
		return;
	cli_warn(line->cli,
		 "%s: the host's clock was set during the recording, by %+.3f s at %.1f s%s: "
		 "wall-clock times jump there",
		 line->file, (double)step / 1e9, (double)at / 1e9,
		 steps > 1 ? ", and again later" : "");
}

/* The processor's TSC is constant; that of the plugin is at times ahead, and never slower. */
static void check_rate(const struct json_line *line, struct cli_recording *rec, bool constant)
{
	const struct cli_clock_pair *a = rec->pair, *b;
	double khz;

	if (rec->pairs < 2)
		return;
	b = a + rec->pairs - 1;
	if (b->mono_raw_ns - a->mono_raw_ns < NS)
		return;
	khz = (double)(b->tsc - a->tsc) / (double)(b->mono_raw_ns - a->mono_raw_ns) * 1e6;
	if (khz < 1 || khz > 999999999)
		return;
	if (rec->tsc_khz &&
	    (khz < (double)rec->tsc_khz * 0.99 || (constant && khz > (double)rec->tsc_khz * 1.01)))
		cli_warn(line->cli,
			 "%s: \"tsc_khz\" is %" PRIu64 ", but its clocks show %.0f, which is used",
			 line->file, (u64)rec->tsc_khz, khz);
	else if (rec->tsc_khz || !constant)
		return;
	rec->tsc_khz = (u64)(khz + 0.5);
}

/* ---- all of it ---- */

int cli_recording_head(struct cli *cli, struct cli_recording **rec)
{
	const struct cli_folder *f = cli->folder;
	struct json_line line = { .cli = cli, .left_out = true };
	const json_t *rates;
	const char *source;
	int err;

	if (!f || !f->doc)
		return CLI_OK;
	if (!*rec)
		*rec = calloc(1, sizeof(**rec));
	if (!*rec)
		return cli_no_memory(cli);
	line.file = f->head;
	rates = json_object_get(f->doc, "rates");
	source = json_string_value(json_object_get(rates, "tsc_source"));
	err = recording_host(&line, json_object_get(f->doc, "host"), *rec);
	if (err != CLI_FAILED)
		err = recording_host(&line, rates, *rec);
	if (err != CLI_FAILED)
		err = take_rates(&line, rates, *rec);
	if (err != CLI_FAILED)
		err = take_pairs(&line, json_object_get(f->doc, "clocks"), *rec);
	if (err == CLI_FAILED)
		return err;
	check_set(&line, *rec);
	check_rate(&line, *rec, !source || !strcmp(source, "processor"));
	return CLI_OK;
}

void cli_recording_check(struct cli *cli, struct cli_recording *rec, u64 first_tsc)
{
	const struct cli_clock_pair *a, *b;
	double late;

	if (!rec || !rec->pairs || !first_tsc)
		return;
	a = rec->pair;
	b = a + rec->pairs - 1;
	late = rec->tsc_khz ? ((double)first_tsc - (double)b->tsc) / (double)rec->tsc_khz * 1e6 : 0;
	if (first_tsc >= a->tsc && late <= KILLED_NS)
		return;
	cli_warn(cli,
		 "%s: its clocks are of another time than the trace, which begins at TSC 0x%" PRIx64
		 ": the trace is used, without wall-clock times",
		 cli->folder->head, (u64)first_tsc);
	rec->pairs = 0;
}
