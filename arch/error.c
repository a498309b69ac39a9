// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The sentences for enum vmpt_error. */
#include "arch/error.h"
#include "arch/types.h"

static const char *const sentence[VMPT_E_NR] = {
	[VMPT_OK] = "no error",
	[VMPT_E_TRUNCATED] = "packet cut by the end of the trace",
	[VMPT_E_OPCODE] = "unknown opcode",
	[VMPT_E_IPBYTES] = "reserved IPBytes value",
	[VMPT_E_PTW_SIZE] = "reserved PTW payload size",
	[VMPT_E_MODE_LEAF] = "unknown MODE leaf",
	[VMPT_E_PSB] = "broken PSB pattern",
	[VMPT_E_CYC] = "CYC count over 64 bits",
	[VMPT_E_CCNT] = "reserved cycle count (CCNT 00b)",
	[VMPT_E_INVAL] = "value out of range",
	[VMPT_E_SPACE] = "buffer too small",
	[VMPT_E_NOMEM] = "out of memory",
	[VMPT_E_IO] = "input/output error",
	[VMPT_E_FORMAT] = "broken file format",
	[VMPT_E_UNSUPPORTED] = "unsupported file version",
	[VMPT_E_NO_PT] = "the file holds no Intel PT trace",
	[VMPT_E_SYNC] = "no PSB to start from",
	[VMPT_E_GAP] = "data lost by the recorder",
	[VMPT_E_CUT] = "packet cut by the PSB after it",
	[VMPT_E_VERSION] =
		"the program was compiled with the headers of another version of the library",
};

static const char *const vmm_sentence[VMPT_E_VMM_END - VMPT_E_VMM] = {
	[VMPT_E_CAPS - VMPT_E_VMM] = "the host's Intel PT cannot support this guest",
	[VMPT_E_CONTROLS - VMPT_E_VMM] =
		"VMX controls for Intel PT are missing or contradict each other",
	[VMPT_E_HOST_TRACING - VMPT_E_VMM] = "the host's TraceEn does not stay clear",
	[VMPT_E_HARDWARE - VMPT_E_VMM] = "access to a PT MSR of the processor failed",
	[VMPT_E_GUEST_MEM - VMPT_E_VMM] = "guest memory that the trace needs is missing",
	[VMPT_E_STATE - VMPT_E_VMM] = "not allowed in this state",
	[VMPT_E_LIMIT - VMPT_E_VMM] = "limit of one call's work reached",
	[VMPT_E_RETRY - VMPT_E_VMM] = "memory not available yet, try again",
};

const char *vmpt_strerror(int err)
{
	unsigned int e = err < 0 ? 0u - (unsigned int)err : (unsigned int)err;

	if (e < VMPT_E_NR)
		return sentence[e];
	if (e >= VMPT_E_VMM && e < VMPT_E_VMM_END)
		return vmm_sentence[e - VMPT_E_VMM];
	return "unknown error";
}
