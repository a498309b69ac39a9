// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reads /dev/kmsg: see kmsg.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "kmsg.h"
#include "kvm.h"

#define RECORD_SIZE 2048

/* The next record's number and text; false at the end. */
static bool next(int fd, unsigned long long *number, char *record, size_t size)
{
	ssize_t n;

	do {
		n = read(fd, record, size - 1);
	} while (n < 0 && errno == EPIPE); /* some were overwritten */
	if (n <= 0)
		return false;
	record[n] = '\0';
	return sscanf(record, "%*u,%llu", number) == 1;
}

void kmsg_open(struct kmsg *kmsg)
{
	char record[RECORD_SIZE];
	int once = open("/sys/kernel/debug/clear_warn_once", O_WRONLY | O_CLOEXEC);

	/* Lets messages of printk_once() and WARN_ONCE() appear again. */
	if (once >= 0) {
		if (write(once, "1", 1) != 1)
			die("clear_warn_once: %s", strerror(errno));
		close(once);
	}
	kmsg->fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (kmsg->fd < 0)
		die("/dev/kmsg: %s", strerror(errno));
	kmsg->last = 0;
	while (next(kmsg->fd, &kmsg->last, record, sizeof(record)))
		;
}

bool kmsg_find(struct kmsg *kmsg, const char *text, char *line, size_t size)
{
	char record[RECORD_SIZE];
	unsigned long long number;
	const char *message;

	if (lseek(kmsg->fd, 0, SEEK_SET) < 0)
		die("/dev/kmsg: %s", strerror(errno));
	while (next(kmsg->fd, &number, record, sizeof(record))) {
		if (number <= kmsg->last || !strstr(record, text))
			continue;
		message = strchr(record, ';');
		snprintf(line, size, "%s", message ? message + 1 : record);
		line[strcspn(line, "\n")] = '\0';
		return true;
	}
	return false;
}
