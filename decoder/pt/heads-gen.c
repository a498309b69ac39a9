// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Runs at build time: prints the tables of heads.h as C. */
#include <stdio.h>

#include "decoder/pt/heads.h"

/* Kind and size by the first two bytes, if the bytes after them make no difference. */
static void entry(unsigned int key, u8 *kind, u8 *size)
{
	struct vmpt_pt_packet a, b;
	u8 zeros[VMPT_PT_SIZE_MAX] = { 0 }, ones[VMPT_PT_SIZE_MAX];

	memset(ones, 0xff, sizeof(ones));
	zeros[0] = ones[0] = (u8)key;
	zeros[1] = ones[1] = (u8)(key >> 8);
	*kind = VMPT_HEAD_NONE;
	*size = 0;
	if (key == vmpt_load16(vmpt_pt_table[VMPT_PT_PSB].header)) {
		*kind = VMPT_PT_PSB;
		*size = vmpt_pt_table[VMPT_PT_PSB].size;
	} else if (!vmpt_pt_decode(&a, zeros, sizeof(zeros), 0) &&
		   !vmpt_pt_decode(&b, ones, sizeof(ones), 0) && a.kind == b.kind &&
		   a.size == b.size) {
		*kind = a.kind;
		*size = a.size;
	}
}

static void print_table(const char *name, const u8 *table)
{
	unsigned int i;

	printf("const u8 %s[65536] = {", name);
	for (i = 0; i < 65536; i++)
		printf("%s%u,", i % 32 ? "" : "\n", table[i]);
	printf("\n};\n");
}

int main(void)
{
	static u8 kind[65536], size[65536];
	unsigned int key;

	for (key = 0; key < 65536; key++)
		entry(key, &kind[key], &size[key]);
	printf("/* Made by decoder/pt/heads-gen.c from arch/pt-packet-table.c. */\n");
	printf("#include \"decoder/pt/heads.h\"\n\n");
	print_table("vmpt_head_kind", kind);
	print_table("vmpt_head_size", size);
	return ferror(stdout) || fclose(stdout);
}
