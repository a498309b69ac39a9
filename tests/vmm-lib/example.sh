#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The example VMM ($1) runs, and prints what the guide ($2) shows after "./NAME".
set -eu

name=$(basename "$1")
shown=$(sed -n '/^    \$ \.\/'"$name"'$/,/^[^ ]/s/^    //p' "$2" | sed 1d)
[ -n "$shown" ] || { echo "no output of $name in $2"; exit 1; }
got=$("$1")
if [ "$shown" != "$got" ]; then
	echo "the guide shows another output than the example prints:"
	echo "$got"
	exit 1
fi
