// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/insn/insn-run.h"
#include "tests/support/support.h"

const struct real reals[REALS] = {
	{ "guest-two-vmcs", "bfd6c01afdb7358b", 9635736, 0x3b56ee000, 0x48c91000 },
	{ "guest-mruby", "f8b2dded398c0812", 6334131, 0x48d020000, 0x1628b000 },
	{ "guest-unzip", "ec6cd6452ff6ef34", 149576, 0x20ce5b000, 0x1ee4a000 },
};

bool link_real(const struct real *r)
{
	static const char *const ends[] = { "pt", "addr", "dump" };
	size_t i;

	for (i = 0; i < 3; i++) {
		char name[64], to[16];
		const char *path;

		snprintf(name, sizeof(name), "%s.%s", r->name, ends[i]);
		path = test_data(name);
		if (!path)
			return false;
		snprintf(to, sizeof(to), "x.%s", ends[i]);
		unlink(to);
		ck_assert_int_eq(symlink(path, to), 0);
	}
	return true;
}

void check_total(const struct real *r, const char *code)
{
	json_t *doc = run_json(vmpt("insn --hash --json -q %s x.pt", code));

	ck_assert_uint_eq(json_u64(doc, "total/instructions"), r->instructions);
	ck_assert_str_eq(json_text(doc, "total/hash"), r->hash);
	ck_assert_str_eq(json_text(doc, "streams/0/hash"), r->hash);
	ck_assert_uint_eq(json_u64(doc, "spaces/0/instructions"), r->instructions);
	ck_assert_uint_eq(strtoull(json_text(doc, "spaces/0/vmcs"), NULL, 16), r->vmcs);
	ck_assert_uint_eq(strtoull(json_text(doc, "spaces/0/cr3"), NULL, 16), r->cr3);
	ck_assert_uint_eq(json_u64(doc, "total/gaps/no_code"), 0);
	ck_assert_uint_eq(json_u64(doc, "total/gaps/impossible"), 0);
	json_decref(doc);
}

void read_index(char *code, size_t room)
{
	char line[256], base[32], vmcs[32], file[64];
	FILE *f = fopen("code/index", "r");
	size_t n = 0;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		ck_assert_int_eq(sscanf(line, "%31s %*s %*s %31s %63s", base, vmcs, file), 3);
		n += (size_t)snprintf(code + n, room - n, "--code=%s:code/%s@%s ",
				      strcmp(vmcs, "-") ? vmcs : "host", file, base);
		ck_assert_uint_lt(n, room);
	}
	fclose(f);
}

size_t lines_with(const char *text, const char *word, size_t *lines)
{
	const char *at = strchr(text, '\n'), *end;
	size_t with = 0;

	for (*lines = 0; at && at[1]; at = end, ++*lines) {
		end = strchr(at + 1, '\n');
		with += !!memmem(at, (size_t)((end ? end : at + strlen(at)) - at), word,
				 strlen(word));
	}
	return with;
}
