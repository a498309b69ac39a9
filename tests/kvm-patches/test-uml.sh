#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The KUnit suites of pt_core in a kernel: User Mode Linux with the series. All cases in the sources
# must run and pass; with the word 7.x, in the newer kernel. Part of "make soak": the first run
# builds the kernel.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/vmpt-uml.XXXXXX")
trap 'rm -rf "$work"' EXIT

# shellcheck source=tests/lib.sh
. "$here/../lib.sh"
# shellcheck source=tests/soak.sh
. "$here/../soak.sh"
soak_takes
status=0
out=$("$here/uml" "$@") || status=$?
[ $status = 0 ] || { echo "$out" && exit $status; }

# The number of cases in the sources.
cases=$(grep -oh 'KUNIT_CASE(\w*)' "$here"/../../kvm-patches/pt_core/*_test.c | wc -l)
# Linux 7.x runs them only with kunit.autorun.
within 100 "$out"/linux mem=64M kunit_shutdown=halt kunit.autorun=1 \
	>"$work/log" 2>&1 </dev/null || true
# Subtests are indented by four columns.
passed=$(grep -cE '(^|[[:space:]])    ok [0-9]+ [a-z_0-9]+\s*$' "$work/log" || true)
suites=$(grep -cE '(^|[] ])ok [0-9]+ kvm-pt-core(-output)?\s*$' "$work/log" || true)
bad=$(grep -cE 'not ok|WARNING|BUG|Kernel panic' "$work/log" || true)
checks=$cases failures=$((cases - passed))
check 'there are cases' [ "$cases" -ge 20 ] || true
check 'both suites pass' [ "$suites" = 2 ] || true
check 'no other failure, no warning' [ "$bad" = 0 ] || true
[ $failures = 0 ] || { tail -n 80 "$work/log" && echo "of $cases cases $passed passed"; }
finish
