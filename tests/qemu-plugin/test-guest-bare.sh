#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The guest view without an operating system: tests/qemu-plugin/bare runs vmm-lib's conformance
# suite on a vCPU of a real QEMU, then its own checks, and prints a line for each.
#
#	test-guest-bare.sh SOURCE PLUGIN ROM OUT
set -u

source=$1
plugin=$(realpath "$2")
rom=$(realpath "$3")
out=$4

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
mkdir -p "$out"
get_qemu

show()
{
	cat "$out/$name.log" "$out/$name.stderr"
}

# Run the guest as $name with the plugin's options $1 and QEMU's options that follow.
run()
{
	local options=$1
	shift
	rc=0
	within 60 "$qemu" -cpu max,vendor=GenuineIntel -m 64 -nodefaults -display none \
		-device isa-debug-exit,iobase=0xf4,iosize=1 -bios "$rom" \
		-serial "file:$out/$name.log" -plugin "$plugin,guest-view=1$options" "$@" \
		</dev/null >"$out/$name.stdout" 2>"$out/$name.stderr" || rc=$?
}

# How many lines of the guest begin with $1.
lines()
{
	grep -c "^$1" "$out/$name.log"
}

# What the guest printed under $1, a number in hex.
number()
{
	echo $(($(sed -n "s/^$1 \(0x[0-9a-f]*\)$/\1/p" "$out/$name.log")))
}

# $1: scenarios of the suite that must pass, $2: those that this guest cannot run, $3: its own
# checks; $4: lines of the plugin (1: its summary)
judge()
{
	local line

	check 'ran to its end' [ $rc = 33 ]
	check 'conformance: no callback failed' [ "$(number 'conformance: error')" = 0 ]
	check "conformance: $1 scenarios pass" [ "$(lines 'conformance: passed [a-z]')" = "$1" ]
	check 'conformance: none fails' [ "$(lines 'conformance: FAILED')" = 0 ]
	check "conformance: $2 are skipped" [ "$(lines 'conformance: skipped [a-z]')" = "$2" ]
	check "own checks: $3 pass" [ "$(lines 'policy: ok')" = "$3" ]
	while read -r line; do
		check "own check: ${line#policy: FAILED }" false
	done < <(grep '^policy: FAILED' "$out/$name.log")
	check 'the plugin prints no other lines' \
		[ "$(grep -c ^vmpt: "$out/$name.stderr")" = "${4-1}" ]
}

name=full
run ,pt=full -machine q35 -smp 2 -accel tcg,thread=multi
judge 27 7 86

# H4: performance counters that count.
name=counters
run ,pt=full,counters=count -machine q35 -smp 2 -accel tcg,thread=multi
judge 27 7 103

# The default set of capabilities: no PMI preservation, no PTWRITE.
name=icelake
run '' -machine pc -smp 2 -accel tcg,thread=multi
judge 26 8 78

# Both views and a truth file: the flow is right across resets, INITs and skipped instructions.
name=both
rm -rf "$out/host"
run ",pt=full,host-view=$out/host,truth=$out/truth" -machine q35 -smp 2 -accel tcg,thread=multi
judge 27 7 86 3
check 'both: a stream of each vCPU' [ -s "$out/host/cpu0.pt" -a -s "$out/host/cpu1.pt" ]

# The machine splits large RAM: of 3000 MiB q35 has a part above 4 GiB, pc has not. Addresses that
# are not RAM with the 64 MiB above are RAM here, so two of the three kinds of output report no
# error.
for name in q35 pc; do
	run ,pt=full -machine $name -smp 2 -m 3000
	check 'much RAM: ran to its end' [ $rc = 33 ]
	check 'much RAM: after 64 MiB' [ "$(lines 'policy: FAILED first page after RAM')" = 2 ]
	check 'much RAM: after 4 GiB' \
		[ "$(lines 'policy: FAILED after 4 GiB')" = "$([ $name = q35 ] && echo 2 || echo 0)" ]
	check 'much RAM: all else as before' [ "$(lines 'policy: FAILED')" -le 4 ]
done

# With an option half of RAM is above 4 GiB, and devices can be in its place.
for name in q35 pc; do
	run ,pt=full -machine $name,max-ram-below-4g=32M -smp 2 -device edu
	check 'a device instead of RAM: ran to its end' [ $rc = 33 ]
	check 'a device instead of RAM: it is present' \
		[ "$(lines 'policy: ok the device is present')" = 1 ]
	check 'a device instead of RAM: and never written' \
		[ "$(lines 'policy: ok the device is unchanged')" = 1 ]
	# Here its last page is not RAM, and the page after 4 GiB is.
	check 'a device instead of RAM: all else as before' \
		[ "$(grep '^policy: FAILED' "$out/$name.log" | sort | uniq -c | tr -s ' \n' ' ')" = \
		' 2 policy: FAILED after 4 GiB 1 policy: FAILED last page of RAM ' ]
done

name=threads
run '' -machine pc -smp 2 -accel tcg,thread=single
check 'one thread for two vCPUs: refused' [ $rc = 1 ]
check 'one thread for two vCPUs: why' grep -q 'vCPU 1: shares its thread' "$out/$name.stderr"

name=baseline
run ,pt=pentium -machine pc
check 'an unknown baseline: refused' [ $rc = 1 ]
check 'an unknown baseline: why' \
	grep -q '^vmpt: pt=pentium is not known; there are full, qemu-icelake' "$out/$name.stderr"

finish
