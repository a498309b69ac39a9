#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The Bochs PC boots the small kernel with KVM; a job's status and files come out; and
# vmpt-bochs distinguishes a hang, a panic, a warning, a PC that was switched off and a failing
# Bochs, refuses invalid input, and leaves alone what it did not create.
#
#	test-boot.sh SOURCE OUT
set -u

source=$1
out=$2

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
make_all "$source/bochs/build" "$source/tests/bochs/build-kernel" \
	"$source/tests/bochs/build base"

# A line of the serial log.
said()
{
	tr -d '\r' <"$run/serial.log" | grep -q "$1"
}

result()
{
	grep -qx "$1" "$run/result"
}

job hello hello
check 'status 0' [ $rc = 0 ]
check 'the kernel is ours' said '^6\.12\..*-vmpt$'
check 'one processor' said '^1$'
check 'KVM is there' said '^/dev/kvm$'
for name in ept unrestricted_guest vpid; do
	check "KVM has $name" said "^kvm-intel.$name: Y$"
done
# It exists only with CONFIG_BROKEN.
check 'KVM has pt_mode' said '^kvm-intel.pt_mode: [01]$'
check 'no faults' result warnings=0
check 'the folder is named' [ "$(tail -n 1 "$run/said")" = "$(realpath "$run")" ]

job status hello,7 --append 'kvm-intel.ept=0 kvm-intel.enable_apicv=0'
check 'status 7' [ $rc = 7 ]
check 'in the result' result status=7
check 'EPT is off' said '^kvm-intel.ept: N$'
check 'so is what needs it' said '^kvm-intel.unrestricted_guest: N$'
check 'APICv is off' said '^kvm-intel.enable_apicv: N$'

job high-status hello,200 --cpus 2
check 'a status that would say something else' [ $rc = 118 ]
check 'in the result' result status=200
check 'two processors' said '^2$'

# How many ticks the run took.
ticks()
{
	sed -n '$s/^0*\([0-9]*\)i.*/\1/p' "$out/$1/bochs.log"
}

job seed-1 hello --seed 1
check 'the same run again' [ "$(ticks seed-1)" = "$(ticks hello)" ]
job seed-2 hello --seed 2
check 'status 0' [ $rc = 0 ]
check 'another run' [ "$(ticks seed-2)" != "$(ticks hello)" ]

{
	seq 1 100000
	printf 'no end of line'
} >"$out/numbers"
cat >"$out/files-job" <<-'END'
	#!/bin/sh
	ls -s /proc/kcore >/dev/null && echo kcore
	to-host /numbers && to-host --name again - </numbers
END
job files files --file "/jobs/files=$out/files-job" --file "/numbers=$out/numbers"
check 'status 0' [ $rc = 0 ]
check 'a file came out' cmp "$out/numbers" "$run/files/numbers"
check 'and standard input' cmp "$out/numbers" "$run/files/again"
check "the kernel's memory" said '^kcore$'

# Run job end,$1 with ever longer timeouts until it has begun and the evidence says "$2": a busy
# machine may boot the PC slowly, and a sleeping PC may just then be awake for its timer.
hangs()
{
	local seconds

	for seconds in 5 10 30 100 300; do
		job "$1" "end,$1" --timeout $seconds
		said "^end: $1$" && grep -q "$2" "$run/evidence" && break
	done
	check 'a hang' [ $rc = 124 ]
	check 'no status' result status=
	check 'where' grep -q "$2" "$run/evidence"
}
hangs hang '^CPU 0: .*RIP=[0-9a-f]*'
hangs sleep 'mwait_idle\|default_idle\|pv_native_safe_halt'

began=$SECONDS
job panic end,panic
check 'a panic' [ $rc = 122 ]
check 'the log names it' grep -q 'Kernel panic - not syncing: sysrq triggered crash' "$run/said"
check 'at once' [ $((SECONDS - began)) -lt 900 ]

job panic-stays end,panic --append panic=0
check 'a panic' [ $rc = 122 ]

job warning end,warn
check 'a warning' [ $rc = 121 ]
check 'the log names it' grep -q 'WARNING: CPU: 0 PID: 1 at a test' "$run/said"
job allowed end,warn --allow-warnings
check 'status 0' [ $rc = 0 ]
check 'counted' result warnings=1

job off end,off
check 'switched off' [ $rc = 120 ]
job reset end,reset
check 'reset' [ $rc = 120 ]
job no-job nothing
check 'no such job' [ $rc = 119 ]
job no-model hello --model nonsense
check 'Bochs fails' [ $rc = 123 ]

# vmpt-bochs itself, in a folder of test $1.
vmpt_bochs()
{
	name=$1
	run=$out/$name
	mkdir -p "$run"
	rc=0
	"$source/bochs/vmpt-bochs" run --out "$run" "${@:2}" >"$run/said" 2>&1 || rc=$?
}

# Firmware $1, which begins 16 bytes below the end of 64 KB, with the bytes $2.
firmware()
{
	truncate -s 0 "$out/$1"
	truncate -s 65520 "$out/$1"
	printf '%b' "$2" >>"$out/$1"
	truncate -s 65536 "$out/$1"
}

firmware loop.rom '\xeb\xfe'
# OUT of the dword 7 to port 560H: power off without a status
firmware off.rom '\xba\x60\x05\x66\xb8\x07\x00\x00\x00\x66\xef'
off=(--firmware "$out/off.rom" --timeout 300)
kernel=$("$source/tests/bochs/build-kernel")/bzImage

vmpt_bochs usage --colour red
check 'unknown option' [ $rc = 2 ]
check 'lists the options' grep -q -- '--kernel FILE' "$run/said"
vmpt_bochs usage --kernel "$0"
check 'not a kernel' [ $rc = 125 ]
check 'says so' grep -q 'is no bzImage' "$run/said"
while read -r option value; do
	vmpt_bochs usage "${off[@]}" "$option" "$value"
	check "$option '$value' is refused" [ $rc = 2 ]
	check "$option '$value' is named" grep -q -- "^vmpt-bochs: $option '\?$value" "$run/said"
done <<-'END'
	--memory
	--memory 508
	--memory 2056
	--memory 0
	--memory 99999999999999999999
	--cpus 3
	--cpus 0
	--seed -1
	--timeout 1.5
	--timeout 0
	--model a|b
	--load loop
	--load loop@
	--load loop@x
END
vmpt_bochs timeout --firmware "$out/loop.rom" --timeout 01
check '--timeout 01 is 1' [ $rc = 124 ]
vmpt_bochs pt "${off[@]}" --pt nonsense
check '--pt nonsense: Bochs fails' [ $rc = 123 ]
check '--pt nonsense: and why' grep -q '^vmpt-bochs: .*"nonsense" is not known; words are: ' "$run/said"
vmpt_bochs address "${off[@]}" --load "$out/loop.rom@0x10000" --load "$out/loop.rom@131072"
check 'addresses' [ "$(grep -c 'optramimage[12]: .* address=0x[12]0000$' "$run/bochsrc")" = 2 ]
head -c 1000000 /dev/zero >"$out/million"
vmpt_bochs small --kernel "$kernel" --initrd "$out/million" --memory 80
check 'not enough memory' [ $rc = 125 ]
check 'says how much' grep -q 'the initrd of 1000000 bytes wants --memory 88$' "$run/said"
vmpt_bochs small --kernel "$kernel" --initrd "$out/million" --memory 88 --timeout 300
check 'that is enough' grep -q '^Linux version\|No working init\|Unable to mount root' "$run/serial.log"

# Folders with names that sed, a shell or Bochs could misread.
vmpt_bochs names "${off[@]}" --out "$out/names/a|b & c, d#e%f"
check 'an odd name' [ $rc = 120 ]
check 'has the log' [ -s "$out/names/a|b & c, d#e%f/bochs.log" ]
for odd in 'a'\$'b' 'a"b' 'a,,b'; do
	vmpt_bochs names "${off[@]}" --out "$out/names/$odd"
	check "the name $odd" [ $rc = 125 ]
	check "the name $odd: says so" grep -q 'Bochs cannot read the name' "$run/said"
done

# Files and folders that vmpt-bochs did not create.
for file in files result evidence stdout; do
	rm -rf "$out/own"
	mkdir -p "$out/own/$file/mine"
	vmpt_bochs own "${off[@]}"
	check "a $file that exists" [ $rc = 125 ]
	check "a $file that exists: stays" [ -d "$run/$file/mine" ]
done
rm -rf "$out/own"
mkdir -p "$out/own/mine"
vmpt_bochs own "${off[@]}"
check 'a folder with other things' [ $rc = 120 ]
touch "$run/files/old"
vmpt_bochs own "${off[@]}"
check 'the same again' [ $rc = 120 ]
check 'without what was in it' [ ! -e "$run/files/old" ]
check 'the other things stay' [ -d "$run/mine" ]

# Killed, it leaves no process and no file.
name=killed run=$out/killed
rm -rf "$run"
mkdir -p "$run/tmp"
TMPDIR=$run/tmp "$source/bochs/vmpt-bochs" run --firmware "$out/loop.rom" --timeout 600 \
	--out "$run" >"$run/said" 2>&1 &
pid=$!
wait_for test -s "$run/bochs.log"
check 'it has a folder' [ -n "$(ls "$run/tmp")" ]
pc=$(pgrep -P $pid -x bochs)
check 'it has a Bochs' [ -n "$pc" ]
kill -KILL $pid
wait $pid 2>/dev/null
rc=$?
no_bochs()
{
	[ -n "$pc" ] && [ ! -e "/proc/$pc" ]
}
no_folder()
{
	[ -z "$(ls "$run/tmp")" ]
}
check "Bochs ends" wait_for no_bochs
[ -z "$pc" ] || kill -KILL "$pc" 2>/dev/null
check 'the folder goes' wait_for no_folder

finish
