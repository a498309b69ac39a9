#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The HTML page in a real browser, of made-up spans and of a generated trace. Screenshots stay in
# FOLDER: test-browser.sh PAGE-MAKE VMPT TRACEGEN FOLDER.
set -eu

make=$1 vmpt=$2 tracegen=$3 dir=$4
here=$(dirname "$0")

# shellcheck source=tests/lib.sh
. "$here/../../lib.sh"
chromium=$(command -v chromium || command -v chromium-browser) ||
	skip 'no chromium here: make deps, or apt-get install chromium'
mkdir -p "$dir"
rm -f "$dir"/*.png
"$make" "$dir/small.html" 3000 >"$dir/small.txt"
"$make" "$dir/large.html" 200000 10000 >"$dir/large.txt"
"$tracegen" -o "$dir/demo.pt" --truth "$dir/demo.json" --no-packets \
	"$here/../../tracegen/scripts/demo.trace"
"$vmpt" timeline -q --tsc-khz 2000000 --html "$dir/demo.html" "$dir"/demo.cpu*.pt
PYTHONDONTWRITEBYTECODE=1 exec python3 "$here/page_test.py" "$chromium" "$dir"
