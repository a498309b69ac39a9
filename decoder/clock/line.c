// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lines through vertical segments; see line.h. The flattest line touches the lower end of a segment
 * to the right of one whose upper end it touches, the steepest the other way round. A new segment
 * that cuts off one of them makes a tangent to the hull of the other ends, from the old point of
 * contact on: points before it can never be touched again. So the total work is linear in the
 * number of segments.
 */
#include <stdlib.h>

#include "decoder/clock/line.h"

int vmpt_fit_line_init(struct vmpt_fit_line *line, size_t room)
{
	*line = (struct vmpt_fit_line){ .room = room };
	line->upper.at = calloc(room + 1, sizeof(*line->upper.at));
	line->lower.at = calloc(room + 1, sizeof(*line->lower.at));
	if (line->upper.at && line->lower.at)
		return 0;
	vmpt_fit_line_free(line);
	return -VMPT_E_NOMEM;
}

void vmpt_fit_line_free(struct vmpt_fit_line *line)
{
	free(line->upper.at);
	free(line->lower.at);
	line->upper.at = line->lower.at = NULL;
}

void vmpt_fit_line_clear(struct vmpt_fit_line *line)
{
	line->count = 0;
	line->upper.start = line->upper.end = line->lower.start = line->lower.end = 0;
}

/* Positive: the slope of a to b is less than that of c to d. Both go to the right. */
static int steeper(const struct vmpt_fit_line_point *a, const struct vmpt_fit_line_point *b,
		   const struct vmpt_fit_line_point *c, const struct vmpt_fit_line_point *d)
{
	__int128 ab = (__int128)(b->y - a->y) * (d->x - c->x);
	__int128 cd = (__int128)(d->y - c->y) * (b->x - a->x);

	return (cd > ab) - (cd < ab);
}

/*
 * The point of @hull from which the line to @to is the flattest (@sign 1) or steepest (-1); the
 * hull begins there from now on.
 */
static struct vmpt_fit_line_point tangent(struct vmpt_fit_line_hull *hull,
					  const struct vmpt_fit_line_point *to, int sign)
{
	size_t best = hull->start;

	while (best + 1 < hull->end &&
	       sign * steeper(&hull->at[best], to, &hull->at[best + 1], to) <= 0)
		best++;
	hull->start = best;
	return hull->at[best];
}

/* Add a point to the right; @sign 1: a hull that is convex from below, of upper ends. */
static void hull_add(struct vmpt_fit_line_hull *hull, const struct vmpt_fit_line_point *p, int sign)
{
	while (hull->end >= hull->start + 2 &&
	       sign * steeper(&hull->at[hull->end - 2], &hull->at[hull->end - 1],
			      &hull->at[hull->end - 2], p) <=
		       0)
		hull->end--;
	hull->at[hull->end++] = *p;
}

static bool add_first(struct vmpt_fit_line *line, const struct vmpt_fit_line_point *low,
		      const struct vmpt_fit_line_point *high)
{
	line->lower.start = line->upper.start = 0;
	line->lower.end = line->upper.end = 1;
	line->lower.at[0] = line->steep[0] = *low;
	line->upper.at[0] = line->flat[0] = *high;
	return true;
}

static bool add_second(struct vmpt_fit_line *line, const struct vmpt_fit_line_point *low,
		       const struct vmpt_fit_line_point *high)
{
	line->flat[1] = *low;
	line->steep[1] = *high;
	hull_add(&line->lower, low, -1);
	hull_add(&line->upper, high, 1);
	return true;
}

static bool add_more(struct vmpt_fit_line *line, const struct vmpt_fit_line_point *low,
		     const struct vmpt_fit_line_point *high)
{
	struct vmpt_fit_line_point *flat = line->flat, *steep = line->steep;

	/* Below the flattest or above the steepest line there is none. */
	if (steeper(&flat[0], high, &flat[0], &flat[1]) > 0 ||
	    steeper(&steep[0], &steep[1], &steep[0], low) > 0)
		return false;
	if (steeper(&steep[0], high, &steep[0], &steep[1]) > 0) {
		steep[0] = tangent(&line->lower, high, 1);
		steep[1] = *high;
	}
	if (steeper(&flat[0], &flat[1], &flat[0], low) > 0) {
		flat[0] = tangent(&line->upper, low, -1);
		flat[1] = *low;
	}
	hull_add(&line->upper, high, 1);
	hull_add(&line->lower, low, -1);
	return true;
}

bool vmpt_fit_line_add(struct vmpt_fit_line *line, s64 x, s64 lo, s64 hi, u32 tag)
{
	struct vmpt_fit_line_point low = { x, lo, tag }, high = { x, hi, tag };

	if (line->count && x < line->last)
		return false;
	/* With the same x only one of them can be a corner of the line: both must fit. */
	if (line->count && x == line->last) {
		if (lo > line->last_hi || hi < line->last_lo)
			return false;
		line->last_lo = lo > line->last_lo ? lo : line->last_lo;
		line->last_hi = hi < line->last_hi ? hi : line->last_hi;
		return true;
	}
	if (line->count >= line->room || !(line->count == 0   ? add_first(line, &low, &high)
					   : line->count == 1 ? add_second(line, &low, &high)
							      : add_more(line, &low, &high)))
		return false;
	line->count++;
	line->last = x;
	line->last_lo = lo;
	line->last_hi = hi;
	return true;
}

static double slope_of(const struct vmpt_fit_line_point p[2])
{
	return (double)(p[1].y - p[0].y) / (double)(p[1].x - p[0].x);
}

bool vmpt_fit_line_slopes(const struct vmpt_fit_line *line, double *flat, double *steep)
{
	if (line->count < 2)
		return false;
	*flat = slope_of(line->flat);
	*steep = slope_of(line->steep);
	return true;
}

static double line_at(const struct vmpt_fit_line_point p[2], s64 x)
{
	return (double)p[0].y + slope_of(p) * (double)(x - p[0].x);
}

void vmpt_fit_line_at(const struct vmpt_fit_line *line, s64 x, double *lo, double *hi)
{
	double a, b;

	if (line->count < 2) {
		*lo = (double)line->last_lo;
		*hi = (double)line->last_hi;
		return;
	}
	a = line_at(line->flat, x);
	b = line_at(line->steep, x);
	*lo = a < b ? a : b;
	*hi = a < b ? b : a;
}
