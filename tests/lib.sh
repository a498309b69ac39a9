# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Shared by the shell tests: checks and their count, skips, limits that a busy machine does not
# trip, a QEMU. To be sourced; folders with several tests have a lib.sh of their own for their
# topic.

# A test sets $rc to the status of what it ran, and $name if it runs several things.
failures=0 checks=0 rc=0 name=''

# Skip this test: it cannot run here, and why.
skip()
{
	echo "skipped: $*"
	exit 77
}

# So cannot this part of it, which counts as one check.
skip_part()
{
	echo "skipped: $*"
	checks=$((checks + 1))
}

# Programs that the test needs.
need()
{
	local tool

	for tool; do
		command -v "$tool" >/dev/null || skip "no $tool: make deps"
	done
}

# check WHAT COMMAND...: the command must succeed. If it fails, the test's function show, if it has
# one, prints details.
check()
{
	local what=$1

	shift
	checks=$((checks + 1))
	"$@" && return
	failures=$((failures + 1))
	echo "${name:+$name: }$what: fails: $*; rc $rc"
	! declare -F show >/dev/null || show
	return 1
}

# check_log WHAT FILE COMMAND...: the same; on failure it prints the end of FILE.
check_log()
{
	check "$1" "${@:3}" || { tail -n 30 "$2" && false; }
}

not()
{
	! "$@"
}

# Check's own line, which scripts/test-summary reads; ends the test.
finish()
{
	echo "$((checks ? 100 * (checks - failures) / checks : 0))%:" \
		"Checks: $checks, Failures: $failures, Errors: 0"
	[ $failures = 0 ] && [ $checks != 0 ]
	exit
}

# within SECONDS COMMAND...: COMMAND may take that much CPU time. The wall-clock limit is twenty
# times as long: it ends one that sleeps forever, not one that waits for a busy machine. Status 124
# or 137.
within()
{
	local seconds=$1

	shift
	(ulimit -t "$seconds" && exec timeout -k 10 $((20 * seconds)) "$@")
}

# wait_for COMMAND...: until it succeeds. Fails after five minutes.
wait_for()
{
	local end=$((SECONDS + 300))

	until "$@"; do
		[ $SECONDS -lt $end ] || return
		sleep 0.1
	done
}

# Set $qemu to a QEMU that accepts the plugin, or skip the test. $source: the tree.
get_qemu()
{
	local log said status=0

	log=$(mktemp)
	qemu=$("$source/scripts/get-qemu" 2>"$log") || status=$?
	said=$(sed 's/^get-qemu: //' "$log" | paste -s -d '|' | sed 's/|/; /g')
	rm -f "$log"
	[ $status = 0 ] || skip "$said"
}
