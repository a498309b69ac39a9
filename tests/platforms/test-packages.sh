#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# For "make soak": the Debian packages of the last commit, in bare systems of both releases: they build
# twice alike, lintian has nothing to say, they install, upgrade, leave nothing, and pass their tests.
# $VMPT_RELEASES: which, if not both.
set -uo pipefail
top=$(dirname "$(dirname "$(dirname "$(readlink -f "$0")")")")
# shellcheck source=tests/lib.sh
. "$top/tests/lib.sh"
. "$top/tests/soak.sh"

soak_takes
need dpkg-buildpackage git
git -C "$top" rev-parse HEAD >/dev/null 2>&1 || skip 'not a git repository: packages are built of a commit'
work=$(mktemp -d "${TMPDIR:-/tmp}/packages-XXXXXX") || skip 'no folder for temporary files'
trap 'rm -rf "$work"' EXIT
mkdir "$work/source"
"$top/scripts/build-packages" "$work/source" -S -d -nc -us -uc >"$work/log" 2>&1 || rc=$?
check_log 'source package' "$work/log" [ $rc = 0 ] || finish
# What is between "Build-Depends:" and the next field, first alternatives, without conditions.
needs=$(sed -n '/^Build-Depends:/,/^[A-Z]/{s/^ \([a-z0-9+.-]*\).*/\1/p}' "$top/packaging/debian/control" |
	sed 's/^debhelper-compat$/debhelper/' | paste -s -d ,)

# inside RELEASE SCRIPT OPTION...: run SCRIPT in a bare system of that release, with $work/share.
inside()
{
	"$top/scripts/try-release" "${@:3}" --share "$work/share" "$1" "tests/platforms/$2" 2>&1 |
		tee "$work/out" | sed 's/^/| /'
	rc=${PIPESTATUS[0]}
	[ $rc != 77 ] || skip "$(sed -n 's/^skipped: //p' "$work/out")"
	check "$1: $2" [ $rc = 0 ]
}
for release in ${VMPT_RELEASES:-bookworm trixie}; do
	rm -rf "$work/share"
	mkdir -p "$work/share/source"
	cp "$work"/source/*.dsc "$work"/source/*.tar.* "$work/share/source"
	inside "$release" packages-build --include "build-essential,fakeroot,lintian,$needs" || continue
	inside "$release" packages-try --cache
done
finish
