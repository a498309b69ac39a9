/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * tracegen: traces of Intel PT made from a script of events, with their truth.
 * A model of a processor at the level of events: it tracks what each owner (the
 * host, each VM) executes and the trace unit's state, and writes packets with
 * arch/pt-packet. It shares nothing with the decoder it tests (docs/tracegen.md).
 */
#ifndef VMPT_TRACEGEN_H
#define VMPT_TRACEGEN_H

#include <stdio.h>

#include "arch/pt-packet.h"

/* Owners in the truth: the host, or a VM by its position in the script from 0 on. */
#define TRACEGEN_NONE (-2) /* bytes without an owner: damage */
#define TRACEGEN_HOST (-1)

#define TRACEGEN_CPUS 16

/* Flags of a packet */
#define TRACEGEN_IN_PSB 0x01 /* between PSB and PSBEND */
#define TRACEGEN_RAW	0x02 /* put in as bytes: raw or damage */

/* A maximal run of bytes of one owner. */
struct tracegen_range {
	u64 offset, size;
	int owner;
};

/* The state at the packet, after the packet's own effect. */
struct tracegen_packet {
	u64 offset;
	u64 ip;	     /* an IP packet's full IP, else Last IP */
	u64 exec_ip; /* of the owner's next instruction */
	u64 cr3;
	u64 vmcs;  /* the current VMCS, VMPT_PT_VMCS_NONE: none */
	u64 tsc;   /* the owner's clock */
	u32 depth; /* of the owner's own stack of calls */
	int owner;
	u16 size;
	u8 kind; /* VMPT_PT_KINDS for raw bytes */
	u8 flags;
	bool nr; /* in VMX non-root operation, even if concealed */
};

/* A compressed RET: the CALL is identified by its number on this CPU, from 0 on. */
struct tracegen_ret {
	u64 offset; /* of the TNT that has its bit */
	u64 ip, target;
	u64 call, call_ip, call_offset; /* bytes written when the CALL executed */
	int owner, call_owner;
	u8 bit; /* 0 is the TNT's oldest */
};

/* An instruction as a decoder sees it: retired while PacketEn = 1. */
struct tracegen_insn {
	u64 ip;
	int owner;
};

/* What a CPU lost: overflow or bytes dropped on their way. */
struct tracegen_loss {
	u64 offset; /* of the OVF, or of the byte after the drop */
	int owner_before, owner_after;
	bool overflow;
	u32 packets; /* that were lost */
};

struct tracegen_count {
	u64 entries, exits, failed_early, failed_late; /* VM entries and exits, traced or not */
	u64 seen_entries, seen_exits;		       /* of those, NR toggled or a CFE was sent */
	u64 calls, rets, compressed, insns;
	u64 insn_hash; /* FNV-1a, 64 bits, over the IPs (8 bytes each, little-endian) */
};

struct tracegen_stream {
	int cpu;
	u8 *data;
	u64 size;
	struct tracegen_range *ranges;
	size_t range_count;
	struct tracegen_packet *packets; /* only with options.packets */
	size_t packet_count;
	struct tracegen_ret *rets;
	size_t ret_count;
	struct tracegen_insn *insns; /* only with options.insns */
	size_t insn_count;
	struct tracegen_loss *losses;
	size_t loss_count;
	struct tracegen_count host;
	struct tracegen_count *vms; /* by VM */
};

struct tracegen_vm {
	const char *name;
	u64 vmcs;
	u64 tsc_offset, tsc_mult; /* 48 bits of fraction; 1 << 48: not scaled */
};

/* A piece of x86 code. */
struct tracegen_code {
	u64 base;
	const u8 *bytes;
	size_t size;
	int owner;
};

struct tracegen_options {
	bool packets, insns;
};

struct tracegen;

/*
 * Run the script @text, named @file in messages. Returns NULL if out of memory; otherwise check
 * tracegen_error() first.
 */
struct tracegen *tracegen_run(const char *file, const char *text,
			      const struct tracegen_options *options);
/* The same for a file. */
struct tracegen *tracegen_run_file(const char *path, const struct tracegen_options *options);
void tracegen_free(struct tracegen *gen);

/* NULL, or "file:line: what is wrong". */
const char *tracegen_error(const struct tracegen *gen);

size_t tracegen_streams(const struct tracegen *gen);
const struct tracegen_stream *tracegen_stream(const struct tracegen *gen, size_t i);
size_t tracegen_vms(const struct tracegen *gen);
const struct tracegen_vm *tracegen_vm(const struct tracegen *gen, size_t i);

/* The @i-th page of code of all owners; false: there are no more. */
bool tracegen_code(const struct tracegen *gen, size_t i, struct tracegen_code *code);

/* The truth as JSON lines (docs/tracegen.md). Returns 0 or -VMPT_E_IO. */
int tracegen_write_truth(const struct tracegen *gen, FILE *f);
/* Code pages as raw files and their index in the folder @dir, made if needed. 0 or -VMPT_E_IO. */
int tracegen_write_code(const struct tracegen *gen, const char *dir);

#endif
