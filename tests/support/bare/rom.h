/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The interface between a program without an operating system and the firmware that starts it
 * (rom.S).
 */
#ifndef VMPT_TESTS_BARE_ROM_H
#define VMPT_TESTS_BARE_ROM_H

/* In RAM: MAGIC there means that the program requested a reset and has to continue. */
#define RESUME 0x7000
#define MAGIC  0x74727476

/* The program's address in RAM; it is entered there in flat 32-bit protected mode. */
#define LOAD 0x100000

#endif
