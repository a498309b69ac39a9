#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# perf in a Linux guest with PT of its own (kvm-intel.pt_mode=1) records of a program what perf on
# the PC itself does: the same targets in the same order, as many as the program's source says.
#
#	test-perf-guest.sh SOURCE OUT VMPT
set -u

source=$1
out=$2
vmpt=$3
failures=0 checks=0

mkdir -p "$out"
for what in "$source/bochs/build" "$source/tests/bochs/build-kernel" "$source/tests/bochs/build" \
	"$source/tests/bochs/inside/programs/build $out/programs"; do
	# shellcheck disable=SC2086 # a command and its words
	printed=$($what 2>"$out/build.log") || {
		rc=$?
		echo "$printed"
		cat "$out/build.log"
		exit $rc
	}
done

check()
{
	local what=$1
	shift
	checks=$((checks + 1))
	if ! "$@"; then
		failures=$((failures + 1))
		echo "$what: fails; rc $rc"
		cat "$out/run/said"
		tail -n 20 "$out/run/serial.log" 2>/dev/null
	fi
}

# The targets of all TIP packets of a trace that lie in the program's own functions.
targets()
{
	local low high

	low=$(nm "$out/programs/traced" | sed -n 's/ t add$//p')
	high=$(nm -S "$out/programs/traced" | awk '$4 == "main" { print $1, $2 }')
	high=$((16#${high% *} + 16#${high#* }))
	"$vmpt" dump "$1" 2>/dev/null | sed -nE 's/.* TIP +0x([0-9a-f]+) .*/\1/p' |
		while read -r ip; do
			((16#$ip < 16#$low || 16#$ip >= high)) || echo "$ip"
		done
}

mix()
{
	x=$((x & 1 ? x >> 1 ^ 0xedb88320 : x >> 1))
}

# How many there are, from traced.c: each round has an indirect call and its return, and deep() with
# n levels more: n + 1 returns of it and n of mix(). Then there are the call of main() and the return
# of printf().
wanted()
{
	local x=1 i n level total=2

	for ((i = 0; i < 200; i++)); do
		n=$((x & 7))
		case $((x & 3)) in
		0) x=$((x + 0x9e3779b9 & 0xffffffff)) ;;
		2) x=$(((x << 7 | x >> 25) & 0xffffffff)) ;;
		*) mix ;;
		esac
		for ((level = n; level > 0; level--)); do
			mix
		done
		x=$((x + n * (n + 1) / 2 & 0xffffffff))
		total=$((total + 3 + 2 * n))
	done
	echo $total
}

rm -rf "$out/run"
mkdir -p "$out/run"
rc=0
"$source/tests/bochs/run" --with perf --with qemu --append kvm-intel.pt_mode=1 --timeout 180 \
	--out "$out/run" perf-in-guest >"$out/run/said" 2>&1 || rc=$?
check 'ran' [ $rc = 0 ]
for where in here guest; do
	targets "$out/run/files/perf-$where.data" >"$out/$where"
done
check 'as many targets as the program has' [ "$(wc -l <"$out/here")" = "$(wanted)" ]
check 'the guest has the same' cmp "$out/here" "$out/guest"

echo "$((checks ? 100 * (checks - failures) / checks : 0))%: Checks: $checks, Failures: $failures, Errors: 0"
[ $failures = 0 ]
