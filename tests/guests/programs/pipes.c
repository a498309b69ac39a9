// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Processes that talk, "pipes [CHILDREN [ROUNDS]]": each child gets numbers through a pipe and
 * sends their squares back, in turn, so that the processor switches between them; then each
 * execs this program again to end.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_CHILDREN 16

static int child(int in, int out)
{
	char *const again[] = { "pipes", "exit", NULL };
	uint32_t number;

	while (read(in, &number, sizeof(number)) == sizeof(number)) {
		number *= number;
		if (write(out, &number, sizeof(number)) != sizeof(number))
			return 2;
	}
	execv("/proc/self/exe", again);
	return 2;
}

static int start(int to[2], int from[2])
{
	pid_t pid;

	if (pipe2(to, 0x80000) || pipe2(from, 0x80000)) /* O_CLOEXEC */
		return 2;
	pid = fork();
	if (pid == 0) {
		close(to[1]);
		_exit(child(to[0], from[1]));
	}
	close(to[0]);
	close(from[1]);
	return pid < 0 ? 2 : 0;
}

int main(int argc, char **argv)
{
	int to[MAX_CHILDREN][2], from[MAX_CHILDREN][2];
	int children = 3, rounds = 50, bad = 0, status;
	uint64_t sum = 0;

	if (argc > 1 && !strcmp(argv[1], "exit"))
		return 7;
	if (argc > 1)
		children = atoi(argv[1]);
	if (argc > 2)
		rounds = atoi(argv[2]);
	if (children < 1 || children > MAX_CHILDREN)
		return 2;
	for (int i = 0; i < children; i++) {
		if (start(to[i], from[i]))
			return 2;
		/* The next child must not hold it open. */
	}
	for (int i = 0; i < rounds * children; i++) {
		uint32_t number = (uint32_t)i;

		bad += write(to[i % children][1], &number, sizeof(number)) != sizeof(number);
		bad += read(from[i % children][0], &number, sizeof(number)) != sizeof(number);
		sum += number;
	}
	for (int i = children - 1; i >= 0; i--) {
		close(to[i][1]);
		bad += wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 7;
	}
	printf("pipes: %d children %d rounds sum %llu bad %d\n", children, rounds,
	       (unsigned long long)sum, bad);
	return bad != 0;
}
