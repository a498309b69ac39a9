#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# For "make soak": the project builds for arm64 on a bare Debian 13, and the decoder's tests pass
# there under qemu-user.
set -uo pipefail
top=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
# shellcheck source=tests/lib.sh
. "$top/tests/lib.sh"
. "$top/tests/soak.sh"

soak_takes
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$top/scripts/try-release" --foreign arm64 trixie tests/platforms/arm64-inside 2>&1 | tee "$out" | sed 's/^/| /'
rc=${PIPESTATUS[0]}
[ $rc != 77 ] || skip "$(sed -n 's/^skipped: //p' "$out")"
check 'it is built' [ $rc = 0 ]
echo "note: arm64: $(tail -n 1 "$out")"
check 'its tests pass' grep -qE '^[1-9][0-9]* passed, 0 failed, ' "$out"
finish
