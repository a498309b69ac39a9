/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What recording.json and the side record's line of the host have in common. */
#ifndef VMPT_CLI_RECORDING_HEAD_H
#define VMPT_CLI_RECORDING_HEAD_H

#include "cli/sideinfo/recording.h"

/* A number up to @max; @has false: it is missing, or null. 0, or what json_line_bad() returns. */
int recording_u64(struct json_line *line, const json_t *o, const char *key, u64 max, u64 *value,
		  bool *has);
/* The members that describe the host, all or none. */
int recording_host(struct json_line *line, const json_t *o, struct cli_recording *rec);

#endif
