/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The clock of one stream for later rooms: its state, and walks over a batch that are inline
 * because a call per packet would cost more than the packet.
 */
#ifndef VMPT_DECODER_CLOCK_H
#define VMPT_DECODER_CLOCK_H

#include "decoder/clock/quick.h"

#endif
