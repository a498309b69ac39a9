// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Sleep until an event of a domain or libvirt, or a signal. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "cli/domain/domain.h"

/* A terminal and a tool like timeout may send one signal twice, at once. */
#define AGAIN_AFTER 1.0 /* seconds */

static int news = -1; /* an eventfd */
static volatile sig_atomic_t came;
static struct timespec came_at;

static void on_signal(int sig)
{
	struct timespec now;
	int saved = errno;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (came &&
	    (double)(now.tv_sec - came_at.tv_sec) + 1e-9 * (double)(now.tv_nsec - came_at.tv_nsec) >
		    AGAIN_AFTER)
		_exit(128 + sig);
	if (!came) {
		came_at = now;
		came = sig;
	}
	domain_wake();
	errno = saved;
}

int domain_catch_signals(const struct cli *cli)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction on = { .sa_handler = on_signal };
	size_t i;

	news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (news < 0) {
		cli_error(cli, "cannot wait for events: %s", strerror(errno));
		return CLI_FAILED;
	}
	for (i = 0; i < VMPT_ARRAY_SIZE(caught); i++)
		sigaction(caught[i], &on, NULL);
	return CLI_OK;
}

int domain_signal(void)
{
	return came;
}

void domain_wake(void)
{
	u64 one = 1;

	/* It can only fail if it is already awake. */
	if (write(news, &one, sizeof(one)) < 0)
		return;
}

void domain_wait(int ms)
{
	struct pollfd p = { .fd = news, .events = POLLIN };
	u64 count;

	if (poll(&p, 1, ms) > 0 && read(news, &count, sizeof(count)) < 0)
		return;
}
