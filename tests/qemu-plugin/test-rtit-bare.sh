#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# isa=rtit for a guest without an operating system (tests/qemu-plugin/rtit): how RTIT is detected,
# its MSRs, and the guest's own traces by the three scenarios of the manual's Appendix A, which are
# compared with the plugin's truth instruction for instruction. The instructions of a trace are
# counted by hand in entry.S.
#
#	test-rtit-bare.sh SOURCE PLUGIN VMPT FLOW-CHECK ROMS OUT
#
# ROMS: the folder of rtit-N.rom and of their programs.
set -u

source=$1
plugin=$(realpath "$2")
vmpt=$(realpath "$3")
flow_check=$(realpath "$4")
roms=$(realpath "$5")
out=$6
# Sums of the numbers in rtit/entry.S
APP=805 HELPER=20 DRIVER=12

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
mkdir -p "$out"
export LC_ALL=C
get_qemu
cd "$out" || exit 1
rm -rf ./*.d
rm -f ./*.log ./*.rtit ./*.truth.* ./*.said ./*.flow

show()
{
	tail -n 20 "$name".{log,said,flow} 2>/dev/null
}

# Scenario $1 as $name, with more options of the plugin ($2) and of QEMU.
run()
{
	local rom=$roms/rtit-$1.rom options=$2
	shift 2
	rc=0
	within 60 "$qemu" -accel tcg -cpu max,vendor=GenuineIntel -machine pc -m 64 -nodefaults \
		-display none -device isa-debug-exit,iobase=0xf4,iosize=1 -bios "$rom" \
		-serial "file:$name.log" -serial "file:$name.rtit" -plugin \
		"$plugin,isa=rtit,guest-view=1,truth=$name.truth$options" "$@" </dev/null \
		>"$name.said" 2>&1 || rc=$?
}

# The guest ended with $1 checks of its own; the plugin printed $2 lines.
judge()
{
	check 'ran to its end' [ $rc = 33 ]
	check "own checks: $1" [ "$(grep -c '^ok ' "$name.log")" = "$1" ]
	check 'own checks: none fails' [ "$(grep -c '^FAILED' "$name.log")" = 0 ]
	check 'the whole trace arrived' \
		[ "$(stat -c %s "$name.rtit")" = "$(($(sed -n 's/^bytes //p' "$name.log")))" ]
	check "the plugin prints $2 lines" [ "$(grep -c ^vmpt: "$name.said")" = "$2" ]
}

# The trace matches what was executed; the options are flow-check's.
flow()
{
	rc=0
	"$flow_check" --traced --bits=64 "$@" "$name.rtit" "$name.truth.0" >"$name.flow" 2>&1 ||
		rc=$?
	check 'the flow is right' [ $rc = 0 ]
}

# A count of flow-check's: "12 enables".
count()
{
	sed -n "s/.*\\b\\([0-9]\\+\\) $1.*/\\1/p" "$name.flow" | head -n 1
}

# The address of symbol $2 in scenario $1's program.
address()
{
	echo "0x$(nm "$roms/rtit-program-$1" | sed -n "s/ [a-zA-Z] $2$//p")"
}

# The kinds of the packets, only those that match $1.
packets()
{
	"$vmpt" dump -q --json "$name.rtit" | sed -n 's/.*"packet":"\([^"]*\)".*/\1/p' |
		grep -x -- "${1-.*}"
}

name=registers
run 0 ''
judge 76 2
check 'output without RAM: reported' grep -q '0xfdc00000, where no RAM is' "$name.said"
check 'output without Dest: reported' grep -q 'debug port' "$name.said"

# Appendix A, one user application: its range, one CR3, user mode only. It runs twice, and
# once in another address space.
name=application
run 1 ''
judge 9 0
flow --cr3=0x200000 --range0="$(address 1 app),$(address 1 app_end)"
check 'each instruction of it' [ "$(count instructions)" = $((2 * APP)) ]
check 'and none of the library' [ "$(count 'where packets')" = $((2 * HELPER)) ]
check 'no PIP: CR3 is known' [ "$(packets PIP | wc -l)" = 0 ]
# The comparison can fail: change a bit of a TNT.
offset=$(grep -obUaP '\x03' "$name.rtit" | head -n 1 | cut -d : -f 1)
cp "$name.rtit" bad.rtit
printf '\x02' | dd of=bad.rtit bs=1 seek="${offset:-20}" conv=notrunc status=none
check 'a wrong bit is found' not "$flow_check" --traced --bits=64 --cr3=0x200000 \
	--range0="$(address 1 app),$(address 1 app_end)" bad.rtit "$name.truth.0" \
	>application.bad 2>&1

# All of user and OS, with packets for address spaces and time.
name=all
run 2 ''
judge 9 0
flow --unfiltered --tail=10
check 'application and driver' [ "$(count instructions)" -ge $((2 * APP + 20 * DRIVER)) ]
check 'system calls of two applications' [ "$(count events)" = 22 ]
check 'PIPs: to each address space and back' [ "$(packets PIP | wc -l)" = 4 ]
# There are more if the vCPU had to wait on a busy host.
check 'an STS with each' [ "$(packets | grep -A 1 -x PIP | grep -cx STS)" = 4 ]

# A driver: its range, the kernel only. It is called at its base ten times, and entered sequentially
# ten times.
name=driver
run 3 ''
judge 9 0
flow --range0="$(address 3 driver),$(address 3 driver_end)"
check 'each instruction of it' [ "$(count instructions)" = $((20 * DRIVER)) ]
check 'it is enabled' [ "$(count enables)" = 20 ]
check 'it is left sequentially' [ "$(count disables)" = 20 ]

name=stop
run 4 ''
judge 11 0
check 'TraceSTOP is the last packet' [ "$(packets | tail -n 1)" = TraceSTOP ]
check 'once' [ "$(packets TraceSTOP | wc -l)" = 1 ]

# Asleep three times for 30 ms, unless that ends before the HLT: an STS after each (Appendix B,
# 4.1.1). flow/test-rtit.c has the MTCs.
name=asleep
run 5 ''
judge 9 0
flow --unfiltered --tail=10
stss=$(packets | grep -vx TNT | grep -A 1 -x STS | grep -cx FUP.Far)
check 'an STS when it wakes, right before the interrupt' [ "$stss" -ge 1 -a "$stss" -le 3 ]
check 'interrupts' [ "$(count events)" = 3 ]

# Detection first, then the same and all registers once more after a reset.
name=reset
run 6 ''
judge 79 2

# A host with RTIT traces a guest that traces itself with RTIT.
name=both
run 2 ",host-view=both.d"
judge 9 1
rc=0
"$flow_check" --unfiltered both.d/cpu0.rtit both.truth.0 >both.flow 2>&1 || rc=$?
check "the flow of the host's trace is right" [ $rc = 0 ]
check "and all that was executed is in it" [ "$(count instructions)" -ge 10000 ]

name=signature
run 0 ,rtit=37-9
check 'no such processor: refused' [ $rc = 1 ]
check 'no such processor: lists the known ones' \
	grep -q 'rtit=37-9 is not known; there are 37-8, 5d-0, 5d-1, 4a-8, 4d-8, 5a-0, 4c-3' \
	"$name.said"

# On an Airmont all is the same except its identification.
name=airmont
run 0 ,rtit=4c-3
check 'an Airmont' [ "$(grep -A 2 '^FAILED' "$name.log" | tr -s '\n ' ' ')" = \
	"FAILED family 6, model 37H, stepping 8 want 0x0000000000030678 got 0x00000000000406c3 " ]

finish
