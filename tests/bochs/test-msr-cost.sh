#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# How many RDMSR and WRMSR an entry and exit cost, counted by the PC: on the stock kernel and on the
# one with kvm-patches/6.12, for a VM without PT, one that does not trace and one that does, with
# and without an event of the host's perf. A VM without PT must cost no more with pt_mode=1 than
# with pt_mode=0; one with PT no more on the patched kernel than on stock.
#
#	test-msr-cost.sh SOURCE OUT
#
# The table goes to OUT/table. A figure is the most frequent one of some 200 windows from a CPUID
# exit to the next entry; KVM stays in the kernel between them.
set -u

source=$1
out=$2

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
choose_kernel patched
make_all "$source/bochs/build" "$here/build-kernel" "$build" "$here/build base"

# The counts after mark 200 + $2 of run $1: the most frequent "PT-READS PT-WRITES READS WRITES" of
# the windows, nothing if fewer than 100 windows have it.
most()
{
	awk -v mark=$((200 + $2)) '$2 == "mark" { here = $3 == mark }
		here && $2 == "msrs" && $14 > count { count = $14; cost = $8 " " $9 " " $11 " " $12 }
		END { if (count >= 100) print cost }' "$out/$1/files/run.log"
}

declare -A cost
# Kernel $1 with pt_mode=$2: a VM of each KIND $3...
run()
{
	local kinds=("${@:3}") host i=0

	choose_kernel "$1"
	job "$1-$2" "msrcost$(printf ',%s' "${kinds[@]}")" "${options[@]}" \
		--append "kvm-intel.pt_mode=$2 msr.allow_writes=on"
	check 'ran' [ $rc = 0 ]
	for host in no yes; do
		for kind in "${kinds[@]}"; do
			cost[$name $kind $host]=$(most "$name" $i)
			i=$((i + 1))
		done
	done
}

# Cost $1 is known and no more than cost $2: reads, writes, and both.
no_more()
{
	local a b

	read -ra a <<<"$1"
	read -ra b <<<"$2"
	[ ${#a[@]} = 4 ] && [ ${#b[@]} = 4 ] && [ $((a[0] + a[2])) -le $((b[0] + b[2])) ] &&
		[ $((a[1] + a[3])) -le $((b[1] + b[3])) ]
}

# A cell of the table: reads + writes (PT's among them).
cell()
{
	local c

	read -ra c <<<"$1"
	if [ ${#c[@]} = 4 ]; then
		echo "$((c[0] + c[2])) + $((c[1] + c[3])) (${c[0]} + ${c[1]})"
	else
		echo 'no entry'
	fi
}

run stock 0 none
run stock 1 none idle trace
run patched 0 none
run patched 1 none idle trace

declare -A what=([none]='without PT' [idle]='with PT, not tracing' [trace]='tracing')
{
	echo '| VM | host'\''s perf traces | stock, pt_mode=0 | stock, pt_mode=1 | patched, pt_mode=0 | patched, pt_mode=1 |'
	echo '| --- | --- | --- | --- | --- | --- |'
	for kind in none idle trace; do
		for host in no yes; do
			line="| ${what[$kind]} | $host"
			for name in stock-0 stock-1 patched-0 patched-1; do
				if [[ $name == *-0 && $kind != none ]]; then
					line+=' | –'
				else
					line+=" | $(cell "${cost[$name $kind $host]}")"
				fi
			done
			echo "$line |"
		done
	done
} >"$out/table"

for host in no yes; do
	check "without PT, pt_mode=1 costs no more than pt_mode=0 (host's trace: $host)" \
		no_more "${cost[patched-1 none $host]}" "${cost[stock-0 none $host]}"
	check "pt_mode=0 costs no more than before (host's trace: $host)" \
		no_more "${cost[patched-0 none $host]}" "${cost[stock-0 none $host]}"
done
for kind in idle trace; do
	check "${what[$kind]}: no more than stock" \
		no_more "${cost[patched-1 $kind no]}" "${cost[stock-1 $kind no]}"
done
check 'tracing while the host traces: no more than stock' \
	no_more "${cost[patched-1 trace yes]}" "${cost[stock-1 trace yes]}"
# On stock each such entry fails. The cost includes stopping the host's trace at the entry and
# starting it after the exit.
check 'not tracing while the host traces: is entered' [ -n "${cost[patched-1 idle yes]}" ]
cat "$out/table"

finish
