// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The plugin's install function, in a program in place of QEMU: it loads the plugin as QEMU does,
 * provides the functions that the plugin calls, and can claim any version.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qemu-plugin/qemu/api.h"
#include "tests/support/support.h"

#define ID 0x1234567890abcdef

typedef int install_function(uint64_t id, const struct vmpt_qemu_info *info, int argc, char **argv);

/* The callbacks that the plugin registered. */
static struct {
	uint64_t id;
	void (*translated)(struct qemu_plugin_tb *tb, void *user);
	void *translated_user;
	void (*at_exit)(void *user);
	void *at_exit_user;
	int count;
} got;

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*cb)(struct qemu_plugin_tb *tb, void *user),
					   void *user)
{
	got.id = id;
	got.translated = cb;
	got.translated_user = user;
	got.count++;
}

void qemu_plugin_register_atexit_cb(uint64_t id, void (*cb)(void *user), void *user)
{
	ck_assert_uint_eq(id, ID);
	got.at_exit = cb;
	got.at_exit_user = user;
	got.count++;
}

/* The others are only counted. */
#define REGISTERS(name, ...)                                            \
	void qemu_plugin_register_##name##_cb(uint64_t id, __VA_ARGS__) \
	{                                                               \
		ck_assert_uint_eq(id, ID);                              \
		(void)cb;                                               \
		(void)user;                                             \
		got.count++;                                            \
	}

REGISTERS(vcpu_init, qemu_vcpu_cb cb, void *user)
REGISTERS(vcpu_exit, qemu_vcpu_cb cb, void *user)
REGISTERS(vcpu_idle, qemu_vcpu_cb cb, void *user)
REGISTERS(flush, void (*cb)(void *user), void *user)

void qemu_plugin_register_vcpu_discon_cb(uint64_t id, int types,
					 void (*cb)(unsigned int vcpu, int type, uint64_t from,
						    uint64_t to, void *user),
					 void *user)
{
	ck_assert_uint_eq(id, ID);
	ck_assert_int_eq(types, QEMU_DISCON_INTERRUPT);
	(void)cb;
	(void)user;
	got.count++;
}

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size)
{
	return calloc(2, size);
}

/* Every block is a NOP. */
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb)
{
	(void)tb;
	return 1;
}

struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i)
{
	(void)tb;
	(void)i;
	return NULL;
}

size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn)
{
	(void)insn;
	return 1;
}

size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest, size_t len)
{
	(void)insn;
	memset(dest, 0x90, len);
	return len;
}

uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn)
{
	(void)insn;
	return 0x1000;
}

static void *load(void)
{
	const char *path = getenv("VMPT_PLUGIN");
	void *plugin;

	ck_assert_ptr_nonnull(path);
	/* Like QEMU: a missing function is only detected when it is called. */
	plugin = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	ck_assert_msg(plugin, "%s", dlerror());
	return plugin;
}

static install_function *find_install(void)
{
	return (install_function *)dlsym(load(), "qemu_plugin_install");
}

/* Runs @run with its stdout and stderr in @text of @size bytes; returns its exit code. */
static int capture(int (*run)(const void *arg), const void *arg, char *text, size_t size)
{
	int fds[2], status;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		_exit(run(arg));
	}
	close(fds[1]);
	while ((n = read(fds[0], text + used, size - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = 0;
	close(fds[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "status %#x: %s", (unsigned)status, text);
	return WEXITSTATUS(status);
}

/* A QEMU and a command line, and the plugin's result. */
struct row {
	const char *what;
	int min, cur;
	const char *target;
	bool system;
	const char *options; /* with commas between; NULL: none */
	int code;	     /* install's; help ends the program with 0 */
	int registered;
	const char *says; /* exactly, or its beginning if it ends in '*' */
};

#define API(min, cur) \
	"vmpt: this QEMU has plugin API " #min " to " #cur ", but 7 is needed (QEMU 11.1)\n"

#define CALLBACKS 7

static const struct row rows[] = {
	{ "11.1", 7, 7, "x86_64", true, NULL, 0, CALLBACKS, "" },
	{ "serves 7 too", 7, 8, "x86_64", true, NULL, 0, CALLBACKS, "" },
	{ "and older", 2, 7, "x86_64", true, NULL, 0, CALLBACKS, "" },
	{ "bookworm-backports", 2, 4, "x86_64", true, NULL, -1, 0, API(2, 4) },
	{ "11.0", 6, 6, "x86_64", true, NULL, -1, 0, API(6, 6) },
	{ "next", 8, 8, "x86_64", true, NULL, -1, 0, API(8, 8) },
	{ "far", 9, 12, "x86_64", true, NULL, -1, 0, API(9, 12) },
	{ "no numbers", 0, 0, "x86_64", true, NULL, -1, 0, API(0, 0) },
	{ "version before options", 6, 6, "x86_64", true, "help=1", -1, 0, API(6, 6) },
	{ "other machine", 7, 7, "aarch64", true, NULL, -1, 0,
	  "vmpt: this QEMU is not qemu-system-x86_64 (target aarch64)\n" },
	{ "user mode", 7, 7, "x86_64", false, NULL, -1, 0,
	  "vmpt: this QEMU is not qemu-system-x86_64 (target x86_64)\n" },
	{ "help", 7, 7, "x86_64", true, "help=1", 0, 0,
	  "vmpt-plugin: Processor Trace for TCG guests. Options:\n*" },
	{ "unknown option", 7, 7, "x86_64", true, "helpful=1", -1, 0,
	  "vmpt: option helpful=1 is not known; help=1 lists the options\n" },
	{ "unknown value", 7, 7, "x86_64", true, "help=2", -1, 0,
	  "vmpt: help=2: expected 1; help=1 explains the options\n" },
	{ "no value", 7, 7, "x86_64", true, "host-view", -1, 0,
	  "vmpt: host-view=: expected DIR; help=1 explains the options\n" },
	{ "no number", 7, 7, "x86_64", true, "vmcs=here", -1, 0,
	  "vmpt: vmcs=here: expected ADDR; help=1 explains the options\n" },
	{ "too large", 7, 7, "x86_64", true, "vmcs=0x10000000000000", -1, 0,
	  "vmpt: vmcs=0x10000000000000: expected ADDR; help=1 explains the options\n" },
	{ "not aligned", 7, 7, "x86_64", true, "vmcs=0x1234,host-view=d", -1, 0,
	  "vmpt: vmcs=ADDR is not 4-KiB aligned\n" },
	{ "no VMCS", 7, 7, "x86_64", true, "vmcs=0", -1, 0,
	  "vmpt: vmcs=0: expected ADDR; help=1 explains the options\n" },
	{ "not a choice", 7, 7, "x86_64", true, "host=real", -1, 0,
	  "vmpt: host=real: expected none|synthetic; help=1 explains the options\n" },
	{ "no CPUs", 7, 7, "x86_64", true, "cpus=1:", -1, 0,
	  "vmpt: cpus=1:: expected N[:N...]; help=1 explains the options\n" },
	{ "of a view that is off", 7, 7, "x86_64", true, "host=synthetic", -1, 0,
	  "vmpt: host=synthetic needs the host view: add host-view=DIR\n" },
	{ "pt alone", 7, 7, "x86_64", true, "pt=qemu-icelake", -1, 0,
	  "vmpt: pt=qemu-icelake needs the guest view: add guest-view=1\n" },
	{ "rdtsc alone", 7, 7, "x86_64", true, "rdtsc=qemu", -1, 0,
	  "vmpt: rdtsc=qemu needs the guest view: add guest-view=1\n" },
	{ "rdtsc with the other view", 7, 7, "x86_64", true, "rdtsc=emulate,host-view=d", -1, 0,
	  "vmpt: rdtsc=emulate needs the guest view: add guest-view=1\n" },
	{ "no such trace", 7, 7, "x86_64", true, "isa=arm", -1, 0,
	  "vmpt: isa=arm: expected pt|rtit; help=1 explains the options\n" },
	{ "rtit alone", 7, 7, "x86_64", true, "isa=rtit", 0, CALLBACKS, "" },
	{ "RTIT in a guest", 7, 7, "x86_64", true, "isa=rtit,guest-view=1,rtit=4c-3", 0, CALLBACKS,
	  "" },
	{ "RTIT's processor without RTIT", 7, 7, "x86_64", true, "rtit=37-8,guest-view=1", -1, 0,
	  "vmpt: rtit=37-8 is of RTIT: add isa=rtit\n" },
	{ "RTIT's processor without its view", 7, 7, "x86_64", true, "isa=rtit,rtit=37-8", -1, 0,
	  "vmpt: rtit=37-8 needs the guest view: add guest-view=1\n" },
	{ "no such processor", 7, 7, "x86_64", true, "isa=rtit,guest-view=1,rtit=37-1", -1, 0,
	  "vmpt: rtit=37-1 is not known; there are 37-8, 5d-0, 5d-1, 4a-8, 4d-8, 5a-0, 4c-3\n" },
	{ "erratum 0", 7, 7, "x86_64", true, "isa=rtit,errata=1", -1, 0,
	  "vmpt: errata=BITS: only bits 1 to 7 stand for errata\n" },
	{ "erratum 8", 7, 7, "x86_64", true, "isa=rtit,errata=0x100", -1, 0,
	  "vmpt: errata=0x100: expected BITS; help=1 explains the options\n" },
	{ "baselines of Intel PT", 7, 7, "x86_64", true, "isa=rtit,guest-view=1,pt=full", -1, 0,
	  "vmpt: pt=full is of Intel PT, not of RTIT\n" },
	{ "permissions that the owner lacks", 7, 7, "x86_64", true, "mode=0444", -1, 0,
	  "vmpt: mode=0444: expected MODE; help=1 explains the options\n" },
	{ "decimal permissions", 7, 7, "x86_64", true, "mode=680", -1, 0,
	  "vmpt: mode=680: expected MODE; help=1 explains the options\n" },
	{ "truth that cannot be written", 7, 7, "x86_64", true, "truth=no/such/t", -1, 0,
	  "vmpt: truth=no/such/t: no/such/t.0: No such file or directory\n" },
	{ "RSP of no truth", 7, 7, "x86_64", true, "truth-sp=1", -1, 0,
	  "vmpt: truth-sp=1 needs a truth file: add truth=PREFIX\n" },
	{ "perf-data alone", 7, 7, "x86_64", true, "perf-data=x", -1, 0,
	  "vmpt: perf-data=x needs the host view: add host-view=DIR\n" },
	{ "vm alone", 7, 7, "x86_64", true, "vm=a", -1, 0,
	  "vmpt: vm=a needs the host view: add host-view=DIR\n" },
	{ "vmcs alone", 7, 7, "x86_64", true, "vmcs=0x1000", -1, 0,
	  "vmpt: vmcs=0x1000 needs the host view: add host-view=DIR\n" },
	{ "cpus alone", 7, 7, "x86_64", true, "cpus=0:1", -1, 0,
	  "vmpt: cpus=0:1 needs the host view: add host-view=DIR\n" },
	{ "host alone", 7, 7, "x86_64", true, "host=none", -1, 0,
	  "vmpt: host=none needs the host view: add host-view=DIR\n" },
	{ "slice-us alone", 7, 7, "x86_64", true, "slice-us=5", -1, 0,
	  "vmpt: slice-us=5 needs the host view: add host-view=DIR\n" },
	{ "tsc-offset alone", 7, 7, "x86_64", true, "tsc-offset=1", -1, 0,
	  "vmpt: tsc-offset=1 needs the host view: add host-view=DIR\n" },
	{ "tsc-multiplier alone", 7, 7, "x86_64", true, "tsc-multiplier=1", -1, 0,
	  "vmpt: tsc-multiplier=1 needs the host view: add host-view=DIR\n" },
	{ "a code stream alone", 7, 7, "x86_64", true, "code=x", -1, 0,
	  "vmpt: code=x needs the host view: add host-view=DIR\n" },
	{ "a code stream without a name", 7, 7, "x86_64", true, "code=", -1, 0,
	  "vmpt: code=: expected FILE; help=1 explains the options\n" },
	{ "a limit of no code stream", 7, 7, "x86_64", true, "code-limit=1", -1, 0,
	  "vmpt: code-limit=1 needs a code stream: add code=FILE\n" },
	{ "a limit of nothing", 7, 7, "x86_64", true, "code-limit=0", -1, 0,
	  "vmpt: code-limit=0: expected MIB; help=1 explains the options\n" },
	{ "ctl with the other view", 7, 7, "x86_64", true, "ctl=5,guest-view=1", -1, 0,
	  "vmpt: ctl=5 needs the host view: add host-view=DIR\n" },
};

/* Exit code: 0 for help, else 16 + number of registrations, and 8 more if refused. */
static int run_row(const void *arg)
{
	const struct row *row = arg;
	struct vmpt_qemu_info info = { .target_name = row->target,
				       .version = { row->min, row->cur },
				       .system_emulation = row->system,
				       .system = { 1, 1 } };
	char options[64] = "", *argv[4] = { NULL };
	int result, argc = 0;

	if (row->options)
		strcpy(options, row->options);
	for (char *at = strtok(options, ","); at; at = strtok(NULL, ","))
		argv[argc++] = at;
	got.count = 0;
	result = find_install()(ID, &info, argc, argv);
	if (result != 0 && result != -1)
		return 99;
	return 16 + got.count + (result ? 8 : 0);
}

START_TEST(install)
{
	const struct row *row = &rows[_i];
	bool help = row->options && !strcmp(row->options, "help=1") && !row->code;
	int want = help ? 0 : 16 + row->registered + (row->code ? 8 : 0);
	char text[4096];
	size_t size = strlen(row->says);
	int code = capture(run_row, row, text, sizeof(text));

	ck_assert_msg(code == want, "%s: exit code %d, not %d: %s", row->what, code, want, text);
	if (size && row->says[size - 1] == '*')
		ck_assert_msg(!strncmp(text, row->says, size - 1), "%s: %s", row->what, text);
	else
		ck_assert_msg(!strcmp(text, row->says), "%s: %s", row->what, text);
}
END_TEST

static int run_vcpus(const void *arg)
{
	const int *vcpus = arg;
	struct vmpt_qemu_info info = { .target_name = "x86_64",
				       .version = { 7, 7 },
				       .system_emulation = true,
				       .system = { 1, *vcpus } };

	return find_install()(ID, &info, 0, NULL) ? 1 : 0;
}

/* vCPUs that may be hotplugged count: they could not be refused later. */
START_TEST(number_of_vcpus)
{
	const int most = 256, too_many = 257;
	char text[4096];

	ck_assert_int_eq(capture(run_vcpus, &most, text, sizeof(text)), 0);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(capture(run_vcpus, &too_many, text, sizeof(text)), 1);
	ck_assert_str_eq(text, "vmpt: this machine may have 257 vCPUs (-smp), "
			       "the plugin traces up to 256\n");
}
END_TEST

static void *translate(void *arg)
{
	(void)arg;
	for (int i = 0; i < 100000; i++)
		got.translated(NULL, got.translated_user);
	return NULL;
}

static const struct vmpt_qemu_info qemu_11_1 = {
	.target_name = "x86_64",
	.version = { 7, 7 },
	.system_emulation = true,
	.system = { 2, 2 },
};

/* QEMU ends before its guest runs: its message is not followed by the plugin's summary. */
static int run_nothing(const void *arg)
{
	(void)arg;
	if (find_install()(ID, &qemu_11_1, 0, NULL))
		return 1;
	got.at_exit(got.at_exit_user);
	return 0;
}

START_TEST(says_nothing_of_nothing)
{
	char text[4096];
	int code = capture(run_nothing, NULL, text, sizeof(text));

	ck_assert_msg(code == 0, "exit code %d: %s", code, text);
	ck_assert_str_eq(text, "");
}
END_TEST

static int run_count(const void *arg)
{
	pthread_t threads[2];
	void *first_user;

	(void)arg;
	/* A second -plugin with the same file has its own counts. */
	if (find_install()(ID, &qemu_11_1, 0, NULL) || got.id != ID)
		return 1;
	first_user = got.at_exit_user;
	if (find_install()(ID, &qemu_11_1, 0, NULL) || got.at_exit_user == first_user)
		return 2;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, translate, NULL))
			return 3;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	got.at_exit(got.at_exit_user);
	got.at_exit(first_user);
	return 0;
}

START_TEST(counts_on_two_threads)
{
	char text[4096];
	int code = capture(run_count, NULL, text, sizeof(text));

	ck_assert_msg(code == 0, "exit code %d: %s", code, text);
	/* The other, under which nothing ran, prints nothing. */
	ck_assert_str_eq(text,
			 "vmpt: 200000 blocks translated, none traced: neither host-view= nor "
			 "guest-view= was given\n");
}
END_TEST

/* ---- files ---- */

#define VICTIM "mine\n"

static char dir[64]; /* the test's */

static void make_dir(void)
{
	strcpy(dir, "/tmp/vmpt-install.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

/* In @dir; not two in one expression. */
static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* All files that an install makes, and with @arg, of perf.data or not; as libvirt starts QEMU. */
static int run_files(const void *arg)
{
	const char *more = arg;
	char option[4][160], *argv[4];
	int argc = 0;

	/* Ends one that waits for a FIFO. */
	alarm(60);
	umask(0002);
	snprintf(option[argc++], sizeof(option[0]), "host-view=%s/t", dir);
	snprintf(option[argc++], sizeof(option[0]), "truth=%s/t/truth", dir);
	if (!strcmp(more, "perf-data"))
		snprintf(option[argc++], sizeof(option[0]), "perf-data=%s/t/perf.data", dir);
	else
		snprintf(option[argc++], sizeof(option[0]), "host=synthetic");
	if (!strncmp(more, "mode=", 5))
		strcpy(option[argc++], more);
	for (int i = 0; i < argc; i++)
		argv[i] = option[i];
	if (find_install()(ID, &qemu_11_1, argc, argv))
		return 1;
	return signal(SIGXFSZ, SIG_DFL) == SIG_IGN ? 0 : 2;
}

static const char *const files[] = { "t/cpu0.pt", "t/cpu0.state", "t/host.bin", "t/truth.0",
				     "t/perf.data" };
#define FILES (sizeof(files) / sizeof(files[0]))

static void expect_modes(mode_t folder, mode_t mode, bool perf)
{
	struct stat st;

	ck_assert_int_eq(stat(in_dir("t"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, folder);
	for (unsigned int i = 0; i < FILES; i++) {
		/* perf.data in place of the stream, and without a synthetic host */
		if (perf ? i == 0 || i == 2 : i == 4)
			continue;
		ck_assert_msg(!stat(in_dir(files[i]), &st), "%s", files[i]);
		ck_assert_msg((st.st_mode & 0777) == mode, "%s: %o", files[i], st.st_mode);
	}
}

/* What a guest executed is its owner's, whatever the umask is. */
START_TEST(g6_only_the_owner_reads)
{
	static const struct {
		const char *more;
		mode_t folder, mode;
	} want[] = { { "", 0700, 0600 },
		     { "perf-data", 0700, 0600 },
		     { "mode=640", 0750, 0640 },
		     { "mode=0666", 0775, 0666 } };
	char text[4096];

	for (unsigned int i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		make_dir();
		ck_assert_int_eq(capture(run_files, want[i].more, text, sizeof(text)), 0);
		expect_modes(want[i].folder, want[i].mode, !strcmp(want[i].more, "perf-data"));
		/* Its own files are no obstacle. */
		ck_assert_int_eq(capture(run_files, want[i].more, text, sizeof(text)), 0);
		ck_assert_str_eq(text, "");
		remove_dir();
	}
}
END_TEST

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

static void expect_text(const char *path, const char *text)
{
	size_t size;
	char *is = (char *)test_read_file(path, &size);

	ck_assert_msg(size == strlen(text) && !memcmp(is, text, size), "%s was changed", path);
	free(is);
}

/* Links, a FIFO that nobody reads and what others wrote, under each of the names. */
START_TEST(g7_nothing_of_others)
{
	static const char *const kind[] = { "link", "hard link", "FIFO", "text", "folder" };
	const char *name = files[_i % FILES], *what = kind[_i / FILES];
	char text[4096], path[128], victim[128];
	int err, code;

	make_dir();
	ck_assert_int_eq(mkdir(in_dir("t"), 0700), 0);
	strcpy(path, in_dir(name));
	strcpy(victim, in_dir("victim"));
	write_text(victim, VICTIM);
	if (what[0] == 'l')
		err = symlink(victim, path);
	else if (what[0] == 'h')
		err = link(victim, path);
	else if (what[0] == 'F')
		err = mkfifo(path, 0600);
	else
		err = what[0] == 'f' ? mkdir(path, 0700) : 0;
	if (what[0] == 't')
		write_text(path, VICTIM);
	ck_assert_int_eq(err, 0);
	code = capture(run_files, strstr(name, "perf") ? "perf-data" : "", text, sizeof(text));
	ck_assert_msg(code == 1, "%s, %s: exit code %d: %s", name, what, code, text);
	ck_assert_msg(strstr(text, path), "%s, %s: %s", name, what, text);
	expect_text(victim, VICTIM);
	if (what[0] == 't')
		expect_text(path, VICTIM);
	remove_dir();
}
END_TEST

/* A process that is killed leaves the beginning of a file, which is its own. */
START_TEST(g10_beginnings_are_continued)
{
	static const struct {
		const char *name, *begins;
	} left[] = { { "t/host.bin", "\xe8\x0b" },
		     { "t/truth.0", "VMPT" },
		     { "t/perf.data", "PERF" } };
	char text[4096];

	for (unsigned int i = 0; i < sizeof(left) / sizeof(left[0]); i++) {
		make_dir();
		ck_assert_int_eq(mkdir(in_dir("t"), 0700), 0);
		write_text(in_dir(left[i].name), left[i].begins);
		ck_assert_int_eq(capture(run_files, i == 2 ? "perf-data" : "", text, sizeof(text)),
				 0);
		ck_assert_str_eq(text, "");
		remove_dir();
	}
}
END_TEST

/* QEMU checks this before it calls anything. */
START_TEST(version_symbol)
{
	int *version = dlsym(load(), "qemu_plugin_version");

	ck_assert_ptr_nonnull(version);
	ck_assert_int_eq(*version, 7);
}
END_TEST

TEST_SUITE()
{
	Suite *suite = suite_create("qemu-plugin/install");
	TCase *tcase = tcase_create("install");

	tcase_add_loop_test(tcase, install, 0, (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(tcase, says_nothing_of_nothing);
	tcase_add_test(tcase, counts_on_two_threads);
	tcase_add_test(tcase, number_of_vcpus);
	tcase_add_test(tcase, version_symbol);
	tcase_add_test(tcase, g6_only_the_owner_reads);
	tcase_add_loop_test(tcase, g7_nothing_of_others, 0, 5 * (int)FILES);
	tcase_add_test(tcase, g10_beginnings_are_continued);
	suite_add_tcase(suite, tcase);
	return suite;
}
