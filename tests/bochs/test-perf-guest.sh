#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# perf in a Linux guest with PT of its own (kvm-intel.pt_mode=1) records the same trace of a program
# as perf on the PC itself: the same targets in the same order, as many as the program's source
# implies; and, decoded with the program's binary, the same instructions, with as many calls as the
# source implies.
#
#	test-perf-guest.sh SOURCE OUT VMPT
set -u

source=$1
out=$2
vmpt=$3

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
. "$source/tests/soak.sh" || exit
soak_made "$source/bochs/build" \
	"$source/tests/bochs/build-kernel${VMPT_BOCHS_PATCHES:+ --patches $VMPT_BOCHS_PATCHES}"
make_all "$source/bochs/build" "$source/tests/bochs/build-kernel" "$source/tests/bochs/build" \
	"$source/tests/bochs/inside/programs/build $out/programs"

# Filter standard input's addresses: those in the program's own functions.
own()
{
	local low high ip

	low=$(nm "$out/programs/traced" | sed -n 's/ t add$//p')
	high=$(nm -S "$out/programs/traced" | awk '$4 == "main" { print $1, $2 }')
	high=$((16#${high% *} + 16#${high#* }))
	low=$((16#$low))
	while read -r ip; do
		((16#$ip < low || 16#$ip >= high)) || echo "$ip"
	done
}

# The targets of all TIP packets of a trace.
targets()
{
	"$vmpt" dump "$1" 2>/dev/null | sed -nE 's/.* TIP +0x([0-9a-f]+) .*/\1/p' | own
}

# All instructions that the program executed, decoded from its conditional branches and the other
# packets; code outside of it is not available.
flow()
{
	perf script -i "$1" --symfs "$out/root" --itrace=i0ns -F ip 2>/dev/null |
		sed 's/[^0-9a-f]//g' | own
}

# How often each function of the program is called.
entered()
{
	local ip

	ip=$(nm "$out/programs/traced" | sed -n "s/^0*\(.*\) t $2$/\1/p")
	grep -cx "$ip" "$1"
}

mix()
{
	x=$((x & 1 ? x >> 1 ^ 0xedb88320 : x >> 1))
}

# The number of targets by traced.c: each round has an indirect call and its return, and deep() with
# n more levels: n + 1 returns of it and n of mix(). Then there are the call of main() and the
# return of printf(). $called: how often each function is called.
count()
{
	local x=1 i n level

	total=2
	called=([add]=0 [mix]=0 [turn]=0 [deep]=0)
	for ((i = 0; i < 200; i++)); do
		n=$((x & 7))
		case $((x & 3)) in
		0)
			x=$((x + 0x9e3779b9 & 0xffffffff))
			called[add]=$((called[add] + 1))
			;;
		2)
			x=$(((x << 7 | x >> 25) & 0xffffffff))
			called[turn]=$((called[turn] + 1))
			;;
		*)
			mix
			called[mix]=$((called[mix] + 1))
			;;
		esac
		for ((level = n; level > 0; level--)); do
			mix
		done
		x=$((x + n * (n + 1) / 2 & 0xffffffff))
		called[mix]=$((called[mix] + n))
		called[deep]=$((called[deep] + n + 1))
		total=$((total + 3 + 2 * n))
	done
}

job run perf-in-guest --with perf --with qemu --append kvm-intel.pt_mode=1
check 'ran' [ $rc = 0 ]
mkdir -p "$out/root/bin"
cp "$out/programs/traced" "$out/root/bin/"
for where in here guest; do
	targets "$out/run/files/perf-$where.data" >"$out/$where"
	flow "$out/run/files/perf-$where.data" >"$out/$where-flow"
done
declare -A called
count
check 'as many targets as the program has' [ "$(wc -l <"$out/here")" = $total ]
check 'the guest has the same' cmp "$out/here" "$out/guest"
for function in "${!called[@]}"; do
	check "$function is called ${called[$function]} times" \
		[ "$(entered "$out/here-flow" "$function")" = "${called[$function]}" ]
done
check 'the guest executed the same instructions' cmp "$out/here-flow" "$out/guest-flow"
check 'a guest sees no VMCS packets' \
	[ "$("$vmpt" dump "$out/run/files/perf-guest.data" 2>/dev/null | grep -cE ' (VMCS|PIP) ')" = 0 ]

finish
