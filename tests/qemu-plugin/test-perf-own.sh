#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The guest view under tests that others wrote: perf's own test for Intel PT, from the package
# linux-source of the installed perf's release, in a guest; and the ways in which LTP's pt_test
# traces, in a small program of our own. The result of each case is kept in OUT/cases: its name, then
# ok, "skip: why" or "fail: why".
#
#	test-perf-own.sh SOURCE PLUGIN VMPT OUT
#
# perf's script runs as it is but for two things: it prints each case's result, and waits longer for
# processes than the 5 s that a busy machine exceeds. The guest has no C compiler: the programs in the
# script are compiled here.
set -u

source=$(realpath "$1")
plugin=$(realpath "$2")
vmpt=$(realpath "$3")
out=$4
here=$source/tests/qemu-plugin

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
# shellcheck source=tests/soak.sh
. "$source/tests/soak.sh"
soak_takes
need perf cpio gcc dash awk find taskset
mkdir -p "$out"
cd "$out" || exit 1
export LC_ALL=C
rm -rf guest areas root cases

show()
{
	[ ! -e guest/serial.log ] || tail -n 30 guest/serial.log guest/stderr.log
}

# ---- perf's script, unpacked once per version of the package ----

release=$(perf --version | sed -n 's/^perf version \([0-9]*\.[0-9]*\).*/\1/p')
package=linux-source-$release
tarball=${VMPT_PERF_TARBALL:-/usr/src/$package.tar.xz}
[ -r "$tarball" ] || skip "the package $package with perf's own test is not installed"
version=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null) ||
	version=$(stat -L -c %s.%Y "$tarball")
cache=${XDG_CACHE_HOME:-${HOME:-$PWD}/.cache}/vmpt
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cache=$PWD
perf=$cache/perf-test_${package}_$version
if ! [ -d "$perf" ]; then
	echo "unpacking three files of $tarball"
	new=$(mktemp -d "$cache/new.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	xz -dc -T2 "$tarball" | tar -x -f - -C "$new" --strip-components=3 \
		"$package/tools/perf/tests/shell/test_intel_pt.sh" \
		"$package/tools/perf/tests/shell/lib/waiting.sh" \
		"$package/tools/perf/util/jitdump.h" ||
		skip "$tarball has no test_intel_pt.sh"
	mv -T "$new" "$perf" 2>/dev/null || [ -d "$perf" ]
fi

# ---- the guest ----

mkdir -p root/perf root/tools root/usr/bin
cp -r "$perf/tests" "$perf/util" root/perf/
sed -i 's/tm_out=50/tm_out=6000/' root/perf/tests/shell/lib/waiting.sh
sed -i '/^count_result()/,/^}/s/^{$/{\n\techo "vmpt: result $1"/' root/perf/tests/shell/test_intel_pt.sh
check "perf's script prints its results" \
	grep -q 'vmpt: result' root/perf/tests/shell/test_intel_pt.sh

# The C programs, each between a line with the compiler and the end of its text.
awk '/\/usr\/bin\/cc -o/ { n++; on = 1; next }
	/^[ \t]*_end_of_file_$/ { on = 0 }
	on { print >"program" n ".c" }' "$perf/tests/shell/test_intel_pt.sh"
i=0
for program in workload jitdump; do
	i=$((i + 1))
	rc=0
	gcc -w -O1 -static -pthread -I "$perf/util" -o root/tools/$program program$i.c || rc=$?
	check "perf's $program compiles" [ $rc = 0 ]
done
gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -static -o root/tools/guest-modes \
	"$here/guest-modes.c" || check 'guest-modes compiles' false
# In place of the compiler: jitdump's is the one with an include folder.
cat >root/usr/bin/cc <<'END'
#!/bin/sh
program=workload
while [ $# -gt 0 ]; do
	case $1 in
	-o) out=$2 && shift ;;
	-I) program=jitdump && shift ;;
	esac
	shift
done
cat >/dev/null
cp /tools/$program "$out"
END
chmod +x root/usr/bin/cc

# GNU's tools with their libraries, and what Python loads when perf starts it.
for tool in awk cat dash date find grep realpath taskset uname; do
	cp -L "$(command -v $tool)" root/tools/
done
while read -r library; do
	mkdir -p "root${library%/*}"
	cp -L "$library" "root$library"
done < <(ldd root/tools/* 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | sort -u)
stdlib=/usr/lib/$(ldd "$(readlink -f "$(command -v perf)")" |
	sed -n 's/.*lib\(python[0-9]*\.[0-9]*\)\.so.*/\1/p' | head -n 1)
if [ -e "$stdlib/os.py" ]; then
	mkdir -p "root$stdlib"
	cp -rL "$stdlib"/*.py "$stdlib"/{encodings,collections,importlib,re*} "root$stdlib/"
	find "root$stdlib" -name __pycache__ -prune -exec rm -rf {} +
fi

overlay=()
for folder in root/*; do
	overlay+=(--file "${folder#root/}=$folder")
done
"$source/tests/guests/boot" --out guest --file "test=$here/guest-perf-own" "${overlay[@]}" \
	--smp 2 --memory 1024 --plugin "$plugin,guest-view=1,pt=full,counters=count" perf \
	>boot.log 2>&1
rc=$?
[ $rc != 77 ] || { cat boot.log && exit 77; }
check 'the guest ends with 0' [ $rc = 0 ]
tr -d '\r' <guest/serial.log >serial

# ---- the results of perf's script ----

# Each must be ok, except those that cannot run here: for the reason given.
awk '/^--- Test / { name = $0; gsub(/^--- Test |[ ]*---$/, "", name); why = "" }
	/^SKIP: |so skipping$|^Failed |^Decode failed|did not |does not have |exited/ { why = $0 }
	/^vmpt: result / {
		print "perf: " name ": " ($3 == 0 ? "ok" : ($3 == 2 ? "skip: " : "fail: ") why)
	}' serial >cases
cat cases
cases=$(grep -c '' cases)
check 'all cases of the script ran' [ "$cases" = "$(grep -c '^test_[a-z_]*.*count_result' \
	"$perf/tests/shell/test_intel_pt.sh")" ]
check 'and at least those of Linux 6.1' [ "$cases" -ge 13 ]
while IFS= read -r line; do
	case $line in
	# Not offered by the guest view: docs/qemu-plugin/guest-view.md.
	'perf: power events: skip: '* | 'perf: with event_trace: skip: '*) ;;
	# perf was built without Python.
	'perf: virtual LBR: skip: SKIP: python'*) skip_part "perf's virtual LBR: ${line##*: }" ;;
	*) check "$line" [ "${line##*: }" = ok ] ;;
	esac
done <cases

# ---- ways to trace ----

# The full IPs of packets in area $1.
ips()
{
	"$vmpt" dump -q --no-bytes --kinds=ip "guest/files/areas/$1" | grep -o ' 0x[0-9a-f]*'
}

# A number of guest-modes' line for area $1.
number()
{
	sed -n "s/^mode: $1 .*\\b$2=\\([0-9]*\\).*/\\1/p" serial
}

# Case $1, for cases: the checks of it that follow fail or not.
case_begins()
{
	name=$1 before=$failures
}

case_ends()
{
	[ $failures = $before ] && echo "$name: ok" >>cases || echo "$name: fail" >>cases
}

for area in {full,snapshot}-{u,k,uk}-{branch,nobranch}-256 {full,snapshot}-uk-branch-{1,2,4,16}; do
	IFS=- read -r mode level branch pages <<<"$area"
	case_begins "$area"
	head=$(number "$area" head) flags=$(number "$area" flags)
	check 'something was written' [ "${head:-0}" -gt 16 ]
	rc=0
	"$vmpt" stat -q --json "guest/files/areas/$area" >stat.json 2>stat.err || rc=$?
	# A snapshot begins with zeros or a part of a packet, a full area may end with one.
	losses=$(sed -n 's/^    "loss_count": \([0-9]*\).*/\1/p' stat.json)
	cut=$([ "$mode-$pages" = full-256 ] && echo 0 || echo 1)
	check 'can be read' [ $rc = 0 -o $rc = 3 -a "$cut" = 1 ]
	check 'nothing is lost inside' [ "${losses:-2}" -le "$cut" ]
	kinds=$("$vmpt" dump -q --no-bytes --kinds=psb,tnt,fup,tip,tip.pge,tip.pgd \
		"guest/files/areas/$area" | awk 'NR > 1 { print $3 }' | sort -u | paste -s -d ' ')
	check 'has a PSB' grep -qw PSB <<<"$kinds"
	if [ "$branch" = branch ]; then
		check 'has branches' grep -qwE 'TNT|TNT-8|TNT-64' <<<"$kinds"
	else
		check 'has nothing else' [ "$kinds" = PSB ]
	fi
	# 1: PERF_AUX_FLAG_TRUNCATED, 2: PERF_AUX_FLAG_OVERWRITE
	if [ "$mode" = snapshot ]; then
		check 'is marked as overwritten' [ "$flags" = 2 ]
		oldest=$(head -c 64 "guest/files/areas/$area" | tr -d '\0' | wc -c)
		check 'begins with zeros, or wrapped' [ $((oldest > 0)) = $((pages < 256)) ]
	elif [ "$pages" = 256 ]; then
		check 'is not cut' [ "$flags" = 0 ]
		check 'records have all bytes' [ "$(number "$area" bytes)" = "$head" ]
	else
		check 'is cut, and marked so' [ "$flags" = 1 ]
		check 'fills the area' [ "$head" -le $((pages * 4096)) ]
	fi
	if [ "$branch" = branch ]; then
		user=$(ips "$area" | grep -vc ' 0xffff') kernel=$(ips "$area" | grep -c ' 0xffff')
		check 'user code as asked' [ "$([ "$user" -gt 0 ] && echo u)$([ "$kernel" -gt 0 ] &&
			echo k)" = "$level" ]
	fi
	case_ends
done

finish
