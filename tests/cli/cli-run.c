// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cli/cli-run.h"
#include "tests/support/support.h"

#define WORDS_MAX 96

static char home[4096];
static struct run last;

const char *vmpt_stdin = "/dev/null";

static const char *exe(void)
{
	const char *path = getenv("VMPT");

	ck_assert_msg(path != NULL, "$VMPT does not name the command to test");
	return path;
}

void cli_setup(void)
{
	ck_assert_ptr_nonnull(getcwd(home, sizeof(home)));
	ck_assert_int_eq(chdir(test_dir_make()), 0);
	unsetenv("NO_COLOR");
	/* Outputs are compared in UTF-8; in other locales they are ASCII. */
	setenv("LC_ALL", "C.UTF-8", 1);
	setenv("TERM", "xterm", 1);
}

void cli_clean(void)
{
	ck_assert_int_eq(chdir(home), 0);
	test_dir_remove();
	free(last.out);
	free(last.err);
	last = (struct run){ 0 };
}

static void split_words(char *text, char **argv)
{
	int n = 0;
	char *word;

	argv[n++] = "vmpt";
	for (word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		ck_assert_int_lt(n, WORDS_MAX - 1);
		argv[n++] = word;
		while ((word = strchr(word, '\t')))
			*word = ' ';
	}
	argv[n] = NULL;
}

static int open_new(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_msg(fd >= 0, "%s: %s", name, strerror(errno));
	return fd;
}

static char *take_file(const char *name, size_t *size)
{
	char *text = (char *)test_read_file(name, size);

	text[*size] = '\0';
	return text;
}

static void wait_code(pid_t pid)
{
	struct rusage usage;
	int status;

	ck_assert_int_eq(wait4(pid, &status, 0, &usage), pid);
	ck_assert_msg(WIFEXITED(status), "vmpt died by signal %d", WTERMSIG(status));
	last.code = WEXITSTATUS(status);
	last.memory = usage.ru_maxrss;
	last.cpu_ms = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
		      (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

const struct run *vmpt_to(int fd, const char *args)
{
	char text[4096], *argv[WORDS_MAX];
	int err = open_new(".err");
	size_t size;
	pid_t pid;

	snprintf(text, sizeof(text), "%s", args);
	split_words(text, argv);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		int in = open(vmpt_stdin, O_RDONLY);

		if (in < 0 || dup2(in, 0) < 0 || dup2(fd, 1) < 0 || dup2(err, 2) < 0)
			_exit(126);
		execv(exe(), argv);
		_exit(127);
	}
	close(fd);
	close(err);
	wait_code(pid);
	free(last.err);
	last.err = take_file(".err", &size);
	return &last;
}

/* For test-json.py: the documents of whole tests, each after a line with the command's words. */
static void keep_json(const char *args)
{
	const char *dir = getenv("VMPT_KEEP_JSON");
	static unsigned int number;
	char name[4096];
	FILE *f;

	if (!dir || !strstr(args, "--json") || (last.code && last.code != 3))
		return;
	snprintf(name, sizeof(name), "%s/%d-%u", dir, (int)getpid(), number++);
	f = fopen(name, "we");
	ck_assert_msg(f != NULL, "%s: %s", name, strerror(errno));
	fprintf(f, "%s\n", args);
	fwrite(last.out, 1, last.out_size, f);
	fclose(f);
}

const struct run *vmpt(const char *fmt, ...)
{
	char args[4096];
	va_list list;

	va_start(list, fmt);
	vsnprintf(args, sizeof(args), fmt, list);
	va_end(list);
	vmpt_to(open_new(".out"), args);
	free(last.out);
	last.out = take_file(".out", &last.out_size);
	keep_json(args);
	return &last;
}

static const struct run *on_terminal(const char *args, bool both)
{
	char text[4096], *argv[WORDS_MAX], buf[4096];
	FILE *out;
	ssize_t n;
	pid_t pid;
	int fd;

	snprintf(text, sizeof(text), "%s", args);
	split_words(text, argv);
	pid = forkpty(&fd, NULL, NULL, NULL);
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		if (!both && dup2(open("/dev/null", O_WRONLY), 1) < 0)
			_exit(126);
		execv(exe(), argv);
		_exit(127);
	}
	free(last.out);
	out = open_memstream(&last.out, &last.out_size);
	while ((n = read(fd, buf, sizeof(buf))) > 0) /* EIO is the end of a terminal */
		fwrite(buf, 1, (size_t)n, out);
	fclose(out);
	close(fd);
	wait_code(pid);
	return &last;
}

const struct run *vmpt_terminal(const char *args)
{
	return on_terminal(args, true);
}

const struct run *vmpt_terminal_err(const char *args)
{
	return on_terminal(args, false);
}

json_t *run_json(const struct run *r)
{
	json_error_t error;
	json_t *doc = json_loadb(r->out, r->out_size, 0, &error);

	ck_assert_msg(doc != NULL, "line %d: %s in: %.400s", error.line, error.text, r->out);
	return doc;
}

json_t *run_packets(const struct run *r)
{
	json_t *lines = json_array(), *o;
	const char *at, *end;

	for (at = r->out; *at; at = end + 1) {
		end = strchr(at, '\n');
		ck_assert_ptr_nonnull(end);
		o = json_loadb(at, (size_t)(end - at), 0, NULL);
		ck_assert_msg(o != NULL, "no JSON: %.*s", (int)(end - at), at);
		json_array_append_new(lines, o);
	}
	o = json_array_get(lines, 0);
	ck_assert_msg(o && json_u64(o, "format") == 1, "no head: %.200s", r->out);
	json_array_remove(lines, 0);
	o = json_array_get(lines, json_array_size(lines) - 1);
	ck_assert_msg(o && json_object_get(o, "losses") && json_object_get(o, "warnings"),
		      "no end");
	json_array_remove(lines, json_array_size(lines) - 1);
	return lines;
}

/* Whether span @o ended with exit @e. */
static bool ended_with(json_t *o, json_t *e)
{
	return json_equal(json_object_get(o, "cpu"), json_object_get(e, "cpu")) &&
	       json_equal(json_object_get(o, "vmcs"), json_object_get(e, "vmcs")) &&
	       json_equal(json_object_get(o, "end_tsc"), json_object_get(e, "tsc")) &&
	       json_equal(json_object_get(o, "exit"), json_object_get(e, "exit"));
}

json_t *run_spans(const struct run *r)
{
	json_t *doc = run_json(r), *all = json_at(doc, "spans"), *o, *to, *value;
	size_t i, k;
	const char *key;

	for (i = 0; i < json_array_size(all);) {
		o = json_array_get(all, i);
		if (strcmp(json_text(o, "kind"), "exit")) {
			i++;
			continue;
		}
		for (k = i; k && !ended_with(json_array_get(all, k - 1), o); k--)
			;
		ck_assert_msg(k > 0, "an exit without its span");
		to = json_array_get(all, k - 1);
		json_object_foreach(o, key, value) if (!strncmp(key, "out_", 4) ||
						       !strncmp(key, "unseen_", 7))
			json_object_set(to, key, value);
		json_array_remove(all, i);
	}
	return doc;
}

json_t *split_index(const char *dir)
{
	return run_json(vmpt("index --json %s", dir));
}

const char *json_vm(json_t *o)
{
	const char *name = json_string_value(json_object_get(o, "vm"));

	return name ? name : json_text(o, "vmcs") + 2;
}

json_t *json_at(json_t *doc, const char *path)
{
	char text[256], *at = text, *key;

	snprintf(text, sizeof(text), "%s", path);
	while ((key = strsep(&at, "/")) != NULL) {
		doc = json_is_array(doc) ? json_array_get(doc, strtoul(key, NULL, 10))
					 : json_object_get(doc, key);
		ck_assert_msg(doc != NULL, "no %s of %s", key, path);
	}
	return doc;
}

u64 json_u64(json_t *doc, const char *path)
{
	json_t *value = json_at(doc, path);

	ck_assert_msg(json_is_integer(value), "%s is no integer", path);
	return (u64)json_integer_value(value);
}

const char *json_text(json_t *doc, const char *path)
{
	const char *text = json_string_value(json_at(doc, path));

	ck_assert_msg(text != NULL, "%s is no string", path);
	return text;
}

void check_members(const char *what, json_t *doc, const char *members)
{
	char list[1024], got[256], *at = list, *path, *value;
	json_t *member;
	size_t n;

	ck_assert_int_lt(snprintf(list, sizeof(list), "%s", members), (int)sizeof(list));
	while ((path = strsep(&at, "|")) != NULL) {
		value = strchr(path, '=');
		ck_assert_ptr_nonnull(value);
		*value++ = '\0';
		member = json_at(doc, path);
		n = json_dumpb(member, got, sizeof(got) - 1, JSON_ENCODE_ANY);
		ck_assert_uint_lt(n, sizeof(got));
		got[n] = '\0';
		if (json_is_string(member))
			got[0] = got[n - 1] = '\'';
		ck_assert_msg(!strcmp(got, value), "%s: %s is %s, not %s", what, path, got, value);
	}
}

void write_file(const char *name, const void *bytes, size_t n)
{
	FILE *f = fopen(name, "wb");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
}

/* Written out by the manual's figures, not by the encoder: it is under test too. */
static const u8 mixed[MIXED_SIZE] = {
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, /* PSB */
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
	0x02, 0x43, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, /* PIP 1000 */
	0x02, 0xc8, 0x0a, 0x00, 0x00, 0x00, 0x00,	/* VMCS a000 */
	0x02, 0x23,					/* PSBEND */
	0x06, 0x04, 0x1c,				/* TNT-8 T, N, TTN */
	0x02, 0x43, 0x01, 0x02, 0x00, 0x00, 0x00, 0x00, /* PIP 2000 NR */
	0x6d, 0x00, 0x10, 0x40, 0x00, 0x00, 0x00,	/* TIP 401000 */
	0x06, 0x06,					/* TNT-8 */
	0x7d, 0x10, 0x10, 0x40, 0x00, 0x00, 0x00,	/* FUP 401010 */
	0x02, 0x43, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, /* PIP 1000 */
	0x6d, 0x00, 0x00, 0x00, 0x81, 0xff, 0xff,	/* TIP ffffffff81000000 */
	0x02, 0xc8, 0x0b, 0x00, 0x00, 0x00, 0x00,	/* VMCS b000 */
	0x04,						/* TNT-8 */
	0x02, 0x43, 0x01, 0x03, 0x00, 0x00, 0x00, 0x00, /* PIP 3000 NR */
	0x6d, 0x00, 0x20, 0x40, 0x00, 0x00, 0x00,	/* TIP 402000 */
	0x06,						/* TNT-8 */
};

void write_mixed(const char *name)
{
	write_file(name, mixed, sizeof(mixed));
}

void write_mixed_times(const char *name, unsigned int n, unsigned int pads)
{
	size_t one = sizeof(mixed) + pads;
	u8 *all = calloc(n, one);
	unsigned int i;

	ck_assert_ptr_nonnull(all);
	for (i = 0; i < n; i++)
		memcpy(all + i * one, mixed, sizeof(mixed));
	write_file(name, all, n * one);
	free(all);
}

double json_number(json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	ck_assert_msg(json_is_number(v), "%s", key);
	return json_number_value(v);
}
