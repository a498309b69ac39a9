#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The example VMM ($1) runs, and prints what the guide ($2) shows after "./NAME".
set -u

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
name=$(basename "$1")
shown=$(sed -n '/^    \$ \.\/'"$name"'$/,/^[^ ]/s/^    //p' "$2" | sed 1d)
check "the guide shows its output" [ -n "$shown" ]
got=$("$1") || rc=$?
check "it runs" [ $rc = 0 ]
check "it prints what the guide shows" [ "$got" = "$shown" ]
finish
