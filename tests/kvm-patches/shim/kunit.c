// SPDX-License-Identifier: GPL-2.0-only
/* Runs the suites that are linked in and prints a line as Check does. */
#include <kunit/test.h>

#include <stdarg.h>
#include <stdio.h>

static struct kunit_suite *suites;

void kunit_register(struct kunit_suite *suite)
{
	suite->next = suites;
	suites = suite;
}

void *kunit_kzalloc(struct kunit *test, size_t size, int flags)
{
	void *memory = flags == GFP_KERNEL ? calloc(1, size) : NULL;
	int i;

	for (i = 0; i < KUNIT_ALLOCATIONS; i++)
		if (!test->memory[i])
			return test->memory[i] = memory;
	abort();
}

void kunit_kfree(struct kunit *test, void *memory)
{
	int i;

	for (i = 0; i < KUNIT_ALLOCATIONS; i++)
		if (test->memory[i] == memory) {
			free(memory);
			test->memory[i] = NULL;
			return;
		}
	abort();
}

void kunit_failed(struct kunit *test, const char *where, u64 left, u64 right, const char *more, ...)
{
	va_list args;

	/* Print only the first ones. */
	if (test->failures++ >= 10)
		return;
	printf("%s: %s: %llx, %llx ", test->name, where, left, right);
	va_start(args, more);
	vprintf(more, args);
	va_end(args);
	printf("\n");
}

/* Whether it failed. */
static bool run(const struct kunit_case *test_case)
{
	struct kunit test = { .name = test_case->name };
	int i;

	test_case->run(&test);
	for (i = 0; i < KUNIT_ALLOCATIONS; i++)
		free(test.memory[i]);
	return test.failures;
}

int main(void)
{
	int checks = 0, failures = 0;
	struct kunit_suite *suite;
	struct kunit_case *test_case;

	for (suite = suites; suite; suite = suite->next)
		for (test_case = suite->test_cases; test_case->run; test_case++) {
			checks++;
			failures += run(test_case);
		}
	if (!checks)
		return 1;
	printf("%d%%: Checks: %d, Failures: %d, Errors: 0\n", 100 * (checks - failures) / checks,
	       checks, failures);
	return failures != 0;
}
