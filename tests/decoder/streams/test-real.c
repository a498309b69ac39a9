// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Streams split from real traces: libipt's instruction decoder finds in all of them together
 * exactly the instructions that it finds in the source.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/decoder/extract-memory.h"
#include "tests/decoder/ipt-flow.h"
#include "tests/support/support.h"

/* libipt's instruction counts for the source, from the data's own notes. */
static const struct {
	const char *name;
	u64 instructions; /* 0: not in the notes */
	int streams;
} trace[] = {
	{ "guest-two-vmcs", 9635736, 2 },
	{ "guest-mruby", 6334131, 1 },
	{ "guest-unzip", 0, 1 },
};

static u8 *read_data(const char *name, const char *ext, size_t *size)
{
	char file[64];
	const char *path;

	snprintf(file, sizeof(file), "%s.%s", name, ext);
	path = test_data(file);
	return path ? test_read_file(path, size) : NULL;
}

START_TEST(instructions_of_all_streams_are_those_of_the_source)
{
	const char *name = trace[_i].name;
	struct ipt_flow source, part, sum = { 0 };
	struct vmpt_stream stream = { .cpu = 0, .tid = -1 };
	struct pt_image *image;
	struct extracted e;
	size_t size, addr_size;
	u8 *bytes, *addr;
	char file[64];
	u64 packets;
	int i;

	bytes = read_data(name, "pt", &size);
	if (!bytes)
		return;
	addr = read_data(name, "addr", &addr_size);
	if (!addr) {
		free(bytes);
		return;
	}
	snprintf(file, sizeof(file), "%s.dump", name);
	image = ipt_image_pages(test_data(file), addr, addr_size);
	stream.data = bytes;
	stream.size = size;
	extract_to_memory(&e, &stream, NULL);
	ck_assert_int_eq(e.count, trace[_i].streams);

	ipt_flow_run(&source, bytes, size, image);
	for (i = 0; i < e.count; i++) {
		ck_assert_int_eq(ipt_packets_check(e.streams[i].bytes, e.streams[i].size, &packets),
				 0);
		ipt_flow_run(&part, e.streams[i].bytes, e.streams[i].size, image);
		sum.instructions += part.instructions;
		sum.hash += part.hash;
		sum.errors += part.errors;
	}
	if (trace[_i].instructions)
		ck_assert_uint_eq(source.instructions, trace[_i].instructions);
	ck_assert_uint_eq(sum.instructions, source.instructions);
	ck_assert_uint_eq(sum.hash, source.hash);
	ck_assert_uint_eq(sum.errors, source.errors);

	pt_image_free(image);
	extracted_free(&e);
	free(addr);
	free(bytes);
}
END_TEST

TEST_SUITE()
{
	Suite *s = suite_create("decoder/extract-real");
	TCase *t = tcase_create("flow");
	bool sanitized = getenv("VMPT_SANITIZED") != NULL;

	/* Under the sanitizers guest-mruby alone */
	tcase_add_loop_test(t, instructions_of_all_streams_are_those_of_the_source, sanitized,
			    sanitized ? 2 : VMPT_ARRAY_SIZE(trace));
	suite_add_tcase(s, t);
	return s;
}
