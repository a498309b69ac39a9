#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Make a tree that modules of Linux 6.12 can be built against, from Debian's linux-source-6.12: the
# necessary files, unpacked, configured (module.config) and prepared. It is kept in the user's
# cache, named by a hash of its inputs; prints the folder's name.
#
#	prepare-kernel.sh OUT-DIR	(OUT-DIR: for logs, and used if there is no cache)
#
# Exits with 77 if the package is not installed.
set -euo pipefail

out=$1
package=linux-source-6.12
tarball=${VMPT_LINUX_612_TARBALL:-/usr/src/$package.tar.xz}
here=$(dirname "$(readlink -f "$0")")
jobs=$(nproc)

# The kernel's make must not inherit a make or a compiler from our caller.
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

	# The folders, and all Kconfig files.
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
	# Kconfig silently drops an option that this kernel does not know.
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

# Prepared under another name and then renamed, so that an incomplete one is never used.
if ! [ -d "$kernel" ]; then
	new=$(mktemp -d "$cache/new.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	prepare "$new"
	mv -T "$new" "$kernel" 2>/dev/null || [ -d "$kernel" ]
fi
touch "$kernel"
# Remove those of other versions unused for two weeks. find may fail when another call removes one
# at the same time.
find "$cache" -mindepth 1 -maxdepth 1 -type d -name "${package}_*" -mtime +14 \
	-exec rm -rf {} + 2>/dev/null || true
echo "$kernel"
