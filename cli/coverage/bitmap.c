// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* vmpt coverage --bitmap: a map of edges as AFL's QEMU mode makes it: docs/coverage.md. */
#include <stdlib.h>

#include "cli/coverage/coverage.h"

/* AFL's hash of a block's address. */
static u64 place_of(u64 ip, u64 size)
{
	return (ip >> 4 ^ ip << 8) & (size - 1);
}

static void count_edge(const struct coverage *d, const struct coverage_edge *e, u8 *map)
{
	const struct coverage_block *from = coverage_block_at(d, e->space, e->from);
	u64 at = place_of(e->to, d->bitmap_size);

	at ^= place_of(from ? from->ip : e->from, d->bitmap_size) >> 1;
	map[at] = e->count > 255u - map[at] ? 255 : (u8)(map[at] + e->count);
}

int coverage_bitmap(struct cli *cli)
{
	struct coverage *d = cli->data;
	u8 *map = calloc(1, d->bitmap_size);
	struct cli_file file;
	size_t i;
	int code;

	if (!map)
		return cli_no_memory(cli);
	for (i = 0; i < d->edge_count; i++)
		if (d->edge[i].end != VMPT_FLOW_FAR)
			count_edge(d, &d->edge[i], map);
	/* A map has nothing by which vmpt would know it again: no file is overwritten. */
	code = cli_file_create(cli, d->bitmap, "vmpt coverage --bitmap", &file);
	if (!code) {
		fwrite(map, 1, d->bitmap_size, file.f);
		code = cli_file_commit(cli, &file);
	}
	free(map);
	return code;
}
