#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The host view in a real QEMU, with host-firmware.S: streams, side record, perf.data, sharing, and
# errors.
#
#	test-host-view.sh SOURCE PLUGIN VMPT FLOW-CHECK HOST-FLOW OUT
set -u

source=$1
plugin=$(realpath "$2")
vmpt=$(realpath "$3")
flow_check=$(realpath "$4")
host_flow=$(realpath "$5")
out=$6
status=33
background='' mounted=''

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
mkdir -p "$out"
get_qemu
need as ld perf
source=$(realpath "$source")
cd "$out" || exit 1
rm -rf ./*.d ./*.split ./*.truth.* ./*.data

cleanup()
{
	[ -z "$background" ] || kill -9 "$background" 2>/dev/null
	[ -z "$mounted" ] || umount "$mounted"
}
trap cleanup EXIT

show()
{
	cat stderr
}

sum()
{
	awk '{ n += $1 } END { print n + 0 }'
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
		-plugin "$plugin,$options" "$@" <"${input:-/dev/null}"
}
export -f start
export qemu plugin

run()
{
	rc=0
	within 60 bash -c 'start "$@"' run "$@" >stdout 2>stderr || rc=$?
}

# ---- checks of a trace ----

# Packets, one line each: offset, owner, kind, fields.
dump()
{
	"$vmpt" dump --no-bytes "$@" | tail -n +2
}

# How many packets match $2.
count()
{
	dump "$1" | grep -c -- "$2"
}

no_damage()
{
	"$vmpt" stat --json "$1" | grep -q '"loss_count": 0,' &&
		[ "$("$vmpt" stat --json "$1" | grep -c '"loss_count": 0,')" = \
			"$("$vmpt" stat --json "$1" | grep -c '"loss_count"')" ]
}

# The TSC packets of a stream do not decrease. (A shell is slow: hex is compared as text.)
time_goes_on()
{
	dump --kinds=tsc "$1" | sed 's/.*tsc=0x//' |
		awk '{ t = sprintf("%16s", $1); gsub(/ /, "0", t) } t < last { bad = 1 }
			{ last = t } END { exit bad || !NR }'
}

# MTCFreq 3 (ctl=0x300e60c), a TSC of 1 GHz and a crystal of 25 MHz: TMA has the TSC in ticks of the
# crystal, and MTCs are consecutive.
clocks_agree()
{
	dump --kinds=tsc,tma,mtc "$1" | awk '
		function hex(s, n, i)
		{
			sub(/.*=0x/, "", s)
			n = 0
			for (i = 1; i <= length(s); i++)
				n = n * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
			return n
		}
		$3 == "TSC" { tsc = hex($4) }
		$3 == "TMA" {
			mtc = int(hex($4) / 8)
			if (hex($4) != int(tsc / 40) % 65536 || hex($5) != tsc % 40)
				bad = 1
		}
		$3 == "MTC" && hex($4) != ++mtc % 256 { bad = 1 }
		$3 == "MTC" { n++ }
		END { exit bad || !n }'
}

# Runs follow Table 33-56: row 12 (TIP.PGE after PIP with NR, or a PSB+, and MODE.Exec), row 11
# (FUP, TIP.PGD).
rows_11_and_12()
{
	dump --kinds=psb,psbend,pip,mode,ip,tnt "$1" | awk '
		$3 == "PIP" && $5 != "nr" { bad = 1 }
		$3 == "TIP.PGE" && !(last == "MODE.Exec" &&
			(before == "PIP" || before == "PSBEND") && !on) { bad = 1 }
		$3 == "TIP.PGE" { on = 1; n++ }
		$3 == "TIP.PGD" && !(last == "FUP" && on) { bad = 1 }
		$3 == "TIP.PGD" { on = 0 }
		{ before = last; last = $3 }
		END { exit bad || on || n < 2 }'
}

# There is a PSB+ wherever the VMCS changes.
psb_at_changes()
{
	dump "$1" | awk '{ sub(/[~?]*$/, "", $2) }
		$2 != last { if (NR > 1) n++; if ($3 != "PSB") bad = 1 } { last = $2 }
		END { exit bad || !n }'
}

# value FILE VM VCPU FIELD: from the side record.
value()
{
	sed -n "s/^{\"vm\":\"$2\",\"vcpu\":$3,.*\"$4\":\"0x\([0-9a-f]*\)\".*/\1/p" "$1/vms.jsonl"
}

# The streams of a vCPU against its truth: flow_is_true SPLIT DIR VM VCPU TRUTH
flow_is_true()
{
	local file

	file=$(echo "$1"/vmcs-"$(value "$2" "$3" "$4" vmcs)"*.pt)
	"$flow_check" "$file" "$5" >flow.log 2>&1 || {
		cat flow.log
		return 1
	}
}

# ---- one vCPU ----

small=$(firmware 100 10 0)
event=0x8300e60c # EventEn: each exit has its reason
run "host-view=one.d,vm=one,vmcs=0x12345000,ctl=$event" "$small"
check 'one: ran' [ $rc = $status ]
check 'one: the summary' grep -q '^vmpt: host CPU 0: [0-9]* runs, [0-9]* bytes$' stderr
check 'one: no other line' [ "$(wc -l <stderr)" = 1 ]
check 'one: bytes' [ "$(sed -n 's/^vmpt: host CPU 0:.* \([0-9]*\) bytes$/\1/p' stderr)" = \
	"$(stat -c %s one.d/cpu0.pt)" ]
check 'one: record' grep -qx '{"vm":"one","vcpu":0,"vmcs":"0x12345000","tsc_offset":"0x0",'\
'"tsc_multiplier":"0x1000000000000","since":"0x[0-9a-f]*"}' one.d/vms.jsonl
check 'one: one record' [ "$(wc -l <one.d/vms.jsonl)" = 1 ]
check 'one: no damage' no_damage one.d/cpu0.pt
check 'one: OUT to 80h, CMOS and the end' [ "$(count one.d/cpu0.pt 'VMXR) payload=0x1e$')" = 103 ]
check 'one: an NMI' [ "$(count one.d/cpu0.pt 'VMXR) payload=0x0$')" = 1 ]
check 'one: its vector' \
	[ "$(count one.d/cpu0.pt 'CFE .*(VMEXIT_INTR) vector=0x2$')" = 1 ]
# SDM 3 table 28-5, bits 6 (an immediate port), 3 (IN), 31:16: OUT to 80h, to 70h, IN from 71h, OUT
# to DX = F4h.
for q in 100=800040 1=700040 1=710048 1=f40000; do
	check "one: qualification ${q#*=}" \
		[ "$(count one.d/cpu0.pt "VMXQ) payload=0x${q#*=}\$")" = "${q%=*}" ]
done
halts=$(count one.d/cpu0.pt 'VMXR) payload=0xc$')
# A pending interrupt ends HLT at once.
check 'one: HLT' [ "$halts" -ge 1 -a "$halts" -le 10 ]
# The one that the loop waits for, QEMU's end, and those that arrived before their HLT.
check 'one: interrupts' [ "$(count one.d/cpu0.pt 'VMXR) payload=0x1$')" = $((12 - halts)) ]
check 'one: all of one VMCS' [ "$(dump one.d/cpu0.pt | awk '{ sub(/[~?]/, "", $2); print $2 }' |
	sort -u)" = 12345000 ]
check 'one: time' time_goes_on one.d/cpu0.pt

run host-view=rows.d,truth=rows.truth "$small"
check 'rows: ran' [ $rc = $status ]
check 'rows: flow' "$flow_check" rows.d/cpu0.pt rows.truth.0 >flow.log
check 'rows: Table 33-56, 11 and 12' rows_11_and_12 rows.d/cpu0.pt
check 'rows: a name' grep -q '^{"vm":"vm-[0-9]*"' rows.d/vms.jsonl

# CYC; no timing at all; no compressed RETs; only PSB+
for ctl in 0x300e60e 0x300200c 0x300680c; do
	run "host-view=ctl-$ctl.d,vm=ctl,ctl=$ctl,truth=ctl-$ctl.truth" "$small"
	check "ctl $ctl: no damage" no_damage ctl-$ctl.d/cpu0.pt
	check "ctl $ctl: flow" "$flow_check" ctl-$ctl.d/cpu0.pt ctl-$ctl.truth.0 >flow.log
done
check 'ctl: CYCs' [ "$(count ctl-0x300e60e.d/cpu0.pt ' CYC ')" -ge 100 ]
run host-view=user.d,vm=ctl,ctl=0x3002008 "$small"
dump user.d/cpu0.pt >user.log
check 'user only: PSB+' grep -q ' PSB' user.log
check 'user only: no flow' not grep -q ' TIP\| TNT' user.log

run "host-view=slice.d,vm=slice,slice-us=1,ctl=$event" "$small"
check 'slice: exits' [ "$(count slice.d/cpu0.pt 'VMXR) payload=0x34$')" -ge 10 ]
run host-view=sliced.d,vm=slice,slice-us=1,truth=slice.truth "$small"
check 'slice: flow' "$flow_check" sliced.d/cpu0.pt slice.truth.0 >flow.log

# 33.8.3.3: TSC × multiplier + offset, from the record's host TSC on.
run "host-view=tsc.d,vm=tsc,tsc-offset=0x100000000000,tsc-multiplier=0x2000000000000" "$small"
since=$((2 * 0x$(value tsc.d tsc 0 since) + 0x100000000000))
first=$(dump --kinds=tsc tsc.d/cpu0.pt | sed -n '1s/.*tsc=//p')
check 'tsc: after the record' [ $((first)) -ge $since ]
check 'tsc: not long after' [ $((first)) -le $((since + 120000000000)) ]

run 'host-view=reset.d,vm=reset,truth=reset.truth' "$(firmware 50 2 2)" -smp 2
check 'reset: ran' [ $rc = $status ]
# Counts both vCPUs' start-ups and resets while they ran.
check 'reset: why' grep -q '^vmpt: [1-9][0-9]* times execution went on elsewhere without a branch' \
	stderr
for i in 0 1; do
	check "reset: flow of vCPU $i" "$flow_check" reset.d/cpu$i.pt reset.truth.$i >flow.log
done

# ---- several vCPUs, several QEMUs ----

middle=$(firmware 800 0 0)
run 'host-view=two.d,vm=two,cpus=0:0,ctl=0x300e60c,truth=two.truth' "$middle" -smp 2
check 'two: ran' [ $rc = $status ]
check 'two: one stream' [ -s two.d/cpu0.pt -a ! -e two.d/cpu1.pt ]
check 'two: no damage' no_damage two.d/cpu0.pt
check 'two: time' time_goes_on two.d/cpu0.pt
check 'two: clocks' clocks_agree two.d/cpu0.pt
check 'two: PSB+ at each change' psb_at_changes two.d/cpu0.pt
check 'two: rows' rows_11_and_12 two.d/cpu0.pt
"$vmpt" split -q -o two.split two.d/cpu0.pt >split.log
for i in 0 1; do
	check "two: flow of vCPU $i" flow_is_true two.split two.d two $i two.truth.$i
done

for vm in left right; do
	within 60 bash -c 'start "$@"' run \
		"host-view=shared.d,vm=$vm,cpus=3:5,ctl=0x300e60c,truth=$vm.truth" "$middle" -smp 2 \
		>"$vm.out" 2>"$vm.err" &
done
rc=0
wait -n || rc=$?
check 'shared: one ran' [ $rc = $status ]
wait -n || rc=$?
check 'shared: the other ran' [ $rc = $status ]
check 'shared: four VMCSs' [ "$(grep -o '"vmcs":"[^"]*"' shared.d/vms.jsonl | sort -u | wc -l)" = 4 ]
for cpu in 3 5; do
	check "shared: no damage on CPU $cpu" no_damage shared.d/cpu$cpu.pt
	check "shared: time on CPU $cpu" time_goes_on shared.d/cpu$cpu.pt
	check "shared: clocks of CPU $cpu" clocks_agree shared.d/cpu$cpu.pt
	check "shared: PSB+ at each change on CPU $cpu" psb_at_changes shared.d/cpu$cpu.pt
done
"$vmpt" split -q -o shared.split shared.d/cpu3.pt shared.d/cpu5.pt >split.log
for vm in left right; do
	for i in 0 1; do
		check "shared: flow of $vm's vCPU $i" \
			flow_is_true shared.split shared.d $vm $i $vm.truth.$i
	done
done

# ---- a synthetic host ----

run 'host-view=host.d,vm=host,cpus=0:0,ctl=0x300e60c,host=synthetic,truth=host.truth' "$small" -smp 2
check 'host: ran' [ $rc = $status ]
check 'host: no damage' no_damage host.d/cpu0.pt
check 'host: time' time_goes_on host.d/cpu0.pt
check 'host: clocks' clocks_agree host.d/cpu0.pt
check 'host: libipt follows it' "$host_flow" host.d/cpu0.pt host.d/host.bin@0xffffffffa0000000 \
	"$small@0xf0000" "$small@0xffff0000" >host.log
runs=$(sed -n 's/^vmpt: host CPU 0: \([0-9]*\) runs.*/\1/p' stderr)
check 'host: a VMRESUME each run' grep -q " $runs vmresume, [1-9][0-9]* vmptrld, 0 over" host.log
check 'host: a VMCS packet each VMPTRLD' [ "$(sed -n 's/.* \([0-9]*\) vmptrld.*/\1/p' host.log)" = \
	"$(dump --kinds=psb,psbend,vmcs host.d/cpu0.pt |
		awk '$3 == "PSB" { p = 1 } $3 == "PSBEND" { p = 0 } $3 == "VMCS" && !p' | wc -l)" ]
exits=$("$vmpt" vms -q --json host.d/cpu0.pt | sed -n 's/^{"owner":"vm"[^[]*"exits":\([0-9]*\),.*/\1/p' |
	sum)
check 'host: exits' [ "$exits" = "$runs" ]
"$vmpt" split -q -o host.split host.d/cpu0.pt >split.log
for i in 0 1; do
	check "host: flow of vCPU $i" flow_is_true host.split host.d host $i host.truth.$i
done

"$vmpt" split -q --conceal -o native.split host.d/cpu0.pt >split.log
for i in 0 1; do
	check "host: flow of vCPU $i as a native trace" \
		flow_is_true native.split host.d host $i host.truth.$i
done
for file in native.split/*.pt; do
	dump "$file" >native.log
	check "host: ${file##*/}: PIPs" grep -q ' PIP ' native.log
	check "host: ${file##*/}: nothing of VMX" not grep -q ' VMCS \| nr$' native.log
done

# ---- perf.data ----

run 'host-view=perf.d,perf-data=perf.data,vm=perf,truth=perf.truth' "$small" -smp 2
check 'perf: ran' [ $rc = $status ]
check 'perf: no raw files' [ ! -e perf.d/cpu0.pt ]
check 'perf: vmpt reads it' no_damage perf.data
check 'perf: two CPUs' [ "$("$vmpt" stat --json perf.data | grep -c '"cpu": [01],')" = 2 ]
runs=$(sed -n 's/^vmpt: host CPU [01]: \([0-9]*\) runs.*/\1/p' stderr | sum)
perf script -D -i perf.data >perf.log 2>perf.err
check 'perf: script -D' [ -s perf.log ]
check 'perf: no complaint' [ ! -s perf.err ]
check 'perf: a record a run' [ "$(grep -c PERF_RECORD_AUXTRACE\ size perf.log)" = "$runs" ]
check 'perf: the same packets' [ "$(grep -c ' TIP.PGE 0x' perf.log)" = "$runs" ]
check 'perf: nothing unknown' not grep -q 'Bad packet' perf.log
check 'perf: report -D' perf report -D -i perf.data >perf.log 2>&1
"$vmpt" split -q -o perf.split perf.data >split.log
for i in 0 1; do
	check "perf: flow of vCPU $i" flow_is_true perf.split perf.d perf $i perf.truth.$i
done
run 'host-view=perf.d,perf-data=perf.data,vm=again' "$small"
check 'perf: appended' [ "$("$vmpt" vms -q --json perf.data | grep -c '"owner":"vm"')" = 3 ]
check 'perf: still no damage' no_damage perf.data

# ---- killed ----

# File $1 has more than $2 bytes.
written()
{
	[ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt "$2" ]
}

start host-view=kill.d,vm=killed,vmcs=0x1000 "$(firmware 100000000 0 0)" >stdout 2>stderr &
background=$!
wait_for written kill.d/cpu0.pt 200000
run host-view=kill.d,vm=other,ctl=0x300e60d "$small"
check 'another ctl: TraceEn' grep -q '^vmpt: ctl=0x300e60d: TraceEn' stderr
run host-view=kill.d,vm=killed,vmcs=0x1000 "$small"
check 'its name and VMCS: refused' [ $rc = 1 ]
check 'its name and VMCS: why' grep -qx 'vmpt: kill.d/vms.jsonl: vCPU 0 of killed, VMCS 0x1000, runs '\
'in another QEMU; give another vm=' stderr
check 'its name and VMCS: no second record' [ "$(wc -l <kill.d/vms.jsonl)" = 1 ]
# Its state as of another version of the plugin.
cp kill.d/cpu0.state state
printf 9 | dd of=kill.d/cpu0.state bs=1 seek=6 conv=notrunc status=none
run host-view=kill.d,vm=other "$small"
check 'another version: refused' [ $rc = 1 ]
check 'another version: why' grep -q 'cpu0.state: a QEMU .* runs with another version' stderr
head -c 8 state | dd of=kill.d/cpu0.state bs=1 conv=notrunc status=none
run host-view=kill.d,vm=other,ctl=0x200e60c "$small"
check 'another ctl: refused' [ $rc = 1 ]
check 'another ctl: why' grep -q 'cpu0.state: a QEMU that shares this host CPU runs with another' \
	stderr
{ kill -9 $background && wait $background; } 2>/dev/null
background=''
check 'killed: no damage' no_damage kill.d/cpu0.pt
# The state after a kill at the worst moment: half a run written, and "busy" set
# (qemu-plugin/host/state.h).
printf '\x01' | dd of=kill.d/cpu0.state bs=1 seek=66 conv=notrunc status=none
printf '\x19\x01\x02' >>kill.d/cpu0.pt
run host-view=kill.d,vm=after,vmcs=0x2000 "$small"
check 'after: ran' [ $rc = $status ]
check 'after: no damage' no_damage kill.d/cpu0.pt
check 'after: time' time_goes_on kill.d/cpu0.pt
check 'after: an OVF for what is missing' [ "$(count kill.d/cpu0.pt ' OVF')" = 1 ]
check 'after: PSB+ at the change' psb_at_changes kill.d/cpu0.pt
check 'after: both VMs' [ "$("$vmpt" vms -q --json kill.d/cpu0.pt | grep -c '"owner":"vm"')" = 2 ]

# The same name and VMCS again, which are free now, after half a record and after a whole one
# without its newline.
printf '{"vm":"kil' >>kill.d/vms.jsonl
run host-view=kill.d,vm=killed,vmcs=0x1000 "$small"
check 'the dead one again: ran' [ $rc = $status ]
check 'the dead one again: half a record is gone' [ "$(grep -cv \
	'^{"vm":"[a-z]*","vcpu":0,"vmcs":.*}$' kill.d/vms.jsonl)" = 0 ]
check 'the dead one again: its record' [ "$(grep -c '"vm":"killed"' kill.d/vms.jsonl)" = 2 ]
truncate -s -1 kill.d/vms.jsonl
run host-view=kill.d,vm=killed,vmcs=0x1000 "$small"
check 'no newline: both records' [ "$(grep -c '^{"vm":"killed".*}$' kill.d/vms.jsonl)" = 3 ]

# Continued with other options, and after the stream has been removed.
run host-view=kill.d,vm=after,vmcs=0x2000,ctl=0x200e60c "$small"
check 'another ctl later: ran' [ $rc = $status ]
check 'another ctl later: no damage' no_damage kill.d/cpu0.pt
rm kill.d/cpu0.pt
run host-view=kill.d,vm=after,vmcs=0x2000,ctl=0x200e60c "$small"
check 'removed: begins with a PSB' [ "$(dump kill.d/cpu0.pt | awk 'NR == 1 { print $3 }')" = PSB ]
check 'removed: no damage' no_damage kill.d/cpu0.pt

# ---- a guest that was running before ----

long=$(firmware 100000000 0 0)
rm -f migrated
(wait_for test -s from.d/cpu0.pt && echo 'migrate file:migrated' && echo quit) |
	input=/dev/stdin run host-view=from.d,vm=from "$long" -monitor stdio
check 'before: no warning' not grep -q 'does not begin' stderr
(wait_for grep -q 'does not begin' stderr && echo quit) |
	input=/dev/stdin run host-view=to.d,vm=to "$long" -incoming file:migrated -monitor stdio
check 'migrated: a warning' grep -q '^vmpt: vCPU 0 does not begin with its reset (-incoming' stderr
check 'migrated: a trace' no_damage to.d/cpu0.pt

# ---- disk full ----

# The trace ends with the guest's end or with an OVF, or so few bytes were left that the plugin
# reported that the OVF is missing. (The guest's last runs are small: they may have fitted after an
# OVF.)
ends_marked()
{
	local last

	grep -q '; no room for the OVF that [a-z ]*$' stderr && return
	# the OUT of two bytes that ends the guest is followed by a jump to itself
	last=$((0xf0000 + 0x$(nm "${middle%.bin}.o" | sed -n 's/ t last$//p')))
	dump --kinds=ovf,ip "$1" | sed -n 's/.* OVF$/OVF/p; s/.* FUP  *0x\(f[0-9a-f]\{4\}\) .*/\1/p' |
		tail -n 1 | grep -qxF -e OVF -e "$(printf %x $last)" -e "$(printf %x $((last + 1)))"
}

(
	ulimit -f 16
	start host-view=limit.d,vm=limit "$middle" >stdout 2>stderr
)
rc=$?
check 'limit: the guest continued' [ $rc = $status ]
check 'limit: why' grep -q '^vmpt: host CPU 0: .*; lost [0-9]* runs, [0-9]* bytes: File too large' \
	stderr
check 'limit: whole runs' no_damage limit.d/cpu0.pt
marks=$(count limit.d/cpu0.pt ' OVF') # a small run may still have fitted, the last one too
check 'limit: ends with an OVF' ends_marked limit.d/cpu0.pt
run host-view=limit.d,vm=limit "$small"
marked=$(count limit.d/cpu0.pt ' OVF')
check 'room again: an OVF' [ "$marked" -ge 1 -a "$marked" -le $((marks + 1)) ]
check 'room again: libipt' "$host_flow" limit.d/cpu0.pt "$small@0xf0000" "$small@0xffff0000" \
	"$middle@0xf0000" >host.log

(
	ulimit -f 16
	start host-view=hlimit.d,vm=limit,host=synthetic "$middle" >stdout 2>stderr
)
check 'host, limit: ends with an OVF' ends_marked hlimit.d/cpu0.pt
marks=$(count hlimit.d/cpu0.pt ' OVF')
run host-view=hlimit.d,vm=limit,host=synthetic "$small"
marked=$(count hlimit.d/cpu0.pt ' OVF')
check 'host, room again: an OVF' [ "$marked" -ge 1 -a "$marked" -le $((marks + 1)) ]
check 'host, room again: no unknown VMCS' \
	[ "$("$vmpt" vms -q --json hlimit.d/cpu0.pt | grep -c '"owner":"vm"')" = 1 ]
check 'host, room again: libipt' "$host_flow" hlimit.d/cpu0.pt \
	hlimit.d/host.bin@0xffffffffa0000000 "$small@0xf0000" "$small@0xffff0000" >host.log

mkdir -p full.d
if mount -t tmpfs -o size=32k none full.d 2>/dev/null; then
	mounted=full.d
	run host-view=full.d,vm=full "$middle"
	check 'full disk: the guest continued' [ $rc = $status ]
	check 'full disk: why' grep -q '; lost [0-9]* runs, .*: No space left on device' stderr
	check 'full disk: whole runs' no_damage full.d/cpu0.pt
	check 'full disk: ends with an OVF' ends_marked full.d/cpu0.pt
	run host-view=full.d,vm=more "$middle" -smp 2
	check 'full disk: no second one' [ $rc = 1 ]
	check 'full disk: why' grep -q '^vmpt: full.d/.*: No space left on device$' stderr
	umount full.d && mounted=''
fi

# ---- refused options ----

# refused WHAT OPTIONS LINE
refused()
{
	run "$2" "$small"
	check "$1: QEMU ends" [ $rc = 1 ]
	check "$1: why" grep -q "^vmpt: $3" stderr
	check "$1: in one line" [ "$(grep -c ^vmpt: stderr)" = 1 ]
}

echo text >text.data
touch file.d
refused 'no folder' host-view=no/such/folder 'host-view=no/such/folder: No such file'
refused 'a file' host-view=file.d 'host-view=file.d: Not a directory'
refused 'not writable' host-view=/proc/self 'host-view=/proc/self: \|/proc/self/cpu0.state: '
refused 'perf.data is a device' host-view=bad.d,perf-data=/dev/full \
	'perf-data=/dev/full: not a regular file'
refused 'perf.data is text' host-view=bad.d,perf-data=text.data 'perf-data=text.data: is there, and'
check 'perf.data is text: untouched' [ "$(cat text.data)" = text ]
refused 'perf.data of another ctl' host-view=bad.d,perf-data=perf.data,ctl=0x2600 \
	'perf-data=perf.data: is there, and'
refused 'TraceEn' host-view=bad.d,ctl=1 'ctl=0x1: TraceEn, '
refused 'a reserved bit' host-view=bad.d,ctl=0x8000000000000000 'ctl=0x8000000000000000: a processor'
refused 'a VMCS that another has' host-view=one.d,vm=thief,vmcs=0x12345000 \
	'one.d/vms.jsonl: another vCPU has VMCS 0x12345000'
refused 'a VMCS after the last' host-view=bad.d,vm=x,vmcs=0xffffffffff000 \
	'vmcs=0xffffffffff000: vCPU 0 would have none'

# The side record is made when a vCPU begins; test-install.c has the other files.
check "G6: the record is its owner's" [ "$(stat -c %a one.d/vms.jsonl)" = 600 ]
mkdir text.d link.d fifo.d
printf 'no end of line' >text.d/vms.jsonl
ln -s ../text.d/vms.jsonl link.d
mkfifo fifo.d/vms.jsonl
for what in text link fifo; do
	for isa in pt rtit; do
		refused "G7: the record, $isa: $what" "host-view=$what.d,isa=$isa" "$what.d/vms.jsonl: "
	done
done
check 'G7: untouched' [ "$(cat text.d/vms.jsonl)" = 'no end of line' ]

finish
