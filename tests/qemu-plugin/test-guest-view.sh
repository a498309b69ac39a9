#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The guest view under Linux: perf records in the guest, and its recordings are decoded here with
# the guest's programs. The calls of alpha are known (tests/guests/programs).
#
#	test-guest-view.sh SOURCE PLUGIN OUT
set -u

source=$(realpath "$1")
plugin=$(realpath "$2")
out=$3
here=$source/tests/qemu-plugin

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
need perf cpio gcc
mkdir -p "$out"
cd "$out" || exit 1
export LC_ALL=C
rm -rf one two symfs

show()
{
	[ ! -e "$name/serial.log" ] || tail -n 30 "$name/serial.log" "$name/stderr.log"
}

# Boot with $2 vCPUs, options $3 of the plugin; $1 is the guest's task and our folder.
boot()
{
	name=$1
	"$source/tests/guests/boot" --out "$name" --file "test=$here/guest-perf" --run "$name" \
		--file guest-ptwrite=symfs/guest-ptwrite \
		--smp "$2" --plugin "$plugin,guest-view=1$3" perf "${@:4}" \
		>boot.log 2>&1
	rc=$?
	[ $rc != 77 ] || { cat boot.log && exit 77; }
	check "$name: the guest ends with 0" [ $rc = 0 ]
}

# The guest's line "$1".
said()
{
	sed -n "s/^view: $1 \([^\r]*\)\r*$/\1/p" "$name/serial.log"
}

# perf script on a file of the guest, with the guest's programs.
script()
{
	perf script --symfs "$PWD/symfs" -i "$name/files/$1" "${@:2}" 2>script.err
}

# No instruction of a trace may be missing, and no packet bad.
no_error()
{
	script "$1" --itrace=e >errors
	if [ -s errors ] || grep -q -e rror -e lost script.err; then
		head -n 5 errors script.err
		return 1
	fi
}

# Filter names: alpha's functions, without repetitions.
functions()
{
	grep -x -e main -e alpha -e beta -e gamma_even -e delta_odd -e epsilon | uniq
}

# The functions that "alpha $1" executes, in order.
expected()
{
	awk -v n="$1" 'BEGIN {
		for (i = 0; i < n; i++) {
			by = i % 2 ? "delta_odd" : "gamma_even"
			print "main\nalpha\nbeta\n" by "\nepsilon\n" by "\nbeta\nalpha"
		}
		print "main"
	}'
}

# The functions that branches come from, in order.
from()
{
	script "$1" --itrace=b -F ip,sym "${@:2}" | sed 's/.* //' | functions
}

same()
{
	from "${@:2}" >flow
	cmp flow "$1"
}

folder=$("$source/tests/guests/build" perf) || { rc=$? && echo "$folder" && exit $rc; }
mkdir symfs
(cd symfs && cpio -idmu --quiet --no-absolute-filenames <"$folder/initramfs-perf.cpio")
gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -static -no-pie -o symfs/guest-ptwrite \
	"$here/guest-ptwrite.c" || check 'guest-ptwrite compiles' false

# ---- one vCPU ----

boot one 1 ,pt=full
check 'intel_pt in /proc/cpuinfo' [ "$(said flags)" = 1 ]
check 'the PMU exists' [ "$(said PMU)" = /sys/bus/event_source/devices/intel_pt ]
check 'clocks: 10 × 100 MHz, 40 a tick of the crystal' [ "$(said ratio)" = '10 40:1' ]
check 'no MSR and no counter that Linux complains of' [ "$(said 'bad MSR')" = 0 ]

expected 20 >alpha.20
check 'user: decodes' no_error user.data
check 'user: flow of the program' same alpha.20 user.data

check 'filter: decodes' no_error filter.data
check 'filter: one function only' [ "$(from filter.data)" = beta ]
check 'filter: each call of it' \
	[ "$(script filter.data --itrace=b -F ip,addr,sym | grep -c ' beta$')" -ge 20 ]

check 'tracestop: decodes' no_error stop.data
# Linux restarts the trace whenever it schedules the task in, up to the same place.
check 'tracestop: up to there' \
	[ "$(from stop.data | head -n 4 | paste -s -d ' ')" = 'main alpha beta gamma_even' ]
check 'tracestop: and no further' [ "$(from stop.data | grep -c epsilon)" = 0 ]

check 'ptwrite: decodes' no_error ptwrite.data
for i in 0 1 2; do
	printf '0x112233445566770%d\n0x112233445566770%d\n0x5566770%d\n0x5566770%d\n' $i $i $i $i
done >payloads
check 'ptwrite: payloads' \
	diff payloads <(script ptwrite.data --itrace=w | sed -n 's/.*payload: \(0x[0-9a-f]*\) .*/\1/p')
check 'ptwrite: in their function' \
	[ "$(script ptwrite.data --itrace=w | grep -c ' write_values+0x')" = 12 ]

# H2: the processor reads the operand, and faults as a read does (SDM 2, PTWRITE). The last operand is
# #GP, which has no address.
cat >faults.want <<END
warm ok, 0 faults, RDI 1, flags 1
fresh ok, 1 faults, RDI 1, flags 1
again ok, 0 faults, RDI 1, flags 1
crossing ok, 2 faults, RDI 1, flags 1
bss ok, 1 faults, RDI 1, flags 1
forbidden signal 11 at 0x8028, RIP 1
null signal 11 at 0, RIP 1
non-canonical signal 11 at 0, RIP 1
END
said H2 >faults
check 'H2: PTWRITE faults as a read' diff faults.want faults
check 'H2: decodes' no_error faults.data
check 'H2: a packet for each that did not fault' \
	[ "$(script faults.data --itrace=w | grep -c 'ptwrite:.* ptwrite+0x')" = 5 ]

expected 12000 >alpha.12000
check 'long: decodes' no_error long.data
check 'long: flow of the program' same alpha.12000 long.data
perf script -D -i one/files/long.data 2>/dev/null |
	grep -E 'PERF_RECORD_(AUX|AUXTRACE|LOST[_A-Z]*) ' >records
check 'long: no record is marked as cut' \
	[ "$(grep -c 'PERF_RECORD_AUX .*flags: 0 ' records)" = "$(grep -c 'PERF_RECORD_AUX ' records)" ]
check 'long: none is lost' [ "$(grep -c LOST records)" = 0 ]
bytes=0
while read -r size; do
	bytes=$((bytes + size))
done < <(sed -n 's/.*PERF_RECORD_AUX .* size: \(0x[0-9a-f]*\) .*/\1/p' records)
check 'long: 6 times the buffer' [ $bytes -ge $((6 * 8 * 4096)) ]
check 'long: many PMIs' [ "$(said PMIs)" -ge 12 ]
echo "long: $bytes bytes through a buffer of 32768, $(said PMIs) PMIs"

# ---- two vCPUs, the default PT; a reset while it traces, and again ----

# Wait until the guest has begun the long recording; a second such line is from after the reset.
reset_guest()
{
	local i

	echo '{"execute": "qmp_capabilities"}'
	for ((i = 0; i < 12000; i++)); do
		if grep -q '^view: begun' two/serial.log 2>/dev/null; then
			echo '{"execute": "system_reset"}'
			break
		fi
		sleep 0.05
	done
	# Closing it would end QEMU.
	while [ ! -e over ]; do
		sleep 0.1
	done
}

rm -rf over qmp.in qmp.out
mkfifo qmp.in qmp.out
cat qmp.out >qmp.log &
reset_guest >qmp.in &
resetter=$!
boot two 2 '' -- -action reboot=reset -chardev "pipe,id=qmp,path=$PWD/qmp" \
	-mon chardev=qmp,mode=control
touch over
wait $resetter
check 'reset: it happened' grep -q '"RESET"' qmp.log
check 'reset: traced before and after' [ "$(grep -c '^view: begun' two/serial.log)" = 2 ]
check 'reset: not to the end before' [ "$(grep -c '^view: ended' two/serial.log)" = 1 ]
check 'all: decodes' no_error all
script all --itrace=b -F comm,cpu,ip,sym >all.script
check 'all: flow of the program' cmp alpha.20 \
	<(sed -n 's/^ *alpha .* \([a-z_]*\)$/\1/p' all.script | functions)
check 'all: the kernel that executed it' grep -q '^ *alpha .* do_syscall_64$' all.script
check 'all: both vCPUs' [ "$(sed -n 's/.*\[\(00[01]\)\].*/\1/p' all.script | sort -u | wc -l)" = 2 ]
check 'pinned: decodes' no_error pinned.data
for cpu in 0 1; do
	check "pinned: flow on vCPU $cpu" same alpha.20 pinned.data --comms alpha -C $cpu
done

finish
