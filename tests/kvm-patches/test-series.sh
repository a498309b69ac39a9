#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The patches of each series have what kvm-patches/pt_core/generate makes of the sources now.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
folders=()

for series in "$root"/kvm-patches/*/series; do
	[ ! -e "$series" ] || folders+=("$(dirname "$series")")
done
[ ${#folders[@]} -gt 0 ] || {
	echo "skipped: no series in kvm-patches/"
	exit 77
}
"$root/kvm-patches/pt_core/update" --check "${folders[@]}"
