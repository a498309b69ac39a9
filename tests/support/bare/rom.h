/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What a program without an operating system and the firmware that starts it (rom.S) agree on. */
#ifndef VMPT_TESTS_BARE_ROM_H
#define VMPT_TESTS_BARE_ROM_H

/* In RAM: MAGIC there means that a reset was asked for and the program is to go on. */
#define RESUME 0x7000
#define MAGIC  0x74727476

/* Where the program lies in RAM; it is entered there in flat 32-bit protected mode. */
#define LOAD 0x100000

#endif
