// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The side records of a vCPU's clock (SDM 3 33.5.2.1, 33.8.3.3; RTIT 4.2.13) as a line of JSON (RFC
 * 8259). Each byte of a VM's name that is not UTF-8 becomes U+FFFD, so a line is always valid JSON.
 */
#include "arch/text.h"
#include "vmm-lib/rtit.h"

/* 64 bits as a string: readers of JSON numbers keep 53. */
static void put_hex(struct text *t, const char *name, u64 v)
{
	put_str(t, ",\"");
	put_str(t, name);
	put_str(t, "\":\"0x");
	put_number(t, v, 16, 1);
	put_char(t, '"');
}

/*
 * Bytes of the character at @s, 0 if that is not UTF-8 (Unicode 3.9, Table 3-7: no
 * surrogates, no longer form than needed, nothing above U+10FFFF).
 */
static unsigned int utf8_size(const u8 *s)
{
	unsigned int size = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2, i;
	u8 low = 0x80, high = 0xbf;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	if (s[0] == 0xe0)
		low = 0xa0;
	if (s[0] == 0xed)
		high = 0x9f;
	if (s[0] == 0xf0)
		low = 0x90;
	if (s[0] == 0xf4)
		high = 0x8f;
	/* The final NUL is not a continuation byte, so nothing after it is read. */
	for (i = 1; i < size; i++, low = 0x80, high = 0xbf)
		if (s[i] < low || s[i] > high)
			return 0;
	return size;
}

static void put_name(struct text *t, const char *name)
{
	const u8 *s = (const u8 *)(name ? name : "");

	while (*s) {
		unsigned int size = utf8_size(s);

		if (!size) {
			put_str(t, "\\ufffd");
			s++;
		} else if (*s < 0x20 || *s == 0x7f) {
			put_str(t, "\\u");
			put_number(t, *s++, 16, 4);
		} else {
			if (*s == '"' || *s == '\\')
				put_char(t, '\\');
			while (size--)
				put_char(t, (char)*s++);
		}
	}
}

size_t vmpt_record_print(const struct vmpt_record *record, char *buf, size_t len)
{
	struct text t = { buf, len, 0 };

	put_str(&t, "{\"vm\":\"");
	put_name(&t, record->vm);
	put_str(&t, "\",\"vcpu\":");
	put_number(&t, record->vcpu, 10, 1);
	put_hex(&t, "vmcs", record->vmcs);
	put_hex(&t, "tsc_offset", record->tsc_offset);
	put_hex(&t, "tsc_multiplier", record->tsc_multiplier);
	put_hex(&t, "since", record->since);
	put_str(&t, "}\n");
	return finish(&t);
}

size_t vmpt_rtit_record_print(const struct vmpt_rtit_record *record, char *buf, size_t len)
{
	struct text t = { buf, len, 0 };

	put_str(&t, "{\"rtit\":1,\"vm\":");
	if (record->vm) {
		put_char(&t, '"');
		put_name(&t, record->vm);
		put_char(&t, '"');
	} else {
		put_str(&t, "null");
	}
	put_str(&t, ",\"vcpu\":");
	put_number(&t, record->vcpu, 10, 1);
	put_str(&t, ",\"cpu\":");
	put_number(&t, record->cpu, 10, 1);
	if (record->by_tsc)
		put_hex(&t, "tsc", record->tsc);
	else
		put_hex(&t, "offset", record->offset);
	put_hex(&t, "tsc_offset", record->tsc_offset);
	put_hex(&t, "core_offset", record->core_offset);
	put_str(&t, "}\n");
	return finish(&t);
}
