#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# With kvm-patches/6.12 debugfs shows the addresses of a vCPU's VMCSs: they are exactly those in the
# VMCS packets of a trace of the whole PC.
#
#	test-vmcs.sh SOURCE OUT VMPT
set -u

source=$1
out=$2
vmpt=$3

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
choose_kernel patched
make_all "$source/bochs/build" "$build" "$here/build base perf"
job run vmcs "${options[@]}" --with perf

show()
{
	cat "$run/said" "$out/run/traced" "$out/run/files/vmcs-pa"
	tail -n 20 "$run/serial"
}

# The addresses in file $1, of guests that ran long enough to be read.
addresses()
{
	awk -v file="$1" '$2 == file { print substr($3, 3) }' "$out/run/files/vmcs-pa" | sort -u
}

"$vmpt" vms "$out/run/files/perf.data" >"$out/run/traced" 2>&1
sed -nE '/^VMCS +LOSSES/q; s/^([0-9a-f]+) .*/\1/p' "$out/run/traced" | sort -u >"$out/run/in-trace"
addresses vmcs01-pa >"$out/run/in-debugfs"

check 'the run' [ $rc = 0 ]
check 'two VMCSs in the trace' [ "$(wc -l <"$out/run/in-trace")" = 2 ]
check 'those are the ones in debugfs' cmp "$out/run/in-trace" "$out/run/in-debugfs"
check 'no second VMCS without nesting' [ "$(addresses vmcs02-pa)" = 0 ]
check 'each folder has an address of its own' \
	[ "$(awk '$2 == "vmcs01-pa"' "$out/run/files/vmcs-pa" | wc -l)" = 2 ]

finish
