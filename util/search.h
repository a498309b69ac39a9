/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Binary search. */
#ifndef VMPT_UTIL_SEARCH_H
#define VMPT_UTIL_SEARCH_H

#include <stddef.h>

/*
 * The first index in [@from, @end) for which @before, an expression of the index @i, is false;
 * @end if there is none. @before must be true up to some index and false from there on.
 *
 *	n = vmpt_search(i, 0, count, list[i].at < x);	the first at x or above
 *	n = vmpt_search(i, 0, count, list[i].at <= x);	the first above x
 */
#define vmpt_search(i, from, end, before)                           \
	({                                                          \
		size_t low_ = (from), high_ = (end);                \
                                                                    \
		while (low_ < high_) {                              \
			const size_t i = low_ + (high_ - low_) / 2; \
                                                                    \
			if (before)                                 \
				low_ = (i) + 1;                     \
			else                                        \
				high_ = i;                          \
		}                                                   \
		low_;                                               \
	})

#endif
