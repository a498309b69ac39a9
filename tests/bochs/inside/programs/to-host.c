// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Sends files and commands to the host through the Bochs PC's host port (bochs/instrument/port.cc):
 * see usage(). Only on the PC itself; in its guests these ports do not exist. Several at once take
 * turns, except for the one that powers off: it does not wait.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/io.h>
#include <termios.h>
#include <unistd.h>

enum {
	PORT_COMMAND = 0x560,
	PORT_DATA = 0x564,
};

enum command {
	FILE_BEGIN = 1,
	FILE_END,
	DUMP_MEMORY,
	TRUTH_ON,
	TRUTH_OFF,
	MARK,
	POWER_OFF,
	PULSE,
	ANEW,
	TIMES_ON = 11,
	TIMES_OFF,
};

static int usage(void)
{
	fputs("usage: to-host FILE...		send files; their names lose the folders\n"
	      "       to-host --name NAME FILE	send FILE (-: standard input) as NAME\n"
	      "       to-host --dump NAME		the host writes a memory image NAME\n"
	      "       to-host --truth on|off	start or stop recording what is executed\n"
	      "       to-host --truth traced	the same, but only while TraceEn is 1\n"
	      "       to-host --times NAME|off	record times of bytes in NAME.times.CPU\n"
	      "       to-host --mark NUMBER	a mark in the run's log\n"
	      "       to-host --status NUMBER	power off with this status, 0 to 255\n"
	      "       to-host --pulse nmi|smi|init\n",
	      stderr);
	return 2;
}

static int fail(const char *what)
{
	fprintf(stderr, "to-host: %s: %s\n", what, strerror(errno));
	return 1;
}

static void command(enum command command)
{
	outl(command, PORT_COMMAND);
}

static void send_name(const char *name)
{
	outsb(PORT_DATA, name, strlen(name) + 1);
}

static int send_file(const char *path, const char *name)
{
	static u_int32_t buffer[1 << 16];
	int file = strcmp(path, "-") ? open(path, O_RDONLY) : STDIN_FILENO;
	ssize_t size;

	if (file < 0)
		return fail(path);
	send_name(name);
	command(FILE_BEGIN);
	while ((size = read(file, buffer, sizeof(buffer))) > 0) {
		outsl(PORT_DATA, buffer, (unsigned long)size / 4);
		outsb(PORT_DATA, (char *)buffer + size / 4 * 4, (unsigned long)size % 4);
	}
	command(FILE_END);
	if (file != STDIN_FILENO)
		close(file);
	return size < 0 ? fail(path) : 0;
}

static int send_files(char **paths)
{
	int status = 0;

	for (; *paths; paths++) {
		const char *slash = strrchr(*paths, '/');

		status |= send_file(*paths, slash ? slash + 1 : *paths);
	}
	return status;
}

static int number(enum command what, const char *text, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 0);

	if (!isdigit((unsigned char)*text) || *end || value > max)
		return usage();
	outl((unsigned int)value, PORT_DATA);
	command(what);
	return 0;
}

/* Drain the serial line: it is slow, and pending output is lost when the PC powers off. */
static int power_off(const char *status)
{
	tcdrain(STDOUT_FILENO);
	return number(POWER_OFF, status, 255);
}

static int with_word(const char *option, const char *word)
{
	static const char *const pulses[] = { "nmi", "smi", "init" };

	if (!strcmp(option, "--dump")) {
		send_name(word);
		command(DUMP_MEMORY);
	} else if (!strcmp(option, "--truth") && !strcmp(word, "on")) {
		command(TRUTH_ON);
	} else if (!strcmp(option, "--truth") && !strcmp(word, "traced")) {
		outl(1, PORT_DATA);
		command(TRUTH_ON);
	} else if (!strcmp(option, "--truth") && !strcmp(word, "off")) {
		command(TRUTH_OFF);
	} else if (!strcmp(option, "--times") && !strcmp(word, "off")) {
		command(TIMES_OFF);
	} else if (!strcmp(option, "--times")) {
		send_name(word);
		command(TIMES_ON);
	} else if (!strcmp(option, "--mark")) {
		return number(MARK, word, UINT32_MAX);
	} else if (!strcmp(option, "--status")) {
		return power_off(word);
	} else if (!strcmp(option, "--pulse")) {
		for (unsigned int i = 0; i < 3; i++) {
			if (!strcmp(word, pulses[i])) {
				outl(i + 1, PORT_DATA);
				command(PULSE);
				return 0;
			}
		}
		return usage();
	} else {
		return usage();
	}
	return 0;
}

/*
 * Wait for our turn, which ends with the program even if that is killed. A sender killed in the
 * middle of a file left it open.
 */
static void begin(bool wait)
{
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (self >= 0 && wait)
		flock(self, LOCK_EX);
	command(ANEW);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return usage();
	if (iopl(3))
		return fail("iopl");
	begin(strcmp(argv[1], "--status"));
	if (argv[1][0] != '-' || !argv[1][1])
		return send_files(argv + 1);
	if (argc == 4 && !strcmp(argv[1], "--name"))
		return send_file(argv[3], argv[2]);
	return argc == 3 ? with_word(argv[1], argv[2]) : usage();
}
