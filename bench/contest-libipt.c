// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The reference: libipt's packet decoder, pt_pkt_next() until the end, counting packets. */
#include <intel-pt.h>
#include <stdio.h>

#include "bench/bench.h"

const char *bench_libipt_version(void)
{
	static char text[64];
	struct pt_version v = pt_library_version();

	snprintf(text, sizeof(text), "%u.%u.%u%s", v.major, v.minor, v.patch, v.ext ? v.ext : "");
	return text;
}

int bench_run_libipt(const struct bench_input *in, const struct bench_contest *c,
		     struct bench_count *out, void (*tick)(void))
{
	struct pt_packet_decoder *decoder;
	struct pt_packet packet;
	struct pt_config config;
	int ret;

	(void)c;
	(void)tick;
	pt_config_init(&config);
	config.begin = in->ipt.data;
	config.end = in->ipt.data + in->ipt.size;
	decoder = pt_pkt_alloc_decoder(&config);
	if (!decoder) {
		fprintf(stderr, "vmpt-bench: cannot create a libipt packet decoder\n");
		return -1;
	}
	ret = pt_pkt_sync_forward(decoder);
	while (ret >= 0) {
		ret = pt_pkt_next(decoder, &packet, sizeof(packet));
		if (ret > 0) {
			out->packets++;
		} else if (ret != -pte_eos) {
			out->losses++;
			ret = pt_pkt_sync_forward(decoder);
		}
	}
	out->items = out->packets;
	pt_pkt_free_decoder(decoder);
	if (ret != -pte_eos) {
		fprintf(stderr, "vmpt-bench: libipt stops in %s: %s\n", in->name,
			pt_errstr(pt_errcode(ret)));
		return -1;
	}
	return 0;
}
