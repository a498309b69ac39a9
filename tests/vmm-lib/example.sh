#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The example VMM ($1) runs, and prints what the guide ($2) shows after "./NAME"; the same with each
# further argument.
set -u

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
name=$(basename "$1")
shown=$(sed -n '/^    \$ \.\/'"$name"'$/,/^[^ ]/s/^    //p' "$2" | sed 1d)
check "the guide shows its output" [ -n "$shown" ]
for mode in '' "${@:3}"; do
	rc=0
	got=$("$1" ${mode:+"$mode"}) || rc=$?
	check "it runs $mode" [ $rc = 0 ]
	check "it prints what the guide shows $mode" [ "$got" = "$shown" ]
done
finish
