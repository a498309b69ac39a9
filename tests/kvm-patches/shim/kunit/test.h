/* SPDX-License-Identifier: GPL-2.0-only */
/* The part of KUnit that pt_core's suites use, run by shim/kunit.c's main(). */
#ifndef VMPT_SHIM_KUNIT_H
#define VMPT_SHIM_KUNIT_H

#include "shim.h"

#define GFP_KERNEL	  0
#define KUNIT_ALLOCATIONS 64

struct kunit {
	const char *name;
	int failures;
	void *memory[KUNIT_ALLOCATIONS]; /* freed after the case */
};

struct kunit_case {
	void (*run)(struct kunit *test);
	const char *name;
};

struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
	struct kunit_suite *next;
};

#define KUNIT_CASE(function)        \
	{                           \
		function, #function \
	}
#define kunit_test_suite(suite)                                               \
	static void __attribute__((constructor)) kunit_register_##suite(void) \
	{                                                                     \
		kunit_register(&(suite));                                     \
	}                                                                     \
	_Static_assert(sizeof(suite), "")

void kunit_register(struct kunit_suite *suite);
void *kunit_kzalloc(struct kunit *test, size_t size, int flags);
void kunit_kfree(struct kunit *test, void *memory);
/* @left and @right are for the message; more words may follow. */
void kunit_failed(struct kunit *test, const char *where, u64 left, u64 right, const char *more, ...)
	__attribute__((format(printf, 5, 6)));

#define KUNIT_WHERE__(file, line) file ":" #line
#define KUNIT_WHERE_(file, line)  KUNIT_WHERE__(file, line)
#define KUNIT_WHERE		  KUNIT_WHERE_(__FILE__, __LINE__)

#define KUNIT_COMPARE(test, left, op, right, ...)                                                 \
	do {                                                                                      \
		__typeof__(left) left_ = (left);                                                  \
		__typeof__(right) right_ = (right);                                               \
                                                                                                  \
		if (!((u64)left_ op(u64) right_))                                                 \
			kunit_failed(test, KUNIT_WHERE ": " #left " " #op " " #right, (u64)left_, \
				     (u64)right_, __VA_ARGS__);                                   \
	} while (0)

#define KUNIT_EXPECT_EQ(test, left, right) KUNIT_COMPARE(test, left, ==, right, " ")
#define KUNIT_EXPECT_LE(test, left, right) KUNIT_COMPARE(test, left, <=, right, " ")
#define KUNIT_EXPECT_EQ_MSG(test, left, right, ...) \
	KUNIT_COMPARE(test, left, ==, right, __VA_ARGS__)
#define KUNIT_EXPECT_NULL(test, p)	    KUNIT_COMPARE(test, (uintptr_t)(p), ==, 0, " ")
#define KUNIT_EXPECT_NULL_MSG(test, p, ...) KUNIT_COMPARE(test, (uintptr_t)(p), ==, 0, __VA_ARGS__)
/* The program ends here, not only the case. */
#define KUNIT_ASSERT_NOT_NULL(test, p) \
	do {                           \
		if (!(p))              \
			abort();       \
	} while (0)

#endif
