#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# vmpt domain with libvirt's driver inside and a real QEMU, whose guests are a few bytes of
# firmware: they start, end, are stopped, use the console, and get a plugin.
#
#	test-embed.sh SOURCE VMPT STAND-IN-PLUGIN PLUGIN short|whole
#
# short: each of these once, for "make test"; whole: all, for "make test-kvm".
# shellcheck disable=SC2154 # set by lib.sh
set -u

source=$1
vmpt=$(realpath "$2")
plugin=$(realpath "$3")
real=$(realpath "$4")
part=$5
# shellcheck source=tests/domains/lib.sh
. "$source/tests/domains/lib.sh"
get_qemu
cd "$work" || exit 1
export XDG_STATE_HOME=$work/s
root=$work/s/vmpt/libvirt
if ! { firmware ends 1 0 && firmware stays 0 0 && firmware echo 0 1 1 && firmware slow 1 0 1; }; then
	skip "no assembler for the firmware: as and objcopy of binutils"
fi
: >stdout
: >stderr
domain list
if [ $rc != 0 ] && says libvirt-daemon-driver-qemu; then
	skip "no embedded QEMU driver: package libvirt-daemon-driver-qemu"
fi
check 'empty list' [ $rc = 0 ]
check 'empty list: no domain' [ "$(wc -l <stdout)" = 1 ]
check 'qemu.conf' grep -qx 'stdio_handler = "file"' "$root/etc/qemu.conf"
echo '# mine' >>"$root/etc/qemu.conf"

xml=$here/firmware.xml
set=(--set "QEMU=$qemu" --set "FIRMWARE=$work/stays.bin")

whole()
{
	[ "$part" = whole ]
}

# No process of this test is left: all have its folder in their arguments.
nobody_left()
{
	! pgrep -fa -- "$work"
}

# The vmpt-domain that is a child of process $1, as are QEMUs that it inherited.
child_of()
{
	local stat pid comm ppid

	for stat in /proc/[0-9]*/stat; do
		read -r pid comm _ ppid _ <"$stat" || continue
		[ "$comm $ppid" = "(vmpt-domain) $1" ] && echo "$pid" && return
	done
} 2>/dev/null

# Wait until the log of guest $1 has QEMU's line on its serial port: it has been created.
created()
{
	wait_for grep -qs 'char device redirected' "$root/log/qemu/$1.log"
}

# Wait until file $1 holds $2.
holds()
{
	wait_for grep -qsF -- "$2" "$1"
}

if whole; then
	# A QEMU that never ends by itself, in parallel with the rest since it takes half a minute.
	# It has a folder of its own, so that nobody_left does not count it.
	hang=$(mktemp -d /tmp/vmpt-domains-hang-XXXXXX) || exit 1
	trap 'rm -rf "$work" "$hang"' EXIT
	cp stays.bin "$hang"
	{
		"$vmpt" domain start --root "$hang/s" --set "QEMU=$qemu" --set "FIRMWARE=$hang/stays.bin" \
			hang="$xml" </dev/null >"$hang/stdout" 2>"$hang/stderr" &
		pid=$!
		holds "$hang/stderr" 'hang: runs'
		kill -STOP "$(cat "$hang/s/run/qemu/hang.pid")"
		kill -INT $pid
		wait $pid
		echo "rc $?" >"$hang/rc"
	} &
	hanging=$!

	# Separators in libvirt's variables must not matter in a path.
	for odd in 'with space' 'with:colon'; do
		domain list --root "$odd"
		check "--root '$odd'" [ $rc = 0 ]
	done
fi

# ---- start ----

domain start "${set[@]}" --set ends:FIRMWARE="$work/ends.bin" ends="$xml"
check 'ends by itself' [ $rc = 0 ]
check 'ends: says it ran' says 'ends: runs; Ctrl-C stops it'
check 'ends: says it ended' says 'ends: ended'
check 'ends: no process left' nobody_left
check "what was added to qemu.conf stays" grep -qx '# mine' "$root/etc/qemu.conf"

: >stderr # not the last one's words
"$vmpt" domain start "${set[@]}" stays="$xml" </dev/null >stdout 2>stderr &
pid=$!
check 'stays: created' created stays
check 'stays: runs' holds stderr 'stays: runs'
(fails 1 'another vmpt uses that folder' --root -- list && [ $failures = 0 ])
check 'a second command is refused the folder' [ $? = 0 ]
domain list --root other
check '… and may use another' [ $rc = 0 ]
# What a guest may do that breaks out of its QEMU.
status_of()
{
	sed -n "s/^$1:\t//p" "/proc/$(cat "$root/run/qemu/stays.pid")/status"
}
check 'G6: QEMU gets no more rights' [ "$(status_of NoNewPrivs) $(status_of Seccomp)" = '1 2' ]
check 'G6: QEMU has no capability but DAC_OVERRIDE' [ $((0x$(status_of CapEff) & ~2)) = 0 ]
kill -INT $pid
rc=0
wait $pid || rc=$?
check 'SIGINT: ends with 0' [ $rc = 0 ]
check 'SIGINT: stopped QEMU by SIGTERM' grep -q 'terminating on signal 15' "$root/log/qemu/stays.log"
check 'SIGINT: no process left' nobody_left

if whole; then
	# A slow one is waited for, with a message.
	: >stderr # not the last one's words
	"$vmpt" domain start "${set[@]}" slow="$xml" </dev/null >stdout 2>stderr &
	pid=$!
	check 'slow: runs' holds stderr 'slow: runs'
	kill -STOP "$(cat "$root/run/qemu/slow.pid")"
	kill -TERM $pid
	check 'slow: says what it waits for' holds stderr 'waiting for QEMU of slow to end; Ctrl-C again kills it'
	kill -CONT "$(cat "$root/run/qemu/slow.pid")"
	rc=0
	wait $pid || rc=$?
	check 'slow: ends with 0' [ $rc = 0 ]
	check 'slow: nothing is missing' [ "$(grep -c warning stderr)" = 0 ]

	# A signal before the guests run, while libvirt queries QEMU's capabilities: this QEMU waits
	# for the test.
	cat >gate <<-END
		#!/bin/bash
		echo asked >$work/asked
		for ((i = 0; i < 3000; i++)); do
			[ ! -e $work/asked ] || [ -e $work/opened ] && break
			sleep 0.1
		done
		exec $qemu "\$@"
	END
	chmod +x gate
	mkdir early && printf abc >early/cpu0.pt && printf VMPTCP2 >early/cpu0.state
	: >stderr # not the last one's words
	"$vmpt" domain trace "${set[@]}" --set "QEMU=$work/gate" --plugin "$plugin" -o early --force \
		early="$xml" </dev/null >stdout 2>stderr &
	pid=$!
	check 'early signal: QEMU is asked' holds asked asked
	kill -INT $pid
	: >opened
	rc=0
	wait $pid || rc=$?
	check 'early signal: fails' [ $rc = 1 ]
	check 'early signal: says so' diff - stderr <<-END
		vmpt domain trace: error: stopped before the guests ran
	END
	check 'early signal: no process left' nobody_left
	check 'early signal: the earlier trace is kept' [ "$(cat early/cpu0.pt)" = abc ]
fi

# Killed without warning, neither half leaves a QEMU.
for half in above below; do
	: >stderr # not the last one's words
	"$vmpt" domain start -q "${set[@]}" "$half=$xml" </dev/null >stdout 2>stderr &
	pid=$! victim=$!
	check "killed $half: created" created $half
	[ $half = above ] || victim=$(child_of $pid)
	kill -KILL "$victim"
	rc=0
	wait $pid 2>/dev/null || rc=$?
	check "killed $half: fails" [ $rc != 0 ]
	wait_for nobody_left >/dev/null
	check "killed $half: no process left" nobody_left
done

# Both at once leave one, which the next command ends.
"$vmpt" domain start -q "${set[@]}" both="$xml" </dev/null >stdout 2>stderr &
pid=$!
check 'killed both: created' created both
kill -KILL $pid "$(child_of $pid)"
wait $pid 2>/dev/null
check 'killed both: QEMU is left' not nobody_left
domain start "${set[@]}" --set both:FIRMWARE="$work/ends.bin" both="$xml"
check 'killed both: the next command runs' [ $rc = 0 ]
check 'killed both: it says what it ended' says 'both: a killed command left it running: it is stopped'
check 'killed both: no process left' nobody_left

fails 1 'a: cannot be started: Cannot check QEMU binary' '/no/qemu' 'vmpt domain qemu' -- \
	start --set QEMU=/no/qemu --set FIRMWARE=x a="$xml"
if whole; then
	fails 1 'a: cannot be started: ' "could not load PC BIOS '/no/rom'" '<loader>' -- \
		start --set "QEMU=$qemu" --set FIRMWARE=/no/rom a="$xml"
	fails 1 'a: cannot be started: ' 'is <emulator> a QEMU?' -- \
		start --set QEMU=/bin/true --set FIRMWARE=x a="$xml"
	fails 1 "could not load PC BIOS 'stays.bin'" "must be absolute, --set a:FIRMWARE=$work/stays.bin" -- \
		start --set "QEMU=$qemu" --set a:FIRMWARE=stays.bin a="$xml"
	ln -s "$qemu" qemu
	fails 1 "Cannot find 'qemu'" "must be absolute, --set QEMU=$work/qemu" -- \
		start --set QEMU=qemu --set FIRMWARE=x a="$xml"
	# The plugin adds nothing to QEMU's message.
	fails 1 "could not load PC BIOS '/no/rom'" -- trace --plugin "$real" -o no-rom \
		--set "QEMU=$qemu" --set FIRMWARE=/no/rom a="$xml"
	check 'no firmware: two lines' [ "$(wc -l <stderr)" = 2 ]

	# The longest folder that fits, and one byte more: a socket's name has 107 bytes.
	long=$work/$(printf 'l%.0s' {1..90})
	long=${long:0:$((107 - $(printf %s /lib/qemu/domain-1-a/monitor.sock | wc -c)))}
	fails 1 'could not load PC BIOS' -- \
		start --root "$long" --set "QEMU=$qemu" --set FIRMWARE=/no/rom a="$xml"
	fails 1 'domain-1-a/monitor.sock: the name of a socket' '107 bytes: 1 too many' --root=DIR -- \
		start --root "${long}l" "${set[@]}" a="$xml"
	fails 1 '2 too many' -- start --root "$long" "${set[@]}" äb="$xml"
	fails 1 '20 too many' -- start --root "${long}l" "${set[@]}" a23456789012345678901234="$xml"

	if unshare --mount true 2>/dev/null; then
		rc=0
		unshare --mount bash -c 'mount -t tmpfs none /sys && exec "$@"' - "$vmpt" domain start \
			"${set[@]}" a="$xml" </dev/null >stdout 2>stderr || rc=$?
		check 'no /sys: fails' [ $rc = 1 ]
		check 'no /sys: says so' says 'libvirt needs /sys'
	else
		skip_part "a machine without /sys: no right to make namespaces (unshare)"
	fi
	# Without <acpi/> libvirt 9 passes -no-acpi, which QEMU 11 does not know; libvirt 11 gives the
	# machine acpi=off, and the domain runs. QEMU's log has the command line.
	sed '/<acpi/d' "$xml" >no-acpi.xml
	rm -f "$root/log/qemu/a.log"
	domain start "${set[@]}" --set "FIRMWARE=$work/ends.bin" a=no-acpi.xml
	if grep -q -- '^ *-no-acpi' "$root/log/qemu/a.log"; then
		check 'no <acpi/>, -no-acpi: fails' [ $rc = 1 ]
		check "no <acpi/>, -no-acpi: vmpt's message is the first" starts_well
		check 'no <acpi/>, -no-acpi: says so' says 'a: cannot be started: '
		check 'no <acpi/>, -no-acpi: says what helps' says '<features><acpi/></features>'
	else
		check 'no <acpi/>: the machine has none' grep -q '[,=]acpi=off' "$root/log/qemu/a.log"
		check 'no <acpi/>: runs' [ $rc = 0 ]
		check 'no <acpi/>: ends by itself' \
			diff - stderr < <(printf 'a: runs; Ctrl-C stops it\na: ended\n')
	fi
fi

# Two domains or none.
fails 1 'b: cannot be started: ' -- start "${set[@]}" --set b:FIRMWARE=/no/rom a="$xml" b="$xml"
check 'one of two: no process left' nobody_left

# ---- libvirt's own messages ----

# With a qemu.conf that lets libvirt own the guest's files, a process that it forks warns of a mark
# on one left by a host that went down.
marked()
{
	python3 -c 'import os, sys
for name in "timestamp_dac", "ref_dac":
	os.setxattr(sys.argv[1], "trusted.libvirt.security." + name, b"1")' "$1" 2>/dev/null
}

if whole; then
	mkdir -p own/etc
	grep -v 'dynamic_ownership\|remember_owner' "$root/etc/qemu.conf" >own/etc/qemu.conf
	head -c 65536 /dev/zero >disk.img
	sed "s|<devices>|&<disk type='file'><source file='$work/disk.img'/><target dev='hda'/></disk>|" \
		"$xml" >disk.xml
	if marked disk.img; then
		domain start --root own "${set[@]}" --set "FIRMWARE=$work/ends.bin" disk.xml
		check 'marked file: runs' [ $rc = 0 ]
		check 'marked file: libvirt is silent' \
			cmp -s stderr <(printf 'disk: runs; Ctrl-C stops it\ndisk: ended\n')
	else
		skip_part "libvirt's marks on files: not root, or no such attributes here"
	fi
fi

# ---- console ----

if whole; then
	domain start -q --console "${set[@]}" --set "FIRMWARE=$work/slow.bin" con="$xml"
	check 'console: ends' [ $rc = 0 ]
	check 'console: from the first byte' cmp -s stdout <(printf 'firmware: hello\r\n')
fi

printf 'abc defq' >typed
input=typed domain start -q --console "${set[@]}" --set "FIRMWARE=$work/echo.bin" con="$xml"
check 'echo: ends at the q' [ $rc = 0 ]
check 'echo: all came back' cmp -s stdout <(printf 'firmware: hello\r\nabc def')
if whole; then
	printf 'abc\035' >typed
	input=typed domain start -q --console "${set[@]}" --set "FIRMWARE=$work/echo.bin" con="$xml"
	check '^]: stops it' [ $rc = 0 ]
	check '^]: no process left' nobody_left
	sed "s|<serial type='pty'/>||" "$xml" >no-serial.xml
	fails 1 'con: no console: ' -- start -q --console "${set[@]}" con=no-serial.xml
	check 'no console: no process left' nobody_left
	sed "s|<serial type='pty'/>|<serial type='file'><source path='$work/serial'/></serial>|" "$xml" \
		>file.xml
	fails 1 'con: no console: ' "<serial type='pty'/>" -- start -q --console "${set[@]}" con=file.xml
	# libvirt can change a file's owner to QEMU's user while QEMU runs.
	: >serial
	[ "$(id -u)" != 0 ] || chown 65534 serial
	owner=$(stat -c %u serial)
	: >stderr
	"$vmpt" domain start "${set[@]}" con=file.xml </dev/null >stdout 2>stderr &
	pid=$!
	check 'serial port to a file' holds serial 'firmware: hello'
	check 'serial port: the file keeps its owner' [ "$(stat -c %u serial)" = "$owner" ]
	kill -INT $pid
	wait $pid
	check 'serial port: no message of libvirt' diff - stderr <<-END
		con: runs; Ctrl-C stops it
		con: ended
	END

	# On a terminal: raw mode while it runs, then restored.
	cat >on-terminal <<-END
		stty -g >before
		"$vmpt" domain start -q --console ${set[*]@Q} --set FIRMWARE="$work/ends.bin" con="$xml" &&
			stty -g >after
	END
	rc=0
	timeout 1200 script -qec "bash on-terminal" /dev/null </dev/null >stdout 2>stderr || rc=$?
	check 'terminal: ends' [ $rc = 0 ]
	check 'terminal: output' grep -q 'firmware: hello' stdout
	check 'terminal: restored' cmp -s before after
fi

# ---- trace ----

trace=(trace "${set[@]}" --plugin "$plugin")
one=$(printf 'on\xe2\x80\xaee') # with U+202E, which turns the rest of its line
domain "${trace[@]}" -o 'out,1' --seconds 2 "$one=$xml" --set two:VCPUS=3 two="$xml"
check 'trace' [ $rc = 0 ]
cat >wanted <<-END
	DOMAIN  VCPU  CPU   VMCS  END
	on\\u202ee   0    0   1000  stopped
	two        0    1  11000  stopped
	two        1    2  22000  stopped
	two        2    0   3000  stopped

	FILE             BYTES
	out,1/cpu0.pt        6
	out,1/cpu1.pt        3
	out,1/cpu2.pt        3
	out,1/recording.json  $(stat -c %s out,1/recording.json | sed 's/\(...\)$/,\1/')
	out,1/vms.jsonl    $(stat -c %s out,1/vms.jsonl)
END
check 'G9: trace: the tables' diff -b wanted stdout
check 'trace: options of one' diff - "$one.options" <<-END
	host-view=$work/out,1
	vm=$one
	cpus=0
	mode=600
	code=$work/out,1/vm0.code
	tasks=$work/out,1/vm0.tasks
	symbols=$work/out,1/vm0.symbols
END
python3 - out,1/recording.json <<-'END'
	import json, sys, time
	doc = json.load(open(sys.argv[1]))
	assert doc["format"] == 1 and doc["recorder"] == "vmpt domain trace", doc
	assert doc["traces"] == [{"file": "cpu%d.pt" % i, "cpu": i} for i in range(3)], doc
	assert [c["file"] for c in doc["code"]] == ["vm0.code", "vm1.code"], doc
	assert [c["vm"] for c in doc["code"]] == ["on\u202ee", "two"], doc
	assert doc["tasks"][1] == {"file": "vm1.tasks", "symbols": "vm1.symbols", "vm": "two"}, doc
	assert doc["side_record"] == "vms.jsonl" and doc["end"] == {"stopped": False}, doc
	assert doc["rates"]["tsc_khz"] == 1000000, doc
	first, last = doc["clocks"][0], doc["clocks"][-1]
	# Without a shared CPU the TSC is CLOCK_MONOTONIC.
	assert 0 <= time.monotonic_ns() - int(last["tsc"], 16) < 600e9, doc
	assert int(first["tsc"], 16) < int(last["tsc"], 16), doc
	assert 0 <= time.time_ns() - int(last["realtime_ns"], 16) < 600e9, doc
END
check 'B6, B11: trace: the recording' [ $? = 0 ]
check 'recording.json fits its schema' python3 "$source/tests/cli/base/schemas.py" recording out,1/recording.json
check "G6: it is its owner's" [ "$(stat -c %a out,1/recording.json)" = 600 ]
check "G6: the folder is its owner's" [ "$(stat -c %a out,1)" = 700 ]
check 'trace: options of two' diff - two.options <<-END
	host-view=$work/out,1
	vm=two
	cpus=1:2:0
	mode=600
	code=$work/out,1/vm1.code
	tasks=$work/out,1/vm1.tasks
	symbols=$work/out,1/vm1.symbols
END

if whole; then
	# A plugin named in the XML keeps the options that vmpt does not set.
	sed "s|</qemu:commandline>|<qemu:arg value='-plugin'/><qemu:arg value='@PLUGIN@'/>&|" "$xml" >p.xml
	mkdir lib,1 && cp "$plugin" lib,1/vmpt-plugin.so
	fails 1 'is not empty' -- "${trace[@]}" -o out,1 p=p.xml --set PLUGIN=x
	domain trace "${set[@]}" --set 'PLUGIN=lib,1/vmpt-plugin.so' --force -o out,1 --host synthetic \
		--cpus 7,3-4 --perf-data --no-code --no-tasks --json --mode=0640 \
		--set "p:FIRMWARE=$work/ends.bin" \
		--set "PLUGIN=file=$work/lib,,1/vmpt-plugin.so,slice-us=5,host=none,vm=old,truth=a,,b" p=p.xml
	check 'plugin of the XML' [ $rc = 0 ]
	check 'plugin of the XML: options' diff - p.options <<-END
		slice-us=5
		truth=a,b
		host-view=$work/out,1
		vm=p
		cpus=7
		host=synthetic
		mode=640
		perf-data=$work/out,1/perf.data
	END
	python3 - stdout "$work" <<-'END' || rc=99
		import json, sys
		doc = json.load(open(sys.argv[1], encoding="utf-8"))
		assert doc["command"] == "domain trace" and doc["directory"] == sys.argv[2] + "/out,1", doc
		assert doc["vcpus"] == [{"vm": "p", "vcpu": 0, "cpu": 7, "vmcs": "0x71000",
		                         "end": "shut down"}], doc
		head = json.load(open("out,1/recording.json", encoding="utf-8"))
		assert head["code"] == [{"file": "host.bin", "vm": None,
		                         "address": "0xffffffffa0000000"}], head
		assert "tasks" not in head, head
		assert doc["outputs"][0] == {"file": "cpu7.pt", "size": 3}, doc
		assert [f["file"] for f in doc["outputs"]] == ["cpu7.pt", "recording.json", "vms.jsonl"], doc
	END
	check 'trace --json, --force' [ $rc = 0 ]

	: >stderr # not the last one's words
	"$vmpt" domain "${trace[@]}" -o out3 sig="$xml" </dev/null >stdout 2>stderr &
	pid=$!
	check 'SIGTERM: runs' holds stderr 'tracing 1 domain; Ctrl-C ends it'
	kill -TERM $pid
	rc=0
	wait $pid || rc=$?
	check 'SIGTERM: the trace is whole' [ $rc = 0 ]
	check 'SIGTERM: the plugin ended normally' [ -s out3/cpu0.pt ]
	check 'SIGTERM: the table' prints 'sig        0    0  1000  stopped'
fi

# ---- trace with the plugin itself ----

# The owners of the trace's bytes, and its size. The owner after the last VM exit may be unknown: no
# later packet proves it.
owners()
{
	"$vmpt" vms --quiet --json "$@" | python3 -c '
import json, sys
doc = json.load(sys.stdin)
print(" ".join(sorted(o.get("vmcs", o["owner"]) for o in doc["owners"]
               if o["owner"] not in ("lost", "unknown"))), doc["bytes"])'
}

# The same by the record and the table.
recorded()
{
	python3 - "$1" <<-'END'
		import json, sys
		doc = json.load(open("stdout", encoding="utf-8"))
		rows = [json.loads(line) for line in open(sys.argv[1] + "/vms.jsonl", encoding="utf-8")]
		known = {(r["vm"], r["vcpu"]): r["vmcs"] for r in rows}
		assert known == {(v["vm"], v["vcpu"]): v["vmcs"] for v in doc["vcpus"]}, (known, doc)
		print(*sorted(known.values()), sum(f["size"] for f in doc["outputs"] if f["file"][:3] == "cpu"))
	END
}

trace=(trace "${set[@]}" --plugin "$real" --json --set "FIRMWARE=$work/ends.bin")
domain "${trace[@]}" -o real one="$xml" two="$xml"
check 'plugin: both domains end' [ $rc = 0 ]
check 'plugin: two VMs on one CPU' [ "$(recorded real | wc -w)" = 3 ]
check "G6: the trace is its owner's" \
	[ "$(find real -printf '%m\n' | sort | uniq -c | awk '{ print $1 ":" $2 }' | paste -sd ' ')" = '8:600 1:700' ]
check 'plugin: the code of each' [ "$(head -qc 7 real/vm0.code real/vm1.code)" = VMPTCODVMPTCOD ]
check 'plugin: the code is listed' grep -q '"file": "vm1.code"' stdout
check 'plugin: no tasks where no Linux runs' [ "$(cat real/vm[01].tasks | grep -c '"kind":"machine"')" = 2 ]
check 'plugin: owners in the trace' [ "$(owners real/cpu0.pt)" = "$(recorded real)" ]
if whole; then
	domain "${trace[@]}" -o real --force --cpus 1,3 --host synthetic one="$xml" two="$xml"
	check 'plugin: CPUs and a host' [ $rc = 0 ]
	# shellcheck disable=SC2046 # split into words
	set -- $(owners real/cpu1.pt) $(owners real/cpu3.pt)
	check 'plugin: a VM and the host each' [ "$2 $5" = 'host host' ]
	check 'plugin: the VMs' [ "$(recorded real)" = "$(printf '%s\n' "$1" "$4" | sort | paste -sd ' ') $(($3 + $6))" ]
	domain "${trace[@]}" -o real --force --isa rtit one="$xml" two="$xml"
	check 'plugin: RTIT' [ $rc = 0 ]
	check 'plugin: RTIT: its stream, and no other' [ -s real/cpu0.rtit -a ! -e real/cpu0.pt ]
	check 'plugin: RTIT: both VMs' [ "$(sed -n 's/^{"rtit":1,"vm":"\([a-z]*\)",.*/\1/p' real/vms.jsonl |
		sort -u | paste -sd ' ')" = 'one two' ]
	check 'plugin: RTIT: known' grep -q '"file": "cpu0.rtit"' stdout
	domain "${trace[@]}" -o real --force --perf-data one="$xml" two="$xml"
	check 'plugin: perf.data' [ $rc = 0 ]
	check 'plugin: no other trace' [ ! -e real/cpu0.pt ]
	check 'plugin: its owners' [ "$(owners real/perf.data | cut -d ' ' -f 1-2)" = "$(recorded real | cut -d ' ' -f 1-2)" ]
	check 'plugin: perf.data: the earlier trace is removed' [ ! -e real/cpu0.rtit ]
fi

# Root's guests run as the user vmpt if there is one: here in copies of the files that name users.
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
	chmod 711 .
	cp "$real" for-all.so
	mkdir as-user
	(cat /etc/passwd && echo 'vmpt:x:60123:60124::/nonexistent:/usr/sbin/nologin') >passwd
	(cat /etc/group && echo 'vmpt:x:60124:') >group
	# shellcheck disable=SC2016 # expanded by the shell that is started
	timeout -k 10 600 unshare --mount bash -c 'mount --bind passwd /etc/passwd &&
		mount --bind group /etc/group && mount --bind "${0%/*}" as-user && exec "$@"' \
		"$qemu" "$vmpt" domain trace --root user.d/libvirt --plugin "$work/for-all.so" \
		--set "QEMU=$work/as-user/qemu-system-x86_64" --set "FIRMWARE=$work/ends.bin" \
		-o user.d/out user="$xml" </dev/null >stdout 2>stderr
	rc=$?
	check 'G6: root with a user for QEMU' [ $rc = 0 ]
	check 'G6: its trace' [ "$(stat -c '%n %u:%g %a' user.d/out user.d/out/cpu0.pt | paste -sd ' ')" = \
		'user.d/out 60123:60124 700 user.d/out/cpu0.pt 60123:60124 600' ]
	check 'G6: its qemu.conf' [ "$(stat -c %u:%a user.d/libvirt/etc/qemu.conf)" = 0:600 ]
else
	skip_part "root's guests as another user: not root, or no right to make namespaces (unshare)"
fi

# --force removes an earlier trace only if the new domains run.
printf abc >real/cpu9.pt
printf VMPTCP2 >real/cpu9.state
(cd real && sha256sum -- *) >before.sum
fails 1 'two: cannot be started' -- "${trace[@]}" -o real --force one="$xml" two="$xml" \
	--set two:FIRMWARE=/no/rom
check 'no start: the earlier trace is kept' cmp -s before.sum <(cd real && sha256sum -- *)
check 'no start: and nothing else' [ "$(find real -mindepth 1 | wc -l)" = "$(wc -l <before.sum)" ]
if whole; then
	# A killed command has left it moved aside.
	mkdir real/.vmpt-earlier && mv real/cpu9.* real/.vmpt-earlier
	printf new >real/cpu8.pt && printf VMPTCP2 >real/cpu8.state
	fails 1 'two: cannot be started' -- "${trace[@]}" -o real --force one="$xml" two="$xml" \
		--set two:FIRMWARE=/no/rom
	check 'killed before: it is restored' [ "$(ls -A real | paste -sd ' ')" = 'cpu9.pt cpu9.state' ]
	domain "${trace[@]}" -o real --force one="$xml"
	check 'start: the earlier one is gone' [ "$(find real -name 'cpu9.pt' -o -name '.vmpt-*' | wc -l)" = 0 ]
	fails 1 'two: cannot be started' -- "${trace[@]}" -o fresh one="$xml" two="$xml" \
		--set two:FIRMWARE=/no/rom
	check 'no start: the folder is empty' [ -z "$(ls -A fresh)" ]

	# Progress, on a terminal only.
	cat >on-terminal <<-END
		"$vmpt" domain ${trace[*]@Q} --set FIRMWARE="$work/stays.bin" --seconds 1 -o seen one="$xml" \$1
	END
	VMPT_PROGRESS_AFTER=0 timeout 1200 script -qec "bash on-terminal" /dev/null </dev/null >stdout 2>stderr
	check 'progress' grep -qE '^.*[0-9]+ s  [0-9.]+ MB  1 of 1 domains run' stdout
	VMPT_PROGRESS_AFTER=0 timeout 1200 script -qec "bash on-terminal '-q --force'" /dev/null </dev/null \
		>stdout 2>stderr
	check 'progress: --quiet: none' lacks 'domains run'
	VMPT_PROGRESS_AFTER=0 domain "${trace[@]}" --set "FIRMWARE=$work/stays.bin" --seconds 1 -o seen --force \
		one="$xml"
	check 'progress: no terminal, none' [ "$(grep -c 'domains run' stderr)" = 0 ]

	printf 'a plugin' >bad.so
	fails 1 'x: cannot be started: ' bad.so 'file too short' -- \
		trace "${set[@]}" --plugin bad.so -o out4 x="$xml"
fi

check 'the end: no process left' nobody_left

if whole; then
	wait $hanging
	rc=none
	cp "$hang/stdout" "$hang/stderr" .
	check 'QEMU hangs: ends, as by any signal' [ "$(cat "$hang/rc")" = 'rc 0' ]
	check 'QEMU hangs: says what it waits for' says 'waiting for QEMU of hang to end; Ctrl-C again kills it'
	check 'QEMU hangs: says what happened to it' \
		grep -qE 'warning: hang: QEMU did not end by itself in [0-9]+ s and was killed: some' stderr
fi

finish
