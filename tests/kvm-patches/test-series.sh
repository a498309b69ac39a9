#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The patches of each series have what kvm-patches/pt_core/generate makes of the sources now.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
"$root/kvm-patches/pt_core/update" --check "$root/kvm-patches/6.12" "$root/kvm-patches/7.x"
