#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# perf in a Linux guest with PT of its own traces a program for a long time and loses nothing: each
# call of the program is in the trace, no record is truncated or lost, there is no OVF packet, and
# the stream decodes from its first byte to its last. Then the same while perf traces the whole PC,
# whose trace must be complete, too. Runs on the kernel with kvm-patches/6.12; in a soak for minutes
# of the guest's time.
#
#	test-perf-long.sh SOURCE OUT VMPT
set -u

source=$1
out=$2
vmpt=$3
# 4 s of the guest's time; 2 s with the host's perf tracing, too.
times=20 beside=10 pause=200000

mkdir -p "$out"
export LC_ALL=C
. "$source/tests/bochs/lib.sh" || exit
choose_kernel patched
if [ -n "${VMPT_SOAK-}" ]; then
	times=600 beside=100 pause=300000 # 3 minutes, half a minute
fi
. "$source/tests/soak.sh" || exit
soak_takes
soak_made "$source/bochs/build" "$build"
make_all "$source/bochs/build" "$build" "$here/build" "$here/inside/programs/build $out/programs"
trap 'rm -f "$out"/*/files/perf-*.data' EXIT

# Test $1: the job's arguments are $2. The result of the guest's trace goes to $guest.
record()
{
	job "$1" "perf-long,$2" "${options[@]}" --with perf --with qemu --append kvm-intel.pt_mode=1
	check 'ran' [ $rc = 0 ]
	guest=$(sed -n 's/^L2: aux: //p' "$run/serial")
	sed -n "s/^L2: \(seconds\|aux\): /$name: the guest's &/p" "$run/serial" | sed 's/L2: //'
}

records=' records [1-9][0-9]* flagged 0 lost 0$'

# The guest's trace must have $1 calls, and nothing may be missing.
guest_whole()
{
	local right="^bytes [1-9][0-9]* packets [0-9]* tips $1 overflows 0 pieces [1-9][0-9]* gaps 0 bad 0$records"

	check "$1 calls, and nothing lost in the guest's trace" grep -qE "$right" <<<"$guest"
}

# Nothing may be missing in the host's.
host_whole()
{
	local file=$run/files/perf-host.data

	"$vmpt" stat --json "$file" >"$run/stat" 2>"$run/said"
	python3 - "$run/stat" <<-'END' >"$run/said" 2>&1
		import json, sys
		total = json.load(open(sys.argv[1]))["total"]
		print({k: total[k] for k in ("bytes", "packets", "loss_count", "lost_bytes")}, total["loss_causes"])
		sys.exit(not total["packets"] or total["loss_count"] or total["lost_bytes"] or "OVF" in total["kinds"])
	END
	rc=$?
	check "the host's trace decodes from its first byte to its last, without overflow" [ $rc = 0 ]
	echo "$name: the host's: $(cat "$run/said")"
	check "nothing lost in the host's trace" grep -qE " overflows 0 .* gaps 0 bad 0$records" \
		<<<"$("$out/programs/auxcheck" "$file" 0)"
}

target=$(nm "$out/programs/paced" | sed -n 's/^0*\(.*\) t target$/\1/p')
record alone "$times,$pause,$target"
guest_whole $((times * 1000))
record beside "$beside,$pause,$target,host"
guest_whole $((beside * 1000))
host_whole
echo "note: $times rounds in the guest"

finish
