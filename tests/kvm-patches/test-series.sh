#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The patches of each series have what kvm-patches/pt_core/generate now makes from the sources, and
# the series for the newer kernel follows 7.x/plan: a patch of its own replaces one of 6.12 that has
# not changed since, a patch that is taken is in both, in the plan's order.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
patches=$root/kvm-patches
# shellcheck source=tests/lib.sh
. "$root/tests/lib.sh"

"$patches/pt_core/update" --check "$patches/6.12" "$patches/7.x"

wrong()
{
	failures=$((failures + 1))
	echo "7.x/plan: $*"
}

# The file of series $1 that is called $2.
file_of()
{
	grep -E "^[0-9]+-$(printf '%s' "$2" | sed 's/[.]/[.]/g')\.patch$" "$patches/$1/series" || true
}

planned=()
while read -r how title id; do
	checks=$((checks + 1))
	old=$(file_of 6.12 "$title") new=$(file_of 7.x "$title")
	case $how in
	take) [ -n "$old" ] && [ -n "$new" ] || wrong "$title is not in both series" ;;
	leave) [ -n "$old" ] && [ -z "$new" ] || wrong "$title is not only in 6.12" ;;
	own)
		if [ -z "$new" ]; then
			wrong "$title is not in 7.x"
		elif [ "$id" = - ]; then
			[ -z "$old" ] || wrong "$title is in 6.12, too"
		elif [ -z "$old" ] || [ "$("$patches/port" --id "$patches/6.12/$old")" != "$id" ]; then
			wrong "$title of 6.12 has changed since that of 7.x was made"
		fi
		;;
	*) wrong "unknown word $how" ;;
	esac
	[ "$how" = leave ] || planned+=("$title")
done <"$patches/7.x/plan"
checks=$((checks + 1))
diff <(printf '%s\n' "${planned[@]}") <(sed 's/^[0-9]*-//; s/\.patch$//' "$patches/7.x/series") ||
	wrong 'the series differs from the plan, or its order does'
finish
