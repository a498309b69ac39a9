/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A guest of the trace generator whose calls are known from its script: which, how often, how many
 * instructions each has, and what its time outside of the guest was spent on.
 */
#ifndef VMPT_TESTS_CLI_TREE_MACHINE_H
#define VMPT_TESTS_CLI_TREE_MACHINE_H

/* Its VMCS and CPU's rates; with the files of machine_write(). */
#define MACHINE_VM   "12345000"
#define MACHINE_RATE "--tsc-ratio=84 --mtc-freq=3"

/*
 * What its functions do, by address; each call of the generator goes to the next multiple of 0x100.
 *
 * 400100: 10 times, 5 NOPs, an I/O exit for 1,000 ticks, 5 NOPs
 * 400200: 5 times, halted for 5,000 ticks
 * 400300: 4 times, an EPT violation: the host for 500, another VM for 7,000 ticks
 * 400400: 6 times, 10 NOPs; calls 400500 3 times, which calls 400600, and 400700 7 times
 */
/* Options for the code of its pages, of all owners or of the guests only; in static memory. */
const char *machine_write(int timed, int host);

#endif
