// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * How many packets of each kind each VM has in a trace: "./packet-counts perf.data", or raw files,
 * one for each CPU. It shows batches, the fastest way to read packets: all items of a batch have
 * the same owner, and adjacent TNTs and PADs are one item, a run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vmpt/decode.h>

/* One of these for each owner: the host, each VMCS, a VM without a known VMCS, and no one. */
struct counts {
	struct vmpt_owner owner;
	u64 packets[256]; /* by kind */
	u64 uncertain;	  /* of these: nothing has proved yet that they are not another's */
	u64 lost_bytes;
};

static struct counts *owners;
static size_t owner_count;

static struct counts *counts_of(const struct vmpt_owner *owner)
{
	struct counts *more;
	size_t i;

	for (i = 0; i < owner_count; i++)
		if (vmpt_owner_same(&owners[i].owner, owner))
			return &owners[i];
	more = (struct counts *)realloc(owners, (owner_count + 1) * sizeof(*owners));
	if (!more) {
		perror("packet-counts");
		exit(1);
	}
	owners = more;
	memset(&owners[owner_count], 0, sizeof(*owners));
	owners[owner_count].owner = *owner;
	return &owners[owner_count++];
}

static void count(const struct vmpt_batch *batch)
{
	struct counts *c = counts_of(&batch->owner);
	size_t i, b;

	for (i = 0; i < batch->count; i++) {
		const struct vmpt_item *item = &batch->items[i];

		if (item->kind == VMPT_ITEM_LOSS) {
			c->lost_bytes += item->payload;
			continue;
		}
		if (batch->owner.sure == VMPT_UNCERTAIN)
			c->uncertain += item->kind == VMPT_ITEM_RUN ? item->size : 1;
		if (item->kind == VMPT_ITEM_RUN) {
			/* A byte each, and no packet of one byte but PAD is 0. */
			for (b = 0; b < item->size; b++)
				c->packets[batch->data[item->offset + b] ? VMPT_PT_TNT_8
									 : VMPT_PT_PAD]++;
		} else {
			c->packets[item->kind]++;
		}
	}
}

static int count_stream(const struct vmpt_stream *stream)
{
	struct vmpt_decoder *dec;
	struct vmpt_batch batch;
	int ret = vmpt_decoder_open(&dec, stream, NULL);

	if (ret)
		return ret;
	while ((ret = vmpt_batch_next(dec, &batch)) == 1)
		count(&batch);
	vmpt_decoder_close(dec);
	return ret;
}

static void print(const struct counts *c)
{
	static const char *const kinds[] = { "unknown", "host", "VM", "a VM" };
	unsigned int kind;

	printf("%s", kinds[c->owner.kind]);
	if (c->owner.kind == VMPT_OWNER_VM)
		printf(" %llx", (unsigned long long)c->owner.vmcs);
	printf("\n");
	for (kind = 0; kind < VMPT_PT_KINDS; kind++)
		if (c->packets[kind])
			printf("  %-9s %10llu\n", vmpt_pt_name(kind),
			       (unsigned long long)c->packets[kind]);
	if (c->uncertain)
		printf("  uncertain %10llu packets of these\n", (unsigned long long)c->uncertain);
	if (c->lost_bytes)
		printf("  lost      %10llu bytes\n", (unsigned long long)c->lost_bytes);
}

int main(int argc, char **argv)
{
	struct vmpt_trace *trace;
	struct vmpt_diag diag;
	int err, cpu;
	size_t i;

	if (argc < 2) {
		fprintf(stderr, "usage: %s perf.data | CPU0.pt [CPU1.pt ...]\n", argv[0]);
		return 2;
	}
	diag.text[0] = '\0'; /* an error of the version leaves it */
	err = vmpt_trace_open(&trace, argv[1], 0, &diag);
	for (cpu = 1; !err && cpu < argc - 1; cpu++)
		err = vmpt_trace_add_raw(trace, argv[cpu + 1], cpu, &diag);
	if (err) {
		fprintf(stderr, "%s: %s: %s\n", argv[0], vmpt_strerror(err), diag.text);
		return 1;
	}
	if (vmpt_trace_info(trace)->isa != VMPT_ISA_PT) {
		fprintf(stderr, "%s: a trace of RTIT, whose packets are others\n", argv[0]);
		return 1;
	}
	for (i = 0; !err && i < vmpt_trace_streams(trace); i++)
		err = count_stream(vmpt_trace_stream(trace, i));
	if (err)
		fprintf(stderr, "%s: %s\n", argv[0], vmpt_strerror(err));
	for (i = 0; i < owner_count; i++)
		print(&owners[i]);
	vmpt_trace_close(trace);
	free(owners);
	return err ? 1 : 0;
}
