#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# With kvm-patches/6.12 debugfs says where the VMCSes of a vCPU are: each address that it says is
# one that VMCS packets of a trace of the whole PC have, and the other way round.
#
#	test-vmcs.sh SOURCE OUT VMPT
set -u

source=$1
out=$2
vmpt=$3
patches=$source/kvm-patches/6.12
failures=0 checks=0

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
[ -e "$patches/series" ] || { echo "skipped: there is no kvm-patches/6.12/series" && exit 77; }
make_all "$source/bochs/build" "$source/tests/bochs/build-kernel --patches $patches" \
	"$source/tests/bochs/build base" "$source/tests/bochs/build perf"

rc=0
rm -rf "$out/run"
mkdir -p "$out/run"
"$source/tests/bochs/run" --out "$out/run" --timeout 180 --patches "$patches" --with perf vmcs \
	>"$out/run/said" 2>&1 || rc=$?

check()
{
	checks=$((checks + 1))
	"${@:2}" && return
	failures=$((failures + 1))
	echo "$1: not so; the run ended with $rc"
	tail -n 20 "$out/run/said" "$out/run/serial.log"
	cat "$out/run/traced" "$out/run/files/vmcs-pa"
}

# Of file $1; those of the guests that were there long enough to be read.
addresses()
{
	awk -v file="$1" '$2 == file { print substr($3, 3) }' "$out/run/files/vmcs-pa" | sort -u
}

"$vmpt" vms "$out/run/files/perf.data" >"$out/run/traced" 2>&1
sed -nE '/^VMCS +LOSSES/q; s/^([0-9a-f]+) .*/\1/p' "$out/run/traced" | sort -u >"$out/run/in-trace"
addresses vmcs01-pa >"$out/run/in-debugfs"

check 'the run' [ $rc = 0 ]
check 'two VMCSes in the trace' [ "$(wc -l <"$out/run/in-trace")" = 2 ]
check 'those are the ones in debugfs' cmp "$out/run/in-trace" "$out/run/in-debugfs"
check 'no second VMCS without nesting' [ "$(addresses vmcs02-pa)" = 0 ]
check 'each folder has an address of its own' \
	[ "$(awk '$2 == "vmcs01-pa"' "$out/run/files/vmcs-pa" | wc -l)" = 2 ]

echo "$((checks ? 100 * (checks - failures) / checks : 0))%: Checks: $checks, Failures: $failures, Errors: 0"
[ $failures = 0 ]
