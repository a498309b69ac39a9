#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Run a suite, and keep the documents that its commands print in FOLDER, for test-json.py; the file
# "done" says that all of them are there.
#
#	keep-json.sh FOLDER PROGRAM SUITE
set -u

rm -rf "$1"
mkdir -p "$1"
VMPT_KEEP_JSON=$1 "$2" "$3" || exit
: >"$1/done"
