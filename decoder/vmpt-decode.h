/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * libvmpt-decode: from a trace's bytes to packets with their owners, and
 * to slices, the maximal runs of bytes of one owner (docs/vm-tracking.md).
 *
 * It is a pull interface: open a trace, take its streams (one per CPU or thread),
 * open a decoder or a splitter on one, call _next until it returns 0. Memory use is
 * constant, whatever the trace's size. Streams are of Intel PT, or of RTIT of the 2013-15 Atoms
 * (docs/rtit.md): same calls, other kinds of items. No globals; two streams may be used by
 * two threads. Returned pointers stay valid until the next call on the same object
 * unless stated otherwise.
 */
#ifndef VMPT_DECODE_H
#define VMPT_DECODE_H

#include "arch/pt-packet.h"
#include "arch/rtit-packet.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- traces and their streams ---- */

/* The bytes at @offset do not continue those before it: the recorder lost some. */
struct vmpt_gap {
	u64 offset; /* in the stream */
	u32 flags;  /* VMPT_GAP_* */
};

#define VMPT_GAP_TRUNCATED 0x01 /* PERF_AUX_FLAG_TRUNCATED */
#define VMPT_GAP_PARTIAL   0x02 /* PERF_AUX_FLAG_PARTIAL */
#define VMPT_GAP_COLLISION 0x04 /* PERF_AUX_FLAG_COLLISION */
#define VMPT_GAP_SNAPSHOT  0x08 /* a new snapshot that does not overlap the last */
#define VMPT_GAP_LOST	   0x10 /* AUX offsets do not follow each other */

/* Where a part of a stream lies in the file. */
struct vmpt_extent {
	u64 offset; /* in the stream */
	u64 size;
	u64 file_offset;
};

/* What wrote a trace. */
enum vmpt_isa { VMPT_ISA_PT, VMPT_ISA_RTIT };

/* One CPU's or thread's trace. Memory is owned by its vmpt_trace. */
struct vmpt_stream {
	const u8 *data;
	u64 size;
	int cpu;		     /* -1: not known */
	int tid;		     /* -1: a whole CPU's trace */
	u8 isa;			     /* enum vmpt_isa; the same for all streams of a trace */
	const struct vmpt_gap *gaps; /* by offset, each between two bytes of the stream */
	size_t gap_count;
	const struct vmpt_extent *extents; /* by offset */
	size_t extent_count;
};

/* What a trace was read from. */
enum vmpt_trace_format { VMPT_TRACE_RAW, VMPT_TRACE_PERF };

/* What the file says about the whole trace; all 0 for raw traces. */
struct vmpt_trace_info {
	enum vmpt_trace_format format;
	enum vmpt_isa isa;
	bool has_time_conv; /* the three below are valid: perf time = f(TSC) */
	u16 time_shift;
	u32 time_mult;
	u64 time_zero;
	bool snapshot;
	bool pipe;
	bool compressed;
	bool threads;	 /* perf traced given threads, on any CPU, not whole CPUs */
	bool incomplete; /* part of the file could not be read; the rest was */
	bool has_config; /* the intel_pt event's attr.config was found */
	u64 config;	 /* IA32_RTIT_CTL as perf's format directory lays it out */
	u32 tsc_ctc_numerator, tsc_ctc_denominator; /* CPUID.15H EBX / EAX */
	u32 mtc_freq_bits_shift;
	u32 max_nonturbo_ratio;
	u64 lost_events;       /* PERF_RECORD_LOST and _LOST_SAMPLES: sum */
	u64 truncated_buffers; /* AUX records flagged truncated */
};

/* Place and cause of an open function's failure. */
struct vmpt_diag {
	u64 offset; /* in the file */
	char text[240];
};

struct vmpt_trace;

/* The number that the calls below compare with the library's: see VMPT_ABI_VERSION. */
#define VMPT_DECODE_ABI                                                                        \
	VMPT_ABI_ADD4(                                                                         \
		VMPT_ABI_ADD4(VMPT_ABI_ADD4(VMPT_ABI4(struct vmpt_stream, struct vmpt_batch,   \
						      struct vmpt_options, struct vmpt_slice), \
					    struct vmpt_trace_info, struct vmpt_diag,          \
					    struct vmpt_gap, struct vmpt_extent),              \
			      struct vmpt_run, struct vmpt_run_effect, struct vmpt_run_report, \
			      struct vmpt_vms_found),                                          \
		struct vmpt_item, struct vmpt_packet, struct vmpt_pt_packet,                   \
		struct vmpt_rtit_packet)

/* CPUs and threads of a perf.data; Linux has at most 8,192 CPUs. What has more is incomplete. */
#define VMPT_PERF_STREAMS 8192u
/* Limits of compressed records, see below; perf's own events shrink to a tenth or a twentieth. */
#define VMPT_INFLATE_RATIO 64u
#define VMPT_INFLATE_FREE  (16u << 20)

/*
 * Open a trace: a raw file of PT or RTIT bytes (of one CPU, @cpu or -1) or a perf.data
 * (file or pipe format, recognized by its magic). "-" or a pipe is copied to an
 * unlinked temporary file first, as are perf.data streams in several parts.
 * Compressed records of a perf.data are read up to VMPT_INFLATE_FREE bytes and VMPT_INFLATE_RATIO
 * times the compressed ones; a file with more is incomplete, what came before is kept. Memory is
 * then at most a small multiple of the file's size and of VMPT_INFLATE_FREE, and zstd's window
 * (at most 128 MiB, of which no more is used than the records grow to).
 * A regular file is mapped, not copied. If another process makes it shorter while the trace is
 * open, a load from the missing pages raises SIGBUS in whichever thread reads it, and the rest of
 * the last page reads as zeros. The library installs no handler, since signals are the program's. A
 * program that opens files that others may truncate gives a pipe or its own copy, or has a handler
 * that ends it, as the vmpt command has (cli/base/sigbus.c). A file may be appended to, renamed or
 * removed at any time.
 * A raw file is RTIT if it proves to be: after a PSB of RTIT in its first 4 MiB only packets of
 * RTIT follow, over another PSB or to the end, and nowhere is a PSB of PT. Else it is PT. A file
 * that is a perf.data except for a damaged magic is an error, -VMPT_E_FORMAT.
 * Returns 0 with *@trace, which vmpt_trace_close() frees, or a negative error with @diag filled
 * (may be NULL): -VMPT_E_IO, -VMPT_E_FORMAT, -VMPT_E_UNSUPPORTED, -VMPT_E_NO_PT, -VMPT_E_NOMEM,
 * or -VMPT_E_VERSION, which leaves both as they are. With 0 its text is empty, or says what could
 * not be read if the info has incomplete set.
 */
int vmpt_trace_open_abi(struct vmpt_trace **trace, const char *path, int cpu,
			struct vmpt_diag *diag, u64 abi);
#define vmpt_trace_open(trace, path, cpu, diag) \
	vmpt_trace_open_abi(trace, path, cpu, diag, VMPT_DECODE_ABI)
/* Open a raw file of PT bytes; results as of vmpt_trace_open(). */
int vmpt_trace_open_raw_abi(struct vmpt_trace **trace, const char *path, int cpu,
			    struct vmpt_diag *diag, u64 abi);
#define vmpt_trace_open_raw(trace, path, cpu, diag) \
	vmpt_trace_open_raw_abi(trace, path, cpu, diag, VMPT_DECODE_ABI)
/* Open a raw file of RTIT bytes; results as of vmpt_trace_open(). */
int vmpt_trace_open_rtit_abi(struct vmpt_trace **trace, const char *path, int cpu,
			     struct vmpt_diag *diag, u64 abi);
#define vmpt_trace_open_rtit(trace, path, cpu, diag) \
	vmpt_trace_open_rtit_abi(trace, path, cpu, diag, VMPT_DECODE_ABI)
/* Open a perf.data; results as of vmpt_trace_open(). */
int vmpt_trace_open_perf_abi(struct vmpt_trace **trace, const char *path, struct vmpt_diag *diag,
			     u64 abi);
#define vmpt_trace_open_perf(trace, path, diag) \
	vmpt_trace_open_perf_abi(trace, path, diag, VMPT_DECODE_ABI)
/*
 * Add another raw file as one more stream, of another CPU and of the same isa. 0, or a negative
 * error with @diag filled (may be NULL) and @trace as before: -VMPT_E_INVAL if it proves to be of
 * the other isa, others as of vmpt_trace_open(). After vmpt_trace_open_raw() and _rtit() that is
 * not checked. A file that proves neither has the isa of the others, including those added later.
 */
int vmpt_trace_add_raw(struct vmpt_trace *trace, const char *path, int cpu, struct vmpt_diag *diag);
/*
 * Override the detected isa of raw files, including those added later. 0, or -VMPT_E_INVAL for
 * another isa than that of a perf.data. Call before a decoder is opened.
 */
int vmpt_trace_set_isa(struct vmpt_trace *trace, enum vmpt_isa isa);
/* Free the trace, its streams and info. NULL is allowed. */
void vmpt_trace_close(struct vmpt_trace *trace);

/* The number of streams. */
size_t vmpt_trace_streams(const struct vmpt_trace *trace);
/* Stream @i, from 0 on, or NULL. Owned by @trace, valid until it is closed or added to. */
const struct vmpt_stream *vmpt_trace_stream(const struct vmpt_trace *trace, size_t i);
/* What the file says. Owned by @trace. */
const struct vmpt_trace_info *vmpt_trace_info(const struct vmpt_trace *trace);

/* perf time in ns of a TSC value; @info->has_time_conv must be set. */
u64 vmpt_tsc_to_perf_time(const struct vmpt_trace_info *info, u64 tsc);

/* Offset in the file of the byte of the stream at @offset. */
u64 vmpt_stream_file_offset(const struct vmpt_stream *stream, u64 offset);

/* ---- owners (docs/vm-tracking.md) ---- */

/* Whom a packet or a byte belongs to. */
enum vmpt_owner_kind {
	VMPT_OWNER_UNKNOWN, /* not known, or lost */
	VMPT_OWNER_HOST,
	VMPT_OWNER_VM,	   /* the VM of .vmcs */
	VMPT_OWNER_VM_ANY, /* a VM, its VMCS unknown */
};

/* How certain a fact or an owner is. */
enum vmpt_sure {
	VMPT_KNOWN,
	VMPT_ASSUMED,
	VMPT_UNCERTAIN,
	VMPT_UNKNOWN,
};

/* The owner of bytes of a trace. */
struct vmpt_owner {
	u64 vmcs;	/* VMPT_OWNER_VM only */
	u8 kind;	/* enum vmpt_owner_kind */
	u8 sure;	/* enum vmpt_sure */
	bool concealed; /* host, but a PSB+ had a PIP and no VMCS: possibly a concealed guest */
};

/* Whether both name the same owner; .sure is ignored. */
static inline bool vmpt_owner_same(const struct vmpt_owner *a, const struct vmpt_owner *b)
{
	return a->kind == b->kind && (a->kind != VMPT_OWNER_VM || a->vmcs == b->vmcs);
}

/* ---- packets ---- */

/* Kinds of items in addition to enum vmpt_pt_kind. */
enum vmpt_item_kind {
	VMPT_ITEM_RUN = VMPT_PT_KINDS, /* size bytes, each a TNT-8 or a PAD */
	VMPT_ITEM_LOSS,		       /* payload bytes that are no packets; aux: enum vmpt_error */
};

/*
 * A packet or a run, 16 bytes. payload by kind:
 *   TIP, TIP.PGE, TIP.PGD, FUP  the full IP (with IPBytes 000b Last IP); aux IPBytes
 *   PIP         CR3, bit 0 NR           VMCS      the pointer
 *   TNT-64      the 48 bits as sent     MODE.*    byte 1, reserved bits 0
 *   TSC, MTC, CBR, CYC                  the value
 *   TMA         CTC, bits 31:24 as sent, FastCounter from bit 24 on (bytes 2 to 6 as sent,
 *               reserved bits 0)
 *   PTW         the payload; aux byte 1 EXSTOP, BEP aux byte 1
 *   BIP         the payload; aux the header byte
 *   BBP         byte 2                  CFE       bytes 2 and 3
 *   EVD         the payload; aux the type
 *   MNT         the payload             MWAIT     bytes 2 to 9, reserved bits 0
 *   PWRE        bytes 2 and 3           PWRX      bytes 2 to 6; reserved bits 0
 *   TRIG        bytes 2 to 4, or byte 2; aux byte 1, reserved bits 0
 * others 0.
 */
struct vmpt_item {
	u64 payload;
	u32 offset; /* from the batch's base */
	u16 size;   /* bytes; 0 for VMPT_ITEM_LOSS */
	u8 kind;
	u8 aux;
};

/*
 * Items of RTIT: VMPT_ITEM_RTIT + enum vmpt_rtit_kind, and two more. payload by kind:
 *   TIP, FUP.*  the full LIP, 48 bits; aux VMPT_RTIT_AUX_*, CNT and Zext as sent
 *   TNT         the byte                PIP       CR3[39:0], bit 40 CR0.PG
 *   MTC         the 8 bits of TSC, bits 9:8 RNG
 *   STS         TSC[39:0], bits 45:40 ACBR, bits 51:46 ECBR
 *   CYC         the cycle count as sent; it belongs to the packet before it
 * others 0. A run has TNTs without cycle counts only; such a TNT may also be an item of its own.
 */
enum vmpt_rtit_item_kind {
	VMPT_ITEM_RTIT = 128,
	VMPT_ITEM_RTIT_CYC = VMPT_ITEM_RTIT + VMPT_RTIT_KINDS,
	VMPT_ITEM_RTIT_RUN,
};

/* The aux of an item with a LIP. */
#define VMPT_RTIT_AUX_CNT    0x03 /* CNT (Table 18) */
#define VMPT_RTIT_AUX_ZEXT   0x04 /* Zext */
#define VMPT_RTIT_AUX_NO_LIP 0x08 /* upper LIP bits unknown: payload has the bits sent only */
#define VMPT_RTIT_AUX_IGNORE 0x10 /* meaningless because of the erratum: E2, E5, E7 */
/* Bits 7:5: the erratum (Appendix E) whose workaround applies to this item, 0: none. */
#define VMPT_RTIT_AUX_ERRATUM(aux) ((aux) >> 5)
#define VMPT_RTIT_AUX_BY(erratum)  ((erratum) << 5)

/* Items of one owner in the order of the stream. Valid until the next call on the decoder. */
struct vmpt_batch {
	const struct vmpt_item *items;
	size_t count;
	u64 base;		 /* stream offset; items' offsets are relative to it */
	const u8 *data;		 /* the byte at base */
	struct vmpt_owner owner; /* of all items in it */
};

/* One packet as vmpt_packet_next() returns it. */
struct vmpt_packet {
	u64 offset; /* in the stream */
	u64 payload;
	u32 size; /* bytes; for VMPT_ITEM_LOSS 0, see payload */
	u8 kind;  /* enum vmpt_pt_kind, VMPT_ITEM_LOSS, or RTIT's; never a run */
	u8 aux;
	struct vmpt_owner owner;
};

/*
 * Whether the trace holds guests only: it decides what a TIP.PGD() means (docs/vm-tracking.md).
 * YES: NR is 1 wherever no packet says it: at the start, after a loss, an OVF, a TIP.PGD(); after a
 * PIP with NR = 0 it is 0 up to there, as at an exit that clears TraceEn by a list of MSRs (SDM 3
 * 33.5.2.2). AUTO: as long as no PIP had NR = 0; it does not give NR.
 */
enum vmpt_guest_only { VMPT_GUEST_ONLY_AUTO, VMPT_GUEST_ONLY_YES, VMPT_GUEST_ONLY_NO };

/*
 * RTIT: whether cycle counts follow packets (RTIT_CTL.Cycle_Acc); the trace does not say. AUTO
 * tries both from each PSB to the next, up to 1 MiB after the first, and decides for the whole
 * stream. It decides NO if both fit, for example if no packet would have a count.
 */
enum vmpt_cycle_acc { VMPT_CYCLE_ACC_AUTO, VMPT_CYCLE_ACC_YES, VMPT_CYCLE_ACC_NO };

/* The result of AUTO; AUTO if it is undecided. @headless as in the options. */
enum vmpt_cycle_acc vmpt_rtit_cycles_guess(const struct vmpt_stream *stream, bool headless);

/*
 * RTIT has neither VMCS packets nor NR: owners come from a side record. By offset, @owner owns all
 * packets from the first one at or after @at that is sent while packets are disabled (after a
 * FUP.PGD, or where tracing begins): in VMX root operation ContextEn is 0, so the guest before has
 * sent its last packet. A FUP.PGE always belongs to the new owner. By time it is the same, with
 * packets sent at or after hardware TSC @at; a packet of unknown time has that of the next known
 * one before a FUP.PGD. Where it is not certain which of two owners it was, @owner.sure is
 * VMPT_ASSUMED up to the next FUP.PGE.
 */
struct vmpt_run {
	u64 at; /* offset in the stream, or hardware TSC */
	bool by_tsc;
	struct vmpt_owner owner; /* of a VM: vmcs is the caller's number for it */
};

/* What became of a run. */
enum vmpt_run_fate {
	VMPT_RUN_NEVER,	  /* never reached: after the stream's end, or no packet could start it */
	VMPT_RUN_TAKEN,	  /* it holds from its offset on */
	VMPT_RUN_COVERED, /* the next run began at the same packet: this one owns no byte */
	VMPT_RUN_LOST,	  /* it began in lost bytes: its offset is the first byte after them */
};

/* Where a run began. */
struct vmpt_run_effect {
	u64 offset; /* of the first packet that it owns; VMPT_RUN_NEVER: ~0 */
	u8 fate;    /* enum vmpt_run_fate */
};

/* In ticks, half a minute: see struct vmpt_run_report. */
#define VMPT_RUNS_APART (1ULL << 36)

/*
 * What became of all runs of a stream. Runs by time are compared with STSs of 40 bits: the first
 * known time is extended to the value nearest to the first run. If they are more than
 * VMPT_RUNS_APART apart, the side record may be of another time.
 */
struct vmpt_run_report {
	struct vmpt_run_effect *effects; /* the caller's, run_count of them; or NULL */
	size_t never;			 /* runs with VMPT_RUN_NEVER */
	/* by time only */
	bool aligned;	/* a time became known; otherwise the members below are 0 */
	u64 tsc, apart; /* that time, in 64 bits; ticks between it and the first run */
};

/* How a stream is decoded. All 0, or NULL for a pointer to it, is the default. */
struct vmpt_options {
	/* RTIT uses one thread and ignores lanes, chunk and scalar. */
	unsigned int threads; /* number of threads, the caller's included; 0 is 1, over 12 is 12 */
	unsigned int lanes;   /* 1 to 8 chunks in parallel in each thread; 0: the default */
	size_t chunk;  /* approximate size of a chunk, which starts at a PSB; 0: the default */
	bool headless; /* a packet starts at the first byte; otherwise start at a PSB */
	bool scalar;   /* use the plain loop, the reference for the fast one */
	enum vmpt_guest_only guest_only;
	/* PT: the trace holds no VMs: NR is 0 wherever no packet says it, up to the first packet of
	 * a VM in the stream. Not with guest_only YES. vmpt_vms_find() determines it. */
	bool host_only;
	enum vmpt_cycle_acc cycle_acc;
	/* RTIT: runs of this stream, sorted by .at; bytes before the first are assumed to be the
	 * host's. NULL: all are. Owned by the caller. */
	const struct vmpt_run *runs;
	size_t run_count;
	/* Filled while a decoder or a splitter works, complete when it reaches the end; each open
	 * resets it, so give it to one at a time. Owned by the caller; or NULL. */
	struct vmpt_run_report *run_report;
	/* Called from time to time in the caller's thread, with the offset reached. Or NULL. */
	void (*progress)(void *opaque, u64 offset);
	void *progress_opaque;
};

/* What the packets of a trace say of VMs. */
enum vmpt_vms {
	VMPT_VMS_NO_PACKETS, /* there is no PSB to start from, or it is RTIT */
	VMPT_VMS_UNSAID, /* nothing: no PIP, as in a trace of user space only, no packet of VMX */
	VMPT_VMS_NONE,	 /* there are PIPs, all with NR = 0, and no packet of VMX */
	VMPT_VMS_SEEN,	 /* .stream has a packet of VMX at .offset, or a PIP with NR = 1 */
};

/* The first packet that says VM. */
struct vmpt_vms_found {
	enum vmpt_vms vms;
	size_t stream; /* an index into those given */
	u64 offset;
	u8 kind; /* enum vmpt_pt_kind */
};

/*
 * Look for VMs in all of @streams, of one trace, to set host_only: a PIP with NR = 1 (SDM 3
 * 33.4.2.7), a VMCS packet (33.4.2.15), a CFE of a VM entry or exit (33.4.2.29), an EVD with what a
 * VM exit left (33.4.2.30). Reads all bytes at the speed of the splitter if there are none,
 * else as far as the first; the heads of all streams before the rest of any. Guests that are
 * concealed (33.5.1) leave no such packet. @options: threads, headless, lanes, chunk, scalar, which
 * change nothing but its speed, except headless; progress, with bytes of all streams; or NULL.
 * Returns 0, with @found, or a negative error.
 */
int vmpt_vms_find(const struct vmpt_stream *const *streams, size_t count,
		  const struct vmpt_options *options, struct vmpt_vms_found *found);

struct vmpt_decoder;

/*
 * Open a decoder of the packets of @stream, which must outlive it; @options may be NULL. Returns 0
 * with *@dec, which vmpt_decoder_close() frees; -VMPT_E_NOMEM or -VMPT_E_INVAL.
 */
int vmpt_decoder_open(struct vmpt_decoder **dec, const struct vmpt_stream *stream,
		      const struct vmpt_options *options);
/* Free the decoder and its batches; NULL is allowed. */
void vmpt_decoder_close(struct vmpt_decoder *dec);

/*
 * The next items of one owner. 1: @batch is filled and valid until the next call, 0: the end, or a
 * negative error: -VMPT_E_NOMEM. Damage of the trace is no error but an item, VMPT_ITEM_LOSS.
 */
int vmpt_batch_next(struct vmpt_decoder *dec, struct vmpt_batch *batch);

/* A place in a batch, for vmpt_packet_next(). All 0 to start. */
struct vmpt_cursor {
	struct vmpt_batch batch;
	size_t item;
	u32 byte; /* in a run */
};

/* The next packet; runs are split into packets. 1, 0 at the end, or a negative error. */
static inline int vmpt_packet_next(struct vmpt_decoder *dec, struct vmpt_cursor *at,
				   struct vmpt_packet *pkt)
{
	const struct vmpt_item *item;
	int ret;

	while (at->item >= at->batch.count) {
		ret = vmpt_batch_next(dec, &at->batch);
		if (ret <= 0)
			return ret;
		at->item = 0;
		at->byte = 0;
	}
	item = &at->batch.items[at->item];
	pkt->offset = at->batch.base + item->offset;
	pkt->owner = at->batch.owner;
	if (item->kind == VMPT_ITEM_RUN || item->kind == VMPT_ITEM_RTIT_RUN) {
		u8 b = at->batch.data[item->offset + at->byte];

		pkt->offset += at->byte;
		pkt->kind = b ? VMPT_PT_TNT_8 : VMPT_PT_PAD;
		if (item->kind == VMPT_ITEM_RTIT_RUN)
			pkt->kind = VMPT_ITEM_RTIT + VMPT_RTIT_TNT;
		pkt->payload = b;
		pkt->size = 1;
		pkt->aux = 0;
		if (++at->byte == item->size) {
			at->item++;
			at->byte = 0;
		}
		return 1;
	}
	pkt->kind = item->kind;
	pkt->payload = item->payload;
	pkt->size = item->size;
	pkt->aux = item->aux;
	at->item++;
	return 1;
}

/* ---- slices ---- */

/* Why a slice begins. */
enum vmpt_begin {
	VMPT_BEGIN_START,  /* start of the stream, or after a loss */
	VMPT_BEGIN_ENTRY,  /* NR 0 to 1: a VM entry */
	VMPT_BEGIN_EXIT,   /* NR 1 to 0: a VM exit */
	VMPT_BEGIN_SWITCH, /* another VMCS, or NR became known after uncertainty */
	VMPT_BEGIN_PSB,	   /* a PSB+ that states another owner */
	VMPT_BEGIN_DOUBT,  /* an OVF or TIP.PGD() after which nothing proved the owner */
	VMPT_BEGIN_LOSS,   /* bytes that are no packets */
			   /* RTIT: ENTRY, EXIT and SWITCH follow from the side record */
};

/* CR3 values that a slice can hold. */
#define VMPT_SLICE_CR3S 6

/* A maximal run of bytes of one owner, or a loss. */
struct vmpt_slice {
	u64 offset, size; /* bytes in the stream */
	struct vmpt_owner owner;
	u8 begin;      /* enum vmpt_begin */
	u8 loss;       /* enum vmpt_error if begin is VMPT_BEGIN_LOSS */
	bool by_group; /* it starts with a group (PIP, VMCS, MODE.Exec … TIP) */
	bool has_tsc;
	u64 first_tsc, last_tsc;  /* as in the packets: 56 bits, the owner's clock; STS: 40 bits */
	u64 cr3[VMPT_SLICE_CR3S]; /* the first distinct ones; RTIT: of PIPs with CR0.PG */
	u32 cr3_count;		  /* VMPT_SLICE_CR3S + 1: there are more */
	u32 overflows;
	u32 failed_entries;
	u32 doubts; /* uncertain stretches that were then proved to be this owner's */
	/* RTIT */
	u32 enables, disables;		  /* FUP.PGEs and FUP.PGDs, without those of E2 */
	u32 errata[VMPT_RTIT_ERRATA + 1]; /* workarounds applied, by number */
	u64 last_psb;			  /* offset of the last PSB in it, 0 if none */
};

/* ---- what is lost ---- */

/*
 * All that count use these. A loss is one slice with VMPT_BEGIN_LOSS, which is one item
 * VMPT_ITEM_LOSS: bytes of one cause that are no packets; with no bytes, a gap that the recorder
 * left. Losses that adjoin are several. Bytes without a proven owner are no loss: they are packets.
 * They are one slice for which vmpt_slice_unproven() holds.
 */
struct vmpt_losses {
	u64 count, bytes;
	u64 offset, size; /* of the first */
	u8 err;		  /* of the first: enum vmpt_error */
};

/* Count one loss of @size bytes at stream offset @offset; @err: enum vmpt_error. */
static inline void vmpt_losses_add(struct vmpt_losses *l, u64 offset, u64 size, unsigned int err)
{
	if (!l->count++) {
		l->offset = offset;
		l->size = size;
		l->err = (u8)err;
	}
	l->bytes += size;
}

/* After an OVF or TIP.PGD() nothing proved the owner of these bytes. */
static inline bool vmpt_slice_unproven(const struct vmpt_slice *slice)
{
	return slice->begin == VMPT_BEGIN_DOUBT && slice->owner.kind == VMPT_OWNER_UNKNOWN;
}

struct vmpt_splitter;

/*
 * Open a splitter of @stream, which must outlive it; @options may be NULL. Returns 0 with *@split,
 * which vmpt_splitter_close() frees; -VMPT_E_NOMEM or -VMPT_E_INVAL.
 */
int vmpt_splitter_open(struct vmpt_splitter **split, const struct vmpt_stream *stream,
		       const struct vmpt_options *options);
/* Free the splitter; NULL is allowed. */
void vmpt_splitter_close(struct vmpt_splitter *split);

/* The next slice; slices are contiguous. 1, 0 at the end, or a negative error. */
int vmpt_split_next(struct vmpt_splitter *split, struct vmpt_slice *slice);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
