// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Counts what libipt's instruction decoder finds in a trace of host and guests.
 *
 *	host-flow TRACE FILE@ADDR...
 *
 * FILE is code at address ADDR. Prints the numbers of instructions, of the host's instructions, of
 * VMRESUMEs and VMPTRLDs among those, of overflows and of errors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/types.h"
#include "tests/support/ipt.h"

struct counts {
	u64 instructions, host, vmresumes, vmptrlds, overflows, errors;
};

static u8 *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	u8 *bytes = NULL;

	if (!file)
		return NULL;
	*size = fseek(file, 0, SEEK_END) ? 0 : (size_t)ftell(file);
	rewind(file);
	if (*size)
		bytes = malloc(*size);
	if (bytes && fread(bytes, 1, *size, file) != *size)
		*size = 0;
	fclose(file);
	return *size ? bytes : NULL;
}

static int add_code(struct pt_image *image, char *arg)
{
	char *at = strrchr(arg, '@');
	size_t size;
	u8 *bytes;

	if (!at)
		return -1;
	*at = 0;
	bytes = read_file(arg, &size);
	free(bytes);
	if (!bytes)
		return -1;
	return pt_image_add_file(image, arg, 0, size, NULL, strtoull(at + 1, NULL, 0));
}

static int take_events(struct pt_insn_decoder *d, struct counts *n, int status)
{
	struct pt_event event;

	while (status >= 0 && (status & pts_event_pending)) {
		status = pt_insn_event(d, &event, sizeof(event));
		if (status >= 0 && event.type == ptev_overflow)
			n->overflows++;
	}
	return status;
}

static void count(struct counts *n, const struct pt_insn *insn)
{
	static const u8 vmresume[] = { 0x0f, 0x01, 0xc3 }, vmptrld[] = { 0x0f, 0xc7, 0x36 };

	n->instructions++;
	if (insn->ip >> 63)
		n->host++;
	if (insn->size == 3 && !memcmp(insn->raw, vmresume, 3))
		n->vmresumes++;
	if (insn->size == 3 && !memcmp(insn->raw, vmptrld, 3))
		n->vmptrlds++;
}

static void walk(struct pt_insn_decoder *d, struct counts *n)
{
	struct pt_insn insn;
	u64 offset;
	int status;

	while ((status = pt_insn_sync_forward(d)) >= 0) {
		do {
			status = take_events(d, n, status);
			if (status >= 0)
				status = ipt_insn_next(d, &insn);
			if (status >= 0 && insn.size)
				count(n, &insn);
		} while (status >= 0);
		if (status == -pte_eos)
			break;
		pt_insn_get_offset(d, &offset);
		fprintf(stderr, "%#llx, after %#llx: %s\n", (unsigned long long)offset,
			(unsigned long long)insn.ip, pt_errstr(pt_errcode(status)));
		n->errors++;
	}
}

int main(int argc, char **argv)
{
	struct pt_image *image = pt_image_alloc("code");
	struct pt_insn_decoder *d;
	struct pt_config config;
	struct counts n = { 0 };
	size_t size = 0;
	u8 *bytes = argc > 1 ? read_file(argv[1], &size) : NULL;

	for (int i = 2; bytes && i < argc; i++) {
		if (add_code(image, argv[i]) < 0)
			bytes = NULL;
	}
	if (!bytes || !size) {
		fprintf(stderr, "usage: host-flow TRACE FILE@ADDR...\n");
		return 2;
	}
	pt_config_init(&config);
	config.begin = bytes;
	config.end = bytes + size;
	d = pt_insn_alloc_decoder(&config);
	if (!d || pt_insn_set_image(d, image) < 0)
		return 2;
	walk(d, &n);
	printf("%llu instructions, %llu of the host, %llu vmresume, %llu vmptrld, %llu overflows, "
	       "%llu errors\n",
	       (unsigned long long)n.instructions, (unsigned long long)n.host,
	       (unsigned long long)n.vmresumes, (unsigned long long)n.vmptrlds,
	       (unsigned long long)n.overflows, (unsigned long long)n.errors);
	return n.errors != 0;
}
