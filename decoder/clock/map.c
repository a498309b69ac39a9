// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A guest's TSC and the host's (SDM 3 33.5.2.1; 26.3, 26.5.3: scaling first, then the offset).
 */
#include "decoder/vmpt-clock.h"

#define TSC_BITS 56

u64 vmpt_tsc_to_guest(const struct vmpt_tsc_map *map, u64 host)
{
	return (u64)((unsigned __int128)host * map->multiplier >> 48) + map->offset;
}

/* The first host TSC whose scaled value is @scaled or more. */
static unsigned __int128 unscale(const struct vmpt_tsc_map *map, unsigned __int128 scaled)
{
	/* scaled < 2^79, with 48 fraction bits: in two steps. */
	unsigned __int128 whole = scaled / map->multiplier, rest = scaled % map->multiplier;
	unsigned __int128 low = (rest << 48) + map->multiplier - 1;

	return (whole << 48) + low / map->multiplier;
}

u64 vmpt_tsc_to_host(const struct vmpt_tsc_map *map, u64 guest, u64 near)
{
	const u64 mask = vmpt_mask64(TSC_BITS);
	unsigned __int128 scaled, host;
	u64 ahead;

	if (!map->multiplier)
		return near;
	scaled = (unsigned __int128)near * map->multiplier >> 48;
	ahead = (guest - map->offset - (u64)scaled) & mask;
	scaled += ahead;
	if (ahead >> (TSC_BITS - 1) && scaled >= (unsigned __int128)1 << TSC_BITS)
		scaled -= (unsigned __int128)1 << TSC_BITS;
	host = unscale(map, scaled);
	return host >> 64 ? ~0ULL : (u64)host;
}
