// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Words and figures of vmpt exits' rows, the same in its tables and its JSON. */
#include "cli/timeline/exits.h"

const char *exits_row_vm(const struct timeline *t, const struct exits_row *row)
{
	if (row->kind == EXITS_OTHERS)
		return "others";
	return row->vm == TIMELINE_NONE ? "all" : t->vm[row->vm].name;
}

const char *exits_by_title(unsigned int by)
{
	static const char *const title[] = {
		[EXITS_BY_REASON] = "EXIT", [EXITS_BY_IP] = "IP",     [EXITS_BY_VCPU] = "VCPU",
		[EXITS_BY_CPU] = "CPU",	    [EXITS_BY_PORT] = "PORT", [EXITS_BY_MSR] = "MSR",
		[EXITS_BY_GPA] = "GPA",	    [EXITS_BY_CR3] = "CR3",
	};

	return title[by];
}

const char *exits_by_name(unsigned int by)
{
	static const char *const name[] = {
		[EXITS_BY_REASON] = "reason", [EXITS_BY_IP] = "ip",	[EXITS_BY_VCPU] = "vcpu",
		[EXITS_BY_CPU] = "cpu",	      [EXITS_BY_PORT] = "port", [EXITS_BY_MSR] = "msr",
		[EXITS_BY_GPA] = "gpa",	      [EXITS_BY_CR3] = "cr3",
	};

	return name[by];
}

struct vmpt_exit exits_row_exit(const struct exits_row *row)
{
	u16 reason = row->key.reason;

	return (struct vmpt_exit){
		.reason = reason,
		.source = reason == VMPT_REASON_UNKNOWN ? VMPT_REASON_NONE
			  : row->key.guessed		? VMPT_REASON_CODE
							: VMPT_REASON_EVD,
	};
}

/* "EPT violation 3f000"; the reason may be a guess, the value is not. */
static const char *with_reason(const struct exits_row *row, char *buf, size_t len)
{
	struct vmpt_exit e = exits_row_exit(row);
	char why[96];

	timeline_why(&e, why, sizeof(why), 24);
	if (row->key.known)
		snprintf(buf, len, "%llx %s", (unsigned long long)row->key.value, why);
	else
		snprintf(buf, len, "not known, %s", why);
	return buf;
}

const char *exits_row_name(const struct exits *x, const struct timeline *t,
			   const struct exits_row *row, char *buf, size_t len, size_t columns)
{
	struct vmpt_exit e = exits_row_exit(row);

	if (row->kind == EXITS_OTHERS)
		return "others";
	if (row->kind == EXITS_TOTAL)
		return "total";
	switch (x->by) {
	case EXITS_BY_REASON:
		return timeline_why(&e, buf, len, columns);
	case EXITS_BY_MSR:
	case EXITS_BY_GPA:
		return with_reason(row, buf, len);
	}
	if (!row->key.known)
		return "not known";
	switch (x->by) {
	case EXITS_BY_VCPU:
		return t->vcpu[row->key.value].name;
	case EXITS_BY_CPU:
		return cli_stream_cpu(t->cli->stream[row->key.value], buf);
	case EXITS_BY_PORT:
		snprintf(buf, len, "%s %llx", row->key.in ? "in" : "out",
			 (unsigned long long)row->key.value);
		return buf;
	}
	snprintf(buf, len, "%llx", (unsigned long long)row->key.value);
	return buf;
}

u64 exits_sort_value(const struct exits *x, const struct exits_row *row)
{
	const struct exits_time *time = &row->time[x->time];

	switch (x->sort) {
	case EXITS_SORT_COUNT:
		return row->exits;
	case EXITS_SORT_MIN:
		return time->each.min;
	case EXITS_SORT_MEAN:
		return histogram_mean(&time->each);
	case EXITS_SORT_P50:
		return histogram_at(&time->each, 500);
	case EXITS_SORT_P95:
		return histogram_at(&time->each, 950);
	case EXITS_SORT_P99:
		return histogram_at(&time->each, 990);
	case EXITS_SORT_MAX:
		return time->each.max;
	case EXITS_SORT_HOST:
	case EXITS_SORT_WAIT:
	case EXITS_SORT_HALTED:
	case EXITS_SORT_UNTRACED:
		return row->time[x->sort - EXITS_SORT_HOST].each.sum;
	}
	return time->each.sum;
}
