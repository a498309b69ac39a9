#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Random guests and random VMMs against KVM's PT. Guests execute random RDMSR and WRMSR of PT's
# registers, each with a random subset of what KVM offers: all must behave as the manual says
# (ptmsrs). A hostile VMM gives KVM random CPUIDs and registers, and enters a guest with those that
# KVM accepts (attack).
#
#	test-hostile.sh SOURCE OUT stock|patched
#
# On the stock kernel faults must be found, with fewer of each; on the kernel with kvm-patches/6.12
# none. In a soak there are more of each.
set -u

source=$1
out=$2
kernel=$3
programs=100 cpuids=200

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
choose_kernel "$kernel"
if [ "$kernel" = patched ]; then
	# A third of the programs does not run, because KVM refuses its CPUID.
	programs=400 cpuids=500
	# More, in proportion to the soak's seconds.
	[ -z "${VMPT_SOAK-}" ] ||
		programs=$((programs + 40 * VMPT_SOAK)) cpuids=$((cpuids + 60 * VMPT_SOAK))
fi
. "$source/tests/soak.sh" || exit
soak_takes
soak_made "$source/bochs/build" "$build"
make_all "$source/bochs/build" "$build" "$here/build base"

# Run program $1 with the argument $2.
start()
{
	job "$1" "do,$1,$2" "${options[@]}" --append 'kvm-intel.pt_mode=1 msr.allow_writes=on'
}

# The number before the words $1 in the last line of the program.
number()
{
	tail -n 2 "$out/$name/serial" | sed -nE "s/^$name:.*[ ;,]([0-9]+) $1.*/\1/p" | grep . || echo 0
}

start ptmsrs "$programs" &
start attack "$cpuids" &
wait

right=0
[ "$kernel" = patched ] || right=1
for name in ptmsrs attack; do
	in_job $name
	check 'its status' [ $rc = $right ]
	grep "^$name: [0-9]" "$out/$name/serial"
done
# Enough was tested: at least a quarter of the accesses are #GP and at least a quarter are not.
in_job ptmsrs
accesses=$(number accesses)
check 'all programs' [ "$(number programs)" = "$programs" ]
if [ "$kernel" = patched ]; then
	check 'programs enough' [ $((programs - $(number 'CPUIDs refused'))) -ge $((programs * 2 / 3)) ]
	check 'no difference' [ "$(number differ)" = 0 ]
	check 'accesses enough' [ "$accesses" -ge $((50 * $(number programs))) ]
	check '#GP enough' [ $(($(number '#GP') * 4)) -ge "$accesses" ]
	check 'not all are #GP' [ $(($(number '#GP') * 4)) -le $((accesses * 3)) ]
	check 'traces enough' [ "$(number 'times TraceEn')" -ge $((programs / 4)) ]
else
	check 'differences' [ "$(number differ)" -gt 0 ]
fi
in_job attack
check 'entries enough' [ $(($(number entries) * 20)) -ge "$cpuids" ]
if [ "$kernel" = patched ]; then
	check 'no CPUID with too much' [ "$(number 'with too much')" = 0 ]
	check 'no entry failed' [ "$(number failed)" = 0 ]
	check 'no register changed' [ "$(number 'registers changed')" = 0 ]
else
	check 'CPUIDs with too much' [ "$(number 'with too much')" -gt 0 ]
	check 'entries failed' [ "$(number failed)" -gt 0 ]
	check 'the kernel reported it' grep -q '^attack: the kernel said: ' "$out/attack/serial"
fi

finish
