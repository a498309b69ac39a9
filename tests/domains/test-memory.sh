#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# vmpt record --guest-memory by a libvirtd of its own and the real virsh, of a guest under TCG that the
# plugin traces: dumps in both formats, and by their page tables vmpt insn finds what the guest
# executed. The perf of vmpt record is made up, as is the host's PT: its perf.data is the plugin's.
#
#	test-memory.sh SOURCE VMPT PLUGIN [KDUMP]
#
# KDUMP: vmpt reads kdump-compressed dumps.
# shellcheck disable=SC2154 # set by lib.sh
set -u

source=$1
# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
if [ "${5-}" != inside ]; then
	[ "$(id -u)" = 0 ] || skip "a libvirtd of the system needs root"
	command -v libvirtd virtlogd >/dev/null || skip "no libvirtd: package libvirt-daemon"
	need virsh gcc ld objcopy
	isolate=(unshare --mount --net --pid --fork --kill-child --mount-proc)
	"${isolate[@]}" true 2>/dev/null || skip "no right to make namespaces (unshare)"
	exec "${isolate[@]}" "$0" "$1" "$2" "$3" "${4-}" inside
fi

vmpt=$(realpath "$2")
plugin=$(realpath "$3")
kind=${4:+kdump}
kind=${kind:-elf}
# shellcheck source=tests/domains/lib.sh
. "$source/tests/domains/lib.sh"
get_qemu
cd "$work" || exit 1
: >stdout
: >stderr
gcc -c -m32 "$here/paged.S" -o paged.o && ld -m elf_i386 -e 0 -Ttext=0 paged.o -o paged.elf &&
	objcopy -O binary -j .text paged.elf paged.bin || exit 1
own_libvirtd

# ---- a host with PT, as /proc and /sys show it, and a perf ----

put()
{
	mkdir -p "root/$(dirname "$1")"
	printf '%s\n' "$2" >"root/$1"
}
put proc/cpuinfo "$(printf 'vendor_id\t: GenuineIntel\nflags\t\t: fpu vmx intel_pt\n')"
put sys/bus/event_source/devices/intel_pt/type 8
put proc/sys/kernel/perf_event_paranoid -1
export VMPT_RECORD_ROOT=$work/root PATH=$work/bin:$PATH
mkdir bin
cat >bin/perf <<'END'
#!/bin/bash
while [ "$1" != -o ]; do shift; done
cp perf.data "$2"
END
chmod +x bin/perf

# ---- the guest, until it waits ----

"$vmpt" domain trace "$system" --plugin "$plugin" --perf-data --no-code -o out --set "QEMU=$qemu" \
	--set "FIRMWARE=$work/paged.bin" paged="$here/firmware.xml" </dev/null >stdout 2>stderr &
pid=$!
waits()
{
	virsh -q list --name | grep -qx paged && virsh -q qemu-monitor-command --hmp paged 'info registers' |
		grep -q 'EIP=0040001. .*HLT=1'
}
check 'the guest waits' wait_for waits

# record NAME OPTION...: the recording NAME, with a trace to come, by $recorder
record()
{
	local name=$1

	shift
	touch perf.data
	"$recorder" record -o "$name" --guest-memory paged "$@" -- true >stdout 2>stderr
}
recorder=$vmpt
record both --guest-memory-at both
check 'both: the dumps' [ "$(ls -A both/images/memory | paste -s -d ' ')" = "paged.$kind paged.start.$kind" ]
check 'both: for their owner alone' [ "$(stat -c %a both/images/memory/* | sort -u)" = 600 ]
check 'both: the guest goes on' waits
# A vmpt without the module for kdump.
mkdir lone && cp "$vmpt" lone/vmpt && recorder=lone/vmpt
record gone --guest-memory nobody
check 'nobody: says so' says "the memory of domain 'nobody' is not saved: it does not run"
check 'nobody: virsh, too' says "failed to get domain 'nobody'"
check 'nobody: that of the other' [ "$(cd gone/images/memory && echo *)" = paged.elf ]
kill -INT $pid
rc=0
wait $pid || rc=$?
check 'trace: ended' [ $rc = 0 ]
record late
check 'late: it has ended' says "the memory of domain 'paged' is not saved: it does not run"
check 'late: nothing is there' [ "$(ls -A late/images/memory)" = '' ]

# ---- what it executed, by the dump ----

# By the page tables in the dump nothing is missing in the address space with CR3 1000: MOV, 20,000 rounds
# of three instructions and 15,000 of them with a NOP, two MOVs and HLT; OUT is the VMM's.
executed()
{
	"$vmpt" insn -q --count --json "$1" 2>stderr | python3 -c '
import json, sys
doc = json.load(sys.stdin)
paged = [s for s in doc["spaces"] if s["cr3"] == "0x1000" and s["bits"] == 32]
used = [i for i in doc["images"] if i["used"] and i["found"]]
print(sum(s["instructions"] for s in paged), sum(sum(s["gaps"].values()) for s in paged), len(used))'
}
for recording in both gone; do
	cp out/perf.data out/vms.jsonl "$recording"
done
for recording in both gone; do
	check "$recording: vmpt insn" [ "$(executed "$recording")" = '75004 0 1' ]
done
check 'both: without the dumps there is no code' rm both/images/memory/*
# A gap in each run: how many there are depends on time slices.
check 'both: then it says so' grep -q '^0 [1-9][0-9]* 0$' <(executed both)
finish
