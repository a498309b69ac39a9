#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# kvm-patches/pt_core/update on a small series: nothing to do when it is as generate makes it,
# --check fails on a changed line, and a run restores the bytes that git wrote.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/vmpt-update.XXXXXX")
trap 'rm -rf "$work"' EXIT
export LC_ALL=C HOME=$work GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org \
	GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org
# shellcheck source=tests/lib.sh
. "$root/tests/lib.sh"

update()
{
	"$root/kvm-patches/pt_core/update" "$@" >"$work/log" 2>&1
}

show()
{
	cat "$work/log"
}

refused()
{
	! update --check "$work/series" && grep -q "$1.*make kvm-series" "$work/log"
}

# refused_with TEXT FOLDER: status 1 and one line, which has TEXT.
refused_with()
{
	local rc=0

	update --check "$2" || rc=$?
	[ $rc = 1 ] && [ "$(wc -l <"$work/log")" = 1 ] && grep -qF "$1" "$work/log"
}

command -v clang-format-14 >/dev/null || skip "no clang-format-14 (Debian's clang-format)"
"$root/kvm-patches/pt_core/generate" "$work/made"

# Four commits: the files, a change beside them, the tests, one that has nothing to do with it.
kvm=$work/linux/arch/x86/kvm
mkdir -p "$kvm/vmx"
cd "$work/linux"
git init -q .
printf 'obj-y := vmx.o\nlast\n' >"$kvm/Makefile"
git add . && git commit -qm base
cp "$work"/made/pt_core.[ch] "$kvm/vmx/"
printf 'obj-y := vmx.o pt_core.o\n' >"$kvm/Makefile"
git add . && git commit -qm "Add pt_core

Why it is done."
cp "$work"/made/*_test.c "$kvm/vmx/"
git rm -qf "$kvm/Makefile" && git add . && git commit -qm "Add tests"
printf -- '-- a/line\n' >"$kvm/other" && git add . && git commit -qm "Something else"
git format-patch -q -o "$work/series" --full-index --zero-commit --no-signature --stat=80 --summary \
	--no-renames HEAD~3
cd "$work/series"
printf '%s\n' *.patch >series
cp -r "$work/series" "$work/before"

set +e # a failed check is counted
check "as it is made" update --check "$work/series"
sed -i '0,/^+.*static bool/s//+static int/' 0001-*
check "a changed line" refused 0001-
# As it was when the test was shorter, with its statistics.
sed -i -e '/^+.*KUNIT_CASE/d' -e 's/ [0-9]* +*$/ 3 +/' 0002-*
check "missing lines" refused 0002-
check "regenerated" update "$work/series"
check "the bytes of git" diff -r "$work/before" "$work/series"
# A later patch may not touch what an earlier one adds.
sed 's|arch/x86/kvm/other|arch/x86/kvm/vmx/pt_core.c|g' "$work"/before/0003-* >"$(echo 0003-*)"
check "touched again" refused_with "$(echo 0003-*): touches pt_core.c again" "$work/series"
check "no series" refused_with "update: $work/made has no file series" "$work/made"
echo 0003-* >series
cp "$work"/before/0003-* .
check "no files" refused_with "update: $work/series: no patch adds pt_core.h" "$work/series"

finish
