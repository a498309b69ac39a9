#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Build and run the test against perf's packet decoder. Its source is taken from
# the Debian package linux-source-6.1 on this machine, not from this repository;
# unpacked once per version of the package and kept in the user's cache.
#
#   perf-check.sh BUILD-DIR LIBRARY…      (VMPT_ROOT, VMPT_CC, VMPT_CFLAGS: see meson.build)
set -eu

out=$1
shift
package=linux-source-6.1
tarball=${VMPT_LINUX_TARBALL:-/usr/src/$package.tar.xz}

# shellcheck source=tests/lib.sh
. "$VMPT_ROOT/tests/lib.sh"
[ -r "$tarball" ] || skip "the package $package is not installed"
version=$(dpkg-query -W -f '${Version}' $package 2>/dev/null) ||
	version=$(stat -L -c %s.%Y "$tarball")

mkdir -p "$out"
cache=${XDG_CACHE_HOME:-${HOME:-$out}/.cache}/vmpt
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cache=$out
perf=$cache/${package}_$version

# Unpacked beside and moved into place, so that no half of it is ever used.
if ! [ -d "$perf" ]; then
	echo "unpacking three files of $tarball"
	new=$(mktemp -d "$cache/new.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	(cd "$new" && xz -dc -T2 "$tarball" | tar -x -f - --strip-components=3 \
		$package/tools/perf/arch/x86/tests/intel-pt-pkt-decoder-test.c \
		$package/tools/perf/util/intel-pt-decoder/intel-pt-pkt-decoder.c \
		$package/tools/perf/util/intel-pt-decoder/intel-pt-pkt-decoder.h)
	mv -T "$new" "$perf" 2>/dev/null || [ -d "$perf" ]
fi

# The headers of perf that those files name, as far as they are needed.
stubs=$out/stubs
mkdir -p "$stubs/tests" "$stubs/linux"
: > "$stubs/debug.h"
: > "$stubs/arch-tests.h"
: > "$stubs/tests/tests.h"
echo '#define __fallthrough __attribute__((__fallthrough__))' > "$stubs/linux/compiler.h"
printf '#include "%s"\n' "$perf/arch/x86/tests/intel-pt-pkt-decoder-test.c" \
	> "$stubs/perf-pkt-decoder-test.c"

# shellcheck disable=SC2086,SC2046
{
	$VMPT_CC -O2 -w -isystem "$stubs" -c "$perf/util/intel-pt-decoder/intel-pt-pkt-decoder.c" \
		-o "$out/intel-pt-pkt-decoder.o"
	$VMPT_CC -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror $VMPT_CFLAGS \
		-I "$VMPT_ROOT" -isystem "$perf/util" -isystem "$stubs" \
		"$VMPT_ROOT/tests/arch/perf-packets.c" "$VMPT_ROOT/tests/arch/perf-vectors.c" \
		"$VMPT_ROOT/tests/arch/perf-map.c" "$out/intel-pt-pkt-decoder.o" "$@" \
		$(pkg-config --cflags --libs check) -o "$out/test-perf-packets"
}
exec "$out/test-perf-packets"
