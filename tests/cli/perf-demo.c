// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The trace, the code and the truth of tests of vmpt split --perf; see perf-demo.h. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cli/perf-demo.h"
#include "util/hash.h"

void perf_run(const char *fmt, ...)
{
	char line[2048];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	ck_assert_msg(system(line) == 0, "failed: %s", line);
}

void make_traces(unsigned int loops, const char *edit)
{
	perf_run("sed 's/^loop 100/loop %u/; %s' \"$SCRIPTS/demo.trace\" >d.trace", loops, edit);
	perf_run("\"$TRACEGEN\" -o d.pt --truth d.json --no-packets --code code d.trace");
}

void make_elf(const char *name, const char *page, const char *ip, const char *options)
{
	perf_run("printf '.text\\n.globl _text\\n_text:\\n.globl code\\n.type code,@function\\n"
		 "code: .incbin \"code/%s.bin\"\\n.size code, .-code\\n' >%s.S",
		 page, name);
	perf_run("gcc -nostdlib %s -Wl,--build-id=none -Wl,-z,max-page-size=4096 -Wl,-Ttext=%s "
		 "-Wl,-e,code -o %s %s.S",
		 options, ip, name, name);
}

void make_code(void)
{
	make_elf("web", "web-401000", "0x401000", "-static -no-pie");
	make_elf("db", "db-ffffffffa0000000", DB_IP, "-static -no-pie");
}

const struct count count_none = { .hash = VMPT_FNV1A };

void count_one(struct count *count, u64 ip)
{
	count->instructions++;
	count->hash = vmpt_fnv1a(count->hash, &ip, sizeof(ip));
}

struct count truth_of(const char *owner, int cpu)
{
	FILE *f = fopen("d.json", "r");
	struct count count = { 0 };
	bool found = false;
	char line[4096];

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		json_t *o = json_loads(line, 0, NULL);

		if (o && !strcmp(json_text(o, "type"), "count") && json_u64(o, "cpu") == (u64)cpu &&
		    !strcmp(json_text(o, "owner"), owner)) {
			count.instructions = json_u64(o, "instructions");
			count.hash = strtoull(json_text(o, "hash"), NULL, 16);
			found = true;
		}
		json_decref(o);
	}
	fclose(f);
	ck_assert(found);
	return count;
}

void ck_same_count(const char *what, const struct count *got, const struct count *want)
{
	ck_assert_msg(want->instructions > 10000, "the truth is too small for a test");
	ck_assert_msg(got->instructions == want->instructions && got->hash == want->hash,
		      "%s: %llu instructions, hash %016llx, not %llu, %016llx", what,
		      (unsigned long long)got->instructions, (unsigned long long)got->hash,
		      (unsigned long long)want->instructions, (unsigned long long)want->hash);
}
