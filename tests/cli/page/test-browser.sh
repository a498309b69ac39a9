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
"$make" "$dir/many.html" 3000 160000 16 60 40 >"$dir/many.txt"
"$make" "$dir/two.html" 2000 160000 1 2 2 >"$dir/two.txt"
"$tracegen" -o "$dir/demo.pt" --truth "$dir/demo.json" --no-packets \
	--code "$dir/code" "$here/../../tracegen/scripts/demo.trace"
code=()
while read -r base _ owner vmcs file; do
	[ "$owner" != host ] || vmcs=0xhost
	code+=("--flame-code=${vmcs#0x}:$dir/code/$file@$base")
done <"$dir/code/index"
"$vmpt" timeline -q --tsc-khz 2000000 --html "$dir/demo.html" --flames "${code[@]}" "$dir"/demo.cpu*.pt
"$vmpt" timeline -q --html "$dir/ticks.html" "$dir"/demo.cpu*.pt
"$make" "$dir/wall.html" 200 160000 1 2 2 wall 1763816587250000000 >"$dir/wall.txt"
# Two VMs that take a CPU from each other.
cat >"$dir/fight.trace" <<'EOT'
set tsc=1 mtc=1 psb_every=4K event_en=1
host cr3=0x6c10000 ip=0xffffffff81000000
vm a vmcs=0x12f7a4000 cr3=0x1a2000 ip=0x401000
vm b vmcs=0x13b2c9000 cr3=0x5b7000 ip=0xffffffffa0000000
loop 60 {
	vmptrld a
	run 5
	loop 3 {
		enter a
		run 200
		exit io
		run 30
	}
	vmptrld b
	run 5
	loop 4 {
		enter b
		run 300
		exit hlt
		run 20
		enter b
		run 100
		exit cpuid
		run 20
	}
}
EOT
"$tracegen" -o "$dir/fight.pt" --no-packets "$dir/fight.trace"
"$vmpt" timeline -q --json --summary --tsc-khz 2000000 --html "$dir/fight.html" "$dir"/fight.pt \
	>"$dir/fight.json"
PYTHONDONTWRITEBYTECODE=1 exec python3 "$here/page_test.py" "$chromium" "$dir"
