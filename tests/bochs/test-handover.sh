#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The host's perf and a guest trace at once, under KVM: both traces match the executed code
# instruction for instruction, so neither has a byte of the other's; after each exit the host's
# registers are restored; an event that stopped stays stopped. Then an interrupt arrives at every
# instruction of the host from a guest's exit to its next entry, one per pass, and from where the
# host stops its trace on: PMIs for a region of perf's that just filled, for a counter's overflow
# whose samples stop and start the trace, and late ones for a region that the guest or the host
# filled before.
#
#	test-handover.sh SOURCE OUT FLOW_CHECK stock|patched
#
# On the stock kernel each test must show that kernel's fault; on the kernel with kvm-patches/6.12
# all must be right. In a soak the longer walks take every instruction.
set -u

source=$1
out=$2
flow_check=$3
kernel=$4
# Of the long path through user space only its end, and every third instruction.
first=3400 stride=3 rounds=2000
[ -z "${VMPT_SOAK-}" ] || first=0 stride=1 rounds=5000

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
choose_kernel "$kernel"
. "$source/tests/soak.sh" || exit
soak_takes
soak_made "$source/bochs/build" "$build"
make_all "$source/bochs/build" "$build" "$here/build base"

# Run the program with the options $2 as test $1.
start()
{
	job "$1" "handover,$2" "${options[@]}" --append 'kvm-intel.pt_mode=1 msr.allow_writes=on'
}

# Compare the trace $1 with the truth $2.
flow()
{
	"$flow_check" --traced "$1" "$2" >"$run/flow" 2>&1
	check "the flow of ${1##*/}" [ $? = 0 ]
	echo "$name: ${1##*/}: $(head -n 1 "$run/flow")"
}

# The checks for a right kernel. A guest without PT is traced with the host: its packets are in the
# host's trace.
is_right()
{
	local truth

	check 'ends well' [ $rc = 0 ]
	check 'says so' grep -qx 'handover: right' "$run/serial"
	check 'no error' [ "$(grep -c '^[0-9]* error:' "$run/files/run.log")" = 0 ]
	case $words in
	*fill*) ;; # the path differs each time
	*walk=*) check 'the walk ran to its end' grep -q ' walk cpu 0 done ' "$run/files/run.log" ;;
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

# name|options|the stock kernel's fault as an extended regular expression, or "right"
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

# A boot of the PC takes longer than any of these. Six of them suffice on the stock kernel; a soak
# runs the others, too.
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
