#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# isa=rtit in the host view, with host-firmware.S: streams, whose flow must match what was executed;
# the side record, by which a shared stream is split; losses; refused options.
#
#	test-rtit-host.sh SOURCE PLUGIN VMPT FLOW-CHECK CLOCK-CHECK OUT
set -u

source=$1
plugin=$(realpath "$2")
vmpt=$(realpath "$3")
flow_check=$(realpath "$4")
clock_check=$(realpath "$5")
out=$6
status=33

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
mkdir -p "$out"
export LC_ALL=C
get_qemu
need as ld
source=$(realpath "$source")
cd "$out" || exit 1
rm -rf ./*.d ./*.split ./*.truth.*

show()
{
	tail -n 20 stderr flow.log 2>/dev/null
}

# firmware LOOPS HALTS RESETS: builds it, prints its file's name.
firmware()
{
	local name=firmware-$1-$2-$3

	as --32 --defsym "LOOPS=$1" --defsym "HALTS=$2" --defsym "RESETS=$3" -o "$name.o" \
		"$source/tests/qemu-plugin/host-firmware.S" &&
		ld -m elf_i386 -Ttext 0xf0000 --oformat binary -o "$name.bin" "$name.o"
	echo "$name.bin"
}

# start OPTIONS FIRMWARE…: runs QEMU by exec.
start()
{
	local options=$1 bios=$2
	shift 2
	exec "$qemu" -accel tcg,thread=multi -machine pc -m 16 -nodefaults -display none \
		-device isa-debug-exit,iobase=0xf4,iosize=1 -bios "$bios" \
		-plugin "$plugin,isa=rtit,$options" "$@" </dev/null
}
export -f start
export qemu plugin

run()
{
	rc=0
	within 60 bash -c 'start "$@"' run "$@" >stdout 2>stderr || rc=$?
}

# ---- checks of a trace ----

# Packets, one line each: kind, fields. A bad packet has no kind.
dump()
{
	"$vmpt" dump -q --json "$@" 2>dump.err | sed -n 's/.*"packet":"\([^"]*\)"/\1 /p'
}

# How many packets of kind $2.
count()
{
	dump "$1" | awk -v kind="$2" '$1 == kind { n++ } END { print n + 0 }'
}

# STS times do not decrease. They have 40 bits of nanoseconds since the host's boot, which wrap
# every 18 minutes.
time_goes_on()
{
	dump "$1" | awk 'function number(hex, i, n) {
			for (i = 1; i <= length(hex); i++)
				n = 16 * n + index("0123456789abcdef", substr(hex, i, 1)) - 1
			return n + 0
		}
		$1 == "STS" { sub(/.*"tsc":"0x/, ""); sub(/".*/, ""); t = number($0)
			if (n++ && (t - last + 2 ^ 40) % 2 ^ 40 >= 2 ^ 39)
				bad = 1
			last = t }
		END { exit bad || !n }'
}

# A run: PSB, FUP.PGE, STS (the time); FUP.PGD at its end. There is nothing between two runs, except
# PSB, FUP.BuffOvf, FUP.PGD where some were lost.
runs_are_whole()
{
	dump "$1" | awk '$1 == "PSB" && !on { psb = 1; next }
		$1 == "FUP.PGE" { if (!psb || on) bad = 1; on = 1; psb = 0; pge = NR; n++; next }
		$1 == "FUP.BuffOvf" { if (!psb || on) bad = 1; on = 1; psb = 0; next }
		NR == pge + 1 && $1 != "STS" { bad = 1 }
		!on { bad = 1 }
		$1 == "FUP.PGD" { on = 0 }
		END { exit bad || on || n < 2 }'
}

# The bytes of vCPU $3 of VM $2 in DIR $1's stream of host CPU $4, using only the side record.
take_apart()
{
	local size

	size=$(stat -c %s "$1/cpu$4.rtit")
	sed -n "s/^{\"rtit\":1,\"vm\":\"\([^\"]*\)\",\"vcpu\":\([0-9]*\),\"cpu\":$4,\"offset\":\"\(0x[0-9a-f]*\)\",.*/\1 \2 \3/p" \
		"$1/vms.jsonl" | while read -r vm vcpu offset; do echo "$((offset)) $vm $vcpu"; done |
		sort -n | awk -v size="$size" -v vm="$2" -v vcpu="$3" '
			mine { print from, $1 - from }
			{ mine = $2 == vm && $3 == vcpu; from = $1 }
			END { if (mine) print from, size - from }' |
		while read -r from n; do
			dd if="$1/cpu$4.rtit" iflag=skip_bytes,count_bytes skip="$from" count="$n" \
				bs=64k status=none
		done
}

flow()
{
	rc=0
	"$flow_check" --unfiltered "$@" >flow.log 2>&1
}

clock()
{
	rc=0
	"$clock_check" "$@" >flow.log 2>&1
}

# ---- one vCPU ----

small=$(firmware 100 10 0)
run host-view=one.d,vm=one,truth=one.truth "$small"
check 'one: ran' [ $rc = $status ]
check 'one: the summary' grep -q '^vmpt: host CPU 0: [0-9]* runs, [0-9]* bytes$' stderr
check 'one: no other line' [ "$(wc -l <stderr)" = 1 ]
runs=$(sed -n 's/^vmpt: host CPU 0: \([0-9]*\) runs.*/\1/p' stderr)
check 'one: no stream of Intel PT' [ ! -e one.d/cpu0.pt ]
check 'one: record' grep -qx '{"rtit":1,"vm":"one","vcpu":0,"cpu":0,"offset":"0x0",'\
'"tsc_offset":"0x0","core_offset":"0x0"}' one.d/vms.jsonl
check 'one: one line of the record' [ "$(wc -l <one.d/vms.jsonl)" = 1 ]
check 'one: flow' flow one.d/cpu0.rtit one.truth.0
# 100 OUTs to 80h, 2 CMOS accesses, an NMI, 11 interrupts or HLTs, and the final OUT.
check 'one: runs' [ "$runs" -ge 115 -a "$runs" -le 126 ]
check 'one: FUP.PGE at each VM entry' [ "$(count one.d/cpu0.rtit FUP.PGE)" = "$runs" ]
check 'one: FUP.PGD at each VM exit' [ "$(count one.d/cpu0.rtit FUP.PGD)" = "$runs" ]
# There are more if its thread waited for a host CPU.
check 'one: an STS each' [ "$(count one.d/cpu0.rtit STS)" -ge "$runs" ]
check 'one: runs are whole' runs_are_whole one.d/cpu0.rtit
check 'one: time' time_goes_on one.d/cpu0.rtit

# Cycle counts; no time at all, no compressed RETs; LESS_PKTS, and every erratum that changes a
# stream without ranges.
run host-view=cycles.d,truth=cycles.truth,ctl=0xce0e "$small"
check 'cycles: flow' flow --cycle-acc cycles.d/cpu0.rtit cycles.truth.0
# With and without E6, which the clock only learns from a contradiction. In that case, and with a
# ratio other than the plugin's 10, its error is less than a run.
for ctl in 0xce0e 0xe0e; do
	run host-view=clock.d,ctl=$ctl,errata=0x40 "$small"
	check "clock, ctl=$ctl, ratio measured" clock --bounded=60 clock.d/cpu0.rtit
	check "clock, ctl=$ctl, ratio 10" clock --bounded=60 --ratio=10 clock.d/cpu0.rtit
	rm -r clock.d
done
for ratio in 0 8 10 12; do
	check "cycles: clock, ratio $ratio" clock --sts --bounded=60 --ratio=$ratio cycles.d/cpu0.rtit
done
run host-view=bare.d,truth=bare.truth,ctl=0xc "$small"
check 'bare: flow' flow bare.d/cpu0.rtit bare.truth.0
check 'bare: no time' [ "$(dump bare.d/cpu0.rtit | grep -c -e STS -e MTC)" = 0 ]
run host-view=less.d,truth=less.truth,ctl=0xde0c,errata=0xfe "$small"
check 'less: flow' flow less.d/cpu0.rtit less.truth.0
run host-view=user.d,ctl=0xce08 "$small"
check 'user only: no branch' [ "$(dump user.d/cpu0.rtit | grep -c -e TNT -e TIP -e FUP)" = 0 ]

run host-view=slice.d,vm=slice,slice-us=1,truth=slice.truth "$small"
check 'slice: flow' flow slice.d/cpu0.rtit slice.truth.0
check 'slice: more runs' [ "$(count slice.d/cpu0.rtit FUP.PGE)" -gt "$runs" ]

run host-view=reset.d,truth=reset.truth "$(firmware 50 2 2)" -smp 2
check 'reset: ran' [ $rc = $status ]
for i in 0 1; do
	check "reset: flow of vCPU $i" flow reset.d/cpu$i.rtit reset.truth.$i
done

# ---- several vCPUs, several QEMUs ----

middle=$(firmware 200 0 0)
run host-view=two.d,vm=two,cpus=0:0,truth=two.truth "$middle" -smp 2
check 'two: ran' [ $rc = $status ]
check 'two: one stream' [ -s two.d/cpu0.rtit -a ! -e two.d/cpu1.rtit ]
check 'two: time' time_goes_on two.d/cpu0.rtit
check 'two: runs are whole' runs_are_whole two.d/cpu0.rtit
check 'two: a line for each change' [ "$(wc -l <two.d/vms.jsonl)" -ge 3 ]
for i in 0 1; do
	take_apart two.d two $i 0 >two.$i.rtit
	check "two: flow of vCPU $i" flow two.$i.rtit two.truth.$i
done
check 'two: all bytes have an owner' \
	[ "$(cat two.0.rtit two.1.rtit | wc -c)" = "$(stat -c %s two.d/cpu0.rtit)" ]
"$vmpt" split -q --side-record=two.d/vms.jsonl -o two.split two.d/cpu0.rtit >split.log 2>&1
for i in 0 1; do
	check "two: vmpt split: flow of vCPU $i" \
		flow two.split/vm-two-vcpu$i.cpu0.rtit two.truth.$i
done
check 'two: vmpt vms: both' [ "$("$vmpt" vms -q --json --side-record=two.d/vms.jsonl \
	two.d/cpu0.rtit | grep -c '"vcpu"')" -ge 2 ]

for vm in left right; do
	within 60 bash -c 'start "$@"' run \
		"host-view=shared.d,vm=$vm,cpus=3:5,truth=$vm.truth" "$middle" -smp 2 \
		>"$vm.out" 2>"$vm.err" &
done
rc=0
wait -n || rc=$?
check 'shared: one ran' [ $rc = $status ]
wait -n || rc=$?
check 'shared: the other ran' [ $rc = $status ]
for cpu in 3 5; do
	check "shared: time on CPU $cpu" time_goes_on shared.d/cpu$cpu.rtit
	check "shared: runs on CPU $cpu" runs_are_whole shared.d/cpu$cpu.rtit
done
for vm in left right; do
	for i in 0 1; do
		take_apart shared.d $vm $i $((3 + 2 * i)) >shared.rtit
		check "shared: flow of $vm's vCPU $i" flow shared.rtit $vm.truth.$i
	done
done

# ---- errors ----

# A file-size limit of 4 KiB: runs are lost, the guest continues, and the stream ends with an
# overflow or the summary says that there was no room for it.
rc=0
(
	ulimit -f 4
	run host-view=full.d,vm=full "$middle"
	echo $rc >full.rc
)
rc=$(cat full.rc)
check 'full: ran' [ "$rc" = $status ]
check 'full: why' grep -q '^vmpt: host CPU 0: .*; lost [0-9]* runs, [0-9]* bytes: File too large' \
	stderr
check 'full: the runs are whole' runs_are_whole full.d/cpu0.rtit
# The next QEMU continues after it, and marks the loss if that one could not.
run host-view=full.d,vm=full "$small"
check 'full: continues' [ "$(count full.d/cpu0.rtit FUP.BuffOvf)" -ge 1 ]

for options in perf-data=x host=synthetic vmcs=0x1000 tsc-multiplier=1; do
	run "host-view=no.d,$options" "$small"
	check "$options: refused" [ $rc = 1 ]
	check "$options: why" grep -q "^vmpt: $options is of Intel PT" stderr
done
for ctl in 0x1 0x2000 0x100 0x80; do
	run "host-view=no.d,ctl=$ctl" "$small"
	check "ctl=$ctl: refused" grep -q 'Trace_En, TraceActive, Dest and CR3En' stderr
done
run host-view=no.d,ctl=0x20 "$small"
check 'ctl=0x20: a reserved bit' grep -q 'a processor would refuse it (#GP)' stderr
qemu_pt()
{
	rc=0
	within 60 "$qemu" -accel tcg -machine pc -m 16 -nodefaults -display none \
		-device isa-debug-exit,iobase=0xf4,iosize=1 -bios "$small" \
		-plugin "$plugin,$1" </dev/null >stdout 2>stderr || rc=$?
}
qemu_pt host-view=no.d,errata=2
check 'errata of Intel PT: refused' grep -q '^vmpt: errata=2 is of RTIT: add isa=rtit' stderr
qemu_pt host-view=one.d,vm=other
check 'Intel PT in the same folder' [ -s one.d/cpu0.pt ]

finish
