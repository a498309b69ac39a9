#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# isa=rtit under Linux: a program sets up RTIT through /dev/cpu/0/msr by the three scenarios of the
# manual's Appendix A (rtit/rtit-linux.c), and its traces are compared with what was executed,
# instruction for instruction. The program's source gives what a scenario must have traced.
#
#	test-rtit-linux.sh SOURCE PLUGIN VMPT FLOW-CHECK OUT
set -u

source=$(realpath "$1")
plugin=$(realpath "$2")
vmpt=$(realpath "$3")
flow_check=$(realpath "$4")
out=$5
# Rounds of work(), 10 system calls in each; calls of the driver, each of which enters it more than
# once
WORK=3 CALLS=100

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
mkdir -p "$out"
cd "$out" || exit 1
export LC_ALL=C
trap 'rm -f truth.*' EXIT

show()
{
	tail -n 20 boot.log guest/serial.log guest/stderr.log flow 2>/dev/null
}

# The guest's line "$1".
said()
{
	sed -n "s/^rtit: $1 \([^\r]*\)\r*$/\1/p" guest/serial.log
}

# Trace $1 matches what was executed; the options are flow-check's.
flow()
{
	local name=$1
	shift
	rc=0
	"$flow_check" --traced "$@" "guest/files/$name.rtit" truth.0 >flow 2>&1 || rc=$?
	check "$name: the flow is right" [ $rc = 0 ]
}

# The driver's trace without the packets between two FUP.PGEs in its middle.
without_a_call()
{
	local at i file=guest/files/driver.rtit

	mapfile -t at < <("$vmpt" dump -q --json $file |
		sed -n 's/.*"offset":\([0-9]*\),.*"packet":"FUP.PGE".*/\1/p')
	i=$((${#at[@]} / 2))
	head -c "${at[i]}" $file
	tail -c "+$((at[i + 1] + 1))" $file
}

# A count of flow-check's: "12 enables".
count()
{
	sed -n "s/.*\\b\\([0-9]\\+\\) $1.*/\\1/p" flow | head -n 1
}

gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -fno-pie -no-pie -static \
	-I"$source" -o rtit-linux "$source/tests/qemu-plugin/rtit/rtit-linux.c" \
	"$source/arch/rtit-packet.c" >boot.log 2>&1
check 'the program is compiled' [ -x rtit-linux ]

# nopcid: so that a process has one CR3. The buffer is memory that the kernel leaves alone.
"$source/tests/guests/boot" --out guest --run 0x10000000 \
	--file "test=$source/tests/qemu-plugin/guest-rtit" --file /bin/rtit-linux=rtit-linux \
	--append "nopcid memmap=4M\$0x10000000" \
	--plugin "$plugin,isa=rtit,guest-view=1,truth=$PWD/truth" work >boot.log 2>&1
rc=$?
[ $rc != 77 ] || { cat boot.log && exit 77; }
check 'the guest ends with 0' [ $rc = 0 ]
check 'Linux sees a Silvermont' grep -q '^rtit: 55 8 ' guest/serial.log
check '#GP before CTL was read: EIO' [ "$(said 'STATUS before CTL:')" = 'Input/output error' ]
check 'no MSR that Linux complains of' [ "$(said 'bad MSR')" = 0 ]
check 'Linux accepts the TSC' [ "$(said 'unstable TSC')" = 0 ]
mapfile -t range < <(said range)

# One application, by CR3 and range, in user mode; another process executes the same code.
flow application --ctl=0x4000 --cr3="$(said cr3)" --range0="${range[0]}"
check 'application: entered by calls and after system calls' \
	[ "$(count enables)" -ge $((11 * WORK)) ]
check 'application: all of its rounds' [ "$(count instructions)" -ge $((WORK * 1000 * 15)) ]
check 'application: and nothing else' [ "$(count instructions)" -le $((WORK * 1000 * 40)) ]

# All of user and OS.
flow all --ctl=0x8000 --unfiltered --tail=1000
check 'all: a fork and more' [ "$(count instructions)" -ge 100000 ]
check 'all: enabled once' [ "$(count enables)" = 1 ]

# A driver: its whole module, the kernel only.
flow driver --ctl=0x1000 --range0="${range[1]}"
check 'driver: entered by each call' [ "$(count enables)" -ge "$CALLS" ]
check 'driver: and left' [ "$(count disables)" -ge "$CALLS" ]
check 'driver: little of what the kernel executed' \
	[ "$(count instructions)" -le $(($(count 'where packets') / 4)) ]
# The comparison can fail: remove one of its calls from the trace.
"$flow_check" --traced --ctl=0x1000 --range0="${range[1]}" <(without_a_call) truth.0 >cut.log 2>&1
rc=$?
check_log 'driver: without one of its calls the flow differs' cut.log [ $rc = 1 ]
check_log 'driver: a missing call is found' cut.log \
	grep -q '^instruction .*: in the range, but not in the trace: ' cut.log

finish
