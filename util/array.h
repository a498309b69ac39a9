/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Arrays that grow. Each macro takes the address of the array's pointer, from which it knows the
 * size of an element, and returns 0, or -VMPT_E_NOMEM with everything as it was before. Where
 * several lists need the same room, ask for all of it before adding to the first.
 */
#ifndef VMPT_UTIL_ARRAY_H
#define VMPT_UTIL_ARRAY_H

#include <stdlib.h>

#include "arch/error.h"
#include "arch/types.h"

static inline int vmpt_array_resize(void *array, size_t room, size_t size)
{
	void **at = array, *more;
	size_t bytes;

	if (__builtin_mul_overflow(room, size, &bytes))
		return -VMPT_E_NOMEM;
	more = realloc(*at, bytes);
	if (!more)
		return -VMPT_E_NOMEM;
	*at = more;
	return 0;
}

static inline int vmpt_array_grow(void *array, size_t count, size_t size)
{
	if (count & (count - 1) || count == 1)
		return 0;
	if (count > SIZE_MAX / 2) /* twice as much would be 0 */
		return -VMPT_E_NOMEM;
	return vmpt_array_resize(array, count ? 2 * count : 2, size);
}

static inline int vmpt_array_reserve(void *array, size_t *room, size_t want, size_t size, bool zero)
{
	size_t now = *room, more = 1;
	int ret;

	if (want <= now)
		return 0;
	while (more < want)
		if (__builtin_mul_overflow(more, 2, &more))
			return -VMPT_E_NOMEM;
	ret = vmpt_array_resize(array, more, size);
	if (ret)
		return ret;
	if (zero)
		memset(*(char **)array + now * size, 0, (more - now) * size);
	*room = more;
	return 0;
}

/*
 * Room for one more element after the @count elements of an array that grows one by one. The room
 * follows from @count: two elements, then the next power of two. A caller may remove elements, but
 * must not allocate or shrink the array itself.
 */
#define vmpt_grow(array, count) vmpt_array_grow((array), (count), sizeof(**(array)))

/*
 * Room for @want elements; @room (a size_t) is the current room: the next power of two. For arrays
 * that grow by several elements at once.
 */
#define vmpt_reserve(array, room, want) \
	vmpt_array_reserve((array), (room), (want), sizeof(**(array)), false)

/* The same; new elements are zeroed. For arrays that are filled in any order. */
#define vmpt_reserve_zeroed(array, room, want) \
	vmpt_array_reserve((array), (room), (want), sizeof(**(array)), true)

#endif
