#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# scripts/demo: its output is complete and readable, its commands can be repeated, and Ctrl-C ends
# it.
#
#	test-demo.sh SOURCE BUILD
set -u

source=$(realpath "$1")
BUILD=$(realpath --relative-to="$source" "$2")
DEMO='demo-test'
export BUILD DEMO
dir=$source/$BUILD/$DEMO
said=$dir.said

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
count()
{
	grep -c -- "$1" "$said"
}

command -v perf >/dev/null || skip 'perf is missing (package linux-perf)'
guests=$("$source/tests/guests/build" --symbols work perf) || skip "no guests: $guests"
"$source/scripts/get-qemu" >/dev/null 2>"$said" || skip "no QEMU: $(tail -n 1 "$said")"

# Ctrl-C goes to all processes of a terminal: a process group is used here. While the guests run,
# the interrupted command ends with 0.
set -m
env --default-signal=INT "$source/scripts/demo" >"$said" 2>&1 &
demo=$!
set +m
traces_or_ended()
{
	grep -q '^tracing 2 domains' "$said" || ! kill -0 $demo 2>/dev/null
}
wait_for traces_or_ended
kill -INT -- -$demo
wait $demo
rc=$?
check 'Ctrl-C: status' [ $rc = 130 ]
check 'Ctrl-C: said' grep -q '^demo: interrupted$' "$said"
check 'Ctrl-C: the end' [ "$(tail -n 1 "$said")" = 'demo: interrupted' ]
check 'Ctrl-C: no next step' [ "$(count '^. vmpt vms')" = 0 ]
check 'Ctrl-C: nothing runs' [ -z "$(pgrep -g $demo)" ]

rc=0
"$source/scripts/demo" >"$said" 2>&1 || rc=$?
check 'status' [ $rc = 0 ]
check 'said' grep -q '^Done$' "$said"
check 'lines fit' [ -z "$(grep -v '^/' "$said" | grep '.\{101\}')" ]
check 'two guests' [ "$(count '^[a-z]*  *0  *0  *[0-9a-f]*  shut down$')" = 2 ]
check 'a switch' grep -q ' VMCS  *pointer=' "$said"
# All rounds of alice's program, and her kernel without an error.
check 'calls' [ "$(grep -c ' main => .* alpha$' "$dir/calls")" = 1000 ]
check 'kernel' [ "$(grep -c 'instruction trace error.* ip 0xffff' "$dir/calls")" = 0 ]
check 'user mode' [ "$(grep -c 'instruction trace error' "$dir/calls")" -le 8 ]
# The time line has the exits that vmpt vms counts, by name, and each of them is in a reason's row.
exits_of()
{
	tr -d , <"$said" | sed -n '/^. vmpt timeline .*--summary/,/^CPU/p' |
		awk -v vm="$1" '$1 == "VM" { of = $2 == "ENTRIES" } of && $1 == vm { print $3 }'
}
vms=$(tr -d , <"$said" | sed -n '/^. vmpt vms/,/^host/s/^[0-9a-f]* *[a-z]* vcpu 0 *0 *\(\([0-9]* *\)\{3\}\).*/\1/p' |
	awk '{ print $3 }' | sort)
check 'time line: exits' [ "$(printf '%s\n' "$(exits_of alice)" "$(exits_of bob)" | sort)" = "$vms" ]
check 'exits: reasons' [ "$(count '^\(alice\|bob\| *\)  *HLT?  *[0-9]')" -ge 2 ]
check 'page: there' [ -s "$dir/timeline.html" ]
check 'page: size' [ "$(stat -c %s "$dir/timeline.html")" -lt 5000000 ]
check 'page: names' [ "$(grep -c -o '"alice"\|"bob"' "$dir/timeline.html")" -ge 1 ]
check 'page: no network' [ "$(grep -c 'src="http\|href="http\|@import' "$dir/timeline.html")" = 0 ]
# Every instruction of both guests and the host: gaps are at most one in 10 million instructions.
rc=0
"$source/$BUILD/cli/vmpt" insn --quiet --count --json "$dir/trace" >"$dir/insn" || rc=$?
check 'executed: status' [ $rc = 0 ]
check 'executed: gaps' python3 - "$dir/insn" <<-'END'
	import json, sys
	total = json.load(open(sys.argv[1]))["total"]
	gaps = {why: n for why, n in total["gaps"].items() if n}
	print("note: %d instructions, gaps %s" % (total["instructions"], gaps or 0))
	sys.exit(total["instructions"] < 500e6 or sum(gaps.values()) > total["instructions"] / 10e6)
END
check 'in the guest' [ "$(count '^  call .* main => .* alpha.$')" = 2 ]

# Repeat the domain commands as printed, in the printed folder.
sed -n 's/^\$ \(cd .*\)/\1/p' "$said" | tail -n 1 >"$dir/again"
sed -n '/^\$ vmpt domain trace/,/^[^ $]/{s/^\$ //;p}' "$said" | sed '/[^\\]$/q' >>"$dir/again"
echo 'vmpt vms trace; rm -r "$root"' >>"$dir/again"
check 'again: three lines or more' [ "$(wc -l <"$dir/again")" -gt 3 ]
(cd "$source" && bash -e "$dir/again") >"$said.again" 2>&1
check 'again' [ $? = 0 ]
check 'again: two guests' [ "$(grep -c 'shut down$' "$said.again")" = 2 ]
check 'again: who ran' grep -q '^host ' "$said.again"

if [ $failures = 0 ]; then
	rm -rf "$dir" "$said"*
else
	cat "$said"
fi
finish
