#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The caches of the PC's tests do not grow: keep-newest by itself, then which old folders build,
# build-kernel and run keep. They get a cache of their own with links into the user's, so that
# little is built.
#
#	test-cache.sh SOURCE OUT
set -u

source=$1
out=$2
cache=$out/cache/vmpt
user=${XDG_CACHE_HOME:-${HOME:?}/.cache}/vmpt

show()
{
	ls "$cache"
}

# Make folders $1_1 to $1_6, 1 to 6 days old.
old()
{
	local i

	for i in 1 2 3 4 5 6; do
		mkdir -p "$cache/$1_$i"
		touch -d "$i days ago" "$cache/$1_$i"
	done
}

# Do exactly the folders $1_$2 to $1_$3 remain?
remain()
{
	local i

	for i in 1 2 3 4 5 6; do
		if [ "$i" -ge "$2" ] && [ "$i" -le "$3" ]; then
			[ -d "$cache/$1_$i" ] || return
		else
			[ ! -d "$cache/$1_$i" ] || return
		fi
	done
}

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
rm -rf "$out"
mkdir -p "$cache"

old a
old b
"$source/tests/bochs/keep-newest" "$cache" 'a_*' 3
check 'the newest 3 stay' remain a 1 3
check 'those with another name stay' remain b 1 6
touch -d '50 minutes ago' "$cache"/b_{1,2,3,4,5}
"$source/tests/bochs/keep-newest" "$cache" 'b_*' 3
check 'those of the last hour stay' remain b 1 5
rm -rf "$cache"/[ab]_*

for what in "$source/bochs/build" "$source/tests/bochs/build-kernel"; do
	printed=$("$what" 2>"$out/build.log") || {
		rc=$?
		echo "$printed"
		[ $rc = 77 ] || cat "$out/build.log"
		exit $rc
	}
	cp -al "$printed" "$cache/" || exit
done
# The busybox, and what the PC is linked from.
for name in "$user"/guest-* "$user"/bochs-base_*; do
	ln -s "$name" "$cache/"
done
old bochs-image
old bochs-kernel
old bochs-kernel-tree
old bochs-run
said=$(XDG_CACHE_HOME=$out/cache "$source/tests/bochs/run" hello 2>&1)
check 'the job runs' [ $? = 0 ] || echo "$said"
folder=$(tail -n 1 <<<"$said")
check 'the output is in the cache' [ -d "$folder/files" ] && [[ $folder = "$cache"/bochs-run_* ]]
check 'of images 3 stay' remain bochs-image 1 2
check 'of kernels 12 stay' remain bochs-kernel 1 6
check "of kernels' trees 3 stay" remain bochs-kernel-tree 1 3
check 'of runs 3 stay' remain bochs-run 1 2
rm -rf "$cache"

finish
