#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Times of system-wide traces by stock perf of stock KVM's guests, judged by the truth: when the PC
# made each byte, when VM entries and exits were, and which offsets and multipliers were in force
# (docs/time.md, docs/bochs/truth.md). Guests' TSCs are offset and scaled, written by the guest and
# by the VMM, and moved to another VM; guests sleep; a VM has two vCPUs; on two processors they
# migrate back and forth. perf's own VM time correlation must agree where it works.
#
#	test-clock.sh SOURCE CLOCK-CHECK OUT
set -u

source=$1
clock_check=$2
out=$3

mkdir -p "$out"
export LC_ALL=C PERF_CONFIG=/dev/null
trap 'rm -f "$out"/*/files/*.times.* "$out"/*/files/*.data' EXIT
. "$source/tests/bochs/lib.sh" || exit
make_all "$source/bochs/build" "$source/tests/bochs/build-kernel" \
	"$source/tests/bochs/build base perf"

# Recordings $2... (see inside/jobs/clocks) on $1 processors.
record()
{
	local cpus=$1 run=$out/$1 job=clocks
	shift
	rm -rf "$run"
	mkdir -p "$run"
	for recording; do
		job+=,${recording// /.}
	done
	"$source/tests/bochs/run" --with perf --cpus "$cpus" --out "$run" "$job" \
		>"$run/said" 2>&1
	echo $? >"$run/rc"
}

ran()
{
	local run=$out/$1

	check_log "$1 processors: ran" "$run/said" [ "$(cat "$run/rc")" = 0 ]
	check_log "$1 processors: the host port has no errors" "$run/files/run.log" \
		[ "$(grep -c '^[0-9]* error:' "$run/files/run.log")" = 0 ]
}

# Judge the recording $2 of the PC with $1 processors; at least $3 maps must be judged.
judge()
{
	local files=$out/$1/files log=$out/$1/$2.log rc=0 maps

	"$clock_check" "$files/$2.data" "$files/$2" >"$log" 2>&1 || rc=$?
	check_log "$2: times are right" "$log" [ $rc = 0 ]
	maps=$(sed -n 's/^maps: \([0-9]*\),.*/\1/p' "$log")
	check_log "$2: at least $3 maps are judged" "$log" [ "${maps:-0}" -ge "$3" ]
	sed -n "/^cpu .* packets\|^order\|entries and exits\|^maps/s/^/$2: /p" "$log"
}

# Only the recording with --exits has exits for HLT (12); none has exits for MWAIT (36).
slept()
{
	local log=$out/1/files/run.log

	check_log 'HLT exits in one recording' "$log" \
		[ "$(grep -c '^[0-9]* exits .* reason 12 ' "$log")" = 1 ]
	check_log 'MWAIT does not exit' "$log" [ "$(grep -c '^[0-9]* exits .* reason 36 ' "$log")" = 0 ]
}

# perf's offsets of recording $1, by the page of the VMCS, may differ from ours by at most 8. The perf
# of Linux 6.12 crashes here; any other end, and what another perf prints, is judged.
same_as_perf()
{
	local files=$out/1/files log=$out/1/$1-perf.log rc=0 vmcs theirs ours apart n=0

	perf inject -i "$files/$1.data" --itrace --vm-time-correlation=dry-run >"$log" 2>&1 || rc=$?
	if [ $rc -gt 128 ]; then
		skip_part "$1: perf's own VM time correlation: $(perf version) died of SIG$(kill -l $rc)"
		return
	fi
	check_log "$1: perf correlates the times" "$log" [ $rc = 0 ]
	while read -r vmcs theirs; do
		n=$((n + 1))
		ours=$(sed -n "s/^found $(printf %x $((vmcs << 12))) offset \([^ ]*\) .*/\1/p" \
			"$out/1/$1.log")
		apart=$((theirs - ours))
		check_log "$1: perf's offset of VMCS page $vmcs is $theirs, ours ${ours:-none}" "$log" \
			[ -n "$ours" -a $((apart * apart)) -le 64 ]
		echo "$1: VMCS page $vmcs: perf's offset less ours: $apart ticks"
	done < <(sed -n 's/^VMCS: \(0x[0-9a-f]*\) *TSC Offset \(0x[0-9a-f]*\)$/\1 \2/p' "$log")
	check_log "$1: perf has both VMs" "$log" [ $n = 2 ]
}

common='noretcomp=1 psb_period=0'
again=
for i in 1 2 3 4 5 6 7 8; do
	again+=" $((3 * i)):again=$((i * 1000003))"
done

# The two PCs run at the same time.
record 1 \
	"cyc+cyc mtc_period=3 $common+--rounds=60 --work=400 30:offset=-5000000+--rounds=60 0:khz=150000 40:khz=70000" \
	"mtc+mtc_period=3 $common+--rounds=60 30:write=5+--rounds=60 30:tsc=7000000 45:move=-77" \
	"mtc9+mtc_period=9 $common+--rounds=40+--rounds=40" \
	"halt+cyc mtc_period=3 pwr_evt=1 $common+--rounds=30 --halt" \
	"mwait+cyc mtc_period=3 pwr_evt=1 $common+--rounds=30 --mwait" \
	"exits+cyc mtc_period=3 pwr_evt=1 $common+--rounds=30 --halt --exits" \
	"mtc0+mtc_period=0 $common+--rounds=20 10:offset=-5000000+--rounds=20" \
	"cyc0+cyc mtc_period=0 $common+--rounds=20 10:khz=150000" \
	"vcpus+cyc mtc_period=3 $common+--rounds=40 --second=0 20:offset=777" \
	"again+mtc_period=6 $common+--rounds=28 --work=700 --sleep=0$again" &
record 2 \
	"two+cyc mtc_period=3 $common+--rounds=40 0:cpu=1 10:cpu=0 20:cpu=1 30:cpu=0+--rounds=40 0:cpu=0 8:cpu=1 18:cpu=0 28:cpu=1 20:khz=120000" \
	"two-vcpus+cyc mtc_period=3 $common+--rounds=40 --second=1 0:cpu=0 10:cpu=1 20:cpu=0 30:cpu=1 25:offset=-4242" \
	"two-mtc+mtc_period=3 $common+--rounds=40 0:cpu=1 10:cpu=0 20:cpu=1 30:cpu=0 25:offset=12345+--rounds=40 0:cpu=0 8:cpu=1 18:cpu=0 28:cpu=1" &
wait
ran 1
ran 2
# The VMM changes an offset and a multiplier.
judge 1 cyc 4
# The guest writes its TSC, the VMM does, and a guest moves to another process.
judge 1 mtc 5
judge 1 mtc9 2
# HLT and MWAIT in the guest without exits; HLT with exits.
judge 1 halt 1
judge 1 mwait 1
judge 1 exits 1
slept
# An MTC each tick of the crystal clock.
judge 1 mtc0 3
judge 1 cyc0 2
# Two vCPUs of one VM.
judge 1 vcpus 3
# One VM after the other; KVM may reuse the page of a VMCS.
judge 1 again 9
echo "again: $(sed -n 's/^found \([0-9a-f]*\) .*/\1/p' "$out/1/again.log" | sort | uniq -d | wc -l)" \
	"VMCS pages were reused"
judge 2 two 3
judge 2 two-vcpus 3
judge 2 two-mtc 3
same_as_perf mtc9

# The checker must refuse wrong times and the truth of another recording.
refuses()
{
	local what=$1 rc=0
	shift
	"$clock_check" "$@" >"$out/wrong" 2>&1 || rc=$?
	check_log "refuses $what" "$out/wrong" [ $rc = 1 ]
}
refuses 'times that are late by an MTC period' --no-maps --spoil=810 "$out/1/files/mtc.data" \
	"$out/1/files/mtc"
refuses 'times that are early by a tenth of it' --no-maps --spoil=-80 "$out/1/files/cyc.data" \
	"$out/1/files/cyc"
refuses "another recording's truth" "$out/1/files/mtc.data" "$out/1/files/cyc"

finish
