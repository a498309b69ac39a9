#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Does the flow in a trace of the host view match what QEMU executed, instruction for instruction?
# libipt decodes; flow-check compares with the plugin's truth file.
#
#	test-flow.sh SOURCE PLUGIN FLOW-CHECK VMPT OUT bare|linux|guest|more
#
# bare	firmware with a known number of instructions; SeaBIOS and a reset, traced in several ways, also
#	between runs of a host
# linux	Linux to power-off with programs that modify themselves, take signals and change modes
# guest	what a Linux traces of itself in the guest view, cut by level, by IP filter and by TraceStop
# more	the same for longer; Linux with two vCPUs that share a host CPU with the host, split, and detect PT in their
#	processor; a Linux that is reset from outside at any time
set -u

source=$1
plugin=$(realpath "$2")
flow_check=$(realpath "$3")
vmpt=$(realpath "$4")
out=$5
part=$6
# Counted by hand: see flow-firmware.S. CLI and HLT after the end are optional.
FIRMWARE_INSNS=2259

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
get_qemu
mkdir -p "$out"
out=$(realpath "$out")
export LC_ALL=C
# Traces and truths of whole boots are large.
trap 'rm -f "$out"/*/truth.* "$out"/*/cpu*.pt "$out"/*/split/*.pt' EXIT

# Run a machine of a few MB with its files in folder $1; $2: the plugin's options, the rest: the
# machine's.
machine()
{
	local name=$1 options=$2
	shift 2
	rm -rf "${out:?}/$name"
	mkdir -p "$out/$name"
	rc=0
	within 60 "$qemu" -accel tcg -cpu max,vendor=GenuineIntel -machine pc -m 16 -nodefaults \
		-display none -device isa-debug-exit,iobase=0xf4,iosize=1 -plugin \
		"$plugin,host-view=$out/$name,truth=$out/$name/truth$options" "$@" </dev/null \
		>"$out/$name/log" 2>&1 || rc=$?
	check_log ran "$out/$name/log" [ $rc = 33 ]
}

# Run the Linux guest $2 with the plugin's options $3; the rest are boot's options.
linux()
{
	local name=$1 kind=$2 options=$3 before=()
	shift 3
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		before+=("$1")
		shift
	done
	rm -rf "${out:?}/$name"
	mkdir -p "$out/$name"
	rc=0
	"$source/tests/guests/boot" --out "$out/$name/boot" --plugin \
		"$plugin,host-view=$out/$name,truth=$out/$name/truth$options" "${before[@]}" \
		"$kind" "$@" >"$out/$name/log" 2>&1 || rc=$?
	if [ $rc = 77 ]; then
		grep '^skipped:' "$out/$name/log"
		exit 77
	fi
	check_log 'powered off' "$out/$name/log" [ $rc = 0 ]
}

# Compare the trace $2 with the truth $3; flow-check's output goes to $1.
flow()
{
	"$flow_check" "$2" "$3" >"$1" 2>&1
}

# A count of flow-check's: "12 events" in file $1.
count()
{
	sed -n "s/.*\\b\\([0-9]\\+\\) $2.*/\\1/p" "$1" | head -n 1
}

# The trace of one host CPU and the truth of vCPU 0 are equal, with at least ${3-} instructions.
equal()
{
	local dir=$out/$1 at_least=$2

	rc=0
	flow "$dir/flow" "$dir/cpu0.pt" "$dir/truth.0" || rc=$?
	check_log "$1: flow" "$dir/flow" [ $rc = 0 ]
	check_log "$1: instructions" "$dir/flow" [ "$(count "$dir/flow" instructions)" -ge "$at_least" ]
}

# Split the trace in folder $1 by VMCS: $2 streams, in the order of the side record.
split()
{
	local dir=$out/$1 pointers vmcs i=0

	rc=0
	"$vmpt" split --conceal -q -f -o "$dir/split" "$dir/cpu0.pt" >"$dir/split.log" 2>&1 || rc=$?
	check_log "$1: split" "$dir/split.log" [ $rc = 0 ]
	mapfile -t pointers < <(sed -n 's/.*"vmcs":"0x\([0-9a-f]*\)".*/\1/p' "$dir/vms.jsonl")
	for vmcs in "${pointers[@]}"; do
		rc=0
		flow "$dir/flow.$i" "$dir/split/vmcs-$vmcs.cpu0.pt" "$dir/truth.$i" || rc=$?
		check_log "$1: vCPU $i" "$dir/flow.$i" [ $rc = 0 ]
		i=$((i + 1))
	done
	check_log "$1: $2 streams" "$dir/vms.jsonl" [ $i = "$2" ]
}

# ---- small machines ----

# Source $1 as 16-bit code at address $2 in file $3.
assemble()
{
	gcc -c -m32 "$source/tests/qemu-plugin/$1" -o "$3.o" &&
		ld -m elf_i386 -e "$2" -Ttext="$2" "$3.o" -o "$3.elf" &&
		objcopy -O binary -j .text "$3.elf" "$3" && return
	check "$1: assembled" false
	return 1
}

bare()
{
	local flow at disk

	if assemble flow-firmware.S 0 "$out/firmware.bin"; then
		machine firmware '' -bios "$out/firmware.bin"
		equal firmware $FIRMWARE_INSNS
		flow=$out/firmware/flow
		check_log 'firmware: at most two more' "$flow" \
			[ "$(count "$flow" instructions)" -le $((FIRMWARE_INSNS + 2)) ]
		check_log 'firmware: INT and fault' "$flow" [ "$(count "$flow" 'events and')" = 2 ]
		check_log 'firmware: OUT' "$flow" [ "$(count "$flow" emulated)" = 1 ]
		# The comparison can fail: other TNTs, a truth without its end.
		cp "$out/firmware/cpu0.pt" "$out/firmware/bad.pt"
		# Leave one of six branches; time packets vary, so search for the place.
		at=$("$vmpt" dump -q --no-bytes --kinds=tnt-8 "$out/firmware/cpu0.pt" |
			awk 'length($4) == 6 { print $1; exit }')
		printf '\x06' |
			dd of="$out/firmware/bad.pt" bs=1 seek=$((0x${at:-0})) conv=notrunc status=none
		rc=0
		flow "$out/firmware/bad" "$out/firmware/bad.pt" "$out/firmware/truth.0" || rc=$?
		check_log 'firmware: a wrong byte' "$out/firmware/bad" [ $rc = 1 ]
		head -c -28 "$out/firmware/truth.0" >"$out/firmware/truth.bad"
		rc=0
		flow "$out/firmware/bad" "$out/firmware/cpu0.pt" "$out/firmware/truth.bad" || rc=$?
		check_log 'firmware: a short truth' "$out/firmware/bad" [ $rc = 1 ]
	fi

	# CS that differs from its selector; the guest view emulates instructions there.
	if assemble flow-unreal.S 0 "$out/unreal.bin"; then
		machine unreal ,guest-view=1 -bios "$out/unreal.bin"
		equal unreal 20
	fi

	# A task switch, which is only visible by CR3.
	if assemble flow-task.S 0 "$out/task.bin"; then
		machine task '' -bios "$out/task.bin"
		equal task 4000
		"$vmpt" dump --kinds=pip,tip "$out/task/cpu0.pt" >"$out/task/pips" 2>&1
		check_log 'task: PIP of the switch' "$out/task/pips" \
			grep -qzP 'PIP +cr3=0x20000 nr\n[^\n]* PIP +cr3=0x21000 nr\n[^\n]* TIP ' "$out/task/pips"
	fi

	# SeaBIOS, after which the machine resets itself once.
	if assemble flow-reset.S 0x7c00 "$out/reset.img"; then
		disk=(-drive "format=raw,if=ide,file=$out/reset.img")
		machine bios '' "${disk[@]}"
		equal bios 2000000
		check_log 'bios: into SMM and back' "$out/bios/flow" \
			[ "$(count "$out/bios/flow" astray)" -ge 2 ]
		# Branches only, with frequent PSBs; then with cycles, and without RET compression.
		machine bios-bare ,ctl=0x200c,slice-us=200 "${disk[@]}"
		equal bios-bare 2000000
		machine bios-cycles ,ctl=0x2e0e,slice-us=200 "${disk[@]}"
		equal bios-cycles 2000000
		machine bios-host ,host=synthetic,guest-view=1 "${disk[@]}"
		split bios-host 1
	fi
}

# ---- Linux ----

linux_programs()
{
	linux programs work ''
	equal programs 100000000
	check_log 'programs: events' "$out/programs/flow" \
		[ "$(count "$out/programs/flow" 'events and')" -gt 1000 ]
}

two_vcpus()
{
	local i

	linux smp hello ,cpus=0:0,host=synthetic,guest-view=1 --smp 2
	split smp 2
	for i in 0 1; do
		check_log "smp: vCPU $i executed code" "$out/smp/flow.$i" \
			[ "$(count "$out/smp/flow.$i" instructions)" -gt 1000000 ]
	done
}

# A reset from outside at some time during the boot; the guest boots again.
reset()
{
	rm -f "$out/qmp.in" "$out/qmp.out"
	mkfifo "$out/qmp.in" "$out/qmp.out"
	cat "$out/qmp.out" >"$out/qmp.log" &
	{
		echo '{"execute": "qmp_capabilities"}'
		sleep 1.5
		echo '{"execute": "system_reset"}'
		sleep 2
	} >"$out/qmp.in" &
	linux reset hello '' -- -action reboot=reset \
		-chardev "pipe,id=qmp,path=$out/qmp" -mon chardev=qmp,mode=control
	check_log 'reset: came' "$out/qmp.log" grep -q '"RESET"' "$out/qmp.log"
	equal reset 100000000
	check_log 'reset: it led astray' "$out/reset/flow" [ "$(count "$out/reset/flow" astray)" -ge 1 ]
}

# H3: the traces that a guest's program makes of itself are parts of one stream, whose truth is the
# whole boot, cut by what the guest programmed. $2 rounds; areas of $3 pages. libipt takes a MOV CR3
# at the end of a kernel's part for that end, hence nopti.
guest_views()
{
	local dir=$out/$1

	rm -rf "$dir"
	mkdir -p "$dir"
	gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -static -no-pie \
		-o "$dir/guest-modes" "$source/tests/qemu-plugin/guest-modes.c" ||
		check 'guest-modes compiles' false
	rc=0
	"$source/tests/guests/boot" --out "$dir/boot" --append nopti --run "$2,$3" \
		--file "test=$source/tests/qemu-plugin/guest-cut" --file "guest-modes=$dir/guest-modes" \
		--plugin "$plugin,guest-view=1,pt=full,truth=$dir/truth" work >"$dir/log" 2>&1 || rc=$?
	if [ $rc = 77 ]; then
		grep '^skipped:' "$dir/log"
		exit 77
	fi
	check_log "H3: $1: powered off" "$dir/log" [ $rc = 0 ]
	check_log "H3: $1: no area was full" "$dir/boot/serial.log" \
		[ "$(grep -c '^mode: .* flags=0' "$dir/boot/serial.log")" = 5 ]
	cat "$dir/boot/files/areas/"* >"$dir/cpu0.pt"
	rc=0
	"$flow_check" --traced "$dir/cpu0.pt" "$dir/truth.0" >"$dir/flow" 2>&1 || rc=$?
	check_log "H3: $1: flow" "$dir/flow" [ $rc = 0 ]
	check_log "H3: $1: instructions" "$dir/flow" \
		[ "$(count "$dir/flow" instructions)" -ge $((100 * $2)) ]
	check_log "H3: $1: runs" "$dir/flow" [ "$(count "$dir/flow" runs)" -ge "$2" ]
	# It can fail: one of the parts is missing.
	cat "$dir/boot/files/areas/"[1245]* >"$dir/bad.pt"
	rc=0
	"$flow_check" --traced "$dir/bad.pt" "$dir/truth.0" >"$dir/bad" 2>&1 || rc=$?
	check_log "H3: $1: without a part" "$dir/bad" [ $rc = 1 ]
	rm -f "$dir/bad.pt"
}

case $part in
bare) bare ;;
linux) linux_programs ;;
guest) guest_views guest 1000 512 ;;
more)
	guest_views guest-long 100000 8192
	two_vcpus
	reset
	;;
esac
finish
