/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* VMCS fields, controls and exit reasons (SDM 3 appendices A to C), as far as used here. */
#ifndef VMPT_TESTS_BARE_VMX_FIELDS_H
#define VMPT_TESTS_BARE_VMX_FIELDS_H

/* 16 bits; segments in the order ES CS SS DS FS GS LDTR TR, 2 apart */
#define F_VPID	    0x0000
#define F_GUEST_ES  0x0800
#define F_PML_INDEX 0x0812
#define F_HOST_ES   0x0c00
#define F_HOST_CS   0x0c02
#define F_HOST_TR   0x0c0c
/* 64 bits */
#define F_MSR_BITMAP	  0x2004
#define F_EXIT_STORE_LIST 0x2006
#define F_EXIT_LOAD_LIST  0x2008
#define F_ENTRY_LOAD_LIST 0x200a
#define F_PML_ADDRESS	  0x200e
#define F_APIC_ACCESS	  0x2014
#define F_TSC_OFFSET	  0x2010
#define F_EPTP		  0x201a
#define F_TSC_MULTIPLIER  0x2032
#define F_GUEST_PHYS	  0x2400
#define F_LINK		  0x2800
#define F_GUEST_DEBUGCTL  0x2802
#define F_GUEST_PAT	  0x2804
#define F_GUEST_EFER	  0x2806
#define F_GUEST_RTIT_CTL  0x2814
#define F_HOST_PAT	  0x2c00
#define F_HOST_EFER	  0x2c02
/* 32 bits */
#define F_PIN		    0x4000
#define F_PRIMARY	    0x4002
#define F_EXCEPTIONS	    0x4004
#define F_EXIT		    0x400c
#define F_EXIT_STORES	    0x400e
#define F_EXIT_LOADS	    0x4010
#define F_ENTRY		    0x4012
#define F_ENTRY_LOADS	    0x4014
#define F_ENTRY_EVENT	    0x4016
#define F_SECONDARY	    0x401e
#define F_INSTRUCTION_ERROR 0x4400
#define F_REASON	    0x4402
#define F_EXIT_EVENT	    0x4404
#define F_VECTORING	    0x4408
#define F_EXIT_LENGTH	    0x440c
#define F_GUEST_ES_LIMIT    0x4800
#define F_GUEST_GDTR_LIMIT  0x4810
#define F_GUEST_IDTR_LIMIT  0x4812
#define F_GUEST_ES_RIGHTS   0x4814
#define F_INTERRUPTIBILITY  0x4824
#define F_ACTIVITY	    0x4826
#define F_PREEMPTION_TIMER  0x482e
/* natural width */
#define F_CR0_MASK	      0x6000
#define F_CR4_MASK	      0x6002
#define F_CR0_SHADOW	      0x6004
#define F_CR4_SHADOW	      0x6006
#define F_QUALIFICATION	      0x6400
#define F_GUEST_CR0	      0x6800
#define F_GUEST_CR3	      0x6802
#define F_GUEST_CR4	      0x6804
#define F_GUEST_ES_BASE	      0x6806
#define F_GUEST_GDTR_BASE     0x6816
#define F_GUEST_IDTR_BASE     0x6818
#define F_GUEST_DR7	      0x681a
#define F_GUEST_RSP	      0x681c
#define F_GUEST_RIP	      0x681e
#define F_GUEST_RFLAGS	      0x6820
#define F_GUEST_PENDING_DEBUG 0x6822
#define F_HOST_CR0	      0x6c00
#define F_HOST_CR3	      0x6c02
#define F_HOST_CR4	      0x6c04
#define F_HOST_TR_BASE	      0x6c0a
#define F_HOST_GDTR_BASE      0x6c0c
#define F_HOST_IDTR_BASE      0x6c0e
#define F_HOST_RSP	      0x6c14
#define F_HOST_RIP	      0x6c16

#define PIN_INTERRUPTS	       (1u << 0)
#define PIN_NMI		       (1u << 3)
#define PIN_VIRTUAL_NMI	       (1u << 5)
#define PIN_PREEMPTION_TIMER   (1u << 6)
#define PRIMARY_TSC_OFFSET     (1u << 3)
#define PRIMARY_HLT	       (1u << 7)
#define PRIMARY_CR3_LOAD       (1u << 15)
#define PRIMARY_CR3_STORE      (1u << 16)
#define PRIMARY_MONITOR_TRAP   (1u << 27)
#define PRIMARY_MSR_BITMAP     (1u << 28)
#define PRIMARY_SECONDARY      (1u << 31)
#define SECONDARY_APIC_ACCESS  (1u << 0)
#define SECONDARY_EPT	       (1u << 1)
#define SECONDARY_UNRESTRICTED (1u << 7)
#define SECONDARY_RDTSCP       (1u << 3)
#define SECONDARY_PML	       (1u << 17)
#define SECONDARY_CONCEAL      (1u << 19)
#define SECONDARY_XSAVES       (1u << 20)
#define SECONDARY_PT_USES_GPA  (1u << 24)
#define SECONDARY_TSC_SCALING  (1u << 25)
#define EXIT_HOST_64	       (1u << 9)
#define EXIT_ACK_INTERRUPT     (1u << 15)
#define EXIT_SAVE_EFER	       (1u << 20)
#define EXIT_LOAD_EFER	       (1u << 21)
#define EXIT_CONCEAL	       (1u << 24)
#define EXIT_CLEAR_RTIT_CTL    (1u << 25)
#define ENTRY_GUEST_64	       (1u << 9)
#define ENTRY_LOAD_EFER	       (1u << 15)
#define ENTRY_CONCEAL	       (1u << 17)
#define ENTRY_LOAD_RTIT_CTL    (1u << 18)

#define REASON_NMI	     0
#define REASON_INTERRUPT     1
#define REASON_TRIPLE_FAULT  2
#define REASON_CPUID	     10
#define REASON_HLT	     12
#define REASON_VMCALL	     18
#define REASON_CR	     28
#define REASON_BAD_STATE     33
#define REASON_BAD_LIST	     34
#define REASON_MONITOR_TRAP  37
#define REASON_APIC_ACCESS   44
#define REASON_EPT_VIOLATION 48
#define REASON_EPT_MISCONFIG 49
#define REASON_PREEMPTION    52
#define REASON_PML_FULL	     62
#define REASON_ENTRY_FAILED  (1u << 31)

#define MSR_VMX_BASIC	  0x480
#define MSR_VMX_MISC	  0x485
#define MSR_VMX_SECONDARY 0x48b
#define MSR_VMX_EPT	  0x48c
#define MSR_VMX_TRUE	  0x48d /* pin, primary, exit, entry */

#endif
