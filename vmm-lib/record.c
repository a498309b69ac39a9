// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The side records of a vCPU's clock (SDM 3 33.5.2.1, 33.8.3.3; RTIT 4.2.13) as a line of JSON (RFC
 * 8259). Each byte of a VM's name that is not UTF-8 becomes U+FFFD, so a line is always valid JSON.
 */
#include "arch/json-text.h"
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

size_t vmpt_record_print(const struct vmpt_record *record, char *buf, size_t len)
{
	struct text t = { buf, len, 0 };

	put_str(&t, "{\"vm\":\"");
	put_json(&t, record->vm);
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
		put_json(&t, record->vm);
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
