/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One owner's stream out of a trace: every slice's bytes go to the stream of its
 * owner, with what is needed at its edges so that each stream is a trace of its
 * own (docs/vm-tracking.md, "One owner's stream"). Constant memory but for one
 * small record a stream.
 */
#ifndef VMPT_DECODER_EXTRACT_H
#define VMPT_DECODER_EXTRACT_H

#include "decoder/vmpt-clock.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * More VMCSs than this on a CPU: the slices of the rest are written nowhere. Others' MTC
 * and CBR go to every stream that is out: output grows with streams times those packets.
 */
#define VMPT_EXTRACT_STREAMS_MAX 4096

/*
 * On whose clock the TSC packets of each stream are. HOST: all on the host's, so that streams can
 * be merged. GUEST: each VM's on its own, as its RDTSC has it. Both rewrite TSC packets by
 * vmpt_clocks' maps, and keep what AS_IS leaves out because it is another clock's: others' TSC and
 * TMA packets, and an estimate in each head. Where no map is known a packet stays out, with its
 * TMA. TMA's FastCounter stays in host ticks (SDM 3 33.8.3.3), with scaling under GUEST too. MTC,
 * CYC and CBR are nobody's.
 */
enum vmpt_extract_clock {
	VMPT_EXTRACT_CLOCK_AS_IS,
	VMPT_EXTRACT_CLOCK_HOST,
	VMPT_EXTRACT_CLOCK_GUEST,
};

struct vmpt_extract_options {
	struct vmpt_options decode;
	/* RTIT has the hardware's TSC alone: as is. */
	u8 clock;			  /* enum vmpt_extract_clock */
	const struct vmpt_clocks *clocks; /* for HOST and GUEST: not NULL */
	size_t clock_stream;		  /* the stream's index as given to vmpt_clocks_open() */
	/* Hide VMX: NR = 0, no VMCS, CFE.VMENTRY, CFE.VMEXIT*, EVD.VMXQ, EVD.VMXR. Not in RTIT,
	 * which has nothing of it. */
	bool conceal;
	/*
	 * With HOST and GUEST: whose VMCS @vmcs is at host time @at, as a number of the caller's.
	 * Where it changes, a VMCS's slices go to another stream: its page was freed and used
	 * again. What is before the first time that is known goes with what is behind it. NULL: a
	 * VMCS is one stream.
	 */
	u64 (*who)(void *opaque, u64 vmcs, const struct vmpt_time *at);
	void *who_opaque;
};

/* A slice and what became of it. */
struct vmpt_extracted {
	struct vmpt_slice slice;
	int stream;	/* -1: written nowhere (unknown owner, loss) */
	u64 out_offset; /* in the stream's output, of all that this slice added */
	u64 out_size;
	bool head;     /* a PSB+ was synthesized before it */
	bool returned; /* a return was synthesized: PIP …, and TIP.PGE if .enabled */
	bool returned_pip, returned_cbr; /* the return has them: CR3 is known, CBR changed */
	bool enabled;
	bool left;	  /* a TIP.PGD() was synthesized behind it */
	bool lacks_calls; /* returns in it may lack their calls (an OVF with lost bytes before) */
	/* Others' timing since the stream's last slice. */
	u64 others_mtc, others_cbr;    /* kept in the stream */
	u64 others_cyc, others_cycles; /* packets; their sum, kept as one CYC */
	u64 others_tsc;		       /* TSC and TMA packets left out: another clock */
	u64 others_tsc_kept;	       /* and kept, on this stream's clock */
	/* Packets of this slice that are not in the stream as they were. */
	u32 fups_dropped; /* PSB+ FUPs before a TIP.PGE */
	u32 ips_reencoded;
	u32 concealed;	   /* dropped or changed by the conceal option */
	u32 dropped;	   /* BIPs whose block began in another owner's slice */
	u32 flow_dropped;  /* TNT, TIP, FUP while the stream does not know where its owner is */
	u32 tips_enabling; /* TIPs that became a TIP.PGE: there it knows again */
	u32 tscs_rewritten;
	u32 tscs_unmapped; /* left out: no map is known, or no time */
	/* The first TSC in the stream's output so far. */
	bool has_tsc;
	u64 first_tsc;
	/* The stream's number by who(), if one of its times was known. */
	bool who_known;
	u64 who;
	/*
	 * RTIT: head is a PSB, ips_reencoded counts LIPs that were written in full, and of the
	 * others only lacks_calls and this are used: LIPs that the trace does not tell, before
	 * which a byte that is no packet was written so that nobody makes them up.
	 */
	u32 lips_unknown;
};

struct vmpt_extract_ops {
	/* A new stream, numbered from 0 on; @owner is its owner. */
	int (*stream)(void *opaque, int stream, const struct vmpt_owner *owner);
	/* Append @n bytes to @stream. Calls for different streams may alternate. */
	int (*write)(void *opaque, int stream, const u8 *bytes, size_t n);
	/* A slice is finished; called for all slices in order. May be NULL. */
	int (*slice)(void *opaque, const struct vmpt_extracted *slice);
};

/*
 * Take @stream apart. Returns 0, a negative error of its own, or the first
 * value other than 0 that one of @ops returned, which ends it.
 */
int vmpt_extract(const struct vmpt_stream *stream, const struct vmpt_extract_options *options,
		 const struct vmpt_extract_ops *ops, void *opaque);

#ifdef __cplusplus
}
#endif

#endif
