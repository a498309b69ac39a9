// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The machine that the figures are from, and pinning to one of its cores. */
#include <sched.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "bench/bench.h"

static cpu_set_t all, one;
static bool known;

/* All cores available to this process, and one of them. */
static bool cores_known(void)
{
	int i;

	if (known)
		return true;
	if (sched_getaffinity(0, sizeof(all), &all))
		return false;
	CPU_ZERO(&one);
	/* The last one: the first often serves the interrupts. */
	for (i = CPU_SETSIZE - 1; i >= 0; i--) {
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			known = true;
			break;
		}
	}
	return known;
}

int bench_pin(void)
{
	return cores_known() && !sched_setaffinity(0, sizeof(one), &one) ? 0 : -1;
}

int bench_unpin(void)
{
	return cores_known() && !sched_setaffinity(0, sizeof(all), &all) ? 0 : -1;
}

static void cpu_model(char *out, size_t size)
{
	char line[256], name[128];
	FILE *f = fopen("/proc/cpuinfo", "r");

	snprintf(out, size, "unknown");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "model name : %127[^\n]", name) == 1) {
			snprintf(out, size, "%s", name);
			break;
		}
	}
	fclose(f);
}

void bench_machine_facts(struct bench_machine *m)
{
	struct utsname u;

	*m = (struct bench_machine){ 0 };
	cpu_model(m->cpu, sizeof(m->cpu));
	snprintf(m->kernel, sizeof(m->kernel), "%s", uname(&u) ? "unknown" : u.release);
#ifdef __clang__
	snprintf(m->compiler, sizeof(m->compiler), "%s", __VERSION__);
#else
	snprintf(m->compiler, sizeof(m->compiler), "gcc %s", __VERSION__);
#endif
#ifdef __SANITIZE_ADDRESS__
	m->sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
	m->sanitized = true;
#endif
#endif
	m->cores = cores_known() ? (unsigned int)CPU_COUNT(&all) : 1;
	m->pinned = !bench_pin();
}
