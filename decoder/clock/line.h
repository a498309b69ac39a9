/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All straight lines through a row of vertical segments: a guest's TSC is known exactly (x), the
 * host's lies between two bounds (lo, hi). Segments are added by x; the flattest and the steepest
 * line, and thus the uncertainty of the slope, are known at any time.
 */
#ifndef VMPT_DECODER_CLOCK_LINE_H
#define VMPT_DECODER_CLOCK_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "arch/error.h"
#include "arch/types.h"

struct vmpt_fit_line_point {
	s64 x, y;
	u32 tag; /* the caller's tag of the segment */
};

/* Part of a convex hull: points [start, end) of .at. */
struct vmpt_fit_line_hull {
	struct vmpt_fit_line_point *at;
	size_t start, end;
};

struct vmpt_fit_line {
	size_t room;	      /* segments that may be added */
	size_t count;	      /* segments added so far */
	s64 last;	      /* x of the last one */
	s64 last_lo, last_hi; /* its bounds; intersected with others of the same x */
	struct vmpt_fit_line_hull upper, lower; /* of the segments' upper and lower ends */
	/* The flattest line goes through the first two, the steepest through the others. */
	struct vmpt_fit_line_point flat[2], steep[2];
};

/* Room for @room segments. 0 or -VMPT_E_NOMEM. */
int vmpt_fit_line_init(struct vmpt_fit_line *line, size_t room);
void vmpt_fit_line_free(struct vmpt_fit_line *line);
/* Remove all segments. */
void vmpt_fit_line_clear(struct vmpt_fit_line *line);

/*
 * If some line goes through all segments and this one, add it and return true. @x must not be less
 * than that of the one before. All values are less than 2^60 in size.
 */
bool vmpt_fit_line_add(struct vmpt_fit_line *line, s64 x, s64 lo, s64 hi, u32 tag);

/* The range of slopes (y per x); false: fewer than two different x, any slope will do. */
bool vmpt_fit_line_slopes(const struct vmpt_fit_line *line, double *flat, double *steep);
/* The range of y at @x, which must not be strictly inside the segments' range. */
void vmpt_fit_line_at(const struct vmpt_fit_line *line, s64 x, double *lo, double *hi);

#endif
