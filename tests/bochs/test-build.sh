#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# bochs/build: what it makes, that nothing is made twice or left half-made, what its names depend
# on, and its error messages. Tests that would change the user's cache use one of their own.
#
#	test-build.sh SOURCE OUT
set -u

source=$1
out=$2
tree=$out/tree

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
rm -rf "$out"
mkdir -p "$out"

show()
{
	tail -n 40 "$out/stdout" "$out/stderr"
}

# Run bochs/build of folder $1 with the options that follow.
build()
{
	local dir=$1 start=${EPOCHREALTIME/./}
	shift
	rc=0
	"$dir/bochs/build" "$@" >"$out/stdout" 2>"$out/stderr" || rc=$?
	took=$(((${EPOCHREALTIME/./} - start) / 1000))
	made=$(cat "$out/stdout")
}

# Start a build in a session of its own, and return while it configures Bochs. What the build before
# it said is removed first: the shell that opens the files anew may run later than the first grep.
start_in_session()
{
	rm -f "$out/stdout" "$out/stderr"
	setsid "$tree/bochs/build" >"$out/stdout" 2>"$out/stderr" &
	group=$!
	wait_for grep -q -s 'configuring Bochs' "$out/stderr"
}

# A copy of the sources to make changes in, and the name of its result.
fresh_tree()
{
	rm -rf "$tree"
	mkdir "$tree"
	cp -r "$source/bochs" "$source/arch" "$source/model" "$tree/"
}

where()
{
	build "$tree" --where
	made=${made##*/}
}

# Both parts of a name.
base_of()
{
	local key=${1##*bochs_}

	echo "${key%-*}"
}

build "$source"
[ $rc != 77 ] || { cat "$out/stdout" && exit 77; }
[ $took -lt 2000 ] || echo "note: built in $((took / 1000)) s"
folder=$made
cache=${folder%/*}
check 'the first call' [ $rc = 0 ]
[ $rc = 0 ] || exit 1
check 'a line with a folder' [ "$(wc -l <"$out/stdout")" = 1 -a -d "$folder" ]
check 'a BIOS' [ "$(stat -c %s "$folder/BIOS-bochs-latest")" = 131072 ]
# An option ROM's header has its length in blocks of 512 bytes.
check 'a VGA BIOS' [ "$(od -An -t x1 -N 2 "$folder/vgabios.bin")" = ' 55 aa' ]
check 'a Bochs that runs' grep -q 'Bochs x86 Emulator 3.0' <("$folder/bochs" --help 2>&1)
check 'with several processors and VMX' \
	grep -q '^BX_SUPPORT_SMP 1 BX_SUPPORT_VMX 2$' <(
		sed -n 's/^#define \(BX_SUPPORT_\(SMP\|VMX\) [0-9]\)$/\1/p' \
			"$cache/bochs-base_$(base_of "$folder")/include/config.h" | sort | paste -s -d ' '
	)

build "$source" --print
check 'the second call: the same' [ "$rc $made" = "0 $folder" ]
check 'the second call: from the cache' [ ! -s "$out/stderr" ]
check "the second call: $took ms, less than 2 s" [ "$took" -lt 2000 ]

# What the names depend on.
fresh_tree
where
check 'not on where the tree is' [ "$made" = "${folder##*/}" ]
for file in bochs/instrument/port.cc arch/topa.h model/psb.c; do
	fresh_tree
	echo '/* changed */' >>"$tree/$file"
	where
	check "on $file" [ "$made" != "${folder##*/}" ]
	check "on $file, but Bochs's does not" [ "$(base_of "$made")" = "$(base_of "$folder")" ]
done
for file in bochs/instrument/instrument.h bochs/patches/"$(sed -n '$p' "$source/bochs/patches/series")"; do
	fresh_tree
	echo '/* changed */' >>"$tree/$file"
	where
	check "on $file, and Bochs's does" [ "$(base_of "$made")" != "$(base_of "$folder")" ]
done

# From here on with a cache of our own, which has the downloads and Bochs's part.
export XDG_CACHE_HOME=$out/cache
own=$XDG_CACHE_HOME/vmpt
mkdir -p "$own"
cp -r "$cache/bochs-files" "$cache/bochs-base_$(base_of "$folder")" "$own/"

# List finished and unfinished folders.
made_things()
{
	find "$own" -mindepth 1 -maxdepth 1 \( -name 'bochs_*' -o -name '.bochs-*' -o -name '*base*' \
		! -name "*_$(base_of "$folder")" \)
}

fresh_tree
echo 'extern const char vmpt_test_changed[]; const char vmpt_test_changed[] = "this was changed";' \
	>>"$tree/bochs/instrument/port.cc"
# The first call gets a find that fails, as if another call had removed the folder it was searching.
mkdir "$out/bin"
printf '#!/bin/sh\nexit 1\n' >"$out/bin/find"
chmod +x "$out/bin/find"
PATH=$out/bin:$PATH "$tree/bochs/build" >"$out/first" 2>"$out/first.log" &
first=$!
"$tree/bochs/build" >"$out/second" 2>"$out/second.log"
second=$?
wait $first
first=$?
build "$tree"
cat "$out/first.log" "$out/second.log" >>"$out/stderr" # shown where a check fails
check 'two at once: both succeed' [ "$first $(cat "$out/first") $second $(cat "$out/second")" = \
	"0 $made 0 $made" ]
check 'two at once: one compiled' [ "$(grep -c 'compiling the library' "$out/stderr")" = 1 ]
check 'a changed library: is in it' grep -q 'this was changed' "$made/bochs"
check 'a changed library: runs' grep -q 'Bochs x86 Emulator 3.0' <("$made/bochs" --help 2>&1)
check 'a changed library: nothing left beside it' [ "$(made_things)" = "$made" ]
rm -rf "$own"/bochs_*

echo 'this is not C' >>"$tree/model/psb.c"
build "$tree"
check 'an error in the library: fails' [ $rc = 1 ]
check 'an error in the library: is shown' grep -q 'model/psb.c:[0-9:]* error' "$out/stderr"
check 'an error in the library: nothing is made' [ -z "$(made_things)" ]

fresh_tree
if command -v clang++ >/dev/null; then
	build "$tree" --clang
	check 'clang: no errors' [ $rc = 0 ]
	# gcc does not warn about this.
	echo 'static inline int vmpt_test_unused(void) { return 1; }' >>"$tree/bochs/instrument/port.cc"
	build "$tree" --clang
	check 'clang: fails' [ $rc = 1 ]
	check 'clang: says why' grep -q 'port.cc:.*vmpt_test_unused' "$out/stderr"
	rm -rf "$own"/bochs_*
fi

# Patches. Lines of Bochs's README, the first of which differs from the patch's context.
fresh_tree
mkdir -p "$out/bochs/b"
tar -x -J -f "$own"/bochs-files/bochs_3.0*.tar.xz -C "$out/bochs" --strip-components=1
sed '5s/$/ (changed)/' "$out/bochs/README" >"$out/bochs/b/README"
(cd "$out/bochs" && diff -u README b/README | sed '1s/ / a\//') >"$tree/bochs/patches/loose.patch"
sed -i '/^@@/{n;s/^ .*/ not the line/}' "$tree/bochs/patches/loose.patch"
check 'patches: one applies with fuzz' patch -d "$out/bochs" -p1 -s --dry-run \
	-i "$tree/bochs/patches/loose.patch"
echo loose.patch >>"$tree/bochs/patches/series"
build "$tree"
check 'patches: it is refused' [ $rc = 1 ]
check 'patches: it is named' grep -q 'loose.patch does not apply to bochs_3.0' "$out/stderr"
check 'patches: nothing is made' [ -z "$(made_things)" ]

# Interrupt it, in a session of its own, while it configures Bochs.
fresh_tree
echo '/* changed */' >>"$tree/bochs/instrument/instrument.h"
start_in_session
check 'interrupted: was running' grep -q configuring "$out/stderr"
check 'interrupted: has a folder' [ -n "$(made_things)" ]
kill -TERM -- -$group
rc=0
wait $group || rc=$?
check 'interrupted: says so' [ $rc = 143 ]
check 'interrupted: nothing is left' [ -z "$(made_things)" ]

# Kill it while it does, then call it again: of the older folders only the one whose builder is
# still running stays.
start_in_session
{
	kill -KILL -- -$group
	wait $group
} 2>/dev/null
left=$(made_things)
check 'killed: something is left' [ -n "$left" ]
mkdir "$own"/.bochs-{atwork,ayoung,image-abcdef,kernel-abcdef,kernel-atwork}
touch -d '11 minutes ago' "$left" "$own"/.bochs-{atwork,kernel-atwork}
touch -d '11 hours ago' "$own"/.bochs-{image,kernel}-abcdef
exec 7<"$own/.bochs-atwork"
flock 7
fresh_tree
build "$tree"
check 'killed: another call does its work' [ $rc = 0 ]
check 'killed: and tidies' [ ! -e "$left" ]
check "killed: the tests' too" [ "$(cd "$own" && echo .bochs-{image,kernel}-*)" = \
	'.bochs-image-* .bochs-kernel-atwork' ]
check 'killed: not that of a running builder' [ -e "$own/.bochs-atwork" ]
check 'killed: nor a young one' [ -e "$own/.bochs-ayoung" ]
exec 7<&-
rm -rf "$own"/.bochs-{atwork,ayoung,kernel-atwork} "$own"/bochs_*

# Without package archives, and with a damaged download.
echo '/* changed */' >>"$tree/bochs/instrument/instrument.h"
echo 'Dir::Etc::sourcelist "/dev/null"; Dir::Etc::sourceparts "/dev/null";' >"$out/apt.conf"
for file in "$own"/bochs-files/bochs_3.0*.tar.xz; do
	head -c 100000 "$file" >"$out/short" && cp "$out/short" "$file"
done
APT_CONFIG=$out/apt.conf build "$tree"
check 'no archives: skipped' [ $rc = 77 ]
check 'no archives: why' grep -q '^skipped: cannot fetch bochs_3.0' "$out/stdout"
check 'no archives: damage is reported' grep -q 'bochs_3.0.* is damaged' "$out/stderr"
check 'no archives: nothing is made' [ -z "$(made_things)" ]

CXX=no-such-compiler build "$tree"
check 'no compiler: skipped' [ "$rc $made" = '77 skipped: no-such-compiler is missing: scripts/deps bochs' ]
rm -rf "$tree" "$XDG_CACHE_HOME" "$out/bochs"
finish
