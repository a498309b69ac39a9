#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A Linux guest whose perf traces a program with the guest's own PT is moved from one QEMU to another
# in the middle of the trace, through a pipe. The trace must be whole: decoded with the program's
# binary it has each call that the program makes, before the move and after it, and no error.
#
#	test-migrate.sh SOURCE OUT stock|patched
#
# QEMU sets IA32_RTIT_CTL before the other registers; the stock kernel then refuses these, and the
# target QEMU gives up. With kvm-patches/6.12 the same QEMU succeeds.
#
# Without APIC virtualization: with it a guest that was stopped in its timer's handler was seen to
# wait forever on the target, with the timer's vector still in service.
set -u

source=$1
out=$2
kernel=$3
rounds=60000 at=10000

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
choose_kernel "$kernel"
. "$source/tests/soak.sh" || exit
soak_made "$source/bochs/build" "$build"
make_all "$source/bochs/build" "$build" "$here/build" \
	"$here/inside/programs/build $out/programs"

# An independent calculation of what inside/programs/traced.c does: its result, and how often each
# function is called.
expected()
{
	python3 - $rounds <<-'END'
		import sys
		called = dict.fromkeys(("add", "mix", "turn", "deep"), 0)
		def mix(x):
		    called["mix"] += 1
		    return x >> 1 ^ 0xedb88320 if x & 1 else x >> 1
		x = 1
		for _ in range(int(sys.argv[1])):
		    n = x & 7
		    if x & 1:
		        x = mix(x)
		    elif x & 2:
		        called["turn"] += 1
		        x = (x << 7 | x >> 25) & 0xffffffff
		    else:
		        called["add"] += 1
		        x = (x + 0x9e3779b9) & 0xffffffff
		    called["deep"] += n + 1
		    for _ in range(n):
		        x = mix(x)
		    x = (x + n * (n + 1) // 2) & 0xffffffff
		print("%08x" % x)
		for name in sorted(called):
		    print(called[name], name)
	END
}

# How often each is called by the trace, and the decoder's errors.
traced()
{
	perf script -i "$out/run/files/migrated.data" --symfs "$out/root" --itrace=ce -F addr \
		2>"$out/perf.log" | sed 's/[^0-9a-f]//g' | sort | uniq -c |
		while read -r n address; do
			nm "$out/programs/traced" | sed -nE "s/^0*$address t (add|mix|turn|deep)$/$n \1/p"
		done | sort -k 2
}

# perf's decoding errors, except at the program's first instruction: the trace begins slightly
# before perf records the mapping.
errors()
{
	perf script -i "$out/run/files/migrated.data" --symfs "$out/root" --itrace=e 2>/dev/null |
		grep error | grep -v " ip 0x$(nm "$out/programs/traced" | sed -n 's/^0*\(.*\) T _start$/\1/p') "
}

mkdir -p "$out/root/bin"
cp "$out/programs/traced" "$out/root/bin/"
job run "migrate,$rounds,$at" --with perf --with qemu "${options[@]}" \
	--append 'kvm-intel.pt_mode=1 kvm-intel.enable_apicv=0'
if [ "$kernel" = stock ]; then
	check 'the target QEMU gives up' \
		grep -q '^QEMU 2: .*failed to set MSR 0x5[67]' "$run/serial"
	grep -m 1 '^QEMU 2: .*MSR' "$run/serial"
else
	check 'ran' [ $rc = 0 ]
	check 'moved' grep -q 'Status:.*completed' "$out/run/files/monitor-1"
	expected >"$out/right"
	check 'the result' grep -qx "L2: $(head -n 1 "$out/right")" "$run/serial"
	traced >"$out/calls"
	check 'each call is in the trace' diff "$out/calls" <(tail -n +2 "$out/right")
	errors >"$out/errors"
	check 'no other error' [ "$(wc -l <"$out/errors")" = 0 ]
	check 'nothing lost' [ "$(grep -ciE 'lost|truncated' "$out/perf.log")" = 0 ]
	echo "moved; in the trace: $(paste -s -d ',' "$out/calls")"
fi

finish
