#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Guests of stock KVM on the Bochs PC: stubs in 16, 32 and 64 bits compute the right results and
# KVM's counters agree with each other; guests that trace themselves get the packets of their loop.
# test-perf-guest.sh tests perf in a Linux guest under QEMU.
#
#	test-guests.sh SOURCE OUT [pt]
#
# pt: only the tests of PT, for the kernel with kvm-patches.
set -u

source=$1
out=$2

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
make_all "$source/bochs/build" "$source/tests/bochs/build-kernel" "$source/tests/bochs/build base"

said()
{
	grep -qE "$1" "$run/serial"
}

# How many lines of the serial log match.
count()
{
	grep -cE "$1" "$run/serial"
}

# The number after a word in the n-th line that has it.
number()
{
	sed -nE "s/.*[^-.A-Za-z]$1 ([0-9]+).*/\1/p" "$run/serial" | sed -n "$2p"
}

# 23 guests in 13 runs; each reports whether its word is right, and exits with 1 if not.
guests()
{
	job "$1" guests "${@:2}"
	check 'all are right' [ $rc = 0 ]
	check 'all 23 ran' [ "$(count '^vm [0-9]+ .*, right; ')" = 23 ]
}

guests pt --append kvm-intel.pt_mode=1
if [ "${3-}" != pt ]; then
	guests guests
	# By hand from work.S, for each of 10 rounds: OUT twice (for the interrupt and the word),
	# IN, MMIO read and write, HLT; then the last OUT.
	check 'exits to user space' \
		said '^vm 0 long64: rounds 10, .*: out 21 in 10 read 10 write 10 hlt 10 '
	# Without unrestricted guests real mode is virtual-8086 mode, to which KVM cannot deliver
	# virtual interrupts; processors with virtual-interrupt delivery have unrestricted guests,
	# too.
	guests no-unrestricted --append 'kvm-intel.unrestricted_guest=0 kvm-intel.enable_apicv=0'
	guests no-ept --append 'kvm-intel.ept=0 kvm-intel.enable_apicv=0'
fi

# A loop of 50 iterations, each with a call, a branch, a return and a branch; before and after it
# the guest's list takes an indirect jump and a branch, and the loop ends with an indirect jump.
job pt-guest pt-guest --append kvm-intel.pt_mode=1
check 'ran' [ $rc = 0 ]
check 'RET compression: 3 TIP' [ "$(number TIP 1)" = 3 ]
check 'RET compression: 152 bits of TNT' [ "$(number 'TNT bits' 1)" = 152 ]
check 'no RET compression: 53 TIP' [ "$(number TIP 2)" = 53 ]
check 'no RET compression: 102 bits of TNT' [ "$(number 'TNT bits' 2)" = 102 ]
check 'the output arrived' [ -s "$run/files/ret.pt" -a -s "$run/files/noret.pt" ]
# KVM conceals that this is a guest (Table 33-52): no VMCS, no NR, and each PSB+ is that of a
# processor outside VMX operation (33.3.7), with FUP and MODE.Exec if PacketEn is 1. The third guest
# has more than 8 KiB of output, and a PSB+ every 2 KiB.
psb='PSB CBR PIP MODE\.TSX'
check 'no VMCS packets' [ "$(count 'VMCS')" = 0 ]
check 'all have PIPs, none with NR' [ "$(count '^bytes .*; NR 0; .* PIP [1-9]')" = 3 ]
check 'PSB+ in the guest' [ "$(count "^PSB\+: $psb MODE\.Exec FUP PSBEND$")" -ge 4 ]
check 'no other PSB+' \
	[ "$(count '^PSB\+:')" = "$(count "^PSB\+: $psb( MODE\.Exec FUP)? PSBEND$")" ]

finish
