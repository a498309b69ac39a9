/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The part of QEMU's TCG plugin interface that is used here, version 7 (QEMU 11.1). Debian ships
 * no header for it and QEMU changes it with each release, so these are our own declarations of the
 * ABI as measured on the binary. Only qemu.c and install.c include it: nothing else of the
 * plugin knows the version.
 */
#ifndef VMPT_QEMU_PLUGIN_API_H
#define VMPT_QEMU_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VMPT_QEMU_PLUGIN_API 7

/* What QEMU looks up in a plugin by name. */
#define VMPT_QEMU_EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_register;
struct qemu_plugin_scoreboard;
/* GLib's */
struct _GArray;
struct _GByteArray;

/* An entry of the array that qemu_plugin_get_registers() returns. */
struct qemu_plugin_reg_descriptor {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
	bool is_readonly;
};

/* A 64-bit number per vCPU, @offset bytes into its part of a scoreboard. */
struct qemu_plugin_u64 {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
};

enum { QEMU_CB_NO_REGS, QEMU_CB_R_REGS, QEMU_CB_RW_REGS, QEMU_CB_RW_REGS_PC };
enum { QEMU_MEM_R = 1, QEMU_MEM_W, QEMU_MEM_RW };
enum { QEMU_INLINE_ADD, QEMU_INLINE_STORE };
/* Comparisons are unsigned. */
enum {
	QEMU_COND_NEVER,
	QEMU_COND_ALWAYS,
	QEMU_COND_EQ,
	QEMU_COND_NE,
	QEMU_COND_LT,
	QEMU_COND_LE,
	QEMU_COND_GT,
	QEMU_COND_GE,
};
/* On x86 all discontinuities are of this type (docs/qemu-plugin.md). */
enum { QEMU_DISCON_INTERRUPT = 1 };

/* What QEMU says about itself at install. */
struct vmpt_qemu_info {
	const char *target_name; /* "x86_64" */
	struct {
		int min; /* oldest version of this interface that QEMU supports */
		int cur; /* newest */
	} version;
	bool system_emulation; /* not user-mode emulation */
	struct {
		int smp_vcpus; /* vCPUs at the start */
		int max_vcpus; /* including those that can be plugged in */
	} system;
};

/* ---- the plugin's side ---- */

/*
 * QEMU reads the version before it calls anything, and exits if the install does not return 0.
 * @id identifies the plugin in the calls below; @argv has "name=value".
 */
extern VMPT_QEMU_EXPORT int qemu_plugin_version;
VMPT_QEMU_EXPORT int qemu_plugin_install(uint64_t id, const struct vmpt_qemu_info *info, int argc,
					 char **argv);

/* ---- events of a vCPU, on its thread ---- */

typedef void (*qemu_vcpu_cb)(unsigned int vcpu, void *user);

void qemu_plugin_register_vcpu_init_cb(uint64_t id, qemu_vcpu_cb cb, void *user);
void qemu_plugin_register_vcpu_exit_cb(uint64_t id, qemu_vcpu_cb cb, void *user);
/* The vCPU begins to wait, by HLT for example; it executes again. */
void qemu_plugin_register_vcpu_idle_cb(uint64_t id, qemu_vcpu_cb cb, void *user);
void qemu_plugin_register_vcpu_resume_cb(uint64_t id, qemu_vcpu_cb cb, void *user);
void qemu_plugin_register_vcpu_discon_cb(uint64_t id, int types,
					 void (*cb)(unsigned int vcpu, int type, uint64_t from,
						    uint64_t to, void *user),
					 void *user);
/* A block was translated. With several vCPUs this is called on several threads at once. */
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*cb)(struct qemu_plugin_tb *tb, void *user),
					   void *user);
/* All blocks were dropped; no vCPU runs. */
void qemu_plugin_register_flush_cb(uint64_t id, void (*cb)(void *user), void *user);
/*
 * Called on a vCPU's thread. As soon as no vCPU runs, QEMU drops all blocks and all callbacks of
 * the plugin and calls @cb, which registers callbacks again.
 */
void qemu_plugin_reset(uint64_t id, void (*cb)(void *user), void *user);
/* QEMU exits; registers can no longer be read. */
void qemu_plugin_register_atexit_cb(uint64_t id, void (*cb)(void *user), void *user);

/* ---- inside a translation callback ---- */

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest, size_t len);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn); /* NULL: not in RAM */

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_vcpu_cb cb, int flags,
					  void *user);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *tb, qemu_vcpu_cb cb,
					       int flags, int cond, struct qemu_plugin_u64 entry,
					       uint64_t imm, void *user);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_vcpu_cb cb,
					    int flags, void *user);
void qemu_plugin_register_vcpu_insn_exec_cond_cb(struct qemu_plugin_insn *insn, qemu_vcpu_cb cb,
						 int flags, int cond, struct qemu_plugin_u64 entry,
						 uint64_t imm, void *user);
void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(struct qemu_plugin_insn *insn, int op,
							 struct qemu_plugin_u64 entry,
							 uint64_t imm);
typedef uint32_t qemu_plugin_meminfo;
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      void (*cb)(unsigned int vcpu, qemu_plugin_meminfo info,
						 uint64_t vaddr, void *user),
				      int flags, int rw, void *user);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo info);

/* ---- a vCPU's state, on its thread ---- */

struct _GArray *qemu_plugin_get_registers(void); /* to be freed by the caller */
bool qemu_plugin_read_register(struct qemu_plugin_register *handle, struct _GByteArray *buf);
bool qemu_plugin_write_register(struct qemu_plugin_register *handle, struct _GByteArray *buf);
void qemu_plugin_set_pc(uint64_t pc) __attribute__((noreturn));
bool qemu_plugin_read_memory_vaddr(uint64_t vaddr, struct _GByteArray *buf, size_t len);
int qemu_plugin_read_memory_hwaddr(uint64_t addr, struct _GByteArray *buf, size_t len);
int qemu_plugin_write_memory_hwaddr(uint64_t addr, struct _GByteArray *buf);
bool qemu_plugin_translate_vaddr(uint64_t vaddr, uint64_t *hwaddr);

/* ---- numbers per vCPU ---- */

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu);

#endif
