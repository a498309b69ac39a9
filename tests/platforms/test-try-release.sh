#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# For "make soak": the README's two commands on a bare Debian, another release each time. Only the
# system is bare: this machine's caches are used.
set -uo pipefail
top=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
# shellcheck source=tests/lib.sh
. "$top/tests/lib.sh"
. "$top/tests/soak.sh"

soak_takes
cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/vmpt
# The release tried longest ago, or never.
release=$(for name in trixie bookworm; do
	echo "$(stat -c %Y "$cache/tried-$name" 2>/dev/null || echo 0) $name"
done | sort -s -n -k 1,1 | sed -n '1s/.* //p')
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$top/scripts/try-release" --cache "$release" 2>&1 | tee "$out" | sed 's/^/| /'
rc=${PIPESTATUS[0]}
[ $rc != 77 ] || skip "$(sed -n 's/^skipped: //p' "$out")"
touch "$cache/tried-$release"
check "$release: make demo and make test" [ $rc = 0 ]
echo "note: $release: $(tail -n 1 "$out")"
check "$release: all tests pass" \
	grep -qE '^[1-9][0-9]* passed, 0 failed, [0-9]+ skipped$' <(tail -n 1 "$out")
finish
