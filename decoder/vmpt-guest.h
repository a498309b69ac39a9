/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Whose code: what an image of a Linux guest's memory says of its kernel, from the image alone. The
 * kernel leaves a text in its memory, VMCOREINFO, with the addresses of its
 * page tables and of kallsyms; kallsyms has the names of its functions and data; the section .BTF
 * says where the members of its structures are. With those the lists of modules and tasks are read,
 * and what each process has mapped.
 *
 * The memory is the guest's, and hostile: each address is translated by the kernel's page tables,
 * lists that lead into themselves end, and work and memory are bounded by the limits below. Names
 * are the guest's bytes up to a 0, nothing about them is checked.
 *
 * One thread at a time uses a vmpt_guest. What its functions return is the guest's own, valid until
 * it is closed.
 */
#ifndef VMPT_GUEST_H
#define VMPT_GUEST_H

#include "decoder/vmpt-image.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Limits: more are left out, and reported by struct vmpt_guest_kernel's .lacks. */
#define VMPT_GUEST_SYMBOLS (1u << 22)
#define VMPT_GUEST_TASKS   (1u << 20)
#define VMPT_GUEST_MODULES (1u << 12)
#define VMPT_GUEST_MAPS	   (1u << 18) /* of one process: twice vm.max_map_count and more */

/* What is not known of a guest, each a bit of .lacks. */
enum vmpt_guest_lack {
	VMPT_GUEST_SYMBOLS_MISSING = 0x01, /* no kallsyms: neither names nor anything below */
	VMPT_GUEST_TYPES_MISSING = 0x02,   /* no BTF, or it lacks a structure: no tasks */
	VMPT_GUEST_TASKS_MISSING = 0x04,   /* no list of tasks */
	VMPT_GUEST_TASKS_CUT = 0x08,	   /* it leads to memory that is not in the image */
	VMPT_GUEST_MODULES_CUT = 0x10,	   /* the same of modules and their symbols */
	VMPT_GUEST_DATA_MISSING = 0x20,	   /* kallsyms has functions only (CONFIG_KALLSYMS_ALL is
					      off): the addresses of lists are not known */
	VMPT_GUEST_SYMBOLS_CUT = 0x40,	   /* kallsyms leads out of the image, or is damaged: those
					      from there on are missing */
};

/* The kernel, and what was read with it. */
struct vmpt_guest_kernel {
	const char *release;  /* as uname -r; never NULL */
	const char *banner;   /* as /proc/version; NULL: not known */
	const u8 *build_id;   /* as in vmlinux; NULL: not known */
	size_t build_id_size; /* 20, mostly */
	u64 offset;	      /* KASLR: added to the addresses of vmlinux */
	u64 start, end;	      /* of its code, data and .bss; 0: not known */
	u64 physical;	      /* phys_base: physical = linear - 0xffffffff80000000 + this */
	u64 cr3;	      /* of its own page tables */
	u32 lacks;	      /* enum vmpt_guest_lack */
	u32 symbols, modules; /* how many */
	u32 tasks;	      /* vmpt_guest_task() */
};

/* A function, or data. */
struct vmpt_guest_symbol {
	const char *name;
	const char *module; /* also "bpf": code that was made of BPF; NULL: the kernel */
	u64 address;
	u64 size;  /* up to the next symbol, or the end */
	char type; /* as nm has it */
};

/* A module's code, or that of a BPF program. */
struct vmpt_guest_module {
	const char *name;
	u64 text, text_size; /* linear */
	u64 size;	     /* of all its parts that stay, as /proc/modules has it; 0: not known */
	const u8 *build_id;
	size_t build_id_size; /* 0: not known */
};

/* A task: a thread of a process, or of the kernel. */
struct vmpt_guest_task {
	char comm[16]; /* ends with a 0 */
	u32 pid;       /* the thread, in the first namespace */
	u32 tgid;      /* the process: what ps calls PID */
	u32 parent;    /* its parent's tgid; 0: none */
	/*
	 * Of its page tables, bits 51:12; 0: a thread of the kernel, which runs in any address
	 * space, or a process that has ended. With page table isolation (KPTI) the process itself
	 * runs with bit 12 set.
	 */
	u64 cr3;
	u64 start;   /* ns of CLOCK_MONOTONIC at which it was made */
	u64 address; /* struct task_struct, linear */
	u64 mm;	     /* struct mm_struct, linear, or 0: who has the same one shares memory */
	bool kernel; /* PF_KTHREAD */
	const char *program; /* the path of its file; NULL: not known, or the kernel's */
};

/* Consecutive pages of a process. */
struct vmpt_guest_map {
	u64 start, end; /* linear */
	u64 offset;	/* in the file, of .start; bytes */
	/*
	 * The file's path from the root of all; or as /proc/PID/maps has it "[heap]", "[stack]",
	 * "[vdso]"; ends with " (deleted)" if it was removed. NULL: no file.
	 */
	const char *file;
	const u8 *build_id;   /* of an ELF file whose first pages are in memory */
	size_t build_id_size; /* 0: not known */
	bool read, write, exec, shared;
};

struct vmpt_guest;

/* The interface of this header: see VMPT_ABI_VERSION. */
#define VMPT_GUEST_ABI                                                              \
	VMPT_ABI_ADD4(VMPT_ABI4(struct vmpt_guest_kernel, struct vmpt_guest_symbol, \
				struct vmpt_guest_module, struct vmpt_guest_task),  \
		      struct vmpt_guest_map, struct vmpt_diag, struct vmpt_page,    \
		      struct vmpt_space)

/*
 * Read the kernel in @image, which has guest-physical memory, is not of kind VMPT_IMAGE_CODE or
 * .live, and must outlive the guest. If nobody has said how the image's memory is translated
 * (VMPT_PAGING_AUTO), it is from now on as the kernel says. Returns 0: .lacks says what is not
 * known; or a negative error with @diag filled (may be NULL): -VMPT_E_FORMAT if no Linux kernel is
 * found, -VMPT_E_UNSUPPORTED, -VMPT_E_NOMEM.
 */
int vmpt_guest_open_abi(struct vmpt_guest **guest, struct vmpt_image *image, struct vmpt_diag *diag,
			u64 abi);
#define vmpt_guest_open(guest, image, diag) vmpt_guest_open_abi(guest, image, diag, VMPT_GUEST_ABI)
/* @guest may be NULL. The image stays open. */
void vmpt_guest_close(struct vmpt_guest *guest);

/*
 * The guest has run on, and its image has memory that changes (.memory of struct
 * vmpt_image_source): read its tasks again. What was returned of tasks and maps is gone; symbols
 * and modules are as they were. 0 or -VMPT_E_NOMEM.
 */
int vmpt_guest_update(struct vmpt_guest *guest);
/*
 * What is now at the .address of a task, without .program: a comparison shows whether it is still
 * the same task. Its maps are read again when they are asked for next. Cheap: translations of the
 * kernel's addresses are those of the last vmpt_guest_update(). False: it cannot be read.
 */
bool vmpt_guest_task_now(struct vmpt_guest *guest, u64 address, struct vmpt_guest_task *task);
/*
 * The same of the process with the page tables at @cr3, as of vmpt_guest_task_at(), but with its
 * .program, which is there until the next vmpt_guest_update(). It is looked for among the 4,096
 * newest, so one that has just begun is found soon. False: none of them has it, or it ends.
 */
bool vmpt_guest_find_task(struct vmpt_guest *guest, u64 cr3, struct vmpt_guest_task *task);

/* The texts in @kernel are the guest's. */
void vmpt_guest_kernel(const struct vmpt_guest *guest, struct vmpt_guest_kernel *kernel);

/* Symbol number @n < .symbols, by address. False: there is none. */
bool vmpt_guest_symbol(const struct vmpt_guest *guest, u32 n, struct vmpt_guest_symbol *symbol);
/*
 * The symbol of the kernel, a module or a BPF program that has @address; of several at one address
 * the first. False: none, or it is no address of the kernel.
 */
bool vmpt_guest_symbol_at(const struct vmpt_guest *guest, u64 address,
			  struct vmpt_guest_symbol *symbol);
/* The kernel's own symbol @name; false: there is none. */
bool vmpt_guest_address(const struct vmpt_guest *guest, const char *name, u64 *address);

/* Module number @n < .modules; NULL: there is none. */
const struct vmpt_guest_module *vmpt_guest_module(const struct vmpt_guest *guest, u32 n);

/* Task number @n < .tasks, by process and thread; NULL: there is none. */
const struct vmpt_guest_task *vmpt_guest_task(const struct vmpt_guest *guest, u32 n);
/*
 * The process whose page tables are at @cr3, with any PCID (bits 11:0), and with bit 12 if no other
 * process has it (KPTI): its first thread. NULL: none; the kernel's own page tables, too.
 */
const struct vmpt_guest_task *vmpt_guest_task_at(const struct vmpt_guest *guest, u64 cr3);

/*
 * What @task has mapped, by address: *@maps and its count; *@cut: the tree or list leads to memory
 * that is not in the image. Kept, so that a second call is cheap. 0 or -VMPT_E_NOMEM.
 */
int vmpt_guest_maps(struct vmpt_guest *guest, const struct vmpt_guest_task *task,
		    const struct vmpt_guest_map **maps, size_t *count, bool *cut);

/*
 * Read @size bytes at the linear address @at with the page tables at @cr3, or the kernel's if that
 * is 0. False: not all of them are in the image.
 */
bool vmpt_guest_read(struct vmpt_guest *guest, u64 cr3, u64 at, void *to, size_t size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
