#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A Linux guest of tests/guests as an embedded domain, from linux.xml: its console, and its
# trace from outside with two vCPUs on two host CPUs. "vmpt insn" of the recording is what was executed,
# and by whom: processes that ended long before the end of the trace have the guest's own numbers and names.
#
#	test-linux.sh SOURCE VMPT PLUGIN INSN-CHECK
# shellcheck disable=SC2154 # set by lib.sh
set -u

source=$1
vmpt=$(realpath "$2")
plugin=$(realpath "$3")
insn_check=$(realpath "$4")
# shellcheck source=tests/domains/lib.sh
. "$source/tests/domains/lib.sh"
get_qemu
cd "$work" || exit 1
export XDG_STATE_HOME=$work/s
if ! guests=$("$source/tests/guests/build" work 2>build.log); then
	skip "$(sed -n 's/^skipped: //p' <<<"$guests" | grep . || tail -n 1 build.log)"
fi
: >stdout
: >stderr
domain list
if [ $rc != 0 ] && says libvirt-daemon-driver-qemu; then
	skip "no embedded QEMU driver: package libvirt-daemon-driver-qemu"
fi

# Its lines on the console: the kernel, which could print at any time, is quiet.
cmdline=$("$source/tests/guests/build" --cmdline work)
set=(--set "QEMU=$qemu" --set "KERNEL=$guests/vmlinux" --set "INITRD=$guests/initramfs-work.cpio"
	--set "CMDLINE=$cmdline run=alpha,10")
domain start --console --quiet "${set[@]}" linux="$here/linux.xml"
check 'console: powers off' [ $rc = 0 ]
for line in 'guest: begin' 'guest: alpha ends with 0' 'guest: end 0'; do
	check "console: $line" prints "$line"
done

sed "s|</qemu:commandline>|<qemu:arg value='-plugin'/><qemu:arg value='$plugin,truth=$work/truth'/>&|
	s|<serial type='pty'/>|<serial type='pty'><log file='$work/serial'/></serial>|" "$here/linux.xml" >two.xml
"$source/tests/guests/overlay" short.cpio "test=$source/tests/guests/inside/short-lived"
cat "$guests/initramfs-work.cpio" short.cpio >initrd
domain trace "${set[@]}" --set "INITRD=$work/initrd" --set VCPUS=2 --plugin "$plugin" -o out two=two.xml
check 'trace: powers off' [ $rc = 0 ]
cp stdout table
# The CPU, its known owners, and its size: each vCPU has a CPU for itself.
for cpu in 0 1; do
	vmcs=$(sed -nE "s/^two +$cpu +$cpu +([0-9a-f]+) +shut down\$/0x\\1/p" table)
	bytes=$(sed -nE "s/^out\/cpu$cpu.pt +([0-9,]+)\$/\\1/p" table | tr -d ,)
	check "trace: vCPU $cpu is in the table" [ -n "$vmcs" ]
	check "trace: CPU $cpu has many bytes" [ "${bytes:-0}" -gt 1000000 ]
	owners=$("$vmpt" vms --quiet --json out/cpu$cpu.pt | python3 -c '
import json, sys
doc = json.load(sys.stdin)
print(*[o["vmcs"] for o in doc["owners"] if o["owner"] == "vm"], doc["bytes"])')
	check "trace: CPU $cpu belongs to vCPU $cpu" [ "$owners" = "$vmcs ${bytes:-0}" ]
	"$insn_check" --code=out/vm0.code out/cpu$cpu.pt "$vmcs=truth.$cpu" >stdout 2>stderr
	check "trace: CPU $cpu: what was executed" prints ', 0 gaps; 0 of owners'
	cat stdout
done
executed=$(sed -n 's/^\([0-9]*\) instructions, hash .*/\1/p' stdout)
"$vmpt" insn --quiet --json --hash out >stdout 2>stderr
check 'vmpt insn of the recording' [ $? = 0 ]
check 'vmpt insn: no gap, all of CPU 1' python3 -c '
import json, sys
doc = json.load(open("stdout"))
assert not any(doc["total"]["gaps"].values())
assert doc["streams"][1]["instructions"] == int(sys.argv[1])' "$executed"

# ---- who it was ----

cpio -i -d --quiet bin/alpha <"$guests/initramfs-work.cpio" 2>/dev/null
python3 "$here/check-tasks.py" "$source" "$vmpt" serial out bin/alpha >stdout 2>stderr
check 'tasks: all that ran, with the names that the guest says' [ $? = 0 ]
cat stdout
finish
