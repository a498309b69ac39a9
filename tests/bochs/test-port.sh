#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The Bochs PC's host port: files with valid and invalid names, marks, an NMI, an SMI, the truth
# switched on and off, an image, and Bochs's exit status. Then files whose senders are killed, and
# an incomplete status: none of these may pass for success.
#
#	test-port.sh SOURCE OUT
set -u

source=$1
out=$2

mkdir -p "$out"
export LC_ALL=C
. "$source/tests/bochs/lib.sh" || exit
make_all "$source/bochs/build" "$source/tests/bochs/build-kernel" "$source/tests/bochs/build base"

show()
{
	cat "$out/said" "$files/run.log"
}

# A line of the run's log, without its time.
logged()
{
	sed 's/^[0-9]* //' "$files/run.log" | grep -qx -- "$1"
}

# How many of the log's lines are errors.
errors()
{
	grep -c '^[0-9]* error: ' "$files/run.log"
}

# Run job $1 as run $2; $rc is the status of vmpt-bochs.
job()
{
	rm -rf "${out:?}/$2"
	files=$out/$2/files
	rc=0
	"$here/run" --out "$out/$2" --file "jobs/port=$1" port >"$out/said" 2>&1 || rc=$?
}

# Run a firmware made from the arguments: serial TEXT, name TEXT, dword N, command N.
firmware()
{
	{
		cat <<-'END'
			.macro text a # of SI up to DI
				jmp 2f
			1:	.ascii "\a"
			2:	mov $1b, %si
				mov $2b, %di
			.endm
			.macro serial a
				mov $3, %al # 8 bits
				mov $0x3fb, %dx
				out %al, %dx
				text "\a\n"
				mov $0x3f8, %dx
			3:	lodsb %cs:(%si)
				out %al, %dx
				mov $0x3fd, %dx
			4:	in %dx, %al
				test $0x40, %al
				jz 4b
				mov $0x3f8, %dx
				cmp %di, %si
				jne 3b
			.endm
			.macro name a
				text "\a\0"
				mov $0x564, %dx
			3:	outsb %cs:(%si), %dx
				cmp %di, %si
				jne 3b
			.endm
			.macro send port, n
				mov $\n, %eax
				mov $\port, %dx
				out %eax, %dx
			.endm
			.macro dword n
				send 0x564, \n
			.endm
			.macro command n
				send 0x560, \n
			.endm
			.code16
			cld
		END
		printf '%s\n' "$@"
		echo '1: hlt; jmp 1b; .org 0xfff0; ljmp $''0xf000, $''0; .org 0x10000'
	} >"$out/firmware.s"
	gcc -m32 -c -o "$out/firmware.o" "$out/firmware.s" &&
		objcopy -O binary -j .text "$out/firmware.o" "$out/firmware" || exit 99
	files=$out/bare/files
	rc=0
	"$source/bochs/vmpt-bochs" run --firmware "$out/firmware" --memory 32 --timeout 300 \
		--out "$out/bare" >"$out/said" 2>&1 || rc=$?
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
to-host --name a.times.0 good
to-host --times ../bad
to-host --mark 77
to-host --times times
to-host --truth on
to-host --pulse nmi
to-host --pulse smi
i=0
while [ \$i -lt 1000 ]; do i=\$((i + 1)); done
to-host --truth off
to-host --times off
to-host --dump memory
echo still here
exit 42
END
job "$out/job" run
check 'the status' [ $rc = 42 ]
check 'and that of Bochs' [ "$(cat "$files/status")" = 42 ]
check 'in the log' logged 'status 42'
check 'a file' [ "$(cat "$files/good")" = good ]
check 'a file with a long name' [ "$(cat "$files/${long%a}")" = good ]
check 'no other files' [ "$(find "$files" -mindepth 1 -printf '%f\n' | sort | tr '\n' ' ')" = \
	"$(echo "${long%a} good host.truth.0 memory run.log status times.times.0" | tr ' ' '\n' | sort | tr '\n' ' ')" ]
check 'none outside' [ ! -e "$out/run/bad" ]
check 'eight errors' [ "$(grep -c '^[0-9]* error: file: no good name before it$' "$files/run.log")" = 8 ]
check 'one of times' logged 'error: times: no good name before it'
check 'and no more' [ "$(errors)" = 9 ]
check 'a mark' logged 'mark 77'
check 'the truth is on' logged 'truth on'
check 'and off' logged 'truth off'
check 'the times are on' logged 'times times'
check 'and off' logged 'times off'
check 'their file has its magic number' [ "$(head -c 8 "$files/times.times.0")" = VMPTTIM1 ]
check 'instructions were written' \
	[ "$(sed -n 's/.* truth host.truth.0 instructions //p' "$files/run.log")" -gt 100000 ]
check 'an image' logged 'image memory'
check 'of 512 MB' [ "$(stat -c %s "$files/memory")" = $((512 << 20)) ]
# Don't count blocks: a file system may have preallocated more of them.
check 'with holes' python3 -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
sys.exit(os.lseek(fd, 0, os.SEEK_HOLE) == os.fstat(fd).st_size)' "$files/memory"
check 'the kernel is in it' grep -qa '^Linux version 6\.12\.\|Linux version 6\.12\.' "$files/memory"
check 'the NMI arrived' grep -q 'NMI received for unknown reason' "$out/run/serial.log"
check 'the SMI was handled' grep -q 'Resuming from System Management Mode' "$out/run/bochs.log"
check 'the PC runs on' grep -q 'still here' "$out/run/serial.log"
rm -f "$files/memory" "$files/host.truth.0"

# A sender is killed; later ones are served nevertheless.
cat >"$out/job" <<'END'
#!/bin/sh
cat /dev/zero | to-host --name big - &
sleep .3
killall -KILL to-host
to-host --mark 78
cat /dev/zero | to-host --name more - &
sleep .3
killall -KILL to-host
exit 7
END
job "$out/job" killed
check 'a killed sender: the status' [ "$rc $(cat "$files/status")" = '7 7' ]
check 'a killed sender: its file ends' logged 'error: big: command 9 comes in it'
check 'a killed sender: the last, too' logged 'error: more: command 9 comes in it'
check 'a killed sender: no more errors' [ "$(errors)" = 2 ]
check 'a killed sender: a mark' logged 'mark 78'
check 'a killed sender: part of its file arrived' [ -s "$files/big" ]
check "a killed sender: no others' bytes" [ -z "$(tr -d '\0' <"$files/big" | head -c 10)" ]
rm -f "$files/big" "$files/more"

# Several senders at once take turns; the status waits for none of them.
cat >"$out/job" <<'END'
#!/bin/sh
seq 1 3000 >numbers
for n in 1 2 3; do
	(while read -r line; do echo "$line"; done <numbers) | to-host --name numbers.$n - &
done
i=0
while [ $i -lt 20 ]; do to-host --mark $((1000 + i)); i=$((i + 1)); done
wait
to-host --status nonsense || echo refused 1
to-host --status 256 || echo refused 2
sleep 1000 | to-host --name endless - &
sleep .1
exit 5
END
job "$out/job" several
seq 1 3000 >"$out/numbers"
check 'several senders: the status' [ $rc = 5 ]
for n in 1 2 3; do
	check "several senders: file $n" cmp "$out/numbers" "$files/numbers.$n"
done
check 'several senders: marks' [ "$(grep -c ' mark 10[01][0-9]$' "$files/run.log")" = 20 ]
check 'several senders: no errors but that of the endless one' [ "$(errors)" = 1 ]
check 'a status is refused' grep -q 'refused 1' "$out/several/serial.log"
check 'one of nine bits, too' grep -q 'refused 2' "$out/several/serial.log"

# The port's rules.
firmware 'dword 7' 'command 7'
check 'a firmware: the status' [ "$rc $(errors)" = '7 0' ]
firmware 'command 7'
check 'no status: not passed' [ $rc = 120 ]
check 'no status: says so' logged 'error: power off: no dword before it'
firmware 'name file' 'command 1' 'dword 7' 'command 7'
check 'a status in a file: not passed' [ $rc = 120 ]
check 'a status in a file: says so' logged 'error: file: command 7 comes in it'
check 'a status in a file: its dword is in the file' [ "$(stat -c %s "$files/file")" = 4 ]
firmware 'name .bad' 'command 1' 'dword 5' 'command 7'
check 'a status in a file with a bad name: not passed' [ $rc = 120 ]
firmware 'name .bad' 'command 1' 'dword 5' 'command 9' 'dword 5' 'command 7'
check 'started again after it: the status' [ $rc = 5 ]
firmware 'name file' 'command 1' 'dword 5' 'command 6' 'dword 6' 'command 6' 'dword 5' 'command 7'
check 'a file ends at a mark' [ "$rc $(stat -c %s "$files/file")" = '5 4' ]
check 'that mark has no dword' logged 'error: mark: no dword before it'
check 'the next one has' logged 'mark 6'
firmware 'name abcde' 'command 7'
check 'a status of six bytes: not passed' [ $rc = 120 ]

# Two statuses.
firmware 'serial "vmpt: end 7"' 'dword 7' 'command 7'
check 'two equal: the status' [ $rc = 7 ]
firmware 'serial "vmpt: end 7"' 'dword 0' 'command 7'
check 'two that differ: not passed' [ $rc = 120 ]
check 'two that differ: which' grep -q 'status 7 on the serial line, 0 at the host port' "$out/said"
firmware 'serial "vmpt: end 0"' 'command 7'
check '0 and none: not passed' [ $rc = 120 ]

finish
