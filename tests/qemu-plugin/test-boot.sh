#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The plugin in a real QEMU, under guests of a few bytes that end QEMU through the
# isa-debug-exit device: writing V to port 0xf4 makes QEMU exit with 2 V + 1.
#
#	test-boot.sh SOURCE PLUGIN OUT
set -u

source=$1
plugin=$(realpath "$2")
out=$3
value=0x10 status=33

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
mkdir -p "$out"
get_qemu

show()
{
	cat "$out/stdout" "$out/stderr"
}

# Run QEMU with the plugin's options $1 and the machine's options that follow.
run()
{
	local options=$1
	shift
	rc=0
	within 60 "$qemu" -accel tcg -machine pc -m 16 -nodefaults -display none \
		-device isa-debug-exit,iobase=0xf4,iosize=1 -plugin "$plugin$options" "$@" \
		</dev/null >"$out/stdout" 2>"$out/stderr" || rc=$?
}

# The plugin's count of blocks.
blocks()
{
	sed -n 's/^vmpt: \([0-9]*\) blocks translated, none traced: .*/\1/p' "$out/stderr"
}

# Bytes in hex, and a byte many times.
bytes()
{
	local byte

	for byte; do
		printf '%b' "\\x$byte"
	done
}

zeros()
{
	head -c "$1" /dev/zero
}

# mov $0xf4,%dx; mov $value,%al; out %al,(%dx); jmp .
goodbye=(ba f4 00 b0 "${value#0x}" ee eb fe)

# A boot sector, started by SeaBIOS.
{
	bytes "${goodbye[@]}"
	zeros $((510 - ${#goodbye[@]}))
	bytes 55 aa
} >"$out/boot.img"
check 'boot sector: 512 bytes' [ "$(stat -c %s "$out/boot.img")" = 512 ]
run '' -drive "format=raw,if=ide,file=$out/boot.img"
check 'boot sector: ran' [ $rc = $status ]
check 'boot sector: a BIOS and more' [ "$(blocks)" -gt 100 ]
check 'boot sector: one line' [ "$(grep -c ^vmpt: "$out/stderr")" = 1 ]

# In place of the BIOS: at E000 $1 jumps to the next instruction, each a block of its own; the
# reset vector FFF0 jumps there (E000 - FFF3 = E00D).
firmware()
{
	local i

	zeros $((0xe000))
	for ((i = 0; i < $1; i++)); do
		bytes eb 00
	done
	bytes "${goodbye[@]}"
	zeros $((0xfff0 - 0xe000 - 2 * $1 - ${#goodbye[@]}))
	bytes e9 0d e0
	zeros 13
}

# The reset vector's block, the jumps', and goodbye's: QEMU may split it at the OUT, translate it
# again for that, and run into the jump after it before it ends.
for jumps in 0 1 100; do
	firmware $jumps >"$out/firmware-$jumps.bin"
	run '' -bios "$out/firmware-$jumps.bin"
	check "$jumps jumps: ran" [ $rc = $status ]
	check "$jumps jumps: at least their blocks" [ "$(blocks)" -ge $((jumps + 2)) ]
	check "$jumps jumps: nothing more" [ "$(blocks)" -le $((jumps + 5)) ]
done

# Two vCPUs on two threads: the second waits to be started.
run '' -smp 2 -accel tcg,thread=multi -bios "$out/firmware-100.bin"
check 'two vCPUs: ran' [ $rc = $status ]
check 'two vCPUs: counted' [ "$(blocks)" -ge 102 ]

run ,help=1 -bios "$out/firmware-0.bin"
check 'help: ends with 0' [ $rc = 0 ]
check 'help: lists help' grep -q '^  help=' "$out/stdout"
check 'help: no guest ran' [ ! -s "$out/stderr" ]

run ,colour=red -bios "$out/firmware-0.bin"
check 'unknown option: QEMU ends' [ $rc = 1 ]
check 'unknown option: named' grep -q '^vmpt: option colour=red is not known' "$out/stderr"

# QEMU's error must be the last line.
run '' -kernel "$out/nothing"
check 'no kernel: QEMU ends' [ $rc = 1 ]
check 'no kernel: says so' grep -q "could not open kernel file" "$out/stderr"
check 'no kernel: no line of the plugin' [ "$(grep -c ^vmpt: "$out/stderr")" = 0 ]

finish
