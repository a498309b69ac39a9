#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Dumps by a real QEMU, of a guest with paging in each mode: ELF, kdump-compressed, flattened or not,
# against its raw memory.
#
#	test-qemu.sh SOURCE IMAGE-COMPARE OUT [KDUMP-MODULE]
set -u
source=$1
compare=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
module=${4:+$(realpath "$4")}

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"

get_qemu

# Run the firmware with $1 levels of page tables and dump it.
dump()
{
	local dir=$out/$1

	rm -rf "$dir" && mkdir -p "$dir" && cd "$dir" || return
	gcc -c -m32 -Wa,--defsym,LEVELS="$1" -o firmware.o "$source/tests/decoder/image/paging.S" &&
		objcopy -O binary -j .text firmware.o firmware || return
	{
		# Waits for a '.': paging is on.
		wait_for grep -qs '\.' serial
		echo stop
		echo 'pmemsave 0 0x1000000 "ram"'
		echo 'dump-guest-memory elf'
		echo 'dump-guest-memory -p elf-paging'
		echo 'dump-guest-memory -z flat'
		echo 'dump-guest-memory -z -R kdump'
		echo quit
	} | "$qemu" -cpu max -m 16 -display none -nodefaults -bios firmware -serial file:serial \
		-monitor stdio >log 2>&1
	ls -l >>log
}

for levels in 2 3 4 5; do
	paging=$levels # as enum vmpt_paging has them
	dump $levels
	cd "$out/$levels" || exit 1
	want="paging $paging cr3 1000 text pingo"
	check "$levels levels" [ "$("$compare" ram elf 2>&1)" = "differ 0 $want" ]
	# Of a large page QEMU writes what is in one block of its memory, and no linear address is one of
	# the lower half.
	said=$("$compare" ram elf-paging 2>&1)
	check "$levels levels, -p: $said" [ "paging${said#*paging}" = "$want" ]
	[ -n "$module" ] || continue
	for file in flat kdump; do
		said=$("$compare" ram $file "$module" 2>&1)
		check "$levels levels, $file: $said" [ "$said" = "differ 0 ${want/ cr3 1000/}" ]
	done
done
finish
