# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The part of vmpt-bochs that runs Bochs, waits for it, and reports how the run ended.
# shellcheck disable=SC2154 # variables of vmpt-bochs

# Messages in which a kernel reports its own faults.
faults='WARNING: CPU: \|BUG: \|Oops: \|general protection fault\|unchecked MSR access error'
faults+='\|INFO: rcu_.* self-detected stall'
faults+='\|NMI received for unknown reason'

# Is process $pid still running? A zombie is not.
runs()
{
	local stat

	{ read -r stat <"/proc/$pid/stat"; } 2>/dev/null || return
	stat=${stat##*) }
	[ "${stat%% *}" != Z ]
}

# Milliseconds of the clock, in $now. No process is started: run() asks often.
read_clock()
{
	now=${EPOCHREALTIME//[!0-9]/}
	now=$((now / 1000))
}

# The name and offset of address $1 (hex digits).
symbol()
{
	local map=${symbols:-${kernel%/*}/System.map}

	[ -r "$map" ] || return 0
	# All addresses have 16 lower-case digits: as strings they are in order.
	sort "$map" | awk -v at="$1" '$1 > at { exit } { name = $3 } END { if (name) print name }'
}

# Record where the PC and Bochs were. SIGINT makes Bochs write the registers to its log and exit.
collect_evidence()
{
	local line i

	echo "==== the serial line's last words"
	tail -n 15 "$out/serial.log"
	for i in 1 2; do
		echo "==== $(date +%T.%N), CPU time of Bochs: $(ps -o time= -p "$pid")"
		! command -v gdb >/dev/null ||
			timeout 20 gdb -p "$pid" -batch -ex 'thread apply all bt' 2>/dev/null </dev/null |
			grep '^#\|^Thread'
		sleep 0.5
	done
	kill -INT "$pid"
	for ((i = 0; i < 50; i++)); do
		runs || break
		sleep 0.1
	done
	echo "==== the processors"
	sed -n 's/^[0-9]*i\[CPU\([0-9]*\) *\] \(.*>> .*\|.*[RE]IP=.*\|CPU is in .*\)/CPU \1: \2/p' \
		"$out/bochs.log" | tail -n 12 | while read -r line; do
		echo "$line"
		[[ $line =~ ([0-9a-f]{16})\>\> ]] && echo "       $(symbol "${BASH_REMATCH[1]}")"
	done
}

# Start Bochs and wait for it: $end is timeout or empty; $rc Bochs's own status.
run()
{
	local began panicked='' now fixed=()

	# It must not outlive us, however we end.
	! setpriv --pdeathsig KILL true 2>/dev/null || fixed=(setpriv --pdeathsig KILL)
	# With two processors a run also depends on addresses in Bochs's memory.
	! setarch -R true 2>/dev/null || fixed+=(setarch -R)
	read_clock
	began=$now
	: >"$out/serial.log"
	(
		cd "$work" || exit
		VMPT_BOCHS_OUT=$out/files VMPT_BOCHS_PT=$pt VMPT_BOCHS_TIMES=$times \
			VMPT_BOCHS_SEED=$seed BXSHARE=$bochs exec "${fixed[@]}" "$bochs/bochs" -q -f "$work/bochsrc"
	) </dev/null >"$out/stdout" 2>"$out/stderr" &
	pid=$!
	if [ $show = yes ]; then
		tail -n +1 -f --pid=$pid -s 0.2 "$out/serial.log" &
		tail=$!
	fi
	end=
	while runs; do
		sleep 0.1
		read_clock
		if [ $((now - began)) -ge $((timeout * 1000)) ]; then
			end=timeout
			collect_evidence >"$out/evidence" 2>&1
			break
		fi
		# A kernel that panicked resets the PC at once, unless its command line says
		# otherwise.
		if [ -n "$panicked" ]; then
			[ $((now - panicked)) -lt 3000 ] || kill -INT "$pid"
			[ $((now - panicked)) -lt 6000 ] || break
		elif grep -q 'Kernel panic - not syncing' "$out/serial.log"; then
			panicked=$now
		fi
	done
	! runs || kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	rc=$?
	pid=
	if [ -n "$tail" ]; then
		wait "$tail"
		tail=
	fi
	read_clock
	millis=$((now - began))
}

# Determine how the run ended, from the serial line, the host port's status ("none": switched off
# without one) and Bochs's last messages.
judge()
{
	local port=

	serial=$(tr -d '\r' <"$out/serial.log" | sed -n 's/^vmpt: end \([0-9]*\)$/\1/p' | tail -n 1)
	[ ! -s "$out/files/status" ] || port=$(head -n 1 "$out/files/status")
	status=${port:-$serial}
	warnings=$(grep -c "$faults" "$out/serial.log")
	[ -z "$end" ] || return 0
	if grep -q 'Kernel panic - not syncing' "$out/serial.log"; then
		end=panic
	elif [ -n "$serial" ] && [ "$serial" != "$status" ]; then
		end=differ
	elif [ "$status" = none ]; then
		end=off
	elif [ -n "$status" ]; then
		end=job
	elif [ $rc = 0 ] || grep -q 'soft power off\|shutdown requested' "$out/stderr"; then
		end=off
	else
		end=bochs
	fi
}

report()
{
	local code what why

	judge
	case $end in
	job)
		code=$status what="ended with status $status"
		[ "$status" -lt 120 ] || code=118
		;;
	off) code=120 what="the PC was switched off without a status" ;;
	differ) code=120 what="status $serial on the serial line, $status at the host port" ;;
	panic) code=122 what=$(grep -m 1 -o 'Kernel panic - .*' "$out/serial.log" | tr -d '\r') ;;
	bochs)
		why=$(sed -n '/message:/{n;p}' "$out/stderr")
		code=123 what="Bochs failed ($rc): ${why:-$(tail -n 1 "$out/stderr")}"
		;;
	timeout) code=124 what="hung: $timeout s are over; see $out/evidence" ;;
	esac
	if [ "$warnings" != 0 ]; then
		what+="; $warnings faults reported by the kernel, the first:"
		what+=" $(grep -m 1 "$faults" "$out/serial.log" | tr -d '\r')"
		[ $code != 0 ] || [ $allow = yes ] || code=121
	fi
	millis=$(printf '%d.%02d' $((millis / 1000)) $((millis % 1000 / 10)))
	printf 'end=%s\nstatus=%s\nwarnings=%s\nseconds=%s\n' "$end" "$status" "$warnings" \
		"$millis" >"$out/result"
	if [ $code != 0 ] || [ $quiet = no ]; then
		say "$what ($millis s)"
	fi
	[ $quiet = yes ] || echo "$out"
	exit $code
}
