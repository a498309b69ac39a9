// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Runs at build time: prints the table of insn.h as C. */
#include <stdio.h>

#include "decoder/flow/insn.h"

int main(void)
{
	static u16 table[VMPT_INSN_KEYS];
	unsigned int i;

	vmpt_insn_table_init(table);
	printf("/* Made by decoder/flow/insn-table-gen.c from what Zydis decodes. */\n");
	printf("#include \"decoder/flow/insn.h\"\n\n");
	printf("const u16 vmpt_insn_table[VMPT_INSN_KEYS] = {");
	for (i = 0; i < VMPT_INSN_KEYS; i++)
		printf("%s%u,", i % 16 ? "" : "\n", table[i]);
	printf("\n};\n");
	return ferror(stdout) || fclose(stdout);
}
