// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Texts of vmpt timeline and vmpt exits, the same in all their outputs. */
#include <math.h>
#include <string.h>

#include "cli/timeline/internal.h"

const char *timeline_kind(const struct vmpt_span *span)
{
	static const char *const word[] = {
		[VMPT_SPAN_HOST] = "host",	 [VMPT_SPAN_GUEST] = "guest",
		[VMPT_SPAN_UNKNOWN] = "unknown", [VMPT_SPAN_LOST] = "lost",
		[VMPT_SPAN_OFF] = "off",
	};

	return word[span->kind];
}

const char *timeline_who(const struct timeline *t, const struct timeline_span *s)
{
	return s->vcpu == TIMELINE_NONE ? timeline_kind(s->span) : t->vcpu[s->vcpu].name;
}

const char *timeline_reason(const struct vmpt_exit *e, char buf[32])
{
	const char *name = vmpt_exit_reason_name(e->reason);

	if (e->source == VMPT_REASON_NONE || e->reason == VMPT_REASON_UNKNOWN)
		return "unknown";
	if (name)
		return name;
	snprintf(buf, 32, "reason %u", e->reason);
	return buf;
}

const char *timeline_reason_source(const struct vmpt_exit *e)
{
	static const char *const word[] = {
		[VMPT_REASON_NONE] = "none",	   [VMPT_REASON_EVD] = "evd",
		[VMPT_REASON_EVENT] = "event",	   [VMPT_REASON_CODE] = "code",
		[VMPT_REASON_PATTERN] = "pattern",
	};

	return word[e->source];
}

bool timeline_guessed(const struct vmpt_exit *e)
{
	return e->source == VMPT_REASON_CODE || e->source == VMPT_REASON_PATTERN;
}

u64 timeline_error(const struct timeline_bounds *bounds)
{
	return bounds->early > bounds->late ? bounds->early : bounds->late;
}

u64 timeline_part_error(const struct timeline_part_time *part)
{
	return part->early > part->late ? part->early : part->late;
}

const char *timeline_part_name(unsigned int part)
{
	static const char *const word[TIMELINE_PARTS] = {
		[TIMELINE_HOST] = "host",
		[TIMELINE_WAIT] = "wait",
		[TIMELINE_HALTED] = "halted",
		[TIMELINE_UNTRACED] = "untraced",
	};

	return word[part];
}

bool timeline_proved(const struct vmpt_exit *e)
{
	return e->source == VMPT_REASON_EVD || e->source == VMPT_REASON_EVENT;
}

double timeline_seconds(const struct timeline *t, u64 ticks)
{
	return t->hz > 0 ? (double)ticks / t->hz : (double)ticks;
}

u64 timeline_lasts(const struct timeline *t)
{
	u64 from = cli_filter(t->cli)->from_tsc;

	from = from > t->zero ? from - t->zero : 0;
	return t->last > from ? t->last - from : 0;
}

const char *timeline_cut(const char *name, size_t columns, char *buf, size_t len)
{
	if (cli_columns(name) <= columns && strlen(name) < len)
		return name;
	snprintf(buf, len, "%.*s…", (int)cli_columns_bytes(name, columns - 1), name);
	return buf;
}

const char *timeline_why(const struct vmpt_exit *e, char *buf, size_t len, size_t columns)
{
	char name[32], cut[96];
	bool guessed = timeline_guessed(e);

	snprintf(buf, len, "%s%s",
		 timeline_cut(timeline_reason(e, name), columns - guessed, cut, sizeof(cut)),
		 guessed ? "?" : "");
	return buf;
}

const char *timeline_length(const struct timeline *t, u64 ticks, char buf[TIMELINE_TIME])
{
	return cli_when_length(&t->times, ticks, buf);
}

const char *timeline_short(const struct timeline *t, u64 ticks, char buf[TIMELINE_TIME])
{
	static const char unit[] = "kMGTPE";
	double value = (double)ticks;
	int i = -1, digits;

	if (t->hz > 0 || ticks < 100000)
		return timeline_length(t, ticks, buf);
	while (value >= 999.5) {
		value /= 1000;
		i++;
	}
	digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(buf, TIMELINE_TIME, "%.*f %c", digits, value, unit[i]);
	return buf;
}

void timeline_tell_ticks(const struct timeline *t)
{
	if (t->timed)
		cli_when_tell_ticks(t->cli, &t->times);
}

void timeline_longest_take(struct timeline_longest *longest, const struct timeline_span *s,
			   u64 ticks)
{
	if (ticks <= longest->ticks)
		return;
	*longest = (struct timeline_longest){
		.ticks = ticks,
		.at = s->left_at,
		.offset = s->left_offset,
		.stream = s->left_stream,
		.vcpu = s->vcpu,
		.given = true,
	};
}

const char *timeline_longest_at(const struct timeline *t, const struct timeline_longest *longest,
				char buf[CLI_WHEN])
{
	u64 tsc = t->zero + longest->at;

	/* A bare number would be one from the start. */
	return t->times.clock == CLI_WHEN_PERF ? cli_when_whole(&t->times, tsc, buf)
					       : cli_when_text(&t->times, tsc, buf);
}
