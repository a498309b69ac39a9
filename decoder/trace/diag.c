// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What went wrong, in words. */
#include <stdarg.h>
#include <stdio.h>

#include "decoder/trace/trace.h"

int vmpt_diag_fail(struct vmpt_diag *diag, enum vmpt_error err, u64 offset, const char *fmt, ...)
{
	va_list args;

	if (!diag)
		return -(int)err;
	diag->offset = offset;
	va_start(args, fmt);
	vsnprintf(diag->text, sizeof(diag->text), fmt, args);
	va_end(args);
	return -(int)err;
}
