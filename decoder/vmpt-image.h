/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Memory images: the bytes of guests' and hosts' code, from which the flow decoder (vmpt-flow.h)
 * follows a trace. An image is one source of bytes: a memory dump, a program's file, a set of
 * pages. A vmpt_code is what a trace's code is: images, each of one owner, one address space or
 * all.
 *
 * Any number of threads may call the functions that return pages, on the same image or vmpt_code;
 * they take a lock, which is meant for callers that keep the pages they got. Files are mapped, with
 * what vmpt_trace_open() says about those that become shorter. What an image of S bytes takes
 * besides is at most a small multiple of S, mostly nothing.
 */
#ifndef VMPT_IMAGE_H
#define VMPT_IMAGE_H

#include "decoder/vmpt-decode.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Bytes of a page, whatever the size of the pages that tables map. */
#define VMPT_PAGE 4096u

/* A page's bytes. The memory is the image's, valid until it is closed. */
struct vmpt_page {
	const u8 *bytes;  /* VMPT_PAGE of them */
	const u64 *valid; /* bit n % 64 of word n / 64: byte n is known; NULL: all are */
	/*
	 * The host's TSC at which they came to be, and that at which they ceased; 0 and ~0: not
	 * known. Of a page that is not there: from when to when it is not.
	 */
	u64 from, to;
};

/* Whether byte @n of @page is known. */
static inline bool vmpt_page_knows(const struct vmpt_page *page, unsigned int n)
{
	return !page->valid || (page->valid[n / 64] >> n % 64 & 1);
}

/* An address space, as PT shows it. */
struct vmpt_space {
	struct vmpt_owner owner; /* .sure and .concealed are ignored */
	u64 cr3;		 /* as PIP has it (SDM 3 33.4.2.7): bits 4:0 are 0; 0 with no_cr3 */
	bool no_cr3;		 /* no PIP was seen */
	u8 exec;		 /* 16, 32 or 64: MODE.Exec (33.4.2.8) */
	/*
	 * Where in the trace: the host's TSC; 0: not known, the end. Of an image that has code of
	 * several times the page that it had then is first; it is good for TSCs in [.from, .to):
	 * who keeps pages asks again once a TSC packet has reached .to.
	 */
	u64 tsc;
};

/* How linear addresses are translated (SDM 3 4.1.1). */
enum vmpt_paging {
	VMPT_PAGING_AUTO, /* not known: 4-level */
	VMPT_PAGING_NONE, /* CR0.PG = 0: a linear address is the physical one */
	VMPT_PAGING_32,	  /* with CR4.PSE */
	VMPT_PAGING_PAE,
	VMPT_PAGING_4,
	VMPT_PAGING_5,
};

/* What a file is. */
enum vmpt_image_kind {
	VMPT_IMAGE_AUTO,  /* by the file's name and its first bytes */
	VMPT_IMAGE_PAGES, /* x.addr, linear addresses of pages as u64, and x.dump, the pages */
	VMPT_IMAGE_RAM,	  /* raw guest-physical memory, .ranges say which */
	VMPT_IMAGE_ELF,	  /* a program, a kernel; a dump of memory; /proc/kcore */
	VMPT_IMAGE_PERF,  /* perf.data: the files of the programs that it saw */
	VMPT_IMAGE_BYTES, /* raw bytes at the linear address .address */
	/* x.ranges, lines of "PHYSICAL SIZE OFFSET" (numbers of C; # begins a comment), and x.ram,
	 * raw memory, in which they lie */
	VMPT_IMAGE_RANGES,
	VMPT_IMAGE_JITDUMP, /* what a just-in-time compiler wrote for perf inject, with its times if
			       they are TSCs */
	VMPT_IMAGE_CODE,    /* a code stream of the QEMU plugin */
	VMPT_IMAGE_KINDS,   /* how many */
};

/* Where a part of a file of raw memory lies. */
struct vmpt_ram_range {
	u64 physical, size, offset; /* offset: in the file */
};

/* All 0: everything by default. */
struct vmpt_image_options {
	u8 kind;   /* enum vmpt_image_kind */
	u8 paging; /* enum vmpt_paging, where the image does not say it */
	bool has_address;
	/* Pages are read when they are asked for, and kept: the file is not mapped. Always so for
	 * files in /proc. */
	bool live;
	/* linear, of a file's first byte (BYTES) or its first page (ELF, but for dumps); of PERF a
	 * process id; -VMPT_E_INVAL for other kinds */
	u64 address;
	const struct vmpt_ram_range *ranges; /* RAM; none: byte N of the file is physical N */
	size_t range_count;		     /* of .ranges */
};

/* What is in an image. */
struct vmpt_image_info {
	u64 linear, physical; /* bytes */
	const u64 *cr3;	      /* of the vCPUs with paging when a dump was made, if it says so */
	size_t cr3_count;     /* of .cr3 */
	u8 paging;	      /* enum vmpt_paging */
};

/* The results of looking up pages in an image. */
struct vmpt_image_counts {
	u64 found;	 /* a page was returned */
	u64 absent;	 /* nothing is known at this address */
	u64 not_present; /* an entry of the page tables has P = 0 */
	u64 no_table;	 /* a page table is not in the image: it is of another VM, or was freed */
	u64 reserved;	 /* an entry has a reserved bit set: it was no page table (SDM 3 4.7) */
	u64 no_memory;	 /* the tables translate, to memory that is not in the image */
};

struct vmpt_image;

/* The interface of this header: see VMPT_ABI_VERSION. */
#define VMPT_IMAGE_ABI                                                                \
	VMPT_ABI_ADD4(VMPT_ABI4(struct vmpt_ram_range, struct vmpt_image_source,      \
				struct vmpt_image_info, struct vmpt_diag),            \
		      struct vmpt_page, struct vmpt_space, struct vmpt_image_options, \
		      struct vmpt_image_counts)

/*
 * Open the image at @path; @options may be NULL. Returns 0, or a negative error with @diag filled
 * (may be NULL). With 0 its text is empty, or says what could not be read of the file.
 *
 * An ELF file that is no dump has its segments at their addresses, moved by as much as .address is
 * from the first one's page; what only takes memory (.bss) is not known. A dump has guest-physical
 * memory, with the paging mode of its vCPUs (QEMU's notes) or of Linux (VMCOREINFO), or a kernel's
 * view, or both.
 *
 * A perf.data names the files that processes mapped to execute (MMAP2): ELF files of this machine
 * are mapped in their places, of the process .address or of all; of two at one place the one mapped
 * last. A file that is missing, or has another build id than perf saw, is left out; the text says
 * how many. What the kernel wrote to its own code (TEXT_POKE), and where its trampolines were
 * (KSYMBOL), is there with its times.
 */
int vmpt_image_open_abi(struct vmpt_image **image, const char *path,
			const struct vmpt_image_options *options, struct vmpt_diag *diag, u64 abi);
#define vmpt_image_open(image, path, options, diag) \
	vmpt_image_open_abi(image, path, options, diag, VMPT_IMAGE_ABI)

/* Physical memory that a program has, or reads in a way of its own. */
struct vmpt_image_source {
	/*
	 * Fill the page at @physical. 1, 0: there is no such page, or a negative error. Called by
	 * one thread at a time, of those that decode; two images may be asked at once. What it gave
	 * is kept.
	 */
	int (*physical)(void *opaque, u64 physical, u8 bytes[VMPT_PAGE]);
	/*
	 * In place of .physical, which is NULL then: the page at @physical in memory that stays
	 * where it is and may be written at any time, as a running guest's; NULL: there is no such
	 * page. Nothing is kept. For vmpt-guest.h only, which copies what it looks at.
	 */
	const u8 *(*memory)(void *opaque, u64 physical);
	void (*close)(void *opaque); /* with the image; may be NULL */
	void *opaque;		     /* for all */
	u8 paging;		     /* enum vmpt_paging */
};
/*
 * Make an image of @source; of @options, which may be NULL, only .paging is used. 0, or a negative
 * error: then .close was not called.
 */
int vmpt_image_make_abi(struct vmpt_image **image, const struct vmpt_image_source *source,
			const struct vmpt_image_options *options, u64 abi);
#define vmpt_image_make(image, source, options) \
	vmpt_image_make_abi(image, source, options, VMPT_IMAGE_ABI)

/* @image may be NULL. Its pages are gone then. */
void vmpt_image_close(struct vmpt_image *image);

/*
 * The page at the linear address @linear, a multiple of VMPT_PAGE, of @space. An image of physical
 * memory walks the page tables at CR3 (SDM 3 4.3 to 4.5), in real mode and without a CR3 the linear
 * address is the physical one; one of linear memory has the page in every space that it is asked
 * for. One of both (/proc/kcore, dump-guest-memory with paging) gives the upper half by linear
 * address, the lower half by the page tables if CR3 is known. @nth: 0; if the image has several
 * versions of a page, the others are 1, 2, ...: 0 is that of @space->tsc, or the last one, followed
 * by the next later one, the one before, and so on. Returns 1 with @page filled, 0 if the image has
 * no such page, or a negative error.
 */
int vmpt_image_page(struct vmpt_image *image, const struct vmpt_space *space, u64 linear,
		    unsigned int nth, struct vmpt_page *page);
/* The same at a (guest-)physical address. */
int vmpt_image_physical(struct vmpt_image *image, u64 physical, struct vmpt_page *page);
/*
 * Translate @linear in @space. Returns 1 with *@physical, or 0 if the tables do not translate it or
 * the image has none. Two spaces share a page if both translate it to one address.
 */
int vmpt_image_translate(struct vmpt_image *image, const struct vmpt_space *space, u64 linear,
			 u64 *physical);
/* Its memory is the image's. */
void vmpt_image_info(const struct vmpt_image *image, struct vmpt_image_info *info);
/* What was asked so far: by several threads of a flow, the same several times. */
void vmpt_image_counts(struct vmpt_image *image, struct vmpt_image_counts *counts);

/* ---- what a trace's code is ---- */

struct vmpt_code;

/* A new one without images. 0 or a negative error. */
int vmpt_code_new_abi(struct vmpt_code **code, u64 abi);
#define vmpt_code_new(code) vmpt_code_new_abi(code, VMPT_IMAGE_ABI)
/* @code may be NULL. Its images stay open: they are the caller's. */
void vmpt_code_free(struct vmpt_code *code);

/*
 * Add @image for @owner (NULL: every owner; .sure is ignored), or if @cr3 is not NULL for its
 * address space *@cr3 only, as PIP has it. Images are tried in the order in which they are added.
 * No page may be asked for by another thread meanwhile.
 */
int vmpt_code_add(struct vmpt_code *code, const struct vmpt_owner *owner, const u64 *cr3,
		  struct vmpt_image *image);

/* Whether an image has code of several times: pages are to be asked for by .tsc. */
bool vmpt_code_changes(const struct vmpt_code *code);
/* Whether a page may have several versions: there are several images, or one of several times. */
bool vmpt_code_has_versions(const struct vmpt_code *code);

/*
 * The page at @linear of @space, @nth 0: of the first image that has it; 1, 2, ...: the next ones
 * whose bytes or known bytes differ from all before. A page may lack the bytes that a caller wants
 * where the next one has them. Spaces that translate @linear to the same page of an image get the
 * same .bytes: they may share what is made of it. At most VMPT_CODE_VERSIONS pages. Returns 1, 0 if
 * there is no such page, or a negative error. .from and .to are filled also with 0: for TSCs
 * between them the answer is the same.
 */
#define VMPT_CODE_VERSIONS 16u
int vmpt_code_page(struct vmpt_code *code, const struct vmpt_space *space, u64 linear,
		   unsigned int nth, struct vmpt_page *page);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
