// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Times in text; see when.h. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/sideinfo/when.h"

#define NS_S 1000000000LL

/*
 * Between two readings of the clocks CLOCK_REALTIME may differ from CLOCK_MONOTONIC_RAW by what NTP
 * slews, at most 500 ppm, and the crystal's error; more than this is a clock that was set.
 */
#define SLEW_PER_MILLE 1
#define JITTER_NS      1000000

const char *cli_when_name(unsigned int clock)
{
	static const char *const name[CLI_WHENS] = { "start", "perf", "wall" };

	return clock < CLI_WHENS ? name[clock] : "?";
}

/* ---- the wall clock ---- */

/* Whether the clock was set between pair @i and the next one. */
static bool was_set(const struct cli_times *w, size_t i)
{
	s64 real = (s64)(w->pair[i + 1].real_ns - w->pair[i].real_ns);
	s64 raw = (s64)(w->pair[i + 1].mono_raw_ns - w->pair[i].mono_raw_ns);

	return llabs(real - raw) > JITTER_NS + raw / 1000 * SLEW_PER_MILLE;
}

/* ns per tick of the raw clock about pair @i; 0: not known. */
static long double raw_rate(const struct cli_times *w, size_t i)
{
	size_t a = i + 1 < w->pairs ? i : i - 1;
	u64 ticks;

	if (w->pairs < 2)
		return w->hz > 0 ? 1e9L / (long double)w->hz : 0;
	ticks = w->pair[a + 1].tsc - w->pair[a].tsc;
	return ticks ? (long double)(w->pair[a + 1].mono_raw_ns - w->pair[a].mono_raw_ns) /
			       (long double)ticks
		     : 0;
}

static s64 rounded(long double value)
{
	return (s64)(value < 0 ? value - 0.5L : value + 0.5L);
}

/* The last pair at or before @tsc, or the first. */
static size_t pair_before(const struct cli_times *w, u64 tsc)
{
	size_t low = 0, high = w->pairs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->pair[mid].tsc <= tsc)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? low - 1 : 0;
}

/* Where times after pair @i are counted from the next one, if the clock was set between them. */
static u64 middle(const struct cli_times *w, size_t i)
{
	return w->pair[i].tsc + (w->pair[i + 1].tsc - w->pair[i].tsc) / 2;
}

static bool wall_ns(const struct cli_times *w, u64 tsc, s64 *ns, bool *doubt)
{
	size_t i = pair_before(w, tsc);
	const struct cli_clock_pair *p;
	long double rate;
	bool inside, set;

	if (!w->pairs)
		return false;
	inside = tsc >= w->pair[i].tsc && i + 1 < w->pairs;
	set = inside && was_set(w, i);
	*doubt = set;
	if (set && tsc >= middle(w, i))
		i++;
	p = &w->pair[i];
	if (inside && !set)
		rate = (long double)(s64)(p[1].real_ns - p->real_ns) /
		       (long double)(p[1].tsc - p->tsc);
	else
		rate = raw_rate(w, i);
	*ns = (s64)p->real_ns + rounded((long double)(s64)(tsc - p->tsc) * rate);
	return rate > 0;
}

bool cli_when_ns(const struct cli_times *w, unsigned int clock, u64 tsc, s64 *ns, bool *doubt)
{
	bool unused;

	if (!doubt)
		doubt = &unused;
	*doubt = false;
	switch (clock) {
	case CLI_WHEN_START:
		if (w->hz > 0)
			*ns = rounded((long double)(s64)(tsc - w->zero) * 1e9L /
				      (long double)w->hz);
		return w->hz > 0;
	case CLI_WHEN_PERF:
		if (w->info)
			*ns = (s64)vmpt_tsc_to_perf_time(w->info, tsc);
		return w->info;
	default:
		return wall_ns(w, tsc, ns, doubt);
	}
}

/* ---- to text ---- */

static void put_seconds(char *buf, size_t len, const char *prefix, s64 ns)
{
	u64 n = ns < 0 ? -(u64)ns : (u64)ns;

	snprintf(buf, len, "%s%s%llu.%09llu", prefix, ns < 0 ? "-" : "",
		 (unsigned long long)(n / NS_S), (unsigned long long)(n % NS_S));
}

/* Local time of @ns since 1970; its fraction. */
static void local_time(s64 ns, struct tm *tm, unsigned int *fraction)
{
	time_t s = (time_t)(ns / NS_S - (ns % NS_S < 0));

	*fraction = (unsigned int)(ns - (s64)s * NS_S);
	if (!localtime_r(&s, tm))
		memset(tm, 0, sizeof(*tm));
}

static bool is_long(const struct cli_times *w)
{
	return w->pairs &&
	       (s64)(w->pair[w->pairs - 1].real_ns - w->pair[0].real_ns) >= 86400 * NS_S;
}

const char *cli_when_text(const struct cli_times *w, u64 tsc, char buf[CLI_WHEN])
{
	unsigned int fraction;
	struct tm tm;
	bool doubt;
	size_t n;
	s64 ns;

	if (!cli_when_ns(w, w->clock, tsc, &ns, &doubt)) {
		snprintf(buf, CLI_WHEN, "%lld", (long long)(tsc - w->zero));
		return buf;
	}
	if (w->clock != CLI_WHEN_WALL) {
		put_seconds(buf, CLI_WHEN, "", ns);
		return buf;
	}
	local_time(ns, &tm, &fraction);
	n = strftime(buf, CLI_WHEN, is_long(w) ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &tm);
	snprintf(buf + n, CLI_WHEN - n, ".%09u%s", fraction, doubt ? "?" : "");
	return buf;
}

const char *cli_when_whole(const struct cli_times *w, u64 tsc, char buf[CLI_WHEN])
{
	unsigned int fraction;
	struct tm tm;
	long off;
	size_t n;
	s64 ns;

	if (!cli_when_ns(w, w->clock, tsc, &ns, NULL) || w->clock == CLI_WHEN_START)
		return cli_when_text(w, tsc, buf);
	if (w->clock == CLI_WHEN_PERF) {
		put_seconds(buf, CLI_WHEN, "perf:", ns);
		return buf;
	}
	local_time(ns, &tm, &fraction);
	off = tm.tm_gmtoff / 60;
	n = strftime(buf, CLI_WHEN, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + n, CLI_WHEN - n, ".%09u%c%02ld:%02ld", fraction, off < 0 ? '-' : '+',
		 labs(off) / 60 % 100, labs(off) % 60);
	return buf;
}

const char *cli_when_title(const struct cli_times *w, char buf[CLI_WHEN])
{
	unsigned int fraction;
	struct tm tm;
	s64 ns;

	if (!cli_when_ns(w, w->clock, w->zero, &ns, NULL)) {
		snprintf(buf, CLI_WHEN, "TIME (ticks)");
	} else if (w->clock == CLI_WHEN_WALL) {
		local_time(ns, &tm, &fraction);
		snprintf(buf, CLI_WHEN, "TIME (%.16s)", tm.tm_zone ? tm.tm_zone : "local");
	} else {
		snprintf(buf, CLI_WHEN, "%s", w->clock == CLI_WHEN_PERF ? "PERF TIME" : "TIME (s)");
	}
	return buf;
}

const char *cli_when_length(const struct cli_times *w, u64 ticks, char buf[CLI_LENGTH])
{
	static const char *const unit[] = { "s", "ms", "µs", "ns" };
	double value = w->hz > 0 ? (double)ticks / w->hz : 0;
	int i = 0, decimals;

	if (!(w->hz > 0))
		return cli_number(ticks, buf);
	while (i < 3 && value < 0.9995) {
		value *= 1000;
		i++;
	}
	decimals = i == 3 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(buf, CLI_LENGTH, "%.*f %s", decimals, value,
		 i == 2 && !cli_utf8() ? "us" : unit[i]);
	return buf;
}

void cli_when_tell_ticks(const struct cli *cli, const struct cli_times *w)
{
	if (!(w->hz > 0))
		cli_warn(cli, "the TSC's frequency is not known: times are in its ticks; "
			      "give --tsc-khz");
}

/* ---- from text ---- */

/* Digits at *@s, at most @most of them; *@s moves past them. -1: none. */
static int digits(const char **s, int most)
{
	int value = -1;

	for (; most && **s >= '0' && **s <= '9'; most--)
		value = (value < 0 ? 0 : value) * 10 + (*(*s)++ - '0');
	return value;
}

/* ".25" at *@s, in ns; 0 if there is none. Digits after the ninth are dropped. */
static s64 fraction_ns(const char **s)
{
	s64 ns = 0, unit = NS_S;

	if (**s != '.')
		return 0;
	for ((*s)++; **s >= '0' && **s <= '9'; (*s)++) {
		unit /= 10;
		ns += unit * (**s - '0');
	}
	return ns;
}

enum number { NUMBER_BAD, NUMBER_TIME, NUMBER_PLAIN };

/* "12", "12.5ms" in ns, plain numbers in seconds; *@whole: the integer. */
static enum number parse_number(const char *s, s64 *ns, u64 *whole)
{
	static const struct {
		const char *name;
		s64 ns;
	} unit[] = { { "s", NS_S },  { "ms", 1000000 }, { "us", 1000 },
		     { "µs", 1000 }, { "ns", 1 },	{ "", NS_S } };
	const char *start = s;
	__int128 value = 0, scaled;
	s64 scale = 1;
	size_t i;

	for (; *s >= '0' && *s <= '9'; s++) {
		value = value * 10 + (*s - '0');
		if (value > UINT64_MAX)
			return NUMBER_BAD;
	}
	if (s == start)
		return NUMBER_BAD;
	*whole = (u64)value;
	if (*s == '.' && s[1] >= '0' && s[1] <= '9')
		for (s++; *s >= '0' && *s <= '9'; s++)
			if (scale < NS_S) {
				value = value * 10 + (*s - '0');
				scale *= 10;
			}
	for (i = 0; i < VMPT_ARRAY_SIZE(unit); i++)
		if (!strcmp(s, unit[i].name))
			break;
	if (i == VMPT_ARRAY_SIZE(unit))
		return NUMBER_BAD;
	scaled = value * unit[i].ns / scale;
	*ns = scaled > (__int128)(~0ULL >> 1) ? (s64)(~0ULL >> 1) : (s64)scaled;
	return *s || scale > 1 ? NUMBER_TIME : NUMBER_PLAIN;
}

/* The first TSC in [@low, @high) that is at or after @ns; @high: none. */
static u64 search(const struct cli_times *w, unsigned int clock, u64 low, u64 high, s64 ns)
{
	s64 at;

	while (low < high) {
		u64 mid = low + (high - low) / 2;

		if (cli_when_ns(w, clock, mid, &at, NULL) && at < ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

#define TSC_END (1ULL << 62)

static s64 wall_at(const struct cli_times *w, u64 tsc)
{
	bool doubt;
	s64 ns = 0;

	wall_ns(w, tsc, &ns, &doubt);
	return ns;
}

/*
 * Of the wall clock, which may have been set: the first stretch that has the time. One that was
 * skipped is that of the setting; one before all of them is the start.
 */
static u64 search_wall(const struct cli_times *w, s64 ns)
{
	u64 low = 0, high, at;
	size_t i;

	for (i = 0; i + 1 < w->pairs; i++) {
		if (!was_set(w, i))
			continue;
		high = middle(w, i);
		if (wall_at(w, low) <= ns && wall_at(w, high - 1) >= ns)
			return search(w, CLI_WHEN_WALL, low, high, ns);
		if (wall_at(w, high - 1) < ns && wall_at(w, high) >= ns)
			return high;
		low = high;
	}
	at = search(w, CLI_WHEN_WALL, low, TSC_END, ns);
	return at == low && wall_at(w, low) > ns ? 0 : at;
}

static int to_tsc(const struct cli_times *w, unsigned int clock, s64 ns, u64 *tsc, char why[160])
{
	u64 low = clock == CLI_WHEN_START ? w->zero : 0;
	s64 unused;

	if (!cli_when_ns(w, clock, w->zero, &unused, NULL)) {
		snprintf(why, 160, "%s",
			 clock == CLI_WHEN_START
				 ? "the TSC's frequency is not known: give --tsc-khz"
			 : clock == CLI_WHEN_PERF
				 ? "the trace has no conversion from the TSC to perf's time"
				 : "the wall clock of the recording is not known");
		return -1;
	}
	*tsc = clock == CLI_WHEN_WALL ? search_wall(w, ns) : search(w, clock, low, TSC_END, ns);
	if (*tsc >= TSC_END)
		snprintf(why, 160, "it is too far away");
	return *tsc >= TSC_END ? -1 : 0;
}

/* "14:03:07.25" at *@s. */
static bool parse_clock(const char **s, struct tm *tm, s64 *fraction)
{
	tm->tm_hour = digits(s, 2);
	if (tm->tm_hour < 0 || tm->tm_hour > 23 || *(*s)++ != ':')
		return false;
	tm->tm_min = digits(s, 2);
	if (tm->tm_min < 0 || tm->tm_min > 59)
		return false;
	*fraction = tm->tm_sec = 0;
	if (**s != ':')
		return true;
	(*s)++;
	tm->tm_sec = digits(s, 2);
	*fraction = fraction_ns(s);
	return tm->tm_sec >= 0 && tm->tm_sec <= 60;
}

/* "Z", "+01:00", "-05:30" at *@s: seconds east. */
static bool parse_zone(const char **s, long *east)
{
	int minus = **s == '-', h, m;

	if (**s == 'Z' || **s == 'z') {
		(*s)++;
		*east = 0;
		return true;
	}
	if (*(*s)++ != '+' && !minus)
		return false;
	h = digits(s, 2);
	if (h < 0 || *(*s)++ != ':')
		return false;
	m = digits(s, 2);
	*east = (h * 60L + m) * (minus ? -60 : 60);
	return m >= 0 && h < 24 && m < 60;
}

/* The calendar has the day: mktime() and timegm() go on to the next month. */
static bool is_a_day(const struct tm *tm)
{
	struct tm day = { .tm_year = tm->tm_year, .tm_mon = tm->tm_mon, .tm_mday = tm->tm_mday };

	return timegm(&day) != (time_t)-1 && day.tm_mday == tm->tm_mday;
}

/* RFC 3339, or without a zone: local time. */
static bool parse_date(const char *s, s64 *ns)
{
	struct tm tm = { .tm_isdst = -1 };
	s64 fraction;
	time_t at;
	long east;

	tm.tm_year = digits(&s, 4) - 1900;
	if (*s++ != '-')
		return false;
	tm.tm_mon = digits(&s, 2) - 1;
	if (*s++ != '-')
		return false;
	tm.tm_mday = digits(&s, 2);
	if (*s != 'T' && *s != 't' && *s != ' ')
		return false;
	s++;
	if (tm.tm_year < 70 || tm.tm_mon < 0 || tm.tm_mon > 11 || tm.tm_mday < 1 ||
	    !is_a_day(&tm) || !parse_clock(&s, &tm, &fraction))
		return false;
	if (!*s || !strcmp(s, "?")) {
		at = mktime(&tm);
	} else {
		if (!parse_zone(&s, &east) || *s)
			return false;
		at = timegm(&tm) - east;
	}
	*ns = (s64)at * NS_S + fraction;
	return true;
}

/* Local time on the recording's first day; on the next one if the recording goes on until then. */
static bool parse_time_of_day(const struct cli_times *w, const char *s, s64 *ns)
{
	struct tm tm = { 0 }, day, last;
	unsigned int unused;
	s64 fraction, first = w->pairs ? (s64)w->pair[0].real_ns : 0;

	if (!parse_clock(&s, &tm, &fraction) || (*s && strcmp(s, "?") != 0))
		return false;
	if (!w->pairs)
		return true;
	local_time(first, &day, &unused);
	local_time((s64)w->pair[w->pairs - 1].real_ns, &last, &unused);
	tm.tm_year = day.tm_year;
	tm.tm_mon = day.tm_mon;
	tm.tm_mday = day.tm_mday;
	tm.tm_isdst = -1;
	*ns = (s64)mktime(&tm) * NS_S + fraction;
	if (*ns < first - 3600 * NS_S && last.tm_mday != day.tm_mday) {
		tm.tm_mday++;
		tm.tm_isdst = -1;
		*ns = (s64)mktime(&tm) * NS_S + fraction;
	}
	return true;
}

int cli_when_parse(const struct cli_times *w, const char *text, u64 *tsc, char why[160])
{
	enum number number;
	char *end;
	u64 whole;
	s64 ns = 0;

	if (!strncmp(text, "tsc:", 4) && text[4] >= '0' && text[4] <= '9') {
		*tsc = strtoull(text + 4, &end, strncmp(text + 4, "0x", 2) ? 10 : 16);
		if (!*end && *tsc < TSC_END)
			return 0;
	}
	if (!strncmp(text, "perf:", 5) && parse_number(text + 5, &ns, &whole))
		return to_tsc(w, CLI_WHEN_PERF, ns, tsc, why);
	if (!strncmp(text, "unix:", 5) && parse_number(text + 5, &ns, &whole))
		return to_tsc(w, CLI_WHEN_WALL, ns, tsc, why);
	if (parse_date(text, &ns) || parse_time_of_day(w, text, &ns))
		return to_tsc(w, CLI_WHEN_WALL, ns, tsc, why);
	number = parse_number(text, &ns, &whole);
	if (number == NUMBER_PLAIN && !(w->hz > 0)) {
		*tsc = w->zero + whole;
		if (whole < TSC_END && *tsc < TSC_END)
			return 0;
		snprintf(why, 160, "it is too far away");
		return -1;
	}
	if (number)
		return to_tsc(w, CLI_WHEN_START, ns, tsc, why);
	snprintf(why, 160,
		 "it is not a time, like 0.25, 12.5ms, perf:969349.99, unix:1763820187.25, "
		 "tsc:0x1234, 14:03:07.25 or RFC 3339");
	return -1;
}

/* ---- of a trace ---- */

#define HEAD_BYTES (256u << 10)

/* The first known time of stream number @i of those that @clocks was opened with. */
static int first_time(struct cli *cli, const struct vmpt_clocks *clocks, size_t i, u64 *first)
{
	const struct vmpt_clock_counts *n = vmpt_clocks_counts(clocks, i);
	struct vmpt_options options = cli->options;
	struct vmpt_timed_batch batch;
	struct vmpt_timed *timed;
	u64 found = VMPT_TIME_NONE;
	size_t k;
	int ret;

	if (!n || (!n->tscs && !n->mtcs))
		return 0;
	options.progress = NULL;
	options.threads = 1;
	ret = vmpt_timed_open(&timed, clocks, i, &options);
	if (ret)
		return ret;
	while (found == VMPT_TIME_NONE && (ret = vmpt_timed_next(timed, &batch)) > 0)
		for (k = 0; k < batch.batch.count && found == VMPT_TIME_NONE; k++)
			found = batch.time[k].tsc;
	vmpt_timed_close(timed);
	if (found < *first)
		*first = found;
	return ret < 0 ? ret : 0;
}

/* The same of streams that --cpu leaves out, by their heads: time 0 does not depend on --cpu. */
static int first_of_others(struct cli *cli, const struct cli_clocks *c, u64 *first)
{
	size_t n = vmpt_trace_streams(cli->trace), i, others = 0;
	struct vmpt_stream *head = calloc(n + 1, sizeof(*head));
	const struct vmpt_stream **list = calloc(n + 1, sizeof(*list));
	struct vmpt_clocks_options options;
	struct vmpt_clocks *clocks = NULL;
	int ret = head && list ? 0 : -VMPT_E_NOMEM;

	cli_clock_settings(cli, &options);
	options.decode.progress = NULL;
	options.given = c->given;
	options.given_count = c->given_count;
	options.rates = *vmpt_clocks_rates(c->clocks);
	options.near_tsc = cli_recording_near_tsc(cli);
	for (i = 0; !ret && i < n; i++) {
		const struct vmpt_stream *s = vmpt_trace_stream(cli->trace, i);

		if (!s->size || cli_chosen(cli, s))
			continue;
		head[others] = *s;
		if (s->size > HEAD_BYTES)
			head[others].size = HEAD_BYTES;
		while (head[others].gap_count &&
		       s->gaps[head[others].gap_count - 1].offset >= head[others].size)
			head[others].gap_count--;
		list[others] = &head[others];
		others++;
	}
	if (!ret && others)
		ret = vmpt_clocks_open(&clocks, list, others, &options);
	for (i = 0; !ret && clocks && i < others; i++)
		ret = first_time(cli, clocks, i, first);
	vmpt_clocks_close(clocks);
	free(head);
	free(list);
	return ret;
}

static int set_zero(struct cli *cli, const struct cli_clocks *c, struct cli_times *w)
{
	u64 first = VMPT_TIME_NONE;
	int ret = 0;
	size_t i;

	for (i = 0; !ret && i < cli->streams; i++)
		ret = first_time(cli, c->clocks, i, &first);
	if (!ret && cli->streams < vmpt_trace_streams(cli->trace))
		ret = first_of_others(cli, c, &first);
	w->zero = first == VMPT_TIME_NONE ? 0 : first;
	if (ret)
		cli_error(cli, "%s: %s", cli->file[0], vmpt_strerror(ret));
	return ret ? CLI_FAILED : CLI_OK;
}

/* Those of the recording with a wall clock. */
static int take_pairs(struct cli *cli, const struct cli_recording *rec, struct cli_times *w)
{
	struct cli_clock_pair *pair;
	size_t i;

	if (!rec || !rec->pairs)
		return CLI_OK;
	pair = calloc(rec->pairs, sizeof(*pair));
	if (!pair)
		return cli_no_memory(cli);
	for (i = 0; i < rec->pairs; i++)
		if (rec->pair[i].real_ns)
			pair[w->pairs++] = rec->pair[i];
	w->pair = pair;
	return CLI_OK;
}

int cli_when_open(struct cli *cli, const struct cli_clocks *clocks, unsigned int clock,
		  struct cli_times *w)
{
	const struct vmpt_trace_info *info = vmpt_trace_info(cli->trace);
	int code;
	s64 ns;

	*w = (struct cli_times){ .clock = (u8)clock };
	w->hz = cli_clock(cli)->tsc_khz ? (double)cli_clock(cli)->tsc_khz * 1000
					: cli_clocks_hertz(cli, clocks->rec);
	w->info = info->has_time_conv ? info : NULL;
	code = set_zero(cli, clocks, w);
	if (!code)
		code = take_pairs(cli, clocks->rec, w);
	if (code || clock == CLI_WHEN_START || cli_when_ns(w, clock, w->zero, &ns, NULL))
		return code;
	if (clock == CLI_WHEN_PERF)
		return cli_usage(cli,
				 "--time=perf: %s has no conversion from the TSC to perf's time",
				 cli->file[0]);
	return cli_usage(cli,
			 "--time=wall: the wall clock of %s is not known: vmpt record and vmpt "
			 "domain trace record it",
			 cli->file[0]);
}

void cli_when_close(struct cli_times *w)
{
	free((void *)w->pair);
	w->pair = NULL;
	w->pairs = 0;
}

/* ---- the option ---- */

static const struct cli_option options[] = {
	{ "time", 0, CLI_WORD, "CLOCK",
	  "print times from the start in seconds, as perf's, or as the wall clock's, local time (TZ)",
	  "start", "start, perf, wall", CLI_AT(struct cli_when_given, clock) },
	{ 0 },
};

const struct cli_group cli_when_group = {
	.title = "Options for times",
	.option = options,
	.common = true,
	.size = sizeof(struct cli_when_given),
};
