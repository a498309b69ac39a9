#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Are the stacks that <decoder/vmpt-calls.h> finds those that a Linux guest had? calls-check compares
# them at each call and return of each vCPU with the plugin's truth, which has RSP.
#
#	test-linux.sh SOURCE PLUGIN CALLS-CHECK OUT
#
# two	two vCPUs, page table isolation and retpolines, all programs: signals, code written at run
#	time, 32 bits, pipes, threads
# plain	one vCPU, no mitigations, pipes and processes
set -u

source=$1
plugin=$(realpath "$2")
calls_check=$(realpath "$3")
out=$4

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
get_qemu
mkdir -p "$out"
out=$(realpath "$out")
cd "$out" || exit 1
export LC_ALL=C
# Truths of whole boots are large.
trap 'rm -f "$out"/*.truth.*' EXIT

rc=0
guests=$("$source/tests/guests/build" --symbols work) || rc=$?
[ $rc = 0 ] || {
	echo "$guests"
	exit $rc
}

# guest NAME VCPUS ALLOW OPTION…: boot it, and compare; ALLOW: how many stacks may differ after the first program
# has begun.
guest()
{
	local name=$1 vcpus=$2 allow=$3 streams=() truths=() i vmcs
	shift 3

	rm -rf "$name".*
	rc=0
	"$source/tests/guests/boot" --out "$name.boot" --smp "$vcpus" --plugin \
		"$plugin,host-view=$name.d,cpus=0:1,code=$name.code,truth=$name.truth,truth-sp=1" "$@" \
		>"$name.log" 2>&1 || rc=$?
	[ $rc != 77 ] || skip "$(sed -n 's/^skipped: //p' "$name.log")"
	check_log "$name: powered off" "$name.log" [ $rc = 0 ]
	for ((i = 0; i < vcpus; i++)); do
		vmcs=$(sed -n "s/.*\"vcpu\":$i,\"vmcs\":\"0x\([0-9a-f]*\)\".*/\1/p" "$name.d/vms.jsonl")
		streams+=("$name.d/cpu$i.pt,$vmcs")
		truths+=("$name.truth.$i")
	done
	rc=0
	"$calls_check" --symbols="$guests/System.map" --code="$name.code" --allow="$allow" "${streams[@]}" -- "${truths[@]}" \
		>log 2>&1 || rc=$?
	check_log "$name: stacks of all tasks" log [ $rc = 0 ]
	sed "s/^/$name: /" log | tail -n 6
	rm -f "$name".truth.*
}

# Not 0: longjmp() of programs, whose functions have no names here (docs/calls.md).
guest two 2 200000 work
guest plain 1 50000 --run pipes,4,50 --append 'nopti mitigations=off' work
finish
