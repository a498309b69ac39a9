#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The runner itself: whatever a check does, it is reported with its name and the others count.
#
#	test-runner.sh ROOT PROGRAM SANITIZED
#
# PROGRAM is test-runner.c; SANITIZED is "true" where it is built with the address sanitizer.
set -uo pipefail

root=$1
program=$2
sanitized=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# shellcheck source=tests/lib.sh
. "$root/tests/lib.sh"

# Run the program as the runner does while its second check does $1; its output and the summary's
# are in $dir/$1.
run()
{
	local does=$1 status=0 cpu='' hang=''

	[ "$does" != loop ] || cpu=1
	[ "$does" != hang ] || hang=1
	RUNNER_DOES=$does VMPT_CPU_LIMIT=$cpu VMPT_HANG_LIMIT=$hang python3 "$root/tests/support/limited" \
		"$program" >"$dir/$does.out" 2>"$dir/$does.err" || status=$?
	python3 - "$dir/$does" $status <<-'END'
		import json, sys
		base, status = sys.argv[1], int(sys.argv[2])
		log = {"name": "program", "duration": 1.0, "result": "FAIL" if status else "OK"}
		for stream, end in (("stdout", "out"), ("stderr", "err")):
		    with open(f"{base}.{end}", encoding="utf-8", errors="replace") as f:
		        log[stream] = f.read()
		with open(base + ".json", "w", encoding="utf-8") as f:
		    json.dump(log, f)
	END
	: >"$dir/$does.results"
	VERBOSE=1 "$root/scripts/test-summary" log self "$dir/$does.json" "$dir/$does.results" \
		>"$dir/$does"
	"$root/scripts/test-summary" total "$dir/$does.results" >>"$dir/$does"
}

# The output for $1 must have a matching line for each of the patterns that follow.
says()
{
	local pattern
	name=$1
	shift

	for pattern; do
		check "a line \"$pattern\"" grep -q -- "$pattern" "$dir/$name"
	done
}

show()
{
	sed 's/^/  | /' "$dir/$name"
}

run_all()
{
	local does

	for does; do
		run "$does" &
	done
	wait
}

export VMPT_ONE_PROCESS=1
# The other cases behave the same without sanitizers, which is faster.
if [ "$sanitized" = true ]; then
	run_all overflow leak
	says overflow 'heap-buffer-overflow' 'the_bad_one:.*exit' '^2 passed, 1 failed, 0 skipped$'
	says leak 'LeakSanitizer' 'the_bad_one:.*exit' '^2 passed, 1 failed, 0 skipped$'
else
	run_all hang loop fail crash skip lean
	says fail 'runner:the_bad_one:.*as wanted' 'FAIL  program' '^2 passed, 1 failed, 0 skipped$'
	says crash 'runner:the_bad_one:.*signal\|the_bad_one:.*exit' '^2 passed, 1 failed, 0 skipped$'
	says hang 'limited: no progress' 'the_bad_one:.*signal 6' '^2 passed, 1 failed, 0 skipped$'
	says loop 'the_bad_one:.*signal 24' '^2 passed, 1 failed, 0 skipped$'
	says skip '^2 passed, 0 failed, 1 skipped$'
	# Only in one process, after another check: a failure all the same.
	says lean 'each check passes alone' 'FAIL  program' '1 failed, 0 skipped$'
	unset VMPT_ONE_PROCESS
	run_all fail crash skip lean
	says fail 'runner:the_bad_one:.*as wanted' 'FAIL  program' '^2 passed, 1 failed, 0 skipped$'
	says crash 'the_bad_one:.*\(signal\|exit\)' '^2 passed, 1 failed, 0 skipped$'
	says skip '^2 passed, 0 failed, 1 skipped$'
	says lean '^3 passed, 0 failed, 0 skipped$'
fi
finish
