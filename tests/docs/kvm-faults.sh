#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# docs/kvm-faults.md ($1/docs) has a line for each of D1 to D29, and each test that it names,
# `test-FILE` NAME, NAME, is in tests/arch or tests/vmm-lib; `ROOM/test-FILE` in a room.
set -u
cd "$1" || exit
page=docs/kvm-faults.md
# shellcheck source=tests/lib.sh
. tests/lib.sh

for n in {1..29}; do
	check "a line for D$n" [ "$(grep -c "^| D$n |" "$page")" = 1 ]
done

# One "file test" a line, from the last column.
grep '^| \(D[0-9]\|6\.12\)' "$page" | sed 's/.*| \(.*\) |$/\1/' | tr ',' '\n' | awk '
	{ for (i = 1; i <= NF; i++)
		if ($i ~ /^`([a-z]+\/)?test-/) { gsub("`", "", $i); file = $i }
		else if ($i != "–") print file, $i }' >"$2"
check 'as many tests as faults' [ "$(wc -l <"$2")" -ge 29 ]
while read -r file test; do
	code=$(ls "tests/arch/$file.c" "tests/vmm-lib/$file.c" 2>/dev/null)
	check "$file.c is there" [ -n "$code" ] || continue
	check "$code has test $test" grep -q "^START_TEST($test)" "$code"
	check "$code runs $test" grep -q "tcase_add.*[( ,]${test}[,)]" "$code"
done <"$2"
finish
