#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Run a libFuzzer target on its kept corpus, then for VMPT_FUZZ_SECONDS (5; 0: only the corpus). New
# inputs are not added to the source tree; one that crashes is left in the current folder as
# crash-….
#
#   run-fuzz.sh TARGET CORPUS
set -eu

target=$1
corpus=$2
seconds=${VMPT_FUZZ_SECONDS:-5}

new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
limit="-max_total_time=$seconds"
[ "$seconds" != 0 ] || limit=-runs=0
# libFuzzer's own status for a crash, 77, would read as "skipped".
"$target" "$limit" -timeout=100 -rss_limit_mb=2048 -error_exitcode=1 \
	-print_final_stats=1 "$new" "$corpus"
