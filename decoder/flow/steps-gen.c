// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Runs at build time: prints the tables of steps.h as C. */
#include <stdio.h>

#include "arch/pt-packet.h"
#include "decoder/flow/steps.h"

/* The kind of packets that begin with @first, if the byte makes it, and their size if that too. */
static int kind_of(unsigned int first, unsigned int *size)
{
	u8 bytes[VMPT_PT_SIZE_MAX] = { 0 };
	struct vmpt_pt_packet pkt;
	unsigned int second;
	int kind = -1;

	for (second = 0; second < 512; second++) {
		memset(bytes, second & 0x100 ? 0xff : 0, sizeof(bytes));
		bytes[0] = (u8)first;
		bytes[1] = (u8)second;
		bytes[VMPT_PT_CYC_MAX - 1] = 0; /* a CYC has an end */
		if (vmpt_pt_decode(&pkt, bytes, sizeof(bytes), 0) == -VMPT_E_CYC)
			continue;
		if (vmpt_pt_decode(&pkt, bytes, sizeof(bytes), 0))
			return -1;
		if (kind >= 0 && kind != pkt.kind)
			return -1;
		if (kind >= 0 && *size != pkt.size)
			*size = 0;
		else if (kind < 0)
			*size = pkt.size;
		kind = pkt.kind;
	}
	return kind;
}

static unsigned int step_of(unsigned int first)
{
	unsigned int size = 0;
	int kind = kind_of(first, &size);

	switch (kind) {
	case VMPT_PT_PAD:
	case VMPT_PT_MTC:
	case VMPT_PT_TSC:
		return size ? VMPT_FLOW_SKIP | size : VMPT_FLOW_SLOW;
	case VMPT_PT_CYC:
		return VMPT_FLOW_CYC;
	case VMPT_PT_TNT_8:
		return VMPT_FLOW_RUN;
	case VMPT_PT_TIP:
		return size > 1 ? VMPT_FLOW_TIP : VMPT_FLOW_SLOW;
	case VMPT_PT_TIP_PGE:
		return size > 1 ? VMPT_FLOW_PGE : VMPT_FLOW_SLOW;
	case VMPT_PT_TIP_PGD:
		return size > 1 ? VMPT_FLOW_PGD : VMPT_FLOW_SLOW;
	case VMPT_PT_FUP:
		return size > 1 ? VMPT_FLOW_FUP : VMPT_FLOW_SLOW;
	default:
		return VMPT_FLOW_SLOW;
	}
}

/* The bits of an IP that are the payload's, Last IP's, and copies of bit 47. */
static void print_ip(unsigned int ipbytes)
{
	unsigned int size = vmpt_pt_ip_size(ipbytes);
	u64 keep = 0, mask, sign = 0;

	if (!size || size == 255) {
		printf("\t{ 0 },\n");
		return;
	}
	mask = vmpt_mask64(8 * size);
	if (vmpt_pt_ip_expand(0, ipbytes, mask) != mask)
		sign = 64 - 8 * size;
	else
		keep = vmpt_pt_ip_expand(~0ULL, ipbytes, 0);
	printf("\t{ .mask = %#llxULL, .keep = %#llxULL, .size = %u, .sign = %u },\n",
	       (unsigned long long)mask, (unsigned long long)keep, size + 1, (unsigned int)sign);
}

int main(void)
{
	unsigned int i;

	printf("/* Made by decoder/flow/steps-gen.c from arch/pt-packet-table.c. */\n");
	printf("#include \"decoder/flow/steps.h\"\n\nconst u8 vmpt_flow_steps[256] = {");
	for (i = 0; i < 256; i++) {
		/* The loop finds the end of a run by these bits (Table 33-16). */
		if ((step_of(i) == VMPT_FLOW_RUN) != (!(i & 1) && i > 2))
			return 1;
		printf("%s%u,", i % 16 ? "" : "\n\t", step_of(i));
	}
	printf("\n};\n\nconst struct vmpt_flow_ip vmpt_flow_ips[8] = {\n");
	for (i = 0; i < 8; i++)
		print_ip(i);
	printf("};\n");
	return ferror(stdout) || fclose(stdout);
}
