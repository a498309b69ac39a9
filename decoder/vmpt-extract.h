/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Extract each owner's stream from a trace: every slice's bytes go to the stream of its
 * owner, with packets added at its edges so that each stream is a trace of its
 * own (docs/vm-tracking.md, "One owner's stream"). Memory is constant except for one
 * small record per stream.
 */
#ifndef VMPT_DECODER_EXTRACT_H
#define VMPT_DECODER_EXTRACT_H

#include "decoder/vmpt-clock.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * With more VMCSs than this on a CPU, slices of the rest are not written. MTC and CBR of others
 * go to every stream that is out: output grows with the number of streams times those packets.
 */
#define VMPT_EXTRACT_STREAMS_MAX 4096

/*
 * The clock of each stream's TSC packets. HOST: the host's for all, so that streams can be merged.
 * GUEST: each VM's own, as its RDTSC returns it. Both rewrite TSC packets by the maps of
 * vmpt_clocks, and keep what AS_IS leaves out because it is of another clock: others' TSC and TMA
 * packets, and an estimate in each head. A packet without a known map is left out, with its TMA.
 * TMA's FastCounter stays in host ticks (SDM 3 33.8.3.3), also with scaling under GUEST. MTC, CYC
 * and CBR have no owner.
 */
enum vmpt_extract_clock {
	VMPT_EXTRACT_CLOCK_AS_IS,
	VMPT_EXTRACT_CLOCK_HOST,
	VMPT_EXTRACT_CLOCK_GUEST,
};

/* How streams are extracted. All 0 is the default. */
struct vmpt_extract_options {
	struct vmpt_options decode;
	/* RTIT has the hardware TSC only: AS_IS. */
	u8 clock;			  /* enum vmpt_extract_clock */
	const struct vmpt_clocks *clocks; /* for HOST and GUEST: not NULL */
	size_t clock_stream;		  /* index into the streams given to vmpt_clocks_open() */
	/* Hide VMX: NR = 0, no VMCS, CFE.VMENTRY, CFE.VMEXIT*, EVD.VMXQ, EVD.VMXR. RTIT has none
	 * of them. */
	bool conceal;
	/*
	 * With HOST and GUEST: the owner of VMCS @vmcs at host time @at, a number chosen by the
	 * caller. Where it changes, the VMCS's slices go to another stream: its page was freed and
	 * reused. Slices before the first known time go with those after it. NULL: each VMCS is
	 * one stream.
	 */
	u64 (*who)(void *opaque, u64 vmcs, const struct vmpt_time *at);
	void *who_opaque;
	/*
	 * Slices for which it returns 0 are left out, as if nobody owned them: the stream goes on
	 * with a PSB+. Called once for each slice, in order; a negative error ends it. NULL: all
	 * are wanted.
	 */
	int (*wanted)(void *opaque, const struct vmpt_slice *slice);
	void *wanted_opaque;
};

/* A slice and what became of it. */
struct vmpt_extracted {
	struct vmpt_slice slice;
	int stream;	/* -1: not written (unknown owner, loss) */
	u64 out_offset; /* in the stream's output, of the bytes that this slice added */
	u64 out_size;
	bool head;     /* a PSB+ was synthesized before it */
	bool returned; /* a return was synthesized: PIP …, and TIP.PGE if .enabled */
	bool returned_pip, returned_cbr; /* the return has them: CR3 is known, CBR changed */
	bool enabled;
	bool left;	  /* a TIP.PGD() was synthesized after it */
	bool lacks_calls; /* returns in it may lack their calls (an OVF with lost bytes before) */
	/* Others' timing since the stream's last slice. */
	u64 others_mtc, others_cbr;    /* kept in the stream */
	u64 others_cyc, others_cycles; /* packets; their sum, kept as one CYC */
	u64 others_tsc;		       /* TSC and TMA packets left out: another clock */
	u64 others_tsc_kept;	       /* and kept, on this stream's clock */
	/* Packets of this slice that were dropped or changed. */
	u32 fups_dropped; /* PSB+ FUPs before a TIP.PGE */
	u32 ips_reencoded;
	u32 concealed;	   /* dropped or changed by the conceal option */
	u32 dropped;	   /* BIPs whose block began in another owner's slice */
	u32 flow_dropped;  /* TNT, TIP, FUP while the owner's IP is not known in the stream */
	u32 tips_enabling; /* TIPs that became a TIP.PGE: the IP is known again */
	u32 tscs_rewritten;
	u32 tscs_unmapped; /* left out: no map or no time is known */
	/* The first TSC in the stream's output so far. */
	bool has_tsc;
	u64 first_tsc;
	/* The stream's number by who(), if one of its times was known. */
	bool who_known;
	u64 who;
	/*
	 * RTIT: head is a PSB, ips_reencoded counts LIPs that were written in full; of the
	 * others only lacks_calls and this are used: LIPs that the trace does not give. Before
	 * each, a byte that is no packet was written, so that decoders do not guess the LIP.
	 */
	u32 lips_unknown;
};

/* Where streams go. Each returns 0; what else it returns ends vmpt_extract(). */
struct vmpt_extract_ops {
	/* A new stream, numbered from 0 on; @owner is its owner. */
	int (*stream)(void *opaque, int stream, const struct vmpt_owner *owner);
	/* Append @n bytes to @stream. Calls for different streams may alternate. */
	int (*write)(void *opaque, int stream, const u8 *bytes, size_t n);
	/* A slice is finished. Called for all slices in order. May be NULL. */
	int (*slice)(void *opaque, const struct vmpt_extracted *slice);
};

/* The number that the call below compares with the library's: see VMPT_ABI_VERSION. */
#define VMPT_EXTRACT_ABI                                                            \
	VMPT_ABI_ADD(VMPT_ABI2(struct vmpt_extract_options, struct vmpt_extracted), \
		     struct vmpt_extract_ops)

/*
 * Split @stream; @options may be NULL, @opaque is passed to @ops. Returns 0; -VMPT_E_NOMEM,
 * -VMPT_E_INVAL, -VMPT_E_VERSION; or the first nonzero value that one of @ops returned, which ends
 * it.
 */
int vmpt_extract_abi(const struct vmpt_stream *stream, const struct vmpt_extract_options *options,
		     const struct vmpt_extract_ops *ops, void *opaque, u64 abi);
#define vmpt_extract(stream, options, ops, opaque) \
	vmpt_extract_abi(stream, options, ops, opaque, VMPT_EXTRACT_ABI)

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
