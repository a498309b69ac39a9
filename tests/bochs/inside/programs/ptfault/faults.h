/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The scenarios of ptfault and how they report their results.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include "scene.h"

/* The result: one line "Dnn: FAULT …" or "Dnn: ok …"; skip() says "Dnn: skipped: …". */
void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
void ok(const char *format, ...) __attribute__((format(printf, 1, 2)));
void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A scenario; the table of all is in table.c. */
struct scenario {
	const char *name; /* D01 … D29; "ctl" is a fault of 6.12 only */
	void (*run)(struct scene *scene);
	const char *what;  /* it does */
	const char *right; /* behaviour */
	bool any_mode;	   /* does not need pt_mode=1 */
};

extern const struct scenario scenarios[];
extern const struct scenario *current;

/* A parameter of the module kvm. Returns whether it could be set. */
bool set_parameter(const char *name, const char *value);

/* One for each defect, by topic. */
void fault_d01(struct scene *s);
void fault_d02(struct scene *s);
void fault_d03(struct scene *s);
void fault_d04(struct scene *s);
void fault_d05(struct scene *s);
void fault_d06(struct scene *s);
void fault_d07(struct scene *s);
void fault_d08(struct scene *s);
void fault_d09(struct scene *s);
void fault_d09_late(struct scene *s);
void fault_d10(struct scene *s);
void fault_d11(struct scene *s);
void fault_d12(struct scene *s);
void fault_d13(struct scene *s);
void fault_d14(struct scene *s);
void fault_d14_pmi(struct scene *s);
void fault_d15(struct scene *s);
void fault_d16(struct scene *s);
void fault_d18(struct scene *s);
void fault_d19(struct scene *s);
void fault_d19_host(struct scene *s);
void fault_d19_log(struct scene *s);
void fault_d19_mmio(struct scene *s);
void fault_d20(struct scene *s);
void fault_d21(struct scene *s);
void fault_d21_rsm(struct scene *s);
void fault_d22(struct scene *s);
void fault_d22_exit(struct scene *s);
void fault_d22_edges(struct scene *s);
void fault_d22_sregs(struct scene *s);
void fault_d22_task(struct scene *s);
void fault_d23(struct scene *s);
void fault_d24(struct scene *s);
void fault_d26(struct scene *s);
void fault_d27(struct scene *s);
void fault_d28(struct scene *s);
void fault_d29(struct scene *s);
void fault_ctl(struct scene *s);

#endif
