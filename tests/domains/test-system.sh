#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# vmpt domain with a libvirtd of its own at qemu:///system: in namespaces that hide the
# machine's /etc, /run and /var, so that a libvirtd that runs there is not disturbed, with bash as
# the process that reaps libvirtd's orphans.
#
#	test-system.sh SOURCE VMPT STAND-IN-PLUGIN PLUGIN
# shellcheck disable=SC2154 # set by lib.sh
set -u

source=$1
# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
if [ "${5-}" != inside ]; then
	[ "$(id -u)" = 0 ] || skip "a libvirtd of the system needs root"
	command -v libvirtd virtlogd >/dev/null || skip "no libvirtd: package libvirt-daemon"
	isolate=(unshare --mount --net --pid --fork --kill-child --mount-proc)
	"${isolate[@]}" true 2>/dev/null || skip "no right to make namespaces (unshare)"
	exec "${isolate[@]}" "$0" "$@" inside
fi

vmpt=$(realpath "$2")
plugin=$(realpath "$3")
real=$(realpath "$4")
# shellcheck source=tests/domains/lib.sh
. "$source/tests/domains/lib.sh"
get_qemu
cd "$work" || exit 1
: >stdout
: >stderr
firmware ends 1 0 && firmware stays 0 0 && firmware echo 0 1 1 ||
	skip "no assembler for the firmware: as and objcopy of binutils"

own_libvirtd
xml=$here/firmware.xml
set=("$system" --set "QEMU=$qemu" --set "FIRMWARE=$work/stays.bin")

# state NAME: by the list
state()
{
	"$vmpt" domain list "$system" --json </dev/null | python3 -c '
import json, sys
print("".join(d["state"] for d in json.load(sys.stdin)["domains"] if d["name"] == sys.argv[1]))' "$1"
}

is()
{
	[ "$(state "$1")" = "$2" ]
}

becomes()
{
	wait_for is "$1" "$2"
}

# ---- domains that outlive a command ----

domain list "$system"
check 'list' [ $rc = 0 ]
cat libvirtd.log >>stderr
check 'list: empty' [ "$(wc -l <stdout)" = 1 ]

domain start "${set[@]}" --set b:VCPUS=2 a="$xml" b="$xml"
check 'start' [ $rc = 0 ]
check 'start: says a' says 'a: runs'
check 'start: says b' says 'b: runs'
domain list "$system"
check 'list: a' prints "a      1  running      1         16  $qemu"
check 'list: b' prints "b      2  running      2         16  $qemu"
fails 1 'a: cannot be started' 'already' 'vmpt domain stop' -- start "${set[@]}" a="$xml"
fails 1 'a: already running' 'vmpt domain stop a' -- trace "$system" a
domain stop "$system" --force a
check 'stop --force' [ $rc = 0 ]
check 'stop --force: gone' [ -z "$(state a)" ]
domain stop "$system" --seconds 1 b
check 'stop: a guest that ignores it' [ $rc = 0 ]
check 'stop: says so' says 'b: did not shut down within 1 s, stopping it'
check 'stop: gone' [ -z "$(state b)" ]
fails 1 'b: not found' -- stop "$system" b

# A guest that ends while nobody is connected.
domain start "${set[@]}" --set "FIRMWARE=$work/ends.bin" ends="$xml"
check 'ends: started' [ $rc = 0 ]
check 'ends: gone' becomes ends ''

# ---- console ----

domain start -q "${set[@]}" --set "FIRMWARE=$work/echo.bin" echo="$xml"
check 'echo: started' [ $rc = 0 ]
printf 'one two\035' >typed
input=typed domain console "$system" echo
check 'console: left with ^]' [ $rc = 0 ]
check 'console: the guest still runs' [ "$(state echo)" = running ]
printf 'q' >typed
input=typed domain console "$system" echo
check 'console: ends with the guest' [ $rc = 0 ]
check 'console: the guest got the q' becomes echo ''
printf 'abcq' >typed
input=typed domain start -q --console "${set[@]}" --set "FIRMWARE=$work/echo.bin" echo="$xml"
check 'start --console' [ $rc = 0 ]
check 'start --console: all came back' cmp -s stdout <(printf 'firmware: hello\r\nabc')

# ---- domains defined in libvirt ----

sed -e "s|<name>@NAME@|<uuid>4a2f7a51-5d0e-4f5a-8d0c-3f5f1f0a9b11</uuid><name>known|; s|@QEMU@|$qemu|; s|@FIRMWARE@|$work/stays.bin|" \
	-e 's|@VCPUS=1@|1|; s|@MEMORY=16@|16|' "$xml" >/etc/libvirt/qemu/known.xml
kill "${daemons[1]}"
wait "${daemons[1]}"
libvirtd >>libvirtd.log 2>&1 &
daemons[1]=$!
wait_for "$vmpt" domain list "$system" </dev/null >/dev/null 2>&1
check 'known: shut off' [ "$(state known)" = 'shut off' ]
domain start "$system" known
check 'known: started by its name' [ $rc = 0 ]
check 'known: runs' [ "$(state known)" = running ]
domain stop "$system" --force known
check 'known: stopped' [ "$(state known)" = 'shut off' ]

domain trace "$system" --plugin "$plugin" -o out --seconds 1 known
check 'trace by name' [ $rc = 0 ]
check 'trace by name: the table' grep -qE '^known +0 +0 +1000 +stopped$' stdout
check 'trace by name: options' diff - known.options <<-END
	host-view=$work/out
	vm=known
	cpus=0
	mode=600
	code=$work/out/vm0.code
	tasks=$work/out/vm0.tasks
	symbols=$work/out/vm0.symbols
END
check 'trace: it is off again' [ "$(state known)" = 'shut off' ]
check 'trace: its XML is as before' [ "$(grep -c plugin /etc/libvirt/qemu/known.xml)" = 0 ]

# ---- unwanted ends ----

mkdir full && mount -t tmpfs -o size=12k tmpfs full
domain trace "${set[@]}" --plugin "$real" --no-code --no-tasks -o full --set "FIRMWARE=$work/ends.bin" a="$xml"
check 'full disk: losses' [ $rc = 3 ]
check 'full disk: the guest continued' grep -qE '^a .* shut down$' stdout
check 'full disk: says so' grep -qE 'a: host CPU 0: .*; lost [0-9]+ runs, [0-9]+ bytes: No space' stderr
umount full

: >stderr # not the last one's words
"$vmpt" domain trace "$system" --plugin "$plugin" -o out2 known </dev/null >stdout 2>stderr &
pid=$!
check 'killed: it ran' becomes known running
kill -KILL $pid
wait $pid 2>/dev/null
check 'killed: its domain ends with it' becomes known 'shut off'
: >stderr # not the last one's words
"$vmpt" domain trace "$system" --plugin "$plugin" -o out3 known </dev/null >stdout 2>stderr &
pid=$!
check 'libvirtd ends: it ran' becomes known running
kill -KILL "${daemons[1]}"
rc=0
wait $pid || rc=$?
check 'libvirtd ends: fails' [ $rc = 1 ]
check 'libvirtd ends: says so' says 'libvirt ended the connection'
wait "${daemons[1]}" 2>/dev/null
fails 1 'qemu:///system: cannot connect' 'is libvirtd running?' -- list "$system"
kill "${daemons[0]}"

finish
