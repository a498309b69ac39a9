// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rtit/write.h"

static void put(struct rtit_write *b, struct vmpt_rtit_packet *pkt)
{
	int n = vmpt_rtit_encode(pkt, b->data + b->size, sizeof(b->data) - b->size);

	ck_assert_int_gt(n, 0);
	b->size += (size_t)n;
}

static void put_text(struct rtit_write *b, const char *text)
{
	static const struct {
		const char *name;
		u8 kind;
	} kinds[] = {
		{ "TNT", VMPT_RTIT_TNT },	 { "PGE", VMPT_RTIT_PGE },
		{ "PGD", VMPT_RTIT_PGD },	 { "OVF", VMPT_RTIT_BUFF_OVF },
		{ "PCC", VMPT_RTIT_PCC },	 { "TIP", VMPT_RTIT_TIP },
		{ "FAR", VMPT_RTIT_FAR },	 { "PSB", VMPT_RTIT_PSB },
		{ "STOP", VMPT_RTIT_TRACESTOP }, { "PIP", VMPT_RTIT_PIP },
	};
	struct vmpt_rtit_packet pkt = { 0 };
	size_t i, n = strcspn(text, ":");
	const char *value = text[n] ? text + n + 1 : "";
	bool known = false;

	for (i = 0; i < VMPT_ARRAY_SIZE(kinds) && !known; i++) {
		known = strlen(kinds[i].name) == n && memcmp(kinds[i].name, text, n) == 0;
		pkt.kind = kinds[i].kind;
	}
	if (!known)
		ck_abort_msg("%s: not a kind of packet", text);
	if (pkt.kind == VMPT_RTIT_TNT) {
		for (; *value; value++, pkt.tnt.count++)
			pkt.tnt.bits = pkt.tnt.bits << 1 | (*value == 'T');
	} else if (pkt.kind == VMPT_RTIT_PIP) {
		pkt.pip.pg = 1;
		pkt.pip.cr3 = strtoull(value, NULL, 16);
	} else if (vmpt_rtit_table[pkt.kind].classes & VMPT_RTIT_HAS_LIP) {
		if (pkt.kind == VMPT_RTIT_BUFF_OVF)
			b->last.valid = false;
		vmpt_rtit_lip_compress(&b->last, strtoull(value, NULL, 16), &pkt);
	}
	put(b, &pkt);
}

void rtit_write(struct rtit_write *b, const char *packets)
{
	char text[1024], *save, *word;

	snprintf(text, sizeof(text), b->size ? "%s" : "PSB %s", packets);
	for (word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		put_text(b, word);
}
