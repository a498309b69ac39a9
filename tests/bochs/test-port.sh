#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The Bochs PC's host port: files that may be and that may not, marks, an NMI, an SMI, the truth
# switched on and off, an image, and the status with which Bochs ends.
#
#	test-port.sh SOURCE OUT
set -u

source=$1
out=$2
failures=0 checks=0 rc=0

mkdir -p "$out"
export LC_ALL=C
for what in "$source/bochs/build" "$source/tests/bochs/build-kernel" "$source/tests/bochs/build base"; do
	# shellcheck disable=SC2086 # a command and its words
	printed=$($what 2>"$out/build.log") || {
		rc=$?
		echo "$printed"
		cat "$out/build.log"
		exit $rc
	}
done

check()
{
	local what=$1
	shift
	checks=$((checks + 1))
	if ! "$@"; then
		failures=$((failures + 1))
		echo "$what: fails; rc $rc"
		cat "$out/said" "$out/run/files/run.log"
	fi
}

# A line of the run's log, but for its time.
logged()
{
	sed 's/^[0-9]* //' "$out/run/files/run.log" | grep -qx "$1"
}

long=$(printf 'a%.0s' {1..128})
cat >"$out/job" <<END
#!/bin/sh
echo good >good
to-host good
to-host --name ../bad good
to-host --name run.log good
to-host --name status good
to-host --name vm-0.truth.0 good
to-host --name .hidden good
to-host --name 'a b' good
to-host --name $long good
to-host --name ${long%a} good
to-host --mark 77
to-host --truth on
to-host --pulse nmi
to-host --pulse smi
i=0
while [ \$i -lt 1000 ]; do i=\$((i + 1)); done
to-host --truth off
to-host --dump memory
echo still here
exit 42
END
rm -rf "$out/run"
"$source/tests/bochs/run" --out "$out/run" --file "jobs/port=$out/job" port >"$out/said" 2>&1 || rc=$?
files=$out/run/files
check 'the status' [ $rc = 42 ]
check 'and that of Bochs' [ "$(cat "$files/status")" = 42 ]
check 'in the log' logged 'status 42'
check 'a file' [ "$(cat "$files/good")" = good ]
check 'one with a long name' [ "$(cat "$files/${long%a}")" = good ]
check 'no others' [ "$(find "$files" -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')" = \
	"$(echo "${long%a} good host.truth.0 memory run.log status" | tr ' ' '\n' | sort | tr '\n' ' ')" ]
check 'none outside' [ ! -e "$out/run/bad" ]
check 'seven errors' [ "$(grep -c '^[0-9]* error: file: no good name before it$' "$files/run.log")" = 7 ]
check 'and no more' [ "$(grep -c ' error: ' "$files/run.log")" = 7 ]
check 'a mark' logged 'mark 77'
check 'the truth is on' logged 'truth on'
check 'and off' logged 'truth off'
check 'instructions were written' \
	[ "$(sed -n 's/.* truth host.truth.0 instructions //p' "$files/run.log")" -gt 100000 ]
check 'an image' logged 'image memory'
check 'of 512 MB' [ "$(stat -c %s "$files/memory")" = $((512 << 20)) ]
# Blocks would not do: a file system may have taken more of them beforehand.
check 'with holes' python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
sys.exit(os.lseek(fd, 0, os.SEEK_HOLE) == os.fstat(fd).st_size)' "$files/memory"
check 'the kernel is in it' grep -qa '^Linux version 6\.12\.\|Linux version 6\.12\.' "$files/memory"
check 'the NMI came' grep -q 'NMI received for unknown reason' "$out/run/serial.log"
check 'the SMI went' grep -q 'Resuming from System Management Mode' "$out/run/bochs.log"
check 'the PC lived on' grep -q 'still here' "$out/run/serial.log"
rm -f "$files/memory" "$files/host.truth.0"

echo "$(((checks - failures) * 100 / checks))%: Checks: $checks, Failures: $failures, Errors: 0"
[ $failures = 0 ]
