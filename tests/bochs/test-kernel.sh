#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# tests/bochs/build-kernel: a patched kernel is a different one, and the kernel's tree in the user's
# cache is unchanged afterwards, even if a patch does not apply or the build is stopped; the user's
# settings for other kernels have no effect.
#
#	test-kernel.sh SOURCE OUT
set -u

source=$1
out=$2
file=arch/x86/kvm/irq.c # the patched file: a small one

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
rm -rf "$out"
mkdir -p "$out"

show()
{
	tail -n 40 "$out/stdout" "$out/stderr"
}

build()
{
	rc=0
	"$source/tests/bochs/build-kernel" "$@" >"$out/stdout" 2>"$out/stderr" || rc=$?
	made=$(cat "$out/stdout")
}

# Checksums of the tree's source without build results, taken while no other process uses the tree.
sums()
{
	# shellcheck disable=SC2016 # expanded by the inner shell
	flock "${tree%/*}/.bochs-kernel.lock" \
		bash -c 'cd "$1/arch/x86/kvm" && find . -type f -exec sha256sum {} + && ls -A "$1" &&
			sha256sum "$1/build/.config"' bash "$tree" |
		sort
}

# The tree is unchanged and usable.
check_tree()
{
	sums >"$out/sums.now"
	check "$1: the tree is as it was" cmp -s "$out/sums" "$out/sums.now"
}

# Make folder $1 of patches: they insert $2 before the first line of $file and add a file. They are
# unique to this run of the test.
patches()
{
	mkdir "$out/$1"
	printf '%s\n' "--- a/$file" "+++ b/$file" '@@ -1,3 +1,4 @@' "+$2 /* $$ */" \
		>"$out/$1/1.patch"
	head -n 3 "$out/file" | sed 's/^/ /' >>"$out/$1/1.patch"
	printf '%s\n' '--- /dev/null' '+++ b/arch/x86/kvm/vmpt-test.h' '@@ -0,0 +1 @@' \
		'+#define VMPT_TEST 1' >>"$out/$1/1.patch"
	echo 1.patch >"$out/$1/series"
}

build
[ $rc != 77 ] || { cat "$out/stdout" && exit 77; }
check 'the stock kernel' [ $rc = 0 -a -e "$made/bzImage" -a -e "$made/vmlinux" ]
[ $rc = 0 ] || exit 1
stock=$made
tree=${stock%/*}/bochs-kernel-tree_${stock##*_}
build --where
check 'its name' [ "$made" = "$stock" ]
ARCH=arm64 build --where
check 'does not depend on the environment' [ "$made" = "$stock" ]
[ -e "$tree/complete" ] || skip 'the tree of the kernel is no longer in the cache'
sums >"$out/sums"
flock "${stock%/*}/.bochs-kernel.lock" cp "$tree/$file" "$out/file"

patches good 'extern int vmpt_test_patched; int vmpt_test_patched = 1;'
build --patches "$out/good" --where
rm -rf "$made"
MAKEFLAGS=n ARCH=arm64 CROSS_COMPILE=no-such- LLVM=1 KCFLAGS=-no-such KBUILD_OUTPUT=/no/such \
	build --patches "$out/good"
good=$made
check 'a patched kernel, whatever the environment says' [ $rc = 0 ]
check 'is a different one' [ "$good" != "$stock" -a -e "$good/bzImage" ]
check 'has what the patch adds' grep -q ' vmpt_test_patched$' "$good/System.map"
check 'has pt_mode' grep -q ' __param_pt_mode$' "$good/System.map"
check_tree 'a patched kernel'

patches bad 'extern int vmpt_test_patched; int vmpt_test_patched = 2;'
printf '%s\n' "--- a/$file" "+++ b/$file" '@@ -1 +1 @@' '-no such line' '+none' >"$out/bad/2.patch"
echo 2.patch >>"$out/bad/series"
build --patches "$out/bad"
check 'a patch that does not apply: fails' [ $rc = 1 ]
check 'a patch that does not apply: is named' grep -q '2.patch does not apply' "$out/stderr"
check_tree 'a patch that does not apply'

patches wrong 'this is not C'
build --patches "$out/wrong"
check 'an error in a patch: fails' [ $rc = 1 ]
check 'an error in a patch: is shown' grep -q 'irq.c:1.*error' "$out/stderr"
check_tree 'an error in a patch'

# Stop it, in a session of its own, while it compiles.
patches stopped 'extern int vmpt_test_patched; int vmpt_test_patched = 3;'
setsid "$source/tests/bochs/build-kernel" --patches "$out/stopped" >"$out/stdout" 2>"$out/stderr" &
group=$!
wait_for test -e "$tree/arch/x86/kvm/vmpt-test.h"
check 'stopped: was running' [ -e "$tree/arch/x86/kvm/vmpt-test.h" ]
kill -TERM -- -$group
rc=0
wait $group || rc=$?
check 'stopped: says so' [ $rc = 143 ]
check_tree stopped

# A patch with an option, which replaces the CONFIG_BROKEN macro, and with files that do not exist.
patches option ''
flock "${tree%/*}/.bochs-kernel.lock" head -n 3 "$tree/arch/x86/kvm/Kconfig" | sed 's/^/ /' >"$out/lines"
{
	printf '%s\n' '--- a/arch/x86/kvm/Kconfig' '+++ b/arch/x86/kvm/Kconfig' '@@ -1,3 +1,6 @@' \
		'+config KVM_INTEL_PT' '+	bool "PT for guests"' '+'
	cat "$out/lines"
	printf '%s\n' '--- a/Documentation/virt/kvm/index.rst' '+++ b/Documentation/virt/kvm/index.rst' \
		'@@ -1 +1 @@' '-no such line' '+none'
} >"$out/option/2.patch"
echo 2.patch >>"$out/option/series"
build --patches "$out/option"
check 'an option: a kernel' [ $rc = 0 ]
check 'an option: is there' grep -qx CONFIG_KVM_INTEL_PT=y "$made/config"
# Nothing is left of the earlier patches in the objects either.
check 'an option: has nothing of earlier ones' [ "$(grep -c vmpt_test_ "$made/System.map")" = 0 ]
check 'an option: without the macro' [ "$(grep -c ' __param_pt_mode$' "$made/System.map")" = 0 ]
check_tree 'an option'
rm -rf "$made" "$good"
finish
