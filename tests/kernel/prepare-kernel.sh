#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Make what a module of Linux 6.12 is built against, from Debian's linux-source-6.12: the
# files that are needed, unpacked, configured (module.config) and prepared. Kept in the user's
# cache under a name made from all that it depends on; prints the folder's name.
#
#	prepare-kernel.sh OUT-DIR	(OUT-DIR: for logs, and for lack of a cache)
#
# Exits with 77 where the package is not installed.
set -euo pipefail

out=$1
package=linux-source-6.12
tarball=${VMPT_LINUX_612_TARBALL:-/usr/src/$package.tar.xz}
here=$(dirname "$(readlink -f "$0")")
jobs=$(nproc)

# The kernel's make must not hear of a make or a compiler that called us.
unset MAKEFLAGS MFLAGS MAKELEVEL CC CFLAGS LDFLAGS KBUILD_OUTPUT ARCH CROSS_COMPILE
export LC_ALL=C

[ -r "$tarball" ] || {
	echo "skipped: the package $package is not installed"
	exit 77
}

fail()
{
	echo "$*"
	exit 1
}

# Run a command; its output is shown if it fails.
quietly()
{
	"$@" >"$out/prepare.log" 2>&1 </dev/null || {
		tail -n 60 "$out/prepare.log"
		fail "failed: $*"
	}
}

# Unpack, configure and prepare in folder $1.
prepare()
{
	local dir=$1 name patterns=()

	# The folders, and all files that say what can be configured.
	for name in Makefile Kbuild Kconfig '*/Kconfig*' 'include/*' 'arch/x86/*' 'scripts/*' \
		'kernel/configs/*' kernel/bounds.c kernel/time/timeconst.bc tools/Makefile \
		'tools/arch/x86/*' 'tools/build/*' 'tools/include/*' 'tools/lib/*' \
		'tools/objtool/*' 'tools/scripts/*'; do
		patterns+=("$package/$name")
	done
	xz -dc -T "$jobs" "$tarball" | tar -x -f - -C "$dir" --strip-components=1 --no-same-owner \
		--wildcards "${patterns[@]}"
	quietly make -C "$dir" tinyconfig
	quietly "$dir/scripts/kconfig/merge_config.sh" -m -O "$dir" "$dir/.config" \
		"$here/module.config"
	quietly make -C "$dir" olddefconfig
	# An option that this kernel does not know is dropped without a word.
	while read -r name; do
		grep -qx "$name" "$dir/.config" || fail "the kernel does not take $name"
	done < <(grep '^CONFIG_' "$here/module.config")
	quietly make -C "$dir" -j "$jobs" modules_prepare
}

cache=${XDG_CACHE_HOME:-${HOME:-$out}/.cache}/vmpt
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cache=$out
key=$({
	sha256sum <"$tarball"
	cat "$0" "$here/module.config"
	gcc --version
} | sha256sum | head -c 16)
kernel=$cache/${package}_$key

# Prepared beside and moved into place, so that no half of it is ever used.
if ! [ -d "$kernel" ]; then
	new=$(mktemp -d "$cache/new.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	prepare "$new"
	mv -T "$new" "$kernel" 2>/dev/null || [ -d "$kernel" ]
fi
touch "$kernel"
# Those of other versions that nobody asked for in two weeks. find fails where another call removes
# something at the same time.
find "$cache" -mindepth 1 -maxdepth 1 -type d -name "${package}_*" -mtime +14 \
	-exec rm -rf {} + 2>/dev/null || true
echo "$kernel"
