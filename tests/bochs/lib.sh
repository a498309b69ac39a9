# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Shared by the tests that start the PC; they source it after setting $source and $out, a folder of
# their own.

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
here=$source/tests/bochs
patches=$source/kvm-patches/6.12

# A test of the patched kernel gets the patches' folder from the environment, as tests/bochs/run
# does.
[ -z "${VMPT_BOCHS_PATCHES-}" ] || [ -e "$VMPT_BOCHS_PATCHES/series" ] ||
	skip "no patches in ${VMPT_BOCHS_PATCHES##*/}"

# Build what the test needs: each argument is a command line of the tree that builds a part, or prints
# "skipped:" and exits with 77, as this then does. The output of a failing command is printed. Words
# are split at spaces, which the path of the tree may have.
make_all()
{
	local what printed rc

	for what; do
		# shellcheck disable=SC2086 # a command and its arguments
		printed=$(cd "$source" && ${what//"$source/"/} 2>"$out/build.log") || {
			rc=$?
			echo "$printed"
			cat "$out/build.log"
			exit $rc
		}
	done
}

# For the kernel "stock" or "patched": $options for tests/bochs/run, and $build, the command that
# builds it.
choose_kernel()
{
	options=(--allow-warnings) build=$here/build-kernel
	[ "$1" = patched ] || return 0
	[ -e "$patches/series" ] || skip "kvm-patches/6.12/series is missing"
	options=(--patches "$patches")
	build+=" --patches $patches"
}

# Run job $2 in the folder $1 of $out, with more options for tests/bochs/run: $rc is its status,
# also in the file rc for callers that run several at once; $run/serial is the serial log without
# CRs.
job()
{
	in_job "$1"
	rm -rf "$run"
	mkdir -p "$run"
	rc=0
	"$here/run" --out "$run" "${@:3}" "$2" >"$run/said" 2>&1 || rc=$?
	echo $rc >"$run/rc"
	tr -d '\r' <"$run/serial.log" >"$run/serial" 2>/dev/null
}

# The following checks are about job $1.
in_job()
{
	name=$1
	run=$out/$1
	[ ! -e "$run/rc" ] || rc=$(cat "$run/rc")
}

# Shown when a check fails that is about a job.
show()
{
	[ -n "${run-}" ] || return 0
	cat "$run/said"
	tail -n 20 "$run/serial" 2>/dev/null
}
