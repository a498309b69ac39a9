// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <check.h>

#include "tests/decoder/ipt-flow.h"
#include "tests/support/ipt.h"
#include "util/hash.h"

struct pt_image *ipt_image_pages(const char *dump_path, const u8 *addr, size_t addr_size)
{
	struct pt_image *image = pt_image_alloc("pages");
	size_t i;

	ck_assert_ptr_nonnull(image);
	for (i = 0; i < addr_size / 8; i++)
		ck_assert_int_ge(pt_image_add_file(image, dump_path, i * 4096, 4096, NULL,
						   vmpt_load64(addr + 8 * i)),
				 0);
	return image;
}

static void config_init(struct pt_config *config, const u8 *bytes, size_t size)
{
	pt_config_init(config);
	config->begin = (u8 *)bytes;
	config->end = (u8 *)bytes + size;
}

static int drain_events(struct pt_insn_decoder *d, int status)
{
	struct pt_event event;

	while (status >= 0 && (status & pts_event_pending))
		status = pt_insn_event(d, &event, sizeof(event));
	return status;
}

void ipt_flow_run(struct ipt_flow *flow, const u8 *bytes, size_t size, struct pt_image *image)
{
	struct pt_config config;
	struct pt_insn_decoder *d;
	struct pt_insn insn;
	int status;

	memset(flow, 0, sizeof(*flow));
	config_init(&config, bytes, size);
	/*
	 * Real traces are of processors with erratum BDM70: a PSB+ may have a FUP though the
	 * TIP.PGE comes only after it. libipt 2.0 does not look, 2.1 refuses it by default.
	 */
	config.errata.bdm70 = 1;
	d = pt_insn_alloc_decoder(&config);
	ck_assert_ptr_nonnull(d);
	ck_assert_int_ge(pt_insn_set_image(d, image), 0);
	for (;;) {
		status = pt_insn_sync_forward(d);
		if (status < 0)
			break;
		for (;;) {
			status = drain_events(d, status);
			if (status < 0)
				break;
			status = ipt_insn_next(d, &insn);
			if (status < 0)
				break;
			if (!insn.size)
				continue;
			flow->instructions++;
			flow->hash += vmpt_mix64(insn.ip);
			flow->ordered = flow->ordered * 0x9e3779b97f4a7c15ULL + vmpt_mix64(insn.ip);
		}
		if (status == -pte_eos)
			break;
		if (!flow->errors++)
			flow->first_error = status;
	}
	pt_insn_free_decoder(d);
}

int ipt_packets_check(const u8 *bytes, size_t size, u64 *packets)
{
	struct pt_config config;
	struct pt_packet_decoder *d;
	struct pt_packet packet;
	int status;

	*packets = 0;
	config_init(&config, bytes, size);
	d = pt_pkt_alloc_decoder(&config);
	ck_assert_ptr_nonnull(d);
	status = pt_pkt_sync_forward(d);
	while (status >= 0) {
		status = pt_pkt_next(d, &packet, sizeof(packet));
		if (status > 0)
			++*packets;
	}
	pt_pkt_free_decoder(d);
	return status == -pte_eos ? 0 : status;
}
