#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# vmpt record on a made-up system, with a made-up perf and virsh: what it says is missing, which
# command line it gives perf, what it writes while VMs come, change and go, how signals end it, and
# that its folder is read again.
#
#	test-record.sh VMPT NAMES-PRINT PERF-DATA [KDUMP]
#
# PERF-DATA: a small one with the events of KVM. KDUMP: vmpt reads kdump-compressed dumps.
set -u

KDUMP=${4-}
vmpt=$(realpath "$1") names_print=$(realpath "$2") data=$(realpath "$3")
LIB=$(dirname "$(realpath "$0")")/../../lib.sh
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
umask 022
export LIB LC_ALL=C VMPT_RECORD_ROOT=$dir/root PATH=$dir/bin:$PATH

# shellcheck source=tests/lib.sh
. "$LIB"

show()
{
	cat "$dir/said"
}

# Run with all output in said; its exit code is $rc.
try()
{
	rc=0
	within 50 "$@" >said 2>&1 || rc=$?
}

# Lines of the last run that say $1.
says()
{
	[ "$(grep -c -- "$1" said)" = "${2-1}" ]
}

# put FILE TEXT: into the made-up system.
put()
{
	mkdir -p "root/$(dirname "$1")"
	printf '%s\n' "$2" >"root/$1"
}

# A vCPU of KVM: FOLDER VCPU TID OFFSET RATIO
put_vcpu()
{
	local at=sys/kernel/debug/kvm/$1/vcpu$2

	put "$at/pid" "$3"
	put "$at/tsc-offset" "$4"
	put "$at/tsc-scaling-ratio" "$5"
	put "$at/tsc-scaling-ratio-frac-bits" 48
}

# A host that has everything, and three VMs: of libvirt, of QEMU, and another.
make_host()
{
	rm -rf root
	put proc/cpuinfo "$(printf 'processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Xeon\nstepping\t: 4\nflags\t\t: fpu vmx intel_pt\n')"
	put proc/self/status 'CapEff:	000001ffffffffff'
	put proc/mounts "$(printf 'none /sys/kernel/debug debugfs rw 0 0\nnone /sys/kernel/tracing tracefs rw 0 0\n')"
	put proc/sys/kernel/osrelease 6.1.0
	put proc/sys/kernel/perf_event_paranoid 2
	put proc/sys/kernel/perf_event_mlock_kb 516
	put proc/kallsyms "$(printf '0000000000000000 A cpu_data\nffffffff81000000 T _text\n')"
	put proc/modules 'kvm_intel 1 0 - Live 0x0'
	put dev/kvm ''
	put sys/module/kvm/refcnt 1
	put sys/module/kvm_intel/parameters/pt_mode 0
	for file in type:8 caps/mtc:1 caps/psb_cyc:1 format/mtc:config:9 format/cyc:config:1 \
		max_nonturbo_ratio:24 tsc_art_ratio:250:2; do
		put "sys/bus/event_source/devices/intel_pt/${file%%:*}" "${file#*:}"
	done
	put sys/kernel/tracing/events/kvm/kvm_entry/id 100
	put sys/kernel/tracing/events/kvm/kvm_exit/id 101
	put_vcpu 100-11 0 101 -5000 281474976710656
	put_vcpu 100-11 1 102 -5000 281474976710656
	put_vcpu 7-12 0 8 0 281474976710656
	put_vcpu 300-9 0 301 77 168884986026393
	put proc/100/comm qemu-system-x86
	put proc/7/comm qemu-system-x86
	put proc/300/comm myvmm
	printf '%s\0' qemu-system-x86_64 -name guest=web-guest,debug-threads=on -uuid 11-22 >root/proc/100/cmdline
	printf '%s\0' qemu-system-x86_64 -name db >root/proc/7/cmdline
	printf '%s\0' myvmm >root/proc/300/cmdline
	put run/libvirt/qemu/web.pid 100
	put run/libvirt/qemu/other.pid 99
}

# perf writes the trace it was given, waits for its command or a signal, and notes its command line.
mkdir bin
cat >bin/perf <<'END'
#!/bin/bash
printf '%s\n' "$@" >"$DIR/perf-args"
while [ $# -gt 0 ]; do
	case $1 in
	-o) out=$2 && shift ;;
	--) shift && break ;;
	esac
	shift
done
trap 'touch "$DIR/interrupted"; kill $! 2>/dev/null; cat "$DATA" >"$out"; exit 130' INT TERM
touch "$DIR/started"
[ $# -gt 0 ] || set -- sleep 1000
"$@" &
wait $!
rc=$?
cat "$DATA" >"$out"
exit $rc
END
# Domains: gone is not known, off does not run, big does not fit; the dump of broken fails half-way, old
# has no kdump-zlib, slow waits for a signal.
cat >bin/virsh <<'END'
#!/bin/bash
echo "$*" >>"$DIR/virsh-args"
while [ $# -gt 0 ]; do
	case $1 in
	dominfo | dump) what=$1 ;;
	--domain) domain=$2 && shift ;;
	--file) file=$2 && shift ;;
	--format) format=$2 && shift ;;
	esac
	shift
done
if [ "$what" = dominfo ]; then
	memory=2048 state=running
	case $domain in
	gone) echo "error: failed to get domain 'gone'" >&2 && exit 1 ;;
	off) state='shut off' ;;
	big) memory=99999999999999 ;;
	esac
	printf 'Id:             1\nName:           %s\nState:          %s\nCPU(s):         1\nMax memory:     %s KiB\nUsed memory:    1 KiB\n' \
		"$domain" "$state" "$memory"
	exit
fi
echo "memory of $domain ${format-elf}" >"$file"
case $domain in
broken) exit 1 ;;
old) [ -z "${format-}" ] || exit 1 ;;
slow)
	trap 'exit 1' INT
	touch "$DIR/dumping"
	sleep 1000 &
	wait $!
	;;
esac
END
chmod +x bin/perf bin/virsh
export DIR=$dir DATA=$data

# ---- what is missing ----

make_host
try "$vmpt" record --check
check 'all is there' [ $rc = 0 ]
check 'and says so' says '^This host can be recorded\.$'
check 'the VM that has the host TSC' says '1 of 4 vCPUs have the host.s TSC'
check 'no warning' says 'warning' 0

# lacks WHAT RC TEXT: after a change of the system it says so, and nothing else.
lacks()
{
	try "$vmpt" record --check
	check "$1: exit code $rc" [ $rc = "$2" ]
	check "$1: says it" says "$3"
	check "$1: once" says 'error\|warning'
	make_host
}
put sys/module/kvm_intel/parameters/pt_mode 1
lacks 'pt_mode=1' 0 'warning: KVM has pt_mode=1 .*modprobe kvm_intel pt_mode=0'
rm -r root/sys/bus
lacks 'no PMU' 1 'error: the processor has Intel PT, but Linux offers no intel_pt event'
rm -r root/sys/bus
sed -i 's/intel_pt/hypervisor/' root/proc/cpuinfo
lacks 'a VM without PT' 1 'error: this machine is a VM, and its hypervisor offers no Intel PT'
rm -r root/sys/bus
sed -i 's/intel_pt/pse/' root/proc/cpuinfo
lacks 'no PT' 1 'error: the processor has no Intel PT'
put proc/self/status 'CapEff:	0000000000004000'
lacks 'no permission' 1 'error: no permission to trace the whole system: kernel.perf_event_paranoid is 2'
put proc/self/status 'CapEff:	0000004000000000'
put proc/sys/kernel/perf_event_mlock_kb 100000
try "$vmpt" record --check
check 'CAP_PERFMON is enough' [ $rc = 0 ]
make_host
put proc/self/status 'CapEff:	0000000000004000'
put proc/sys/kernel/perf_event_paranoid -1
try "$vmpt" record --check
check 'paranoid -1 is enough' [ $rc = 0 ]
make_host
put proc/self/status 'CapEff:	0000000000200000'
lacks 'locked memory' 0 'perf may lock 516 KiB .* its buffers need 18432'
sed -i 's/vmx/pae/' root/proc/cpuinfo
lacks 'no VMX' 0 'warning: the processor has no VMX'
rm -r root/sys/module/kvm_intel
lacks 'no KVM' 0 'warning: KVM is not loaded.*modprobe kvm_intel'
rm -r root/sys/kernel/debug
lacks 'debugfs unreadable' 0 'cannot be read: VMs. TSC offsets are not saved; run as root'
rm -r root/sys/kernel/debug
sed -i /debugfs/d root/proc/mounts
lacks 'debugfs not mounted' 0 'debugfs is not mounted.*mount -t debugfs'
rm -r root/sys/kernel/tracing
lacks 'no tracepoints' 0 'the kernel has no events kvm:kvm_entry'
rm -r root/sys/kernel/tracing
sed -i /tracefs/d root/proc/mounts
lacks 'tracefs not mounted' 0 'tracefs is not mounted.*mount -t tracefs'
put proc/kallsyms '0000000000000000 T _text'
lacks 'kallsyms without addresses' 0 'kptr_restrict=0'
put sys/bus/event_source/devices/intel_pt/caps/mtc 0
lacks 'no MTC' 0 'has no MTC packets'
put sys/bus/event_source/devices/intel_pt/caps/psb_cyc 0
lacks 'no CYC' 0 'has no CYC packets'
put sys/kernel/debug/kvm/300-9/vcpu0/pid 0
lacks 'no thread' 0 'the thread of 1 of 4 vCPUs is not known'
mv bin/perf bin/hidden
try env "PATH=$dir/bin" "$vmpt" record --check
check 'no perf' says 'error: there is no perf in \$PATH'
check 'no perf: exit code' [ $rc = 1 ]
mv bin/hidden bin/perf

# ---- perf's command line ----

try "$vmpt" record -n -q -o x --aux-size 4M --psb-period 5 --mtc-period 6 -- echo 'a b'
check 'the command line' says "^perf record -a -o x/perf.data -m 2M,4096K --switch-events -e intel_pt/tsc=1,mtc=1,mtc_period=6,cyc=1,psb_period=5/ -e kvm:kvm_entry -e kvm:kvm_exit -- echo 'a b'\$"
try "$vmpt" record -n -q --no-cyc --noretcomp --no-events --kcore
check 'less of it' says '^perf record -a -o vmpt-record/perf.data -m 2M,16384K --switch-events -e intel_pt/tsc=1,mtc=1,noretcomp=1/ --kcore$'
check 'nothing was made' [ ! -e vmpt-record ]
for wrong in --aux-size=3M --aux-size=1K --aux-size=4X --every=0 --psb-period=16 --guest-memory=../x \
	--guest-memory=-x --guest-memory-at=never --output=; do
	try "$vmpt" record "$wrong" -- true
	check "$wrong is wrong usage" [ $rc = 2 ]
done

# ---- a recording ----

cat >work <<'END'
#!/bin/bash
# What runs meanwhile: a TSC offset changes, a VM ends, another starts and has not run yet. Each at
# once, as in a kernel: no reader sees a partial one.
. "$LIB"
cd "$DIR/root/sys/kernel/debug/kvm" || exit
echo -6000 >"$DIR/offset" && mv "$DIR/offset" 100-11/vcpu1/tsc-offset
wait_for grep -q 0xffffffffffffe890 "$DIR/rec/vms.jsonl"
mv 300-9 "$DIR/gone"
wait_for grep -q vcpu-gone "$DIR/rec/vms.jsonl"
mkdir -p "$DIR/new/vcpu0" && echo 0 >"$DIR/new/vcpu0/pid" && echo 1 >"$DIR/new/vcpu0/tsc-offset"
mv "$DIR/new" 400-5
wait_for grep -q 400-5 "$DIR/rec/vms.jsonl"
END
chmod +x work
# As vmpt was built, with libkdumpfile or without.
kind=elf
[ -z "$KDUMP" ] || kind=kdump
rm -f virsh-args
try "$vmpt" record -o rec --every 20 --guest-memory web --guest-memory db --guest-memory-at both -- ./work
check 'recorded' [ $rc = 3 ]
check 'how much' says ' of trace of 1 CPUs in rec/perf.data'
check 'lost events are reported' says 'warning: 5 events were lost'
check 'its files' [ "$(cd rec && find . -type f -printf '%P %m\n' | sort | tr '\n' ';')" = \
	"cmdline/100 600;cmdline/300 600;cmdline/7 600;cpuinfo 600;images/memory/db.$kind 600;images/memory/db.start.$kind 600;images/memory/web.$kind 600;images/memory/web.start.$kind 600;perf.data 644;recording.json 600;symbols/host/kallsyms 600;symbols/host/modules 600;vms.jsonl 600;" ]
check 'nobody else reads it' [ "$(find rec -type d -printf '%m\n' | sort -u)" = 700 ]
check 'virsh' grep -qx -- "-q dump --memory-only --live --domain web --file rec/images/memory/.web.part${KDUMP:+ --format kdump-zlib}" \
	virsh-args
check 'virsh: its dump' grep -qx "memory of web $([ $kind = elf ] && echo elf || echo kdump-zlib)" "rec/images/memory/web.$kind"
check "perf's words" grep -qx -- --switch-events perf-args
python3 - rec/recording.json $kind <<-'END'
	import json, sys, time
	doc = json.load(open(sys.argv[1]))
	assert doc["format"] == 1 and doc["recorder"] == "vmpt record" and doc["vmpt"]
	host, rates = doc["host"], doc["rates"]
	assert (host["family"], host["model"], host["stepping"]) == (6, 85, 4)
	assert host["pt_mode"] == 0 and host["kernel"] == "6.1.0"
	assert (rates["tsc_art_numerator"], rates["tsc_art_denominator"]) == (250, 2)
	assert rates["max_nonturbo_ratio"] == 24 and rates["tsc_source"] == "processor"
	assert doc["traces"] == [{"file": "perf.data", "cpu": None}] and doc["side_record"] == "vms.jsonl"
	assert doc["end"] == {"perf_exit": 0, "stopped": False}
	kind = sys.argv[2]
	assert [(m["vm"], m["file"], m["when"]) for m in doc["memory"]] == [
	    (vm, vm + when + "." + kind, when[1:] or "end") for when in (".start", "") for vm in ("web", "db")]
	tscs = [int(m["tsc"], 16) for m in doc["memory"]]
	assert tscs == sorted(tscs) and tscs[1] < tscs[2]
	clocks = doc["clocks"]
	assert len(clocks) >= 2
	for a, b in zip(clocks, clocks[1:]):
	    assert int(a["tsc"], 16) < int(b["tsc"], 16) and a["monotonic_raw_ns"] < b["monotonic_raw_ns"]
	assert abs(int(clocks[-1]["realtime_ns"], 16) - time.time_ns()) < 600e9
END
check 'B6: the clocks are in the recording' [ $? = 0 ]
fits=$(dirname "$LIB")/cli/base/schemas.py
check 'recording.json fits its schema' python3 "$fits" recording rec/recording.json
python3 - rec/vms.jsonl <<-'END'
	import json, sys
	lines = [json.loads(l) for l in open(sys.argv[1])]
	of = {}
	for l in lines:
	    assert int(l["tsc_before"], 16) <= int(l["tsc_after"], 16)
	    of.setdefault((l["pid"], l["vcpu"]), []).append(l)
	web0, web1, db, mine, new = of[100, 0], of[100, 1], of[7, 0], of[300, 0], of[400, 0]
	assert (web0[0]["vm"], web0[0]["domain"], web0[0]["uuid"], web0[0]["guest"]) == ("web", "web", "11-22", "web-guest")
	assert (db[0]["vm"], db[0]["domain"], db[0]["guest"]) == ("db", None, "db")
	assert (mine[0]["vm"], mine[0]["comm"], mine[0]["guest"]) == ("myvmm/300", "myvmm", None)
	assert [l["tid"] for l in (web0[0], web1[0], db[0], mine[0])] == [101, 102, 8, 301]
	# At the start and at the end; the change between, and the last look before it.
	assert [l["kind"] for l in web0] == ["vcpu", "vcpu"]
	assert web0[0]["tsc_offset"] == "0xffffffffffffec78" and db[0]["tsc_offset"] == "0x0"
	offsets = [l["tsc_offset"] for l in web1]
	assert offsets[0] == "0xffffffffffffec78" and offsets[-1] == "0xffffffffffffe890"
	assert offsets == sorted(offsets, reverse=True) and len(offsets) in (3, 4)
	assert mine[0]["tsc_scaling_ratio"] == "0x999999999999"
	assert [l["kind"] for l in mine] == ["vcpu", "vcpu-gone"]
	assert new[0]["tid"] is None and new[0]["ran"] is False
END
check 'the side file' [ $? = 0 ]

# It is read again: the trace's VMs have the names from KVM.
for input in rec rec/perf.data; do
	try "$names_print" "$input"
	check "$input is read" [ $rc = 3 ]
	try "$vmpt" vms "$input"
	check "vms $input" [ $rc = 3 ]
done
cp -r rec bad
echo '{"kind":"vcpu","vm":"x","pid":1,"vcpu":0,"tsc_before":"0x2","tsc_after":"0x1"}' >>bad/vms.jsonl
try "$names_print" bad
check 'a wrong line is skipped' [ $rc = 3 ]
check 'with its number' says "warning: .*vms.jsonl: line $(wc -l <bad/vms.jsonl): \"tsc_after\" is before"
lines=$(wc -l <rec/vms.jsonl)
{ sed -n 1p rec/vms.jsonl; echo '{"kind":"vcpu","vm"'; sed -n '2,$p' rec/vms.jsonl; echo '[]'; } >bad/vms.jsonl
try "$names_print" bad
check 'its number' says 'line 2: not JSON: '
check 'that of another one' says "line $((lines + 2)): not a JSON object"
for line in '{"kind":"vcpu"}' 'no JSON' '[]' '{"kind":"vcpu","vm":"","pid":1,"vcpu":0}' \
	'{"kind":"vcpu","vm":"x","pid":-1,"vcpu":0}' \
	'{"kind":"vcpu","vm":"x","pid":1,"vcpu":0,"tsc_offset":"0x11112222333344445"}' \
	'{"kind":"vcpu","vm":"x","pid":1,"vcpu":0,"tsc_offset":"0x0","tsc_scaling_ratio":"0x0","tsc_scaling_ratio_frac_bits":48}'; do
	echo "$line" >bad/vms.jsonl
	try "$vmpt" vms bad
	check "an error: $line" [ $rc = 1 ]
	check "line 1: $line" says 'vms.jsonl: line 1: '
done
printf '{"kind":"later"}\n{"kind":"vcp' >bad/vms.jsonl
try "$names_print" bad
check 'another kind, and a truncated line' [ $rc = 3 ]
check 'which is reported' says 'warning: .*line 2 is truncated'

# ---- how it fails, and ends ----

try "$vmpt" record -o rec -- true
check 'what is there stays' [ $rc = 1 ]
check 'and reported' says 'error: rec already exists'
make_host
try "$vmpt" record -o failed -- sh -c 'exit 7'
check "the command's failure" [ $rc = 1 ]
check 'is reported' says 'error: perf, or its command, ended with 7'
check 'and the trace is kept' cmp "$data" failed/perf.data
# ---- guests' memory ----

# memory DOMAIN WHAT TEXT: its dump is missing, for this reason; the recording is whole otherwise.
memory()
{
	rm -rf memory
	try "$vmpt" record -o memory --guest-memory web --guest-memory "$1" -- true
	check "$2: fails" [ $rc = 1 ]
	check "$2: why" says "error: the memory of domain '$1' is not saved: $3"
	check "$2: no part of it" [ "$(find memory/images -type f -printf '%f ')" = "web.$kind " ]
	check "$2: is not listed" [ "$(grep -c '"vm": ' memory/recording.json)" = 1 ]
	check "$2: the trace" cmp "$data" memory/perf.data
	check "$2: the end" grep -q '"perf_exit": 0' memory/recording.json
}
memory broken 'a dump that fails' 'virsh dump failed'
memory gone 'a domain that went away' 'it does not run'
check 'a domain that went away: before' says "warning: --guest-memory: domain 'gone' does not run"
memory off 'a domain that is off' 'it does not run'
memory big 'no room' 'up to [0-9]* MiB are needed, and [0-9]* MiB are free in memory/images/memory'
check 'no room: before' says 'warning: --guest-memory: up to [0-9]* MiB are needed, and [0-9]* MiB are free in \.'
rm -rf memory
try "$vmpt" record -o memory --guest-memory old -- true
check 'a QEMU without kdump' [ $rc = 3 ]
check 'a QEMU without kdump: ELF' [ "$(find memory/images -type f -printf '%f ')" = 'old.elf ' ]
rm -rf memory
try env "PATH=$dir/none" "$(command -v bash)" -c 'PATH=$DIR/none; exec "$0" record --check --guest-memory web' "$vmpt"
check 'no virsh' says 'error: --guest-memory needs virsh: install libvirt-clients'
# A signal during a dump ends the dump, not the recording.
rm -f dumping
"$vmpt" record -o memory --guest-memory slow -- true >said 2>&1 &
pid=$!
wait_for test -e dumping
kill -TERM $pid
rc=0
wait $pid || rc=$?
check 'a dump that is interrupted' [ $rc = 1 ]
check 'a dump that is interrupted: says so' says "error: the memory of domain 'slow' is not saved: interrupted"
check 'a dump that is interrupted: no part of it' [ -z "$(find memory/images -type f)" ]
check 'a dump that is interrupted: the trace' cmp "$data" memory/perf.data
rm -rf memory dumping
"$vmpt" record -o memory --guest-memory slow --guest-memory-at start -- true >said 2>&1 &
pid=$!
wait_for test -e dumping
kill -INT $pid
rc=0
wait $pid || rc=$?
check 'interrupted at the start: nothing is recorded' [ $rc = 1 -a ! -e memory/perf.data ]

for signal in INT TERM HUP; do
	rm -f started interrupted
	"$vmpt" record -o "by-$signal" --every 20 >said 2>&1 &
	pid=$!
	wait_for test -e started
	kill -"$signal" $pid
	rc=0
	wait $pid || rc=$?
	check "$signal ends it" [ $rc = 3 ]
	check "$signal: perf was asked to" [ -e interrupted ]
	check "$signal: the trace is there" cmp "$data" "by-$signal/perf.data"
	check "$signal: the recording says so" grep -q '"stopped": true' "by-$signal/recording.json"
done

# Killed: perf ends as by Ctrl-C, and what it has is there.
rm -f started interrupted
"$vmpt" record -o by-KILL --every 20 >said 2>&1 &
pid=$!
wait_for test -e started
{ kill -KILL $pid && wait $pid; } 2>/dev/null
check 'G10: killed: perf was asked to end' wait_for test -e interrupted
wait_for cmp -s "$data" by-KILL/perf.data
check 'G10: killed: the trace is there' cmp "$data" by-KILL/perf.data
check 'G10: killed: the recording has no end' [ "$(grep -c '"end"' by-KILL/recording.json)" = 0 ]
try "$vmpt" vms by-KILL
check 'killed: the folder is read' [ $rc = 3 ]

# A limit on the size of files ends it with a sentence.
(ulimit -f 0 && exec "$vmpt" record -o limit -- true) 2>&1 | cat >said
rc=${PIPESTATUS[0]}
check 'G10: file too large: fails' [ $rc = 1 ]
check 'G10: file too large: says so' says 'error: cannot write limit/recording.json: File too large'
check 'G10: file too large: no part is left' [ ! -e limit/symbols/host/kallsyms ]

# Without debugfs: vCPUs by their VMMs' open files, threads by their names.
rm -r root/sys/kernel/debug
mkdir -p root/proc/100/fd root/proc/100/task/101 root/proc/100/task/102
ln -s anon_inode:kvm-vcpu:1 root/proc/100/fd/20
ln -s /dev/null root/proc/100/fd/21
echo 'CPU 0/KVM' >root/proc/100/task/101/comm
echo 'CPU 1/KVM' >root/proc/100/task/102/comm
try "$vmpt" record -o plain -- true
check 'without debugfs' [ "$(grep -c '"vm":"web".*"pid":100,"tid":102,"vcpu":1,"folder":null' plain/vms.jsonl)" -ge 1 ]
check 'no offset is made up' [ "$(grep -c tsc_offset plain/vms.jsonl)" = 0 ]

finish
