/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Internal to tracegen: the script as a tree, the contexts (owners) with their code,
 * the CPUs with their trace units, and functions shared by the files of this folder.
 * An error is kept in the generator and stops it after the event.
 */
#ifndef VMPT_TRACEGEN_INTERNAL_H
#define VMPT_TRACEGEN_INTERNAL_H

#include "tests/tracegen/tracegen.h"
#include "util/array.h"
#include "util/hash.h"

/* ---- the script (script.c) ---- */

#define TG_ARGS 24

struct tg_node {
	struct tg_node *next, *child;
	int line;
	bool block; /* it has braces */
	int argc;
	char *argv[TG_ARGS];
	u32 used; /* words that the event has parsed; the first is its name */
};

/* ---- settings: "set name=value" ---- */

enum tg_trace { TG_SYSTEM, TG_GUEST, TG_HOST };

struct tg_settings {
	u64 branch_en, event_en, os, user, tsc, mtc, cyc, retcomp;
	u64 conceal_exec, conceal_entry, conceal_exit;
	u64 trace; /* enum tg_trace */
	u64 psb_every;
	u64 pip_when_contexten0;
	u64 psb_fup_at_enable, start_psb;
	u64 pip_at_guest_entry, pip_at_guest_exit, fup_at_host_entry;
	u64 psb_pip_first, mode_first, evd_qualification_first;
	u64 mtc_in_group, pad_in_group;
	u64 tnt; /* 8 or 64 */
	u64 tsc_ratio, mtc_freq, cyc_thresh, ticks;
	u64 cr3_filter;
	u64 fuponptw;
	u64 seed;
};

/* ---- code (code.c) ---- */

enum tg_insn_kind {
	TG_NONE,
	TG_NOP,
	TG_JCC,	 /* over a few NOPs */
	TG_LOOP, /* back to where a loop began */
	TG_LINK, /* from one chunk of code to the next, silent */
	TG_CALL,
	TG_JMP,
	TG_ICALL,
	TG_IJMP,
	TG_RET,
	TG_FAR,
	TG_IRET,
	TG_SYSCALL,
	TG_SYSRET,
	TG_MOV_CR3,
	TG_VMPTRLD,
	TG_VMCLEAR,
	TG_VMRESUME,
	TG_VMXON,
	TG_VMXOFF,
	TG_WRMSR,
	TG_XBEGIN,
	TG_XEND,
	TG_XABORT,
	TG_PTWRITE4,
	TG_PTWRITE8,
	TG_MWAIT,
	TG_HLT,
	TG_IN,
	TG_CPUID,
	TG_VMCALL,
	TG_INT,
	TG_POP,
	TG_PUSH,
	TG_STI,
	TG_CLI,
	TG_KINDS
};

/*
 * Encode one instruction at @ip (x86.c). @mode: 16, 32 or 64. @target: of direct
 * branches. Returns its length in bytes, at most 8.
 */
unsigned int tg_x86_encode(u8 *buf, unsigned int kind, unsigned int mode, u64 ip, u64 target);

#define TG_PAGE	       4096u
#define TG_REGION_SIZE (16u << 20)
#define TG_CHUNK       256u

struct tg_page {
	u8 bytes[TG_PAGE];
	u8 kind[TG_PAGE]; /* enum tg_insn_kind at an instruction's first byte */
	u8 len[TG_PAGE];
};

/* Code that one context executes in one mode. */
struct tg_region {
	u64 base;
	u64 limit; /* bytes */
	u64 next;  /* offset of the first free chunk */
	struct tg_page *pages[TG_REGION_SIZE / TG_PAGE];
};

/* The target of an instruction or event at an IP; made when it is first needed. */
struct tg_target {
	u64 ip, target;
	u32 sort;
};

struct tg_insn {
	u64 ip, target;
	unsigned int len;
};

/* ---- contexts: the host on a CPU, or a VM ---- */

struct tg_frame {
	u64 ip, cr3;
	u8 mode, cpl;
	bool rflags_if;
};

#define TG_LOOPS 8

/* A context at the start of the loop at this depth. */
struct tg_loop_mark {
	bool valid;
	u64 ip;
	size_t calls, frames;
	u8 mode;
};

struct tg_jump {
	u64 target;
	bool taken;
};

struct tg_ctx {
	char name[32];
	int owner;
	u64 vmcs;
	u64 cr3, ip;
	u8 mode, cpl; /* 16, 32, 64; 0 to 3 */
	bool rflags_if, intx;
	bool conceal_exec, conceal_entry, conceal_exit;
	u64 tx_fallback;
	u64 tsc_offset, tsc_mult;
	struct tg_cpu *on; /* where it runs */
	u64 *calls;	   /* their return addresses */
	size_t call_count, call_max;
	struct tg_frame *frames;
	size_t frame_count;
	struct tg_region *region[3]; /* for 64, 32 and 16 bits */
	struct tg_target *targets;
	size_t target_count;
	struct vmpt_hash by_ip; /* of targets, and by sort */
	struct tg_loop_mark marks[TG_LOOPS];
	struct tg_jump jumps[TG_LOOPS]; /* a loop's end, not yet executed */
	unsigned int jump_count;
};

/* ---- a CPU and its trace unit ---- */

struct tg_ret_entry {
	u64 ret_ip, call, ip, offset;
	int owner;
};

struct tg_cpu {
	struct tg_ctx host;
	struct tg_ctx *cur; /* the one that executes */
	bool vmx;
	u64 vmcs; /* the current one */
	/*
	 * The owner before a transfer, until its first packet: that packet's CYC is of
	 * the time before, and a TIP.PGD with nothing before it belongs to this owner.
	 */
	struct tg_ctx *left;
	/* the trace unit */
	bool began; /* its first event has been seen */
	bool started, trace_en, stopped, filter_en, ovf_pending;
	bool psb_pending, in_psb;
	unsigned int overflow, drop; /* depth of blocks */
	u64 last_ip;
	bool full_ip; /* the next IP is not compressed: the first after an OVF */
	u64 tnt_bits;
	unsigned int tnt_count;
	struct tg_ret_entry stack[64];
	unsigned int stack_count;
	u64 call_number;
	u8 mode_sent; /* 0: none yet */
	bool if_sent;
	unsigned int block;
	u64 now, cyc_sent, next_mtc, psb_bytes;
	u64 cbr;
	u32 lost_packets;
	int lost_owner;
	/* output */
	struct tracegen_stream out;
	size_t data_max, range_max, packet_max, ret_max, insn_max, loss_max;
	size_t tnt_rets; /* compressed RETs whose TNT is not sent yet */
};

struct tracegen {
	const char *file; /* owned */
	char *text;
	struct tg_node *script;
	struct tracegen_options opt;
	struct tg_settings set;
	bool running; /* an event has been seen: settings are fixed while a trace is on */
	struct tg_cpu *cpu[TRACEGEN_CPUS];
	struct tg_cpu *at; /* the CPU whose events are read */
	struct tracegen_stream *streams[TRACEGEN_CPUS];
	size_t stream_count;
	struct tg_ctx host; /* as in the script; CPUs copy it */
	bool host_set, vmx_set, vmx;
	struct tg_ctx **vms;
	struct tracegen_vm *vm_info;
	size_t vm_count;
	unsigned int loop_depth, depth;
	u64 rng;
	const struct tg_node *node; /* for messages */
	bool failed;
	char error[320];
};

void tg_fail(struct tracegen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Room for one more in an array that grows; false and failed if there is no memory. */
#define tg_grow(g, array, count) tg_room((g), vmpt_grow((array), (count)))
bool tg_room(struct tracegen *g, int err);
u64 tg_random(struct tracegen *g);

/* script.c */
struct tg_node *tg_parse(struct tracegen *g, char *text);
void tg_script_free(struct tg_node *node);
bool tg_number(const char *word, u64 *v);
/* "name=value" among the words: true and sets @v if present; else @v is unchanged. */
bool tg_key(struct tracegen *g, struct tg_node *n, const char *name, u64 *v);
/* A word on its own. */
bool tg_word(struct tg_node *n, const char *word);
/* The next word not yet parsed, or NULL. It then counts as parsed. */
const char *tg_next(struct tg_node *n);
/* The next word as a number, or @otherwise if there is none. */
u64 tg_next_number(struct tracegen *g, struct tg_node *n, u64 otherwise);

/* run.c */
void tg_run_nodes(struct tracegen *g, struct tg_node *first);
struct tg_ctx *tg_vm_find(struct tracegen *g, const char *name);
void tg_setup(struct tracegen *g);
bool tg_mode_valid(struct tracegen *g, u64 mode, u64 cpl);
bool tg_ip_valid(struct tracegen *g, u64 mode, u64 ip);
bool tg_declare(struct tracegen *g, struct tg_node *n);

/* code.c */
void tg_code_free(struct tg_ctx *c);
struct tg_region *tg_region_of(struct tracegen *g, struct tg_ctx *c, unsigned int mode);
/* The same, to begin at @ip if there is none yet. */
void tg_region_at(struct tracegen *g, struct tg_ctx *c, unsigned int mode, u64 ip);
/* A free chunk of @c in @mode. */
u64 tg_chunk(struct tracegen *g, struct tg_ctx *c, unsigned int mode);
/* The target of @sort of event at @ip: always the same; a new chunk at first. */
u64 tg_target(struct tracegen *g, struct tg_ctx *c, u64 ip, u32 sort, unsigned int mode);
/*
 * Fetch the instruction of @kind at the current IP, which is placed there if there is
 * none yet; loop ends and links before it are executed. IP stays at the
 * instruction. Not for events that need no instruction.
 */
struct tg_insn tg_fetch(struct tracegen *g, struct tg_cpu *p, unsigned int kind);
/* Count it as executed and go on to @next. */
void tg_retire(struct tracegen *g, struct tg_cpu *p, const struct tg_insn *i, u64 next);
/* Execute loop ends that are due, so that IP is that of the next event. */
void tg_settle(struct tracegen *g, struct tg_cpu *p);
/* Fetch, retire and go to the next one. Returns its IP. */
u64 tg_execute(struct tracegen *g, struct tg_cpu *p, unsigned int kind);

/* emit.c: packets and their effect on the trace unit */
bool tg_context_en(const struct tracegen *g, unsigned int cpl, u64 cr3);
bool tg_cpu_context_en(const struct tracegen *g, const struct tg_cpu *p);
bool tg_trigger_en(const struct tg_cpu *p);
bool tg_packet_en(const struct tracegen *g, const struct tg_cpu *p);
void tg_emit(struct tracegen *g, struct tg_cpu *p, struct vmpt_pt_packet *pkt);
void tg_emit0(struct tracegen *g, struct tg_cpu *p, unsigned int kind);
void tg_emit1(struct tracegen *g, struct tg_cpu *p, unsigned int kind, u64 v0);
void tg_emit2(struct tracegen *g, struct tg_cpu *p, unsigned int kind, u64 v0, u64 v1);
void tg_emit3(struct tracegen *g, struct tg_cpu *p, unsigned int kind, u64 v0, u64 v1, u64 v2);
/* TIP*, FUP; with a compressed IP, or none. */
void tg_emit_ip(struct tracegen *g, struct tg_cpu *p, unsigned int kind, u64 ip);
void tg_emit_no_ip(struct tracegen *g, struct tg_cpu *p, unsigned int kind);
void tg_emit_bytes(struct tracegen *g, struct tg_cpu *p, const u8 *bytes, size_t n, int owner);
void tg_tnt(struct tracegen *g, struct tg_cpu *p, bool taken);
void tg_tnt_flush(struct tracegen *g, struct tg_cpu *p);
void tg_forget_calls(struct tg_cpu *p);
u64 tg_clock(const struct tg_cpu *p, const struct tg_ctx *c);

/* unit.c: groups of packets */
void tg_pip(struct tracegen *g, struct tg_cpu *p);
bool tg_pip_wanted(const struct tracegen *g, const struct tg_cpu *p);
void tg_mode_exec(struct tracegen *g, struct tg_cpu *p);
bool tg_mode_changed(const struct tracegen *g, const struct tg_cpu *p);
void tg_timing(struct tracegen *g, struct tg_cpu *p);
void tg_psb_plus(struct tracegen *g, struct tg_cpu *p, bool with_ip);
/* An instruction begins: time passes, an MTC or a PSB+ may be due. */
void tg_step(struct tracegen *g, struct tg_cpu *p);
void tg_advance(struct tracegen *g, struct tg_cpu *p, u64 ticks);
/* TraceEn 0 to 1 with the context in place (Table 33-56 cases 1, 2, 12). */
void tg_trace_enable(struct tracegen *g, struct tg_cpu *p, bool pip);

/* A far transfer in three steps: leave, the caller changes the state, arrive. */
struct tg_transfer {
	bool async;  /* BranchEn's FUP comes, with fup_ip */
	u64 fup_ip;  /* for that and for a CFE */
	bool cfe_ip; /* the CFE may have an IP */
	int cfe;     /* enum vmpt_pt_cfe, or 0: none */
	u64 vector;
	unsigned int evds;
	struct {
		u64 type, payload;
	} evd[2];
	bool context_after; /* ContextEn at its end */
	bool no_pip;	    /* concealed */
	bool vmcs;	    /* a VMCS packet in the group */
	bool straight;	    /* no branch: MOV CR3 */
	bool shown;	    /* out: a PIP or a CFE shows it */
	/* kept between the steps */
	bool context_before, packet_before, nr_before;
	u64 cr3_before;
};

void tg_leave(struct tracegen *g, struct tg_cpu *p, struct tg_transfer *x);
void tg_arrive(struct tracegen *g, struct tg_cpu *p, struct tg_transfer *x, u64 ip);

/* events-*.c: each returns false if the word is not one of its events */
bool tg_event_flow(struct tracegen *g, struct tg_cpu *p, struct tg_node *n);
bool tg_event_vmx(struct tracegen *g, struct tg_cpu *p, struct tg_node *n);
bool tg_event_misc(struct tracegen *g, struct tg_cpu *p, struct tg_node *n);
bool tg_event_loss(struct tracegen *g, struct tg_cpu *p, struct tg_node *n);

/* A table of events, ended by a NULL name. */
struct tg_event {
	const char *name;
	void (*run)(struct tracegen *g, struct tg_cpu *p, struct tg_node *n);
};

bool tg_event_run(const struct tg_event *table, struct tracegen *g, struct tg_cpu *p,
		  struct tg_node *n);

/* truth.c */
void tg_truth_bytes(struct tracegen *g, struct tg_cpu *p, u64 offset, u64 size, int owner);
void tg_truth_packet(struct tracegen *g, struct tg_cpu *p, u64 offset, u64 size, unsigned int kind,
		     const struct tg_ctx *who, int owner, u8 flags);
void tg_truth_insn(struct tracegen *g, struct tg_cpu *p, u64 ip);
void tg_truth_loss(struct tracegen *g, struct tg_cpu *p, bool overflow);
struct tracegen_count *tg_count(struct tg_cpu *p, int owner);

#endif
