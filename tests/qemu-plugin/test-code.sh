#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Does a code stream have the bytes of each block that QEMU executed, in its address space, at its
# time? code-check compares it with the plugin's truth file. And does a decoder that has nothing but
# the trace and the stream find all instructions that were executed?
#
#	test-code.sh SOURCE PLUGIN CODE-CHECK FLOW-CHECK VMPT OUT bare|linux
#
# bare	firmware that changes its code in each way, several vCPUs, resets, SMM; damaged and full files
# linux	Linux to power-off with programs that write code and end, on two vCPUs
set -u

source=$1
plugin=$(realpath "$2")
code_check=$(realpath "$3")
flow_check=$(realpath "$4")
vmpt=$(realpath "$5")
out=$6
part=$7
background=''

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
get_qemu
need gcc ld objcopy
mkdir -p "$out"
out=$(realpath "$out")
cd "$out" || exit 1
export LC_ALL=C
cleanup()
{
	[ -z "$background" ] || kill -9 "$background" 2>/dev/null
	# Truths of whole boots are large.
	rm -f "$out"/*.truth.*
}
trap cleanup EXIT

# Source $1 of a firmware in file $2; the rest are the assembler's options.
assemble()
{
	local file=$1 to=$2
	shift 2
	gcc -c -m32 "$@" "$source/tests/qemu-plugin/$file" -o "$to.o" &&
		ld -m elf_i386 -e 0 -Ttext="${base:-0}" "$to.o" -o "$to.elf" &&
		objcopy -O binary -j .text "$to.elf" "$to" && return
	check "$file: assembled" false
	return 1
}

# start NAME OPTIONS QEMU-OPTION…: QEMU by exec, with its files as NAME.*.
start()
{
	local name=$1 options=$2
	shift 2
	exec "$qemu" -accel tcg,thread=multi -cpu max,vendor=GenuineIntel -machine pc -m 16 \
		-nodefaults -display none -device isa-debug-exit,iobase=0xf4,iosize=1 -plugin \
		"$plugin,host-view=$name.d,code=$name.code,truth=$name.truth$options" "$@" </dev/null
}
export -f start
export qemu plugin

machine()
{
	rm -rf "$1.d" "$1.code"
	again "$@"
}

# The same with the files as they are.
again()
{
	rc=0
	within 60 bash -c 'start "$@"' start "$@" >"$1.log" 2>&1 || rc=$?
	check_log "$1: ran" "$1.log" [ $rc = 33 ]
}

# compare CODE TRUTH OPTION…: code-check's output goes to "log", its exit status to $rc.
compare()
{
	local code=$1 truth=$2
	shift 2
	rc=0
	"$code_check" "$@" "$code" "$truth" >log 2>&1 || rc=$?
}

# Stream $1 has all that vCPU $2 executed; $3: the least number of instructions.
complete()
{
	compare "$1.code" "$1.truth.$2"
	check_log "$1: vCPU $2" log [ $rc = 0 ]
	check_log "$1: vCPU $2: nothing missing" log [ "$(wc -l <log)" = 1 ]
	check_log "$1: vCPU $2: instructions" log [ "$(sed 's/ .*//' log)" -ge "$3" ]
}

# What the stream $1 has: the number before the word $2.
has()
{
	"$code_check" "$1.code" 2>&1 | sed -n "s/.*\\b\\([0-9]\\+\\) $2\\b.*/\\1/p"
}

# vmpt insn follows the trace of vCPU $2, on host CPU $2, by the stream $1 without a gap, and counts the
# instructions that libipt decodes, whose code is the truth's.
whole()
{
	local trace=$1.d/cpu$2.pt

	rc=0
	"$flow_check" "$trace" "$1.truth.$2" >log 2>&1 || rc=$?
	check_log "$1: flow-check" log [ $rc = 0 ]
	"$vmpt" insn -q --count --code="$1.code" "$trace" >insn.log 2>&1
	check_log "$1: vmpt insn: all instructions, no gap" insn.log \
		[ "$(sed -n 's/,//g; s/^total  *\([0-9]*\) .* \([0-9]*\)$/\1 \2/p' insn.log)" = \
		"$(sed -n '1s/ instructions.*//p' log) 0" ]
}

psbs()
{
	"$vmpt" dump -q --no-bytes --kinds=psb "$1/cpu0.pt" | grep -c ' PSB$'
}

size()
{
	stat -c %s "$1"
}

bare()
{
	local vmcs at i firmware

	assemble flow-firmware.S modes.bin || return
	machine modes '' -bios modes.bin
	complete modes 0 2259
	whole modes 0
	# Only the code that is executed, each byte once: less than 700 bytes of it are there.
	check 'modes: each byte once' [ "$(has modes "bytes on")" -lt 700 ]
	machine rtit ,isa=rtit -bios modes.bin
	complete rtit 0 2259

	assemble code-firmware.S changes.bin -Wa,--defsym,ROUNDS=200 || return
	machine changes '' -bios changes.bin
	complete changes 0 20000
	whole changes 0
	vmcs=$(sed -n 's/.*"vmcs":"0x\([0-9a-f]*\)".*/\1/p' changes.d/vms.jsonl)
	compare changes.code changes.truth.0 --vmcs="$vmcs"
	check_log 'changes: by the times of the trace' log [ $rc = 0 ]
	# A PSB+ for each change: three in a round.
	check 'changes: a PSB+ for each' [ "$(psbs changes.d)" -ge 1200 ]
	# It matters when: at the end of another run the code was as it was last.
	mv changes.code earlier.code
	machine changes '' -bios changes.bin
	complete changes 0 20000
	compare earlier.code changes.truth.0
	check_log 'another time: other bytes' log [ $rc = 1 ]

	# A damaged chunk is left out, and what it had is missing.
	at=$(($(size changes.code) / 2))
	cp changes.code damaged.code
	printf 'damage' | dd of=damaged.code bs=1 seek=$at conv=notrunc status=none
	compare damaged.code changes.truth.0
	check_log 'damaged: missing' log [ $rc = 1 ]
	check_log 'damaged: says so' log grep -q 'bytes of the code stream are damaged' log
	head -c $at changes.code >cut.code
	"$code_check" cut.code >log 2>&1
	check_log 'cut: says so' log grep -q 'bytes of the code stream are damaged' log

	# The next QEMU goes on; what the first one had stays.
	again changes '' -bios changes.bin
	complete changes 0 20000
	check 'again: two machines' [ "$(has changes machines)" = 2 ]

	# Several vCPUs, and a reset. SeaBIOS: SMM, and memory that is ROM first.
	firmware=host-firmware.S
	base=0xf0000 assemble $firmware several.bin -Wa,--defsym,LOOPS=50,--defsym,HALTS=2,--defsym,RESETS=2 || return
	machine several '' -bios several.bin -smp 2
	for i in 0 1; do
		complete several $i 100
	done
	base=0x7c00 assemble flow-reset.S reset.img || return
	machine bios '' -drive format=raw,if=ide,file=reset.img
	complete bios 0 2000000
	whole bios 0

	# A file that is full; one that another QEMU writes; one of somebody; a QEMU that is killed.
	assemble code-firmware.S many.bin -Wa,--defsym,ROUNDS=20000 || return
	machine full ,code-limit=1 -bios many.bin
	check_log 'full: the largest size' full.log [ "$(size full.code)" -le $((1 << 20)) ]
	check_log 'full: says so' full.log \
		grep -q '^vmpt: code=full.code: [0-9]* bytes; lost what was executed first later' full.log
	"$code_check" full.code >log 2>&1
	check_log 'full: the reader says so' log grep -q 'had its largest size' log
	rm -rf killed.d killed.code
	bash -c 'start "$@"' start killed '' -bios many.bin >killed.log 2>&1 &
	background=$!
	wait_for grows killed.code 100000
	check 'killed: it grows' grows killed.code 100000
	rm -rf other.d
	rc=0
	timeout 60 bash -c 'start "$@"' start other ,code=killed.code -bios many.bin >log 2>&1 || rc=$?
	check_log 'a second QEMU: refused' log grep -q 'code=killed.code: another QEMU writes to it' log
	kill -9 "$background"
	wait "$background" 2>/dev/null
	background=''
	"$code_check" killed.code >log 2>&1
	check_log 'killed: readable' log grep -q '1 machines' log
	check_log 'killed: says so' log grep -q 'QEMU was killed\|damaged' log
	echo mine >mine.code
	rm -rf mine.d
	rc=0
	within 60 bash -c 'start "$@"' start mine '' -bios modes.bin >log 2>&1 || rc=$?
	check_log "somebody's file: refused" log grep -q 'this plugin did not write it' log
	check "somebody's file: is kept" [ "$(cat mine.code)" = mine ]
}

grows()
{
	[ -e "$1" ] && [ "$(size "$1")" -gt "$2" ]
}

linux()
{
	local i

	rm -rf linux.*
	rc=0
	"$source/tests/guests/boot" --out linux.boot --smp 2 --plugin \
		"$plugin,host-view=linux.d,cpus=0:1,code=linux.code,truth=linux.truth" work >linux.log 2>&1 || rc=$?
	if [ $rc = 77 ]; then
		grep '^skipped:' linux.log
		exit 77
	fi
	check_log 'Linux: powered off' linux.log [ $rc = 0 ]
	for i in 0 1; do
		complete linux $i 1000000
		whole linux $i
	done
	check 'Linux: at most 4 MiB' [ "$(size linux.code)" -le $((4 << 20)) ]
	"$code_check" linux.code
}

case $part in
bare) bare ;;
linux) linux ;;
esac
finish
