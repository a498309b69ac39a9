#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# vmpt domain trace killed at random moments of its life while its QEMU runs: its folder then has the
# earlier trace or the new one, or a leftover that the next command puts right; and no QEMU is left, or
# the next command ends it. 200 kills, about ten minutes; $VMPT_KILLS is another number.
#
#	test-kill.sh SOURCE VMPT PLUGIN
# shellcheck disable=SC2154 # set by lib.sh
set -u

source=$1
vmpt=$(realpath "$2")
plugin=$(realpath "$3")
# shellcheck source=tests/domains/lib.sh
. "$source/tests/domains/lib.sh"
# shellcheck source=tests/soak.sh
. "$source/tests/soak.sh"
soak_takes
get_qemu
cd "$work" || exit 1
export XDG_STATE_HOME=$work/s
firmware stays 0 0 || skip "no assembler for the firmware: as and objcopy of binutils"
: >stdout
: >stderr
domain list
if [ $rc != 0 ] && says libvirt-daemon-driver-qemu; then
	skip "no embedded QEMU driver: package libvirt-daemon-driver-qemu"
fi

trace=(trace --plugin "$plugin" --set "QEMU=$qemu" --force -o out "one=$here/firmware.xml")
runs=("${trace[@]}" --set "FIRMWARE=$work/stays.bin" --seconds 1)
# It ends what is left running and puts the folder right, but starts nothing.
heals=("${trace[@]}" --set FIRMWARE=/no/rom)

nobody_left()
{
	! pgrep -fa -- "$work"
}

# The other half of the vmpt domain trace that is process $1, if it has begun. Later ones are those
# that libvirt forks.
other_half()
{
	pgrep -o -P "$1" -x vmpt-domain
}

old_trace()
{
	rm -rf out
	mkdir out && printf old >out/cpu9.pt && printf VMPTCP2old >out/cpu9.state
}

# The whole old trace, or a new one: never both, never a part of the old.
one_trace()
{
	local what

	what=$(ls -A out | paste -sd ' ')
	case $what in
	'cpu9.pt cpu9.state')
		[ "$(cat out/cpu9.pt out/cpu9.state)" = oldVMPTCP2old ] && old=$((old + 1))
		;;
	'cpu0.pt cpu0.state recording.json vm0.code vm0.tasks vms.jsonl')
		[ ! -s out/cpu0.pt ] || "$vmpt" stat out/cpu0.pt >stat || return
		new=$((new + 1))
		;;
	*)
		echo "the folder has $what"
		false
		;;
	esac
}

now()
{
	echo $((${EPOCHREALTIME/./} / 1000))
}

old_trace
begin=$(now)
domain "${runs[@]}"
most=$(($(now) - begin))
check 'a whole run' [ $rc = 0 ]
check 'a whole run: nobody is left' nobody_left
RANDOM=18
who=(above below both)
old=0 new=0 cut=0 orphans=0
for ((i = 0; cut < ${VMPT_KILLS:-200} && i < 1000; i++)); do
	half=${who[i % 3]}
	# Every other one while it starts, when libvirt does most.
	ms=$((RANDOM % (i & 1 ? most / 4 : most + most / 8)))
	name="kill $i of $half after $ms ms"
	old_trace
	"$vmpt" domain "${runs[@]}" </dev/null >stdout 2>stderr &
	pid=$!
	sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
	below=$(other_half $pid)
	case $half in
	above) victims=("$pid") ;;
	below) victims=("${below:-$pid}") ;;
	both) victims=("$pid" ${below:+"$below"}) ;;
	esac
	kill -KILL "${victims[@]}" 2>/dev/null && cut=$((cut + 1))
	wait $pid 2>/dev/null
	# Whoever is left of the two ends QEMU. Without them it is for the next command.
	if [ $half = both ]; then
		nobody_left >/dev/null || orphans=$((orphans + 1))
	else
		wait_for nobody_left >/dev/null
		check 'nobody is left' nobody_left || break
	fi
	domain "${heals[@]}"
	check 'the next command says why it fails' says 'one: cannot be started: ' || break
	check 'after the next command nobody is left' nobody_left || break
	check 'one trace, old or new' one_trace || break
done
name=''
echo "$cut kills: $old times the old trace, $new times a new one, $orphans orphans ended"
check 'as many kills as wanted' [ $cut = "${VMPT_KILLS:-200}" ]
# Or the moments do not cover its life.
check 'old traces' [ $old != 0 ]
check 'new traces' [ $new != 0 ]
check 'orphans' [ $orphans != 0 ]
domain "${runs[@]}"
check 'a whole run at the end' [ $rc = 0 ]

finish
