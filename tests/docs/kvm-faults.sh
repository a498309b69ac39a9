#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# docs/kvm-faults.md ($1/docs) has a line for each of D1 to D29, and each test that it names,
# `test-FILE` NAME, NAME, is in tests/arch or tests/vmm-lib; `ROOM/test-FILE` in a room.
set -eu
cd "$1"
page=docs/kvm-faults.md
status=0

n=1
while [ $n -le 29 ]; do
	[ "$(grep -c "^| D$n |" "$page")" = 1 ] || { echo "$page: not one line for D$n"; status=1; }
	n=$((n + 1))
done

# One "file test" a line, from the last column.
grep '^| \(D[0-9]\|6\.12\)' "$page" | sed 's/.*| \(.*\) |$/\1/' | tr ',' '\n' | awk '
	{ for (i = 1; i <= NF; i++)
		if ($i ~ /^`([a-z]+\/)?test-/) { gsub("`", "", $i); file = $i }
		else if ($i != "–") print file, $i }' >"$2"
[ "$(wc -l <"$2")" -ge 29 ] || { echo "$page: fewer tests than faults"; status=1; }
while read -r file name; do
	source=$(ls "tests/arch/$file.c" "tests/vmm-lib/$file.c" 2>/dev/null || true)
	if [ -z "$source" ]; then
		echo "$page: there is no $file.c"
		status=1
	elif ! grep -q "^START_TEST($name)" "$source"; then
		echo "$page: $source has no test $name"
		status=1
	elif ! grep -q "tcase_add.*[( ,]${name}[,)]" "$source"; then
		echo "$page: $source never runs $name"
		status=1
	fi
done <"$2"
exit $status
