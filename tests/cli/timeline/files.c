// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Files for tests of the timeline; see files.h. */
#include <stdio.h>
#include <string.h>

#include "tests/cli/cli-run.h"
#include "tests/cli/timeline/files.h"

struct tl_machine *m;
size_t runs;
const struct tl_run *run;

/* Guests 0 and 1 are vCPUs of web, 2 is db's; the others have no name. */
static void write_record(const char *name)
{
	char text[1024];
	int n = 0, g;

	for (g = 0; g < 3; g++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "{\"vm\":\"%s\",\"vcpu\":%d,\"vmcs\":\"0x%llx\"}\n",
			      g < 2 ? "web" : "db", g % 2,
			      (unsigned long long)tl_vmcs((unsigned)g));
	write_file(name, text, (size_t)n);
}

void write_machine(const struct tl_options *o)
{
	const struct vmpt_stream *s;
	char name[32];
	unsigned int i;

	m = tl_new(o);
	tl_go(m);
	run = tl_runs(m, &runs);
	for (i = 0; i < o->cpus; i++) {
		snprintf(name, sizeof(name), "a.cpu%u.pt", i);
		s = tl_stream(m, i);
		write_file(name, s->data, s->size);
	}
	write_record("vms.jsonl");
}

void timeline_setup(void)
{
	/* With cycles all times are exact to a tick. */
	static const struct tl_options o = {
		.cpus = 3,
		.guests = 5,
		.runs = 1500,
		.seed = 4711,
		.cyc = true,
		.evd = true,
		.halts = true,
	};

	cli_setup();
	write_machine(&o);
}

void timeline_teardown(void)
{
	tl_free(m);
	cli_clean();
}

/* Columns of the longest line. */
size_t widest(const char *text)
{
	size_t wide = 0, n = 0;

	for (; *text; text++) {
		if (*text == '\n')
			n = 0;
		else if (((unsigned char)*text & 0xc0) != 0x80 && ++n > wide)
			wide = n;
	}
	return wide;
}
