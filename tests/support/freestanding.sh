#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Folder FOLDER is freestanding: its archive needs only its own symbols, those of the archives below
# it, and the few mem* functions and strlen that any C environment has; it has no writable data.
#
#	freestanding.sh FOLDER ARCHIVE [ARCHIVE-BELOW...]
set -eu

folder=$1
lib=$2
shift 2
syms=$(nm "$lib")
[ -n "$syms" ] || { echo "nm shows no symbols in $lib"; exit 1; }

if echo "$syms" | grep -q '__asan_\|__ubsan_\|__tsan_\|__sanitizer_\|__sancov_\|__gcov_'; then
	echo "skipped: symbols of a sanitizer or of gcov are in $lib"
	exit 77
fi

# An object may use symbols of the other objects and of the archives below.
foreign=$({
	echo "$syms"
	for below; do
		nm --defined-only "$below"
	done
} | awk '
	NF == 3 && $2 ~ /[TRDBVW]/ { own[$3] = 1 }
	NF == 2 && $1 == "U" { used[$2] = 1 }
	END { for (s in used) if (!(s in own)) print s }' |
	grep -v -x -e memcpy -e memset -e memmove -e memcmp -e strlen \
		-e __stack_chk_fail -e _GLOBAL_OFFSET_TABLE_ || true)
if [ -n "$foreign" ]; then
	echo "$folder/ uses symbols of others:"
	echo "$foreign"
	exit 1
fi

# Constant tables of pointers are in .data.rel.ro: written by the loader only.
writable=$(size -A "$lib" | awk '
	$1 ~ /^\.t?(data|bss)/ && $1 !~ /^\.data\.rel\.ro/ && $2 > 0 { print $0 }')
common=$(echo "$syms" | awk 'NF == 3 && $2 ~ /^[CcBb]$/ { print $3 }')
if [ -n "$writable$common" ]; then
	echo "$folder/ has writable data:"
	echo "$writable $common"
	exit 1
fi
