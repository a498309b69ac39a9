/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Judge of the generated traces: libipt's packet decoder reads all of one, from its first PSB on.
 */
#ifndef VMPT_TESTS_LIBIPT_COUNT_H
#define VMPT_TESTS_LIBIPT_COUNT_H

#include <intel-pt.h>

#include "tests/support/support.h"

/* The number of packets of @data; fails the test if libipt stops before the end of its @size bytes.
 */
static inline u64 libipt_count(u8 *data, size_t size)
{
	struct pt_packet_decoder *decoder;
	struct pt_packet packet;
	struct pt_config config;
	u64 packets = 0;
	int ret;

	pt_config_init(&config);
	config.begin = data;
	config.end = data + size;
	decoder = pt_pkt_alloc_decoder(&config);
	ck_assert_ptr_nonnull(decoder);
	ck_assert_int_eq(pt_pkt_sync_set(decoder, 0), 0);
	while ((ret = pt_pkt_next(decoder, &packet, sizeof(packet))) > 0)
		packets++;
	ck_assert_int_eq(ret, -pte_eos);
	pt_pkt_free_decoder(decoder);
	return packets;
}

#endif
