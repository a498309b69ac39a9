#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Known faults of KVM's Processor Trace virtualization. On the stock kernel each scenario of ptfault
# must show its fault; on the kernel with kvm-patches/6.12 the fault must be gone, and the kernel
# must print no WARN, BUG, oops or failed MSR access. faults/KERNEL.expect has the required output
# with its evidence, so a scenario that detects nothing fails on one of the two.
#
#	test-faults.sh SOURCE OUT stock|patched
#
# Writes OUT/results for fault-table: NAME|WHAT|RIGHT|SAID|yes, or no if it is not as expected.
set -u

source=$1
out=$2
kernel=$3

mkdir -p "$out"
rm -f "$out/results"
. "$source/tests/bochs/lib.sh" || exit
choose_kernel "$kernel"
make_all "$source/bochs/build" "$build" "$here/build base"

declare -A expected
while IFS=$'\t' read -r name pattern; do
	[[ $name == '#'* ]] || expected[$name]=$pattern
done <"$here/faults/$kernel.expect"

# Run the scenarios $3..., as test $1, with an option and its value in $2.
run()
{
	local words
	local -a option
	read -ra option <<<"$2"
	words=$(printf ',%s' "${@:3}")
	job "$1" "faults${words%,}" "${options[@]}" \
		--append "kvm-intel.pt_mode=1 msr.allow_writes=on" "${option[@]}"
	check 'ends well' [ $rc = 0 ]
}

# The output of scenario $2 in run $1.
line()
{
	sed -n "s/^$2: //p" "$out/$1/serial" | head -n 1
}

# The stock kernel's D18 and D04 leave a host that cannot be trusted.
mapfile -t names < <(printf '%s\n' "${!expected[@]}" | grep -vxE 'D04|D08|D18|D22b' | sort)
run most '' "${names[@]}"
run apart '' D18 D04
run no-unrestricted '--append kvm-intel.unrestricted_guest=0' D22b
run no-cr3-filter '--pt no-cr3-filter' D08

while IFS='|' read -r name what right; do
	case $name in
	D22b) said=$(line no-unrestricted "$name") ;;
	D08) said=$(line no-cr3-filter "$name") ;;
	D04 | D18) said=$(line apart "$name") ;;
	*) said=$(line most "$name") ;;
	esac
	checks=$((checks + 1))
	as_expected=yes
	if ! grep -qE "^(${expected[$name]-no expectation})" <<<"$said"; then
		failures=$((failures + 1))
		as_expected=no
		echo "$name: \"$said\" is not ${expected[$name]-an expected scenario}"
	fi
	unset "expected[$name]"
	echo "$name|$what|$right|${said:-nothing}|$as_expected" >>"$out/results"
done < <(sed -n 's/^list: //p' "$out/most/serial")
checks=$((checks + 1))
if [ ${#expected[@]} != 0 ]; then
	failures=$((failures + 1))
	echo "not tried: ${!expected[*]}"
fi

finish
