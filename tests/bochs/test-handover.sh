#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The host's perf and a guest trace at once, under KVM: both traces are what was executed,
# instruction for instruction, so that neither has a byte of the other's; the host's registers are
# the host's after each exit; an event that stopped stays stopped. Then interrupts come at every
# instruction of the host from a guest's exit to its next entry, one in each, and from where the
# host stops its trace on: with a region of perf's just filled, with a counter's overflow whose
# samples stop and start the trace, and late ones for what the guest or the host filled before.
#
#	test-handover.sh SOURCE OUT FLOW_CHECK stock|patched
#
# On the stock kernel each shall show what it does wrong there; on the kernel with kvm-patches/6.12
# all shall be right. In a soak the longer walks are done instruction by instruction.
set -u

source=$1
out=$2
flow_check=$3
kernel=$4
# Of the long way through user space only its end, and each third instruction.
first=3400 stride=3 rounds=2000
[ -z "${VMPT_SOAK-}" ] || first=0 stride=1 rounds=5000

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
choose_kernel "$kernel"
. "$source/tests/soak.sh" || exit
soak_takes 160
soak_made "$source/bochs/build" "$build"
make_all "$source/bochs/build" "$build" "$here/build base"

# Run the program with the words $2 as test $1.
start()
{
	job "$1" "handover,$2" "${options[@]}" --append 'kvm-intel.pt_mode=1 msr.allow_writes=on'
}

# The trace $1 against the truth $2.
flow()
{
	"$flow_check" --traced "$1" "$2" >"$run/flow" 2>&1
	check "the flow of ${1##*/}" [ $? = 0 ]
	echo "$name: ${1##*/}: $(head -n 1 "$run/flow")"
}

# What must be so on a right kernel. A guest without PT is traced with the host: its packets are in
# the host's trace.
is_right()
{
	local truth

	check 'ends well' [ $rc = 0 ]
	check 'says so' grep -qx 'handover: right' "$run/serial"
	check 'no error' [ "$(grep -c '^[0-9]* error:' "$run/files/run.log")" = 0 ]
	case $words in
	*fill*) ;; # the way is another each time
	*walk=*) check 'the walk came to its end' grep -q ' walk cpu 0 done ' "$run/files/run.log" ;;
	esac
	case $words in
	*fill* | *filter* | *no-pt*) ;;
	*) flow "$run/files/host.pt" "$run/files/host.truth.0" ;;
	esac
	for truth in "$run"/files/vm-*.truth.0; do
		[ -e "$run/files/guest.pt" ] || break
		flow "$run/files/guest.pt" "$truth"
	done
}

# name|words|what stock Linux says, an extended regular expression; right: nothing is wrong there
tests="
both|rounds=500|right
whole|whole,rounds=100|VM entry failed, reason 0x7
idle|idle,rounds=100|VM entry failed, reason 0x7
no-pt|no-pt,rounds=100|VM entry failed, reason 0x7
filter|filter,io,rounds=500|right
fill|fill,io,aux=4,walk=exit,pmi,stride=3,rounds=3000|VM entry failed|went on [1-9]|unchecked MSR
guest-int|int=1,rounds=1000|host: [0-9]{12,} bytes|0 interrupts in the guest
pmi|walk=exit,pmi,rounds=4000|unchecked MSR access error: WRMSR to 0x57
sample|walk=exit,sample,rounds=4000|unchecked MSR access error: WRMSR to 0x57
late|walk=exit,late,rounds=4000|host: [0-9]{12,} bytes|unchecked MSR access error: WRMSR to 0x57
stop-late|walk=stop,late,rounds=4000|unchecked MSR access error: WRMSR to 0x57
user-pmi|io,walk=exit,pmi,first=$first,rounds=$rounds|unchecked MSR access error: WRMSR to 0x57
user-late|io,walk=exit,late,stride=$stride,rounds=$rounds|host: [0-9]{12,} bytes|unchecked MSR access error: WRMSR to 0x57
"

# A boot of the PC takes longer than any of these. What six of them show on the stock kernel, the others
# show again: in a soak.
[ "$kernel" = patched ] || [ -n "${VMPT_SOAK-}" ] ||
	tests=$(grep -E '^(both|whole|filter|fill|guest-int|pmi)\|' <<<"$tests")

# Two at a time.
while IFS='|' read -r name words _; do
	[ -n "$name" ] || continue
	[ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n
	start "$name" "$words" &
done <<<"$tests"
wait

while IFS='|' read -r name words wrong; do
	[ -n "$name" ] || continue
	in_job "$name"
	if [ "$kernel" = patched ] || [ "$wrong" = right ]; then
		is_right
	else
		check "shows: $wrong" grep -qE "$wrong" "$run/serial"
		echo "$name: $(grep -m 1 -oE "$wrong" "$run/serial")"
	fi
done <<<"$tests"

finish
