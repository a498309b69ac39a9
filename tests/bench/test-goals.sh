#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# vmpt-bench --check fails where a goal is missed and names it; --help lists the inputs.
# Usage: test-goals.sh VMPT-BENCH
set -u
bench=$1
inputs=(synth synth-common two-vmcs mruby rtit rtit-cycles perf-default dense-psb ptwrite
	system-wide cyc pauses tight cyc-3 restarts)

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

show()
{
	tail -n 40 "$dir/out" "$dir/err"
}

# run OPTION...: one input in one round. 4 MiB: CPU time may be counted in milliseconds, and index +
# split may take none of them.
run()
{
	"$bench" --input cyc --size 4 --rounds 1 --json "$dir/json" "$@" >"$dir/out" 2>"$dir/err"
	rc=$?
}

# 1,000 times the goals: 2,500 times as fast as libipt, with 64 KiB.
run --check --goals 100000
check "a missed goal fails" [ $rc = 1 ]
for goal in "full iteration / libipt" "memory beyond the input, MiB"; do
	check "$goal is named" grep -qF "vmpt-bench: cyc: goal missed: $goal: " "$dir/err"
	check "$goal in the table" grep -q "goal: $goal .* MISSED" "$dir/out"
done
check "the JSON has the results" grep -q '"met": false' "$dir/json"

run --goals 100000
check "without --check it does not" [ $rc = 0 ]

# 1/1,000 of them
run --check --goals 1
check "goals that are met" [ $rc = 0 ]
check "goals that are met are not named" [ ! -s "$dir/err" ]

run --check --goals 0
check "no goals" [ $rc = 2 ]

listed=$("$bench" --help | sed -n '/^  --input/,/^  --quick/p' | sed '1d;$d' | tr -d ',' | xargs)
check "--help lists the inputs" [ "$listed" = "${inputs[*]}" ]
check "all are accepted" "$bench" "${inputs[@]/#/--input=}" --help >"$dir/out"
finish
