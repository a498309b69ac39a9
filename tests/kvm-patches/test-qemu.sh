#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The patches to QEMU apply to its source, are clean and compile (kvm-patches/qemu/check). Part of
# "make soak": the first run fetches the source.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
patches=$here/../../kvm-patches/qemu
# shellcheck source=tests/lib.sh
. "$here/../lib.sh"
# shellcheck source=tests/soak.sh
. "$here/../soak.sh"
soak_takes
status=0
"$patches/check" || status=$?
[ $status != 77 ] || exit 77
checks=$(find "$patches" -name '*.patch' | wc -l)
failures=$((status ? checks : 0))
finish
