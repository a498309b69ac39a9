#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The HTML page in a real browser: test-page-browser.sh PAGE-MAKE FOLDER. Screenshots stay in FOLDER.
set -eu

make=$1 dir=$2
here=$(dirname "$0")

chromium=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$chromium" ]; then
	echo "skipped: no chromium here: make deps, or apt-get install chromium"
	exit 77
fi
mkdir -p "$dir"
rm -f "$dir"/*.png
"$make" "$dir/small.html" 3000 >"$dir/small.txt"
"$make" "$dir/large.html" 200000 10000 >"$dir/large.txt"
PYTHONDONTWRITEBYTECODE=1 exec python3 "$here/page_test.py" "$chromium" "$dir"
