#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# arch/, vmm-lib/ and model/ are built by clang for targets without any library or header, one of 64
# and one of 32 bits: they need the four mem* functions and nothing else, no division of 64 bits either.
#
#	bare-targets.sh ROOT
set -u

# shellcheck source=tests/lib.sh
. "$1/tests/lib.sh"
command -v clang >/dev/null || skip 'no clang'
cc=$(command -v ccache) || cc=
out=$(mktemp -d) || exit
trap 'rm -rf "$out"' EXIT
cd "$1" || exit
for target in x86_64 i386; do
	name=$target
	sources=(arch/*.c vmm-lib/*.c vmm-lib/*/*.c)
	[ $target = i386 ] || sources+=(model/*.c)
	for file in "${sources[@]}"; do
		echo "$file"
	done | xargs -P 2 -I{} sh -c '$4 clang --target=$1-unknown-none -ffreestanding -nostdlib -nostdlibinc \
		-std=gnu11 -O1 -Wall -Wextra -Werror -I. -c "$3" -o "$2/$(echo "$3" | tr / _).$1.o"' \
		- $target "$out" {} "$cc"
	check 'all files are built' [ $? = 0 ]
	foreign=$(nm "$out"/*.$target.o | awk '
		NF == 3 && $2 ~ /[TRDBVW]/ { own[$3] = 1 }
		NF == 2 && $1 == "U" { used[$2] = 1 }
		END { for (s in used) if (!(s in own)) print s }' |
		grep -vx -e memcpy -e memmove -e memset -e memcmp)
	check 'no functions of others' [ -z "$foreign" ]
done
finish
