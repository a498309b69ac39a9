// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A trace's slices as CSV, for a spreadsheet or a database: "./slices-csv perf.data >slices.csv". A
 * slice is a maximal run of bytes of one owner; slices cover each byte of a stream, losses too. It
 * shows the splitter, which is several times as fast as reading packets.
 */
#include <stdio.h>

#include <vmpt/decode.h>

static const char *const owners[] = { "unknown", "host", "vm", "vm" };
static const char *const begins[] = { "start", "entry", "exit", "switch", "psb", "doubt", "loss" };

static void print(const struct vmpt_stream *stream, const struct vmpt_slice *slice)
{
	printf("%d,%llu,%llu,%s,", stream->cpu, (unsigned long long)slice->offset,
	       (unsigned long long)slice->size, owners[slice->owner.kind]);
	if (slice->owner.kind == VMPT_OWNER_VM)
		printf("%llx", (unsigned long long)slice->owner.vmcs);
	printf(",%s,", begins[slice->begin]);
	if (slice->has_tsc) /* of the owner's clock: a guest's TSC in a guest */
		printf("%llx,%llx", (unsigned long long)slice->first_tsc,
		       (unsigned long long)slice->last_tsc);
	else
		printf(",");
	printf(",%s\n", slice->begin == VMPT_BEGIN_LOSS ? vmpt_strerror(-slice->loss) : "");
}

static int print_stream(const struct vmpt_stream *stream)
{
	struct vmpt_splitter *split;
	struct vmpt_slice slice;
	int ret = vmpt_splitter_open(&split, stream, NULL);

	if (ret)
		return ret;
	while ((ret = vmpt_split_next(split, &slice)) == 1)
		print(stream, &slice);
	vmpt_splitter_close(split);
	return ret;
}

int main(int argc, char **argv)
{
	struct vmpt_trace *trace;
	struct vmpt_diag diag;
	size_t i;
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: %s perf.data | FILE.pt\n", argv[0]);
		return 2;
	}
	diag.text[0] = '\0'; /* an error of the version leaves it */
	err = vmpt_trace_open(&trace, argv[1], -1, &diag);
	if (err) {
		fprintf(stderr, "%s: %s: %s\n", argv[0], vmpt_strerror(err), diag.text);
		return 1;
	}
	if (*diag.text) /* part of the file could not be read */
		fprintf(stderr, "%s: %s\n", argv[0], diag.text);
	printf("cpu,offset,bytes,owner,vmcs,begin,first_tsc,last_tsc,loss\n");
	for (i = 0; !err && i < vmpt_trace_streams(trace); i++)
		err = print_stream(vmpt_trace_stream(trace, i));
	if (err)
		fprintf(stderr, "%s: %s\n", argv[0], vmpt_strerror(err));
	vmpt_trace_close(trace);
	return err || fflush(stdout) || ferror(stdout) ? 1 : 0;
}
