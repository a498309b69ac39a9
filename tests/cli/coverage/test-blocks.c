// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * vmpt coverage --blocks of real traces: how often each instruction ran, and that no other did, by
 * libipt's instruction decoder on the same bytes and pages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli-run.h"
#include "tests/decoder/ipt-flow.h"
#include "tests/support/ipt.h"
#include "tests/support/support.h"
#include "util/hash.h"

#define PLACES (1u << 18)

/* How often which instruction ran: open addressing by IP. */
static struct {
	u64 ip, count;
} places[PLACES];

static u64 *count_of(u64 ip)
{
	size_t i = vmpt_mix64(ip) % PLACES;

	while (places[i].count && places[i].ip != ip)
		i = (i + 1) % PLACES;
	places[i].ip = ip;
	return &places[i].count;
}

/* True: libipt refused something. */
static bool count_libipt(const u8 *bytes, size_t size, struct pt_image *image)
{
	struct pt_config config;
	struct pt_insn_decoder *d;
	struct pt_event event;
	struct pt_insn insn;
	bool failed = false;
	int status;

	pt_config_init(&config);
	config.begin = (u8 *)bytes;
	config.end = (u8 *)bytes + size;
	config.errata.bdm70 = 1;
	d = pt_insn_alloc_decoder(&config);
	ck_assert_ptr_nonnull(d);
	ck_assert_int_ge(pt_insn_set_image(d, image), 0);
	while ((status = pt_insn_sync_forward(d)) >= 0) {
		while (status >= 0) {
			while (status >= 0 && status & pts_event_pending)
				status = pt_insn_event(d, &event, sizeof(event));
			if (status >= 0)
				status = ipt_insn_next(d, &insn);
			if (status >= 0 && insn.size)
				++*count_of(insn.ip);
		}
		failed |= status != -pte_eos;
	}
	pt_insn_free_decoder(d);
	return failed;
}

/* Take the counts of @block away. */
static void check_block(json_t *block)
{
	u64 ip = strtoull(json_text(block, "ip"), NULL, 16), at, executed = 0, instructions = 0;

	ck_assert_uint_eq(json_u64(block, "count"), *count_of(ip));
	for (at = ip; at < ip + json_u64(block, "size"); at++) {
		u64 *count = count_of(at);

		executed += *count;
		instructions += *count != 0;
		/* A place stays taken for those after it. */
		if (*count)
			*count = ~0ULL;
	}
	ck_assert_uint_eq(json_u64(block, "executed"), executed);
	ck_assert_uint_eq(json_u64(block, "instructions"), instructions);
}

static void check_blocks(const char *out)
{
	const char *line, *end;
	size_t i;

	for (line = out; *line; line = end + 1) {
		json_t *o;

		end = strchr(line, '\n');
		ck_assert_ptr_nonnull(end);
		o = json_loadb(line, (size_t)(end - line), 0, NULL);
		ck_assert_ptr_nonnull(o);
		if (json_object_get(o, "ip"))
			check_block(o);
		json_decref(o);
	}
	for (i = 0; i < PLACES; i++)
		ck_assert(!places[i].count || places[i].count == ~0ULL);
}

static void compare(const char *name)
{
	char file[64], dump[512], pt[512];
	struct pt_image *image;
	const char *path;
	u8 *addr, *bytes;
	size_t n, size;
	bool failed;

	snprintf(file, sizeof(file), "%s.dump", name);
	path = test_data(file);
	if (!path)
		return;
	snprintf(dump, sizeof(dump), "%s", path);
	snprintf(file, sizeof(file), "%s.pt", name);
	snprintf(pt, sizeof(pt), "%s", test_data(file));
	snprintf(file, sizeof(file), "%s.addr", name);
	addr = test_read_file(test_data(file), &n);
	bytes = test_read_file(pt, &size);
	image = ipt_image_pages(dump, addr, n);
	memset(places, 0, sizeof(places));
	failed = count_libipt(bytes, size, image);
	/* See tests/cli/insn/test-libipt.c. */
	if (failed && (pt_library_version().major > 2 || pt_library_version().minor > 0))
		test_skip("libipt refuses %s", name);
	else
		check_blocks(
			vmpt("coverage --blocks --json -q --code=%s %s", test_data(file), pt)->out);
	pt_image_free(image);
	free(addr);
	free(bytes);
}

START_TEST(two_vmcs)
{
	compare("guest-two-vmcs");
}
END_TEST

START_TEST(mruby)
{
	compare("guest-mruby");
}
END_TEST

START_TEST(unzip)
{
	compare("guest-unzip");
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("cli/coverage-blocks");
	TCase *c = tcase_create("libipt");

	tcase_add_checked_fixture(c, cli_setup, cli_clean);
	tcase_set_timeout(c, 120);
	tcase_add_test(c, two_vmcs);
	tcase_add_test(c, mruby);
	tcase_add_test(c, unzip);
	suite_add_tcase(suite, c);
	return suite;
}
