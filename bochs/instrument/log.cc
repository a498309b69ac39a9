// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The run's log, run.log in its folder, one line per event: TICKS, then the event. At the end it
 * has * for each processor, if they are not 0:
 *
 *	entries cpu N vmcs ADDRESS count N	VM entries that reached the guest
 *	failed cpu N vmcs ADDRESS count N	that failed after the controls' checks
 *	exits cpu N vmcs ADDRESS reason N count N
 *	packets cpu N bytes N overflows N
 *	truth FILE instructions N
 *	modified FILE cr3 ADDRESS page ADDRESS	code that changed while it was recorded
 */
#include "pc.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <utility>

struct pc_counts {
	std::map<u64, u64> entries, failed;	  /* by VMCS */
	std::map<std::pair<u64, u32>, u64> exits; /* by VMCS and reason */
};

static FILE *open_log(void)
{
	std::string path = std::string(pc_folder()) + "/run.log";
	FILE *file = fopen(path.c_str(), "we");

	if (!file)
		fprintf(stderr, "vmpt: %s: %s\n", path.c_str(), strerror(errno));
	return file;
}

void pc_log(const char *format, ...)
{
	static FILE *file = open_log();
	va_list args;

	if (!file)
		return;
	fprintf(file, "%llu ", (unsigned long long)bx_pc_system.time_ticks());
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	fputc('\n', file);
	fflush(file);
}

void pc_status(const char *status)
{
	FILE *file = fopen((std::string(pc_folder()) + "/status").c_str(), "we");

	if (!file)
		return;
	fprintf(file, "%s\n", status);
	fclose(file);
}

static struct pc_counts *counts_of(struct pc_cpu *pc)
{
	if (!pc->counts)
		pc->counts = new struct pc_counts();
	return pc->counts;
}

void pc_count_entry(struct pc_cpu *pc)
{
	counts_of(pc)->entries[pc->cpu->vmcsptr]++;
}

void pc_count_exit(struct pc_cpu *pc)
{
	struct pc_counts *counts = counts_of(pc);

	if (pc->exit_late)
		counts->failed[pc->cpu->vmcsptr]++;
	else
		counts->exits[{ pc->cpu->vmcsptr, pc->exit.reason & 0xffff }]++;
}

void pc_log_counts(const struct pc_cpu *pc)
{
	const struct pc_counts *counts = pc->counts;

	if (counts) {
		for (auto &e : counts->entries)
			pc_log("entries cpu %u vmcs %llx count %llu", pc->id,
			       (unsigned long long)e.first, (unsigned long long)e.second);
		for (auto &e : counts->failed)
			pc_log("failed cpu %u vmcs %llx count %llu", pc->id,
			       (unsigned long long)e.first, (unsigned long long)e.second);
		for (auto &e : counts->exits)
			pc_log("exits cpu %u vmcs %llx reason %u count %llu", pc->id,
			       (unsigned long long)e.first.first, e.first.second,
			       (unsigned long long)e.second);
	}
	if (pc->unit.bytes)
		pc_log("packets cpu %u bytes %llu overflows %llu", pc->id,
		       (unsigned long long)pc->unit.bytes, (unsigned long long)pc->unit.overflows);
}
