#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Folder FOLDER is freestanding: its archive needs only its own symbols, those of the archives below
# it, and the few mem* functions and strlen that any C environment has (where flags for hardening make
# the compiler check calls, also what it then calls); it has no writable data.
#
#	freestanding.sh FOLDER ARCHIVE [ARCHIVE-BELOW...]
set -u

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
name=$1
lib=$2
shift 2
syms=$(nm "$lib")
check "nm shows symbols of $lib" [ -n "$syms" ] || finish
! grep -q '__asan_\|__ubsan_\|__tsan_\|__sanitizer_\|__sancov_\|__gcov_' <<<"$syms" ||
	skip "symbols of a sanitizer or of gcov are in $lib"

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
		-e __stack_chk_fail -e '__mem[a-z]*_chk' -e _GLOBAL_OFFSET_TABLE_)
check 'no symbols of others' [ -z "$foreign" ]

# Constant tables of pointers are in .data.rel.ro: written by the loader only.
writable=$(size -A "$lib" | awk '
	$1 ~ /^\.t?(data|bss)/ && $1 !~ /^\.data\.rel\.ro/ && $2 > 0 { print $0 }')
common=$(awk 'NF == 3 && $2 ~ /^[CcBb]$/ { print $3 }' <<<"$syms")
check 'no writable data' [ -z "$writable$common" ]
finish
