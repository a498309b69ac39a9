// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Runs at build time: prints the tables of fast-table.h as C. */
#include <stdio.h>

#include "decoder/pt/fast-table.h"

static void print_u8(const char *name, const u8 *v, unsigned int n)
{
	unsigned int i;

	printf("\t.%s = {", name);
	for (i = 0; i < n; i++)
		printf("%s%u,", i % 32 ? "" : "\n", v[i]);
	printf("\n\t},\n");
}

static void print_index(const struct vmpt_index_table *t)
{
	printf("const struct vmpt_index_table vmpt_index_table = {\n");
	print_u8("step", t->step, VMPT_ARRAY_SIZE(t->step));
	print_u8("kind", t->kind, VMPT_ARRAY_SIZE(t->kind));
	printf("};\n\n");
}

static void print_row(const struct vmpt_row *r)
{
	printf("\t{ .mask = %#llxULL, .twice = %#llxULL, .sign = %#llxULL,\n"
	       "\t  .keep = %#llxULL, .meta = %#llxULL, .from = %u, .shift = %u,\n"
	       "\t  .size = %u, .is_ip = %u, .token = %u, .rare = %u, .plain = %u },\n",
	       (unsigned long long)r->mask, (unsigned long long)r->twice,
	       (unsigned long long)r->sign, (unsigned long long)r->keep,
	       (unsigned long long)r->meta, r->from, r->shift, r->size, r->is_ip, r->token, r->rare,
	       r->plain);
}

static void print_packets(const struct vmpt_packet_table *t)
{
	unsigned int i;

	printf("const struct vmpt_packet_table vmpt_packet_table = {\n\t.step = {");
	for (i = 0; i < VMPT_ARRAY_SIZE(t->step); i++)
		printf("%s%u,", i % 16 ? "" : "\n", t->step[i]);
	printf("\n\t},\n\t.rows = {\n");
	for (i = 0; i < VMPT_ROWS; i++)
		print_row(&t->rows[i]);
	printf("\t},\n};\n");
}

static void print_time(const u16 *steps)
{
	unsigned int i;

	printf("\nconst u16 vmpt_time_steps[65536] = {");
	for (i = 0; i < 65536; i++)
		printf("%s%u,", i % 16 ? "" : "\n", steps[i]);
	printf("\n};\n\nconst u8 vmpt_time_kinds[256] = {\n");
	for (i = 0; i < 256; i++)
		if (vmpt_time_wanted(i))
			printf("\t[%u] = 1,\n", i);
	printf("};\n");
}

int main(void)
{
	static u16 steps[65536];
	static struct vmpt_packet_table packets;
	static struct vmpt_index_table index;

	vmpt_index_table_init(&index);
	vmpt_packet_table_init(&packets);
	vmpt_time_steps_init(steps, &packets);
	printf("/* Made by decoder/pt/fast-table-gen.c from arch/pt-packet-table.c. */\n");
	printf("#include \"decoder/pt/fast-table.h\"\n\n");
	print_index(&index);
	print_packets(&packets);
	print_time(steps);
	return ferror(stdout) || fclose(stdout);
}
