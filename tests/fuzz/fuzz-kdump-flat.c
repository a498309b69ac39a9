// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Any bytes as a flattened dump: an error with a reason, or a file of the bytes of its pieces. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decoder/kdump/kdump.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	int in = memfd_create("flat", MFD_CLOEXEC), out;
	struct vmpt_diag diag = { 0 };

	if (in < 0 || write(in, data, size) != (ssize_t)size)
		abort();
	out = kdump_unflatten(in, &diag);
	if (out < 0 && !diag.text[0])
		abort();
	if (out >= 0)
		close(out);
	close(in);
	return 0;
}
