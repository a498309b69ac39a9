/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Guest memory for the tests of vmm-lib: each page of one kind (RAM, nothing, MMIO, APIC, SMRR),
 * backed by host frames in any order, and the memory callbacks of struct vmpt_ops. Every access
 * outside the guest's own memory is counted and fails guest_check().
 */
#ifndef VMPT_TESTS_GUEST_H
#define VMPT_TESTS_GUEST_H

#include "vmm-lib/vmpt.h"

#define GUEST_PAGE 4096u
/* Host-physical address of frame 0. */
#define GUEST_HPA 0x100000000ULL

struct guest {
	u8 *host;   /* frames × 4 KiB */
	u32 pages;  /* guest pages, from GPA 0 on */
	u8 *kind;   /* enum vmpt_guest_mem of each page */
	u32 *frame; /* the host frame of each page */
	bool retry; /* return -VMPT_E_RETRY for missing memory */

	/* counted */
	u64 reads, writes, maps, translations;
	u64 pmis;
};

/* @pages of RAM, zeroed, frame n for page n. */
void guest_init(struct guest *g, u32 pages);
void guest_free(struct guest *g);

/* Put the frames into another order; the contents move with them. */
void guest_shuffle(struct guest *g, u64 seed);
void guest_set_kind(struct guest *g, u32 page, u32 count, enum vmpt_guest_mem kind);

/* For tests: any GPA inside the guest's RAM, or the test fails. */
void guest_put(struct guest *g, u64 gpa, const void *buf, size_t len);
void guest_get(struct guest *g, u64 gpa, void *buf, size_t len);
void guest_put64(struct guest *g, u64 gpa, u64 value);
u64 guest_get64(struct guest *g, u64 gpa);
/* The host's view: memory at a host-physical address, NULL if not the guest's. */
u8 *guest_at_hpa(struct guest *g, u64 hpa);

/* The callbacks; opaque is the struct guest. */
int guest_read(void *opaque, u64 gpa, void *buf, size_t len);
int guest_write(void *opaque, u64 gpa, const void *buf, size_t len);
int guest_map(void *opaque, u64 gpa, u8 **host, size_t *size);
int guest_translate(void *opaque, u64 gpa, u64 *hpa, u64 *size);
void guest_pmi(void *opaque);

/* Those five; no hardware. */
extern const struct vmpt_ops guest_memory_ops;

/* Capabilities of a processor with everything that this version of the manual has. */
void guest_full_caps(struct vmpt_caps *host);

#endif
