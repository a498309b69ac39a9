#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The guests boot, run their programs and power off, with one vCPU and with two; and boot
# distinguishes the ways in which a guest can end.
#
#	test-guests.sh SOURCE OUT
set -u

source=$(realpath "$1")
out=$2
guests=$source/tests/guests

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
mkdir -p "$out"
out=$(realpath "$out")
rm -rf "${out:?}"/*

show()
{
	cat "$out/stdout" "$out/stderr" "$dir/serial.log" 2>/dev/null
}

# Boot with boot's arguments $2... and keep its files in folder $1.
boot()
{
	dir=$out/$1
	shift
	rc=0
	"$guests/boot" --out "$dir" "$@" >"$out/stdout" 2>"$out/stderr" || rc=$?
}

# Run build, with variables such as PATH=... before its arguments.
build()
{
	rc=0
	env "$@" >"$out/stdout" 2>"$out/stderr" || rc=$?
}

# The console has all lines $1... in this order.
says()
{
	local line rest

	rest=$(tr -d '\r' <"$dir/serial.log")
	for line; do
		[[ $'\n'$rest$'\n' == *$'\n'"$line"$'\n'* ]] || return 1
		rest=${rest#*"$line"}
	done
}

# How many processors does the kernel say it has, in cpuinfo of folder $dir?
processors()
{
	grep -c '^processor' "$dir/files/cpuinfo"
}

# Make the script $1 for a guest of kind work.
script()
{
	printf '#!/bin/sh\n%s\n' "$1" >"$out/script"
}

# alpha's result after $1 rounds, calculated by its source's description.
alpha()
{
	local i x=0

	for ((i = 0; i < $1; i++)); do
		x=$(((3 * x + i + 1 + i % 2) & 0xffffffff))
	done
	printf 'alpha: %u rounds %08x' "$1" "$x"
}

dir=$out/none
boot hello hello
[ $rc != 77 ] || { cat "$out/stdout" && exit 77; }
check 'hello: ends well' [ $rc = 0 ]
check 'hello: its markers' says 'guest: begin' 'guest: end 0'
check 'hello: QEMU prints nothing' [ ! -s "$dir/stderr.log" ]
check 'hello: boot prints the result' grep -q '^boot: hello: status 0, [0-9.]* s, [0-9.]* s user$' \
	"$out/stdout"

# With the packed kernel. The sums of the squares below 150, and of the numbers below 200.
folder=$("$guests/build" work)
boot work --smp 2 work -- -kernel "$folder/vmlinuz"
check 'work: ends well' [ $rc = 0 ]
check 'work: all programs' says 'guest: begin' \
	"$(alpha 1000)" 'guest: alpha ends with 0' \
	'signals: 20 sent 20 mended 20 jumped 40 traps' 'guest: signals ends with 0' \
	'jit: 50 rounds sum 1225 bad 0' 'guest: jit ends with 0' \
	'modes32: with vdso, right' 'guest: modes32 ends with 0' \
	'ldt: 10 rounds 55' 'guest: ldt ends with 0' \
	"pipes: 3 children 50 rounds sum $((149 * 150 * 299 / 6)) bad 0" \
	'guest: pipes ends with 0' \
	"threads: 2 threads 100 rounds sum $((199 * 200 / 2))" \
	'guest: threads ends with 0' \
	'ptwrite: CPUID does not have it' 'guest: ptwrite ends with 0' \
	'idle: 100 ms' 'guest: idle ends with 0' 'guest: end 0'
boot fails --run pipes,99 work
check 'a program that fails: its status' [ $rc = 2 ]
check 'one program: with its argument' says 'guest: run pipes 99'
check 'one program: no other' [ "$(grep -c '^guest: run' "$dir/serial.log")" = 1 ]

# Files in and out, one of them larger than any buffer between.
head -c 3000000 /dev/urandom >"$out/bytes"
script 'send /data/bytes /proc/cpuinfo && echo hallo | send - greeting; exit 3'
boot files --smp 2 --file /test="$out/script" --file /data/bytes="$out/bytes" work
check 'files: the status of the test' [ $rc = 3 ]
check 'files: the same bytes' cmp -s "$out/bytes" "$dir/files/bytes"
check 'files: of /proc' [ "$(processors)" = 2 ]
check 'files: standard input' [ "$(cat "$dir/files/greeting")" = hallo ]

script 'echo c >/proc/sysrq-trigger'
boot panic --file /test="$out/script" work
check 'panic: not a normal end' [ $rc = 125 ]
check 'panic: reported' grep -q 'QEMU ended with 0, the guest without saying how' "$out/stderr"
boot refused hello -- -device no-such-device
check 'QEMU refuses: status' [ $rc = 125 ]
check 'QEMU refuses: its message' grep -q no-such-device "$out/stderr"

# QEMU must not be left running, neither after a hang nor when boot is terminated.
ended()
{
	[ -n "$qemu" ] && [ ! -e "/proc/$qemu" ]
}

script 'echo waiting; sleep 1000'
boot hang --timeout 3 --file /test="$out/script" work -- -pidfile "$out/pid"
check 'hang: not a failure' [ $rc = 124 ]
check 'hang: QEMU has removed its file' [ ! -e "$out/pid" ]
check 'hang: reported' grep -q 'still running after 3 s' "$out/stderr"
dir=$out/killed
"$guests/boot" --out "$dir" --file /test="$out/script" work -- -pidfile "$out/pid-killed" \
	>"$out/stdout" 2>"$out/stderr" &
boot=$!
wait_for grep -qs waiting "$dir/serial.log"
qemu=$(cat "$out/pid-killed")
kill $boot
wait $boot
rc=$?
check 'terminated: status' [ $rc = 143 ]
check 'terminated: QEMU, too' ended
check 'terminated: ran until then' says 'guest: begin' waiting

boot perf --file /test="$guests/test-perf" perf
[ $rc != 77 ] || { cat "$out/stdout" && exit 77; }
check 'perf: ends well' [ $rc = 0 ]
check 'perf: is the packaged one' says "$(perf --version)"
check 'perf: lists events' grep -q '^  cpu-clock  .*Software event' "$dir/files/list"
for function in alpha beta gamma_even delta_odd; do
	check "perf: $function is in the samples" grep -qw "$function" "$dir/files/script"
done
check 'perf: the kernel has code' [ "$(od -An -t x1 -N 4 "$dir/files/kcore_dir/kcore")" = \
	' 7f 45 4c 46' ]
check 'perf: the kernel has symbols' grep -q ' T _stext$' "$dir/files/kcore_dir/kallsyms"

# Builds are reproducible, and leave nothing half-made.
cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/vmpt
mkdir -p "$out/cache/vmpt"
cp -rl "$cache"/guest-base_* "$out/cache/vmpt/" 2>/dev/null ||
	cp -r "$cache"/guest-base_* "$out/cache/vmpt/"
build XDG_CACHE_HOME="$out/cache" "$guests/build" hello work
check 'another cache: made' [ $rc = 0 ]
check 'another cache: in there' [ "$(dirname "$(cat "$out/stdout")")" = "$out/cache/vmpt" ]
for kind in hello work; do
	check "another cache: the same $kind" cmp "$folder/initramfs-$kind.cpio" \
		"$(cat "$out/stdout")/initramfs-$kind.cpio"
done
check 'another cache: nothing left over' [ -z "$(find "$out/cache/vmpt" -name '.guests-*')" ]
build "$guests/build" nonsense
check 'unknown kind: refused' [ $rc = 2 ]
check 'unknown kind: named' grep -q 'no kind nonsense' "$out/stderr"
# apt without lists: the last answer is used.
mkdir -p "$out/no-lists/partial"
printf 'Dir::State::lists "%s";\n' "$out/no-lists" >"$out/apt.conf"
build APT_CONFIG="$out/apt.conf" "$guests/build" hello
check 'no lists: made before' [ "$rc $(cat "$out/stdout")" = "0 $("$guests/build" hello)" ]
# An archive that cannot be reached.
mkdir -p "$out/bin"
printf '#!/bin/sh\necho "E: no route" >&2\nexit 100\n' >"$out/bin/apt-get"
chmod +x "$out/bin/apt-get"
build XDG_CACHE_HOME="$out/empty" PATH="$out/bin:$PATH" "$guests/build" hello
check 'no archive: skipped' [ $rc = 77 ]
check 'no archive: with the reason' grep -q '^skipped: cannot download .*E: no route' "$out/stdout"
build XDG_CACHE_HOME="$out/empty2" APT_CONFIG="$out/apt.conf" PATH="$out/bin:$PATH" \
	"$guests/build" hello
check 'nothing at all: skipped' [ $rc = 77 ]
check 'nothing at all: with the reason' grep -q '^skipped: apt knows no .*E: no route' "$out/stdout"

finish
