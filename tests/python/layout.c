// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Prints sizes and offsets of the structs that Python has as types of arrays. */
#include <stdio.h>

#include <vmpt/flow.h>
#include <vmpt/timeline.h>

#define STRUCT(s) printf("%s . 0 %zu\n", #s, sizeof(struct s))
#define MEMBER(s, m) \
	printf("%s %s %zu %zu\n", #s, #m, offsetof(struct s, m), sizeof(((struct s *)0)->m))

int main(void)
{
	STRUCT(vmpt_item);
	MEMBER(vmpt_item, payload);
	MEMBER(vmpt_item, offset);
	MEMBER(vmpt_item, size);
	MEMBER(vmpt_item, kind);
	MEMBER(vmpt_item, aux);
	STRUCT(vmpt_owner);
	MEMBER(vmpt_owner, vmcs);
	MEMBER(vmpt_owner, kind);
	MEMBER(vmpt_owner, sure);
	MEMBER(vmpt_owner, concealed);
	STRUCT(vmpt_time);
	MEMBER(vmpt_time, tsc);
	MEMBER(vmpt_time, early);
	MEMBER(vmpt_time, late);
	STRUCT(vmpt_slice);
	MEMBER(vmpt_slice, offset);
	MEMBER(vmpt_slice, size);
	MEMBER(vmpt_slice, owner);
	MEMBER(vmpt_slice, begin);
	MEMBER(vmpt_slice, loss);
	MEMBER(vmpt_slice, by_group);
	MEMBER(vmpt_slice, has_tsc);
	MEMBER(vmpt_slice, first_tsc);
	MEMBER(vmpt_slice, last_tsc);
	MEMBER(vmpt_slice, cr3);
	MEMBER(vmpt_slice, cr3_count);
	MEMBER(vmpt_slice, overflows);
	MEMBER(vmpt_slice, failed_entries);
	MEMBER(vmpt_slice, doubts);
	MEMBER(vmpt_slice, enables);
	MEMBER(vmpt_slice, disables);
	MEMBER(vmpt_slice, errata);
	MEMBER(vmpt_slice, last_psb);
	STRUCT(vmpt_span);
	MEMBER(vmpt_span, stream);
	MEMBER(vmpt_span, kind);
	MEMBER(vmpt_span, began);
	MEMBER(vmpt_span, ended);
	MEMBER(vmpt_span, back);
	MEMBER(vmpt_span, loss);
	MEMBER(vmpt_span, losses);
	MEMBER(vmpt_span, owner);
	MEMBER(vmpt_span, start);
	MEMBER(vmpt_span, end);
	MEMBER(vmpt_span, offset);
	MEMBER(vmpt_span, size);
	MEMBER(vmpt_span, loss_size);
	MEMBER(vmpt_span, unproven);
	MEMBER(vmpt_span, exit);
	MEMBER(vmpt_span, overflows);
	MEMBER(vmpt_span, failed_entries);
	STRUCT(vmpt_flow_block);
	MEMBER(vmpt_flow_block, ip);
	MEMBER(vmpt_flow_block, end_ip);
	MEMBER(vmpt_flow_block, next);
	MEMBER(vmpt_flow_block, target);
	MEMBER(vmpt_flow_block, space);
	MEMBER(vmpt_flow_block, instructions);
	MEMBER(vmpt_flow_block, end);
	STRUCT(vmpt_exit);
	MEMBER(vmpt_exit, reason);
	MEMBER(vmpt_exit, source);
	MEMBER(vmpt_exit, has_ip);
	MEMBER(vmpt_exit, has_qualification);
	MEMBER(vmpt_exit, halted);
	MEMBER(vmpt_exit, no_halt);
	MEMBER(vmpt_exit, ip);
	MEMBER(vmpt_exit, cr3);
	MEMBER(vmpt_exit, qualification);
	MEMBER(vmpt_exit, has_msr);
	MEMBER(vmpt_exit, has_gpa);
	MEMBER(vmpt_exit, msr);
	MEMBER(vmpt_exit, gpa);
	return 0;
}
