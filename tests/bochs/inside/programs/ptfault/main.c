// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * ptfault: what KVM's virtualization of Intel PT does wrong, one scenario for each known defect.
 *
 *	ptfault --list		name, what it does, what is right; a line each, parts between |
 *	ptfault NAME		run one; prints one line: "Dnn: FAULT …", "Dnn: ok …", or
 *				"Dnn: skipped: …"
 *
 * Exit status: 0 ok, 1 fault, 77 skipped, 2 if it could not be tried.
 */
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

#include "faults.h"

const struct scenario *current;
static int status = 2;

/* Keep kernel messages from appearing in the middle of our lines. */
static void drain(void)
{
	fflush(stdout);
	tcdrain(STDOUT_FILENO);
}

static void result(int value, const char *word, const char *format, va_list args)
{
	printf("%s: %s", current->name, word);
	vprintf(format, args);
	printf("\n");
	drain();
	status = value;
}

void fault(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	result(1, "FAULT: ", format, args);
	va_end(args);
}

void ok(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	result(0, "ok: ", format, args);
	va_end(args);
}

void skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	result(77, "skipped: ", format, args);
	va_end(args);
}

static void list(void)
{
	const struct scenario *s;

	for (s = scenarios; s->name; s++)
		printf("%s|%s|%s\n", s->name, s->what, s->right);
}

int main(int argc, char **argv)
{
	static struct scene scene;
	const struct scenario *s;

	if (argc != 2)
		die("ptfault: a scenario's name, or --list");
	if (!strcmp(argv[1], "--list")) {
		list();
		return 0;
	}
	for (s = scenarios; s->name && strcasecmp(s->name, argv[1]); s++)
		;
	if (!s->name)
		die("ptfault: no scenario %s; --list names all", argv[1]);
	current = s;
	drain();
	if (!s->run)
		skip("%s", s->what);
	else if (!s->any_mode && strcmp(kvm_parameter("kvm_intel", "pt_mode"), "1"))
		skip("KVM offers guests no PT (pt_mode is not 1)");
	else
		s->run(&scene);
	return status;
}
