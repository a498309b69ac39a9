// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * main() of the test programs: which suites run, and in how many processes.
 *
 * Check runs each check in a process of its own, which is slow under the sanitizers. With
 * VMPT_ONE_PROCESS all checks of a program run in one. If that fails in any way, they run again in
 * processes of their own: so the failure has the name of its check and the others count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/support.h"

#define EXIT_SKIPPED 77

static struct {
	char name[64];
	Suite *(*make)(void);
} suites[128];
static unsigned int n_suites;

/* ".../test-NAME.c" */
void test_register(const char *file, Suite *(*make)(void))
{
	const char *name = strrchr(file, '/');

	name = name ? name + 1 : file;
	if (!strncmp(name, "test-", 5))
		name += 5;
	if (n_suites == VMPT_ARRAY_SIZE(suites)) {
		fprintf(stderr, "too many suites: tests/support/main.c\n");
		abort();
	}
	snprintf(suites[n_suites].name, sizeof(suites[0].name), "%.*s", (int)strcspn(name, "."),
		 name);
	suites[n_suites++].make = make;
}

static bool soaks;

static TCase *tagged_case(Suite *suite, const char *tag)
{
	TCase *tc = test_case(tag);

	tcase_set_tags(tc, tag);
	suite_add_tcase(suite, tc);
	soaks = true;
	return tc;
}

TCase *test_random_case(Suite *suite)
{
	return tagged_case(suite, "random");
}

TCase *test_long_case(Suite *suite)
{
	return tagged_case(suite, "long");
}

int test_rounds(int all, int few)
{
	return getenv("VMPT_SOAK") ? all : few;
}

static SRunner *runner_of(Suite **made, unsigned int n)
{
	SRunner *runner = srunner_create(n ? made[0] : NULL);
	unsigned int i;

	for (i = 1; i < n; i++)
		srunner_add_suite(runner, made[i]);
	return runner;
}

/* Prints the one process's output: as it is, or quoted, so that the runner does not count it. */
static void show(FILE *said, bool quoted)
{
	char line[4096];

	rewind(said);
	while (fgets(line, sizeof(line), said))
		printf("%s%s", quoted ? "  | " : "", line);
	fflush(stdout);
}

/* Run @runner's checks in one process. Returns whether it ended well, after printing its output. */
static bool one_process(SRunner *runner)
{
	FILE *said = tmpfile();
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = said ? fork() : -1;
	if (child < 0) {
		perror("one process for all checks");
		if (said)
			fclose(said);
		return false;
	}
	if (!child) {
		dup2(fileno(said), STDOUT_FILENO);
		srunner_set_fork_status(runner, CK_NOFORK);
		srunner_run_all(runner, CK_ENV);
		status = srunner_ntests_failed(runner) ? EXIT_FAILURE : EXIT_SUCCESS;
		srunner_free(runner);
		exit(status);
	}
	waitpid(child, &status, 0);
	show(said, status != 0);
	fclose(said);
	if (!status)
		return true;
	if (WIFSIGNALED(status))
		printf("in one process: %s", strsignal(WTERMSIG(status)));
	else
		printf("in one process: exit status %d", WEXITSTATUS(status));
	printf("; again, each check in a process of its own\n");
	fflush(stdout);
	return false;
}

static int run(Suite **made, unsigned int n)
{
	SRunner *runner = runner_of(made, n);
	const char *one_asked = getenv("VMPT_ONE_PROCESS");
	bool good = true, one = one_asked && *one_asked;
	int failed;

	if (one)
		good = one_process(runner);
	if (!one || !good) {
		srunner_run_all(runner, CK_ENV);
		failed = srunner_ntests_failed(runner);
		if (!good && !failed)
			printf("each check passes alone, and not after the others\n");
		good = good && !failed;
	}
	srunner_free(runner);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool wanted(const char *name, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	bool list = argc == 2 && !strcmp(argv[1], "--soak");
	Suite *made[VMPT_ARRAY_SIZE(suites)];
	unsigned int i, named = 0, n = 0;

	for (i = 0; i < n_suites; i++) {
		if (!list && !wanted(suites[i].name, argc, argv))
			continue;
		soaks = false;
		named++;
		made[n] = suites[i].make();
		n += made[n] != NULL;
		if (list && soaks)
			printf("%s\n", suites[i].name);
	}
	if (list)
		return EXIT_SUCCESS;
	if (argc > 1 && named != (unsigned int)argc - 1) {
		fprintf(stderr, "%s: no such suite; there are:\n", argv[0]);
		for (i = 0; i < n_suites; i++)
			fprintf(stderr, "  %s\n", suites[i].name);
		return 2;
	}
	return n ? run(made, n) : EXIT_SKIPPED;
}
