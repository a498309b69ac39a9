#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# vmpt perfetto by an independent reader: test-perfetto.sh MAKE VMPT TRACEGEN PROTO
set -eu

make=$1 vmpt=$2 tracegen=$3 proto=$4
here=$(dirname "$0")

# shellcheck source=tests/lib.sh
. "$here/../../lib.sh"
command -v protoc >/dev/null || skip 'no protoc here: make deps, or apt-get install protobuf-compiler'
for python in python3 /usr/bin/python3 ''; do
	[ -z "$python" ] || ! "$python" -c 'import google.protobuf' 2>/dev/null || break
done
[ -n "$python" ] || skip 'no google.protobuf here: make deps, or apt-get install python3-protobuf'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
protoc --proto_path="$(dirname "$proto")" --python_out="$dir" "$proto"
PYTHONDONTWRITEBYTECODE=1 "$python" "$here/test_perfetto.py" "$dir" "$make" "$vmpt" "$tracegen" \
	"$here/../../tracegen/scripts/demo.trace"
