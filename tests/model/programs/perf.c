// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Decode the trace with perf script: write a perf.data of one thread and the program's user code as
 * ELF files, and read the list of instructions that perf finds.
 */
#include <check.h>
#include <elf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/decoder/perf-writer.h"
#include "tests/model/programs/perf.h"

#define TASK	1000u /* pid and tid */
#define CODE_AT 4096u /* in the ELF files */

/* Bits of CTL that perf needs; the others are not in the event. */
#define CONFIG                                                                        \
	(VMPT_CTL_CYC_EN | VMPT_CTL_MTC_EN | VMPT_CTL_TSC_EN | VMPT_CTL_DIS_RETC |    \
	 0x3c000 /* MTCFreq */ | 0x780000 /* CycThresh */ | 0xf000000 /* PSBFreq */ | \
	 VMPT_CTL_BRANCH_EN)

/* ---- code ---- */

static void write_all(FILE *f, const void *bytes, size_t n)
{
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
}

static void write_header(FILE *f, const struct program_region *r)
{
	Elf64_Ehdr e64 = { .e_type = ET_EXEC,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_entry = r->base,
			   .e_phoff = sizeof(e64),
			   .e_ehsize = sizeof(e64),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1 };
	Elf64_Phdr p64 = { .p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_offset = CODE_AT + r->base % 4096,
			   .p_vaddr = r->base,
			   .p_filesz = r->size,
			   .p_memsz = r->size,
			   .p_align = 4096 };

	memcpy(e64.e_ident, ELFMAG, SELFMAG);
	e64.e_ident[EI_CLASS] = ELFCLASS64;
	e64.e_ident[EI_DATA] = ELFDATA2LSB;
	e64.e_ident[EI_VERSION] = EV_CURRENT;
	write_all(f, &e64, sizeof(e64));
	write_all(f, &p64, sizeof(p64));
}

/* perf takes the mode of an instruction from its file's class. */
static void write_header_32(FILE *f, const struct program_region *r)
{
	Elf32_Ehdr e32 = { .e_type = ET_EXEC,
			   .e_machine = EM_386,
			   .e_version = EV_CURRENT,
			   .e_entry = (u32)r->base,
			   .e_phoff = sizeof(e32),
			   .e_ehsize = sizeof(e32),
			   .e_phentsize = sizeof(Elf32_Phdr),
			   .e_phnum = 1 };
	Elf32_Phdr p32 = { .p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_offset = (u32)(CODE_AT + r->base % 4096),
			   .p_vaddr = (u32)r->base,
			   .p_filesz = r->size,
			   .p_memsz = r->size,
			   .p_align = 4096 };

	memcpy(e32.e_ident, ELFMAG, SELFMAG);
	e32.e_ident[EI_CLASS] = ELFCLASS32;
	e32.e_ident[EI_DATA] = ELFDATA2LSB;
	e32.e_ident[EI_VERSION] = EV_CURRENT;
	write_all(f, &e32, sizeof(e32));
	write_all(f, &p32, sizeof(p32));
}

static void code_path(const struct perf_run *run, unsigned int region, char *path)
{
	snprintf(path, PERF_PATH, "%s/region-%u", run->dir, region);
}

static void write_code(const struct perf_run *run, const struct program *program,
		       unsigned int region)
{
	const struct program_region *r = &program->region[region];
	char path[PERF_PATH];
	FILE *f;

	code_path(run, region, path);
	f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	if (r->mode == 32)
		write_header_32(f, r);
	else
		write_header(f, r);
	ck_assert_int_eq(fseek(f, CODE_AT + (long)(r->base % 4096), SEEK_SET), 0);
	write_all(f, r->code, r->size);
	ck_assert_int_eq(fclose(f), 0);
}

/* ---- records ---- */

/* The trailer of each record (sample_id_all): see the writer's sample type. */
struct sample_id {
	u32 pid, tid;
	u64 time;
	u32 cpu, reserved;
	u64 identifier;
};

static const struct sample_id sample_id = { TASK, TASK, 1, 0, 0, 101 };

static void comm_record(struct perf_writer *w)
{
	struct {
		u32 pid, tid;
		char comm[16];
		struct sample_id id;
	} payload = { TASK, TASK, "program", sample_id };

	writer_record(w, PERF_RECORD_COMM, &payload, sizeof(payload));
}

static void mmap_record(struct perf_writer *w, const struct perf_run *run,
			const struct program *program, unsigned int region)
{
	const struct program_region *r = &program->region[region];
	struct {
		u32 pid, tid;
		u64 addr, len, pgoff;
		u32 maj, min;
		u64 ino, ino_generation;
		u32 prot, flags;
		char name[PERF_PATH];
		struct sample_id id;
	} payload = {
		.pid = TASK, .tid = TASK, .pgoff = CODE_AT, .prot = 5, .flags = 2, .id = sample_id
	};

	payload.addr = r->base & ~4095ULL;
	payload.len = ((r->base + r->size + 4095) & ~4095ULL) - payload.addr;
	code_path(run, region, payload.name);
	writer_record(w, PERF_RECORD_MMAP2, &payload, sizeof(payload));
}

static void info_record(struct perf_writer *w)
{
	/* As WRITER_PRIVS fields, but a thread's trace: no context switches, no buffer per CPU. */
	u64 info[1 + WRITER_PRIVS] = { 1,
				       WRITER_PMU_TYPE,
				       WRITER_SHIFT,
				       WRITER_MULT,
				       WRITER_ZERO,
				       1,
				       VMPT_CTL_TSC_EN,
				       VMPT_CTL_DIS_RETC,
				       0,
				       0,
				       0,
				       VMPT_CTL_MTC_EN,
				       0x3c000,
				       96,
				       2,
				       VMPT_CTL_CYC_EN,
				       32,
				       0 };

	writer_record(w, 70, info, sizeof(info));
}

static void write_perf_data(const struct perf_run *run, const struct program *program,
			    const struct program_settings *set, const struct execution *done)
{
	char path[PERF_PATH];
	struct perf_writer w;
	unsigned int region;
	FILE *f;

	writer_start_config(&w, false, set->ctl & CONFIG);
	info_record(&w);
	comm_record(&w);
	for (region = 0; region < PROGRAM_KERNEL; region++)
		mmap_record(&w, run, program, region);
	writer_auxtrace(&w, -1, TASK, 0, done->trace, done->size);
	writer_finish(&w);
	snprintf(path, sizeof(path), "%s/perf.data", run->dir);
	f = fopen(path, "wb");
	ck_assert_ptr_nonnull(f);
	write_all(f, w.buf, w.size);
	ck_assert_int_eq(fclose(f), 0);
	writer_free(&w);
}

/* ---- perf ---- */

bool perf_available(void)
{
	return system("perf --version >/dev/null 2>&1") == 0;
}

void perf_start(struct perf_run *run, const struct program *program,
		const struct program_settings *set, const struct execution *done)
{
	const char *tmp = getenv("TMPDIR");
	char command[4 * PERF_PATH];
	unsigned int region;

	snprintf(run->dir, sizeof(run->dir), "%.60s/vmpt-perf-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(run->dir));
	for (region = 0; region < PROGRAM_KERNEL; region++)
		write_code(run, program, region);
	write_perf_data(run, program, set, done);
	/* i0ns: each instruction; Z: the order of the trace, not that of time; e: errors. */
	snprintf(command, sizeof(command),
		 "exec perf script -i %s/perf.data --itrace=i0nseZ -F ip 2>%s/errors", run->dir,
		 run->dir);
	run->out = popen(command, "r");
	ck_assert_ptr_nonnull(run->out);
}

bool perf_next(struct perf_run *run, u64 *ip)
{
	char *end;

	if (!fgets(run->line, sizeof(run->line), run->out))
		return false;
	*ip = strtoull(run->line, &end, 16);
	if (end == run->line || (*end != '\n' && *end != ' '))
		ck_abort_msg("perf script reports: %s", run->line);
	return true;
}

int perf_end(struct perf_run *run)
{
	char path[PERF_PATH];
	unsigned int region;
	int status = pclose(run->out);

	for (region = 0; region < PROGRAM_KERNEL; region++) {
		code_path(run, region, path);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/perf.data", run->dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/errors", run->dir);
	unlink(path);
	rmdir(run->dir);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
