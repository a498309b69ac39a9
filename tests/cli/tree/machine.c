// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* See machine.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/tree/machine.h"
#include "tests/support/support.h"

static const char script[] =
	"host cr3=0x1000 ip=0xffffffff81000000\n"
	"vm A vmcs=0x12345000 cr3=0x5000 ip=0x400000\n"
	"vm B vmcs=0x23456000 cr3=0x6000 ip=0x500000\n"
	"vmptrld A\n"
	"enter A\n"
	"cond T\n"
	"loop 10 {\n"
	"	call\n	straight 5\n	exit io\n	advance 1000\n	enter A\n"
	"	straight 5\n	ret\n"
	"}\n"
	"loop 5 {\n"
	"	call\n	straight 5\n	exit hlt\n	advance 5000\n	enter A\n"
	"	straight 3\n	ret\n"
	"}\n"
	"loop 4 {\n"
	"	call\n	exit ept\n	advance 300\n"
	"	vmptrld B\n	enter B\n	advance 7000\n	exit io\n"
	"	advance 200\n	vmptrld A\n	enter A\n	ret\n"
	"}\n"
	"loop 6 {\n"
	"	call\n	straight 10\n"
	"	loop 3 {\n"
	"		call\n		straight 4\n		call\n		straight 2\n"
	"		ret\n		ret\n"
	"	}\n"
	"	loop 7 {\n"
	"		call\n		straight 1\n		ret\n"
	"	}\n"
	"	ret\n"
	"}\n"
	"ijmp\n"
	"exit timer\n"
	"ijmp\n";

const char *machine_write(int timed, int host)
{
	static char code[2048];
	char line[256], base[32], vmcs[32], file[64];
	size_t n = 0;
	FILE *f = fopen("m.trace", "w");

	ck_assert_ptr_nonnull(f);
	/* The flow keeps no return addresses over what it does not know. */
	fprintf(f, "set event_en=1 ticks=3 retcomp=%d%s\n%s", host,
		timed ? " tsc=1 cyc=1 mtc=1" : "", script);
	fclose(f);
	ck_assert_int_eq(system("rm -rf m.code && \"$TRACEGEN\" -o m.pt --code m.code m.trace"), 0);
	f = fopen("m.code/index", "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		ck_assert_int_eq(sscanf(line, "%31s %*s %*s %31s %63s", base, vmcs, file), 3);
		if (!strcmp(vmcs, "-") && !host)
			continue;
		n += (size_t)snprintf(code + n, sizeof(code) - n, "--code=%s:m.code/%s@%s ",
				      strcmp(vmcs, "-") != 0 ? vmcs : "host", file, base);
		ck_assert_uint_lt(n, sizeof(code));
	}
	fclose(f);
	return code;
}
