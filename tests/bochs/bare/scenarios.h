/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The lists of scenarios; each ends with one without a name. */
#ifndef VMPT_TESTS_BARE_SCENARIOS_H
#define VMPT_TESTS_BARE_SCENARIOS_H

#include "lib.h"

extern const struct scenario vmx_scenarios[];
extern const struct scenario caps_scenarios[];
extern const struct scenario ept_scenarios[];
extern const struct scenario event_scenarios[];
extern const struct scenario fail_scenarios[];
extern const struct scenario fail_late_scenarios[];
extern const struct scenario guest_only_scenarios[];
extern const struct scenario gpa_scenarios[];
extern const struct scenario gpa_exit_scenarios[];
extern const struct scenario legacy_scenarios[];
extern const struct scenario list_scenarios[];
extern const struct scenario memory_scenarios[];
extern const struct scenario gpa_trap_scenarios[];
extern const struct scenario modes_scenarios[];
extern const struct scenario pmi_scenarios[];
extern const struct scenario ptwrite_scenarios[];
extern const struct scenario time_scenarios[];
extern const struct scenario second_scenarios[];
extern const struct scenario suite_scenarios[];
extern const struct scenario system_scenarios[];

void bare_main(void);

#endif
