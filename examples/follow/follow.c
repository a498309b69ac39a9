// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The packets of a raw trace that a recorder still appends to, like tail -f: "./follow cpu0.pt".
 * With a number as second argument it ends once the file has not grown for that many seconds;
 * else SIGINT or SIGTERM ends it. "-" follows standard input, up to its end. It shows decoding in
 * parts: each packet comes once, also one that was only half written when its first bytes were
 * read, and memory does not grow with the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vmpt/parts.h>

#define POLL_MS 20

static volatile sig_atomic_t stop;

static void on_signal(int signal)
{
	(void)signal;
	stop = 1;
}

static void print(const struct vmpt_packet *pkt)
{
	static const char *const owners[] = { "unknown", "host", "", "a VM" };

	printf("%10llx  ", (unsigned long long)pkt->offset);
	if (pkt->owner.kind == VMPT_OWNER_VM)
		printf("%-12llx  ", (unsigned long long)pkt->owner.vmcs);
	else
		printf("%-12s  ", owners[pkt->owner.kind]);
	if (pkt->kind == VMPT_ITEM_LOSS)
		printf("%llu bytes lost: %s\n", (unsigned long long)pkt->payload,
		       vmpt_strerror(-pkt->aux));
	else
		printf("%-9s  %llx\n", vmpt_pt_name(pkt->kind), (unsigned long long)pkt->payload);
}

/* Print what can be decoded now. */
static int drain(struct vmpt_decoder *dec, struct vmpt_cursor *at)
{
	struct vmpt_packet pkt;
	int ret;

	while ((ret = vmpt_packet_next(dec, at, &pkt)) == 1)
		print(&pkt);
	if (fflush(stdout)) {
		perror("standard output");
		return -VMPT_E_IO;
	}
	return ret;
}

/* Whether the file is shorter than what was read of it: it was overwritten. */
static bool shrank(int fd)
{
	struct stat st;
	off_t at = lseek(fd, 0, SEEK_CUR);

	return at >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size < at;
}

/* @idle_ms: end when nothing came for so long; 0: never; at once if @whole. */
static int follow(int fd, struct vmpt_decoder *dec, long idle_ms, bool whole)
{
	static u8 buf[1 << 16];
	struct vmpt_cursor at;
	long idle = 0;
	ssize_t n;
	int err = 0;

	memset(&at, 0, sizeof(at));
	while (!stop && !err) {
		n = read(fd, buf, sizeof(buf));
		if (n > 0) {
			idle = 0;
			err = vmpt_decoder_add(dec, buf, (size_t)n);
			if (!err)
				err = drain(dec, &at);
		} else if (n < 0 && errno != EINTR) {
			err = -VMPT_E_IO;
		} else if (!n && shrank(fd)) {
			fprintf(stderr, "the file became shorter\n");
			err = -VMPT_E_IO;
		} else if (!n) {
			if (whole || (idle_ms && idle >= idle_ms))
				break;
			usleep(POLL_MS * 1000);
			idle += POLL_MS;
		}
	}
	vmpt_decoder_end(dec);
	return err ? err : drain(dec, &at);
}

int main(int argc, char **argv)
{
	struct vmpt_decoder *dec;
	struct sigaction action;
	char *end = NULL;
	long seconds = argc > 2 ? strtol(argv[2], &end, 10) : 0;
	int fd, err;

	if (argc < 2 || argc > 3 || (end && (*end || seconds < 1 || seconds > 1000000))) {
		fprintf(stderr, "usage: %s FILE.pt|- [SECONDS]\n", argv[0]);
		return 2;
	}
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_signal; /* without SA_RESTART: it ends a read, too */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	fd = strcmp(argv[1], "-") ? open(argv[1], O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	if (fd < 0) {
		perror(argv[1]);
		return 1;
	}
	err = vmpt_decoder_open_parts(&dec, NULL);
	if (!err) {
		err = follow(fd, dec, 1000 * seconds, fd == STDIN_FILENO);
		vmpt_decoder_close(dec);
	}
	if (err)
		fprintf(stderr, "%s: %s\n", argv[1], vmpt_strerror(err));
	return err ? 1 : 0;
}
