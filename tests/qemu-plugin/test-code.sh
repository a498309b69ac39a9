#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Does a code stream have the bytes of each block that QEMU executed, in its address space, at its
# time? code-check compares it with the plugin's truth file. And does vmpt insn, with nothing but the
# trace and the stream, find what was executed, instruction for instruction?
#
#	test-code.sh SOURCE PLUGIN CODE-CHECK INSN-CHECK VMPT OUT bare|linux
#
# bare	firmware that changes its code in each way, several vCPUs, resets, SMM; damaged and full files
# linux	Linux to power-off with programs that write code and end, take signals, and are of 32 and 16 bits,
#	on two vCPUs that share a host CPU with the host
set -u

source=$1
plugin=$(realpath "$2")
code_check=$(realpath "$3")
insn_check=$(realpath "$4")
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
	rm -f "$out"/*.truth.* "$out"/linux.ram
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

# The trace of host CPU $2 has no gap for vmpt insn by the stream $1, and what it finds is the truth of
# the vCPUs $3..., in order, in their address spaces and modes.
whole()
{
	local trace=$1.d/cpu$2.pt code=(--code="$1.code") truths=() vmcs i

	[ ! -e "$1.d/host.bin" ] || code=(--code=host:"$1.d/host.bin@0xffffffffa0000000" "${code[@]}")
	for i in "${@:3}"; do
		vmcs=$(sed -n "s/.*\"vcpu\":$i,\"vmcs\":\"0x\([0-9a-f]*\)\".*/\1/p" "$1.d/vms.jsonl")
		truths+=("$vmcs=$1.truth.$i")
	done
	rc=0
	"$insn_check" "${code[@]}" "$trace" "${truths[@]}" >log 2>&1 || rc=$?
	check_log "$1: insn-check" log [ $rc = 0 ]
	check_log "$1: no gap" log grep -q ', 0 gaps; ' log
	echo "$1: $(tail -n 1 log)"
	"$vmpt" insn -q --hash "${code[@]}" "$trace" >insn.log 2>&1
	check_log "$1: vmpt insn: the same" insn.log \
		[ "$(sed -n 's/,//g; s/^total  *\([0-9]*\) .* \([0-9]*\)$/\1 \2/p; s/^hash: //p' insn.log | paste -s -d ' ')" = \
		"$(sed -n 's/\([0-9]*\) instructions, hash \([0-9a-f]*\), .*/\1 0 \2/p' log)" ]
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
	whole modes 0 0
	# Only the code that is executed, each byte once: less than 700 bytes of it are there.
	check 'modes: each byte once' [ "$(has modes "bytes on")" -lt 700 ]
	machine rtit ,isa=rtit -bios modes.bin
	complete rtit 0 2259

	assemble code-firmware.S changes.bin -Wa,--defsym,ROUNDS=200 || return
	machine changes '' -bios changes.bin
	complete changes 0 20000
	whole changes 0 0
	vmcs=$(sed -n 's/.*"vmcs":"0x\([0-9a-f]*\)".*/\1/p' changes.d/vms.jsonl)
	compare changes.code changes.truth.0 --vmcs="$vmcs"
	check_log 'changes: by the times of the trace' log [ $rc = 0 ]
	# The comparison can fail: a truth that ends early, another's.
	head -c $(($(size changes.truth.0) / 8 * 4)) changes.truth.0 >short.truth
	rc=0
	"$insn_check" --code=changes.code changes.d/cpu0.pt "$vmcs=short.truth" >log 2>&1 || rc=$?
	check_log 'a short truth' log [ $rc = 1 ]
	rc=0
	"$insn_check" --code=changes.code changes.d/cpu0.pt "$vmcs=modes.truth.0" >log 2>&1 || rc=$?
	check_log "another's truth" log [ $rc = 1 ]
	# Without RET compression, with cycles.
	machine plain ,ctl=0x2e0e -bios changes.bin
	whole plain 0 0
	# A PSB+ for each change: three in a round.
	check 'changes: a PSB+ for each' [ "$(psbs changes.d)" -ge 1200 ]
	# It matters when: at the end of another run the code was as it was last.
	mv changes.code earlier.code
	machine changes '' -bios changes.bin
	complete changes 0 20000
	compare earlier.code changes.truth.0
	check_log 'another time: other bytes' log [ $rc = 1 ]
	vmcs=$(sed -n 's/.*"vmcs":"0x\([0-9a-f]*\)".*/\1/p' changes.d/vms.jsonl)
	rc=0
	"$insn_check" --code=earlier.code changes.d/cpu0.pt "$vmcs=changes.truth.0" >log 2>&1 || rc=$?
	check_log 'another time: gaps, or a difference' log not grep -q ', 0 gaps; ' log

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
		whole several $i $i
	done
	base=0x7c00 assemble flow-reset.S reset.img || return
	machine bios '' -drive format=raw,if=ide,file=reset.img
	complete bios 0 2000000
	whole bios 0 0

	# A file that is full; one that another QEMU writes; one of somebody; a QEMU that is killed.
	assemble code-firmware.S many.bin -Wa,--defsym,ROUNDS=20000 || return
	machine full ,code-limit=1 -bios many.bin
	check_log 'full: the largest size' full.log [ "$(size full.code)" -le $((1 << 20)) ]
	check_log 'full: says so' full.log \
		grep -q '^vmpt: code=full.code: [0-9]* bytes; lost what was executed first later' full.log
	"$code_check" full.code >log 2>&1
	check_log 'full: the reader says so' log grep -q 'had its largest size' log
	short
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

# No more room: the guest runs to its end, the loss is reported, what was written is used.
short()
{
	local vmcs

	# Of the trace, too: what there is of it has all of its code.
	rm -rf limit.d limit.code
	rc=0
	(ulimit -f 512 && within 60 bash -c 'start "$@"' start limit '' -bios many.bin) >limit.log 2>&1 || rc=$?
	check_log 'a limit on files: the guest ran to its end' limit.log [ $rc = 33 ]
	check_log 'a limit on files: the loss of trace' limit.log \
		grep -q 'lost [0-9]* runs, [0-9]* bytes: File too large' limit.log
	check_log 'a limit on files: the loss of code' limit.log \
		grep -q '^vmpt: code=limit.code: [0-9]* bytes; lost what was executed first later: File too large' limit.log
	"$vmpt" insn -q --count --code=limit.code limit.d/cpu0.pt >log 2>&1
	check_log 'a limit on files: no other gap' log \
		[ "$(sed -n '/^GAPS/,$p' log | grep -vc '^GAPS\|^overflow')" = 0 ]
	check_log 'a limit on files: instructions' log grep -q '^total  *[1-9][0-9]*,' log

	# Of the code alone.
	unshare --mount true 2>/dev/null || {
		skip_part 'a full disk needs the right to make a mount namespace'
		return
	}
	rm -rf small small.d small.code small.truth.*
	mkdir small
	rc=0
	within 60 unshare --mount bash -c 'mount -t tmpfs -o size=256k tmpfs small &&
		(start small ,code=small/code -bios many.bin); rc=$?; cp small/code small.code; exit $rc' \
		>small.log 2>&1 || rc=$?
	check_log 'a full disk: the guest ran to its end' small.log [ $rc = 33 ]
	check_log 'a full disk: the loss of code' small.log \
		grep -q '^vmpt: code=small/code: [0-9]* bytes; lost what was executed first later: No space left' small.log
	check_log 'a full disk: no loss of trace' small.log not grep -q 'lost [0-9]* runs' small.log
	check_log 'a full disk: whole chunks' small.log [ "$(size small.code)" -gt 200000 ]
	vmcs=$(sed -n 's/.*"vmcs":"0x\([0-9a-f]*\)".*/\1/p' small.d/vms.jsonl)
	# The first gap, or difference: later code is as it was before.
	"$insn_check" --gaps=1 --code=small.code small.d/cpu0.pt "$vmcs=small.truth.0" >log 2>&1
	check_log 'a full disk: right up to there' log \
		[ "$(sed -n '1s/.* \(after\|instruction\) \([0-9]*\)\( instructions\)\?,.*/\2/p' log)" -gt 100000 ]
}

grows()
{
	[ -e "$1" ] && [ "$(size "$1")" -gt "$2" ]
}

# The guest's memory at power-off instead: what has gone or changed by then is not found.
by_memory()
{
	local all found gaps

	all=$(sed -n 's/^\([0-9]*\) instructions, hash .*/\1/p' log)
	"$vmpt" insn -q --count --code=host:linux.d/host.bin@0xffffffffa0000000 --code=linux.ram linux.d/cpu0.pt \
		>insn.log 2>&1
	rm -f linux.ram
	read -r found gaps < <(sed -n 's/,//g; s/^total  *\([0-9]*\) .* \([0-9]*\)$/\1 \2/p' insn.log)
	echo "by the memory at power-off alone: $found of $all instructions, $gaps gaps"
	sed -n '/^GAPS/,$p' insn.log
	check_log 'Linux: by its memory at power-off: instructions' insn.log [ "$found" -gt $((all / 4)) ]
	check_log 'Linux: by its memory at power-off: gaps' insn.log [ "$gaps" -gt 0 ]
}

linux()
{
	local i

	rm -rf linux.*
	mkfifo linux.qmp.in linux.qmp.out
	"$source/tests/guests/save-memory" linux.qmp 0 0x20000000 linux.ram &
	background=$!
	rc=0
	"$source/tests/guests/boot" --out linux.boot --smp 2 --plugin \
		"$plugin,host-view=linux.d,cpus=0:0,host=synthetic,code=linux.code,truth=linux.truth" work -- -no-shutdown \
		-chardev "pipe,id=qmp,path=$out/linux.qmp" -mon chardev=qmp,mode=control >linux.log 2>&1 || rc=$?
	if [ $rc = 77 ]; then
		grep '^skipped:' linux.log
		exit 77
	fi
	check_log 'Linux: powered off' linux.log [ $rc = 0 ]
	[ $rc = 0 ] || kill "$background"
	wait "$background"
	background=''
	for i in 0 1; do
		complete linux $i 1000000
	done
	whole linux 0 0 1
	by_memory
	check 'Linux: at most 4 MiB' [ "$(size linux.code)" -le $((4 << 20)) ]
	"$code_check" linux.code
}

case $part in
bare) bare ;;
linux) linux ;;
esac
finish
