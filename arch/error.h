/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Errors of all vmpt libraries. A function that can fail returns 0 (or a
 * count) or the negative of one of these; vmpt_strerror() gives a sentence.
 */
#ifndef VMPT_ARCH_ERROR_H
#define VMPT_ARCH_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Functions return these as negative numbers. */
enum vmpt_error {
	VMPT_OK = 0,
	/* Packets (SDM 3 33.4.2) */
	VMPT_E_TRUNCATED, /* the packet is cut by the end of the buffer */
	VMPT_E_OPCODE,	  /* no packet starts with these bytes */
	VMPT_E_IPBYTES,	  /* IPBytes 101b or 111b (Table 33-18) */
	VMPT_E_PTW_SIZE,  /* PTW.PayloadBytes 10b or 11b (Table 33-40) */
	VMPT_E_MODE_LEAF, /* MODE leaf ID 2 to 7 (33.4.2.8) */
	VMPT_E_PSB,	  /* 02H 82H that is not followed by a whole PSB */
	VMPT_E_CYC,	  /* a CYC packet whose count exceeds 64 bits */
	VMPT_E_CCNT,	  /* RTIT: a cycle count with CCNT 00b */
	/* Use of an interface */
	VMPT_E_INVAL, /* an argument or a field is out of range */
	VMPT_E_SPACE, /* the caller's buffer is too small */
	/* Files and the machine */
	VMPT_E_NOMEM,
	VMPT_E_IO,	    /* reading or writing failed, see errno */
	VMPT_E_FORMAT,	    /* the file is not of the format it claims */
	VMPT_E_UNSUPPORTED, /* a known format in a version we do not read */
	VMPT_E_NO_PT,	    /* a perf.data without Intel PT */
	/* Causes of a loss in a trace; no function returns them */
	VMPT_E_SYNC, /* no PSB before these bytes: where packets start is not known */
	VMPT_E_GAP,  /* the recorder lost data before this byte */
	VMPT_E_CUT,  /* a packet lost its last bytes: a PSB begins inside it */
	/* Use of an interface, too; here, so that those before keep their numbers */
	VMPT_E_VERSION, /* the program was compiled with headers of another version of the library
			 */
	VMPT_E_NR,	/* end of those that can be an index */
	/*
	 * Virtualization (vmm-lib/). A VMM's callbacks return errno values, and calls return those
	 * unchanged: these codes are above all of them (a kernel's end at 4095), so none is
	 * mistaken for VMPT_E_RETRY.
	 */
	VMPT_E_VMM = 4096,
	VMPT_E_CAPS = VMPT_E_VMM, /* the host cannot support what the guest is shown */
	VMPT_E_CONTROLS, /* the processor lacks VMX controls that this needs, or they disagree */
	VMPT_E_HOST_TRACING, /* the host's TraceEn does not stay clear: do not enter the guest */
	VMPT_E_HARDWARE,     /* reading or writing a PT MSR of the processor failed */
	VMPT_E_GUEST_MEM,    /* guest memory that PT needs is missing */
	VMPT_E_STATE,	     /* not legal now: the comment on the call says when it is */
	VMPT_E_LIMIT,	     /* the bound of one call's work was reached */
	VMPT_E_RETRY,	     /* memory is not available yet; nothing is lost: call again later */
	VMPT_E_VMM_END	     /* end of the range */
};

#pragma GCC visibility push(default)
/*
 * A sentence in English for @err, an error code of either sign. Never NULL;
 * static memory.
 */
const char *vmpt_strerror(int err);
#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
