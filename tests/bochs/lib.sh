# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What the tests that start the PC share; they source it, with $source and the folder $out of their
# own set.

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
here=$source/tests/bochs
patches=$source/kvm-patches/6.12

# A test of the patched kernel has the patches' folder in the environment, as tests/bochs/run does.
[ -z "${VMPT_BOCHS_PATCHES-}" ] || [ -e "$VMPT_BOCHS_PATCHES/series" ] ||
	skip "no patches in ${VMPT_BOCHS_PATCHES##*/}"

# Make what the test runs on: each argument is a command of the tree with its words, which makes it or
# says "skipped:" and ends with 77, as this then does. What a failing one said is printed. Words are
# split at spaces, which the path of the tree may have.
make_all()
{
	local what printed rc

	for what; do
		# shellcheck disable=SC2086 # a command and its words
		printed=$(cd "$source" && ${what//"$source/"/} 2>"$out/build.log") || {
			rc=$?
			echo "$printed"
			cat "$out/build.log"
			exit $rc
		}
	done
}

# The kernel "stock" or "patched": $options for tests/bochs/run, and $build, the command that makes it.
choose_kernel()
{
	options=(--allow-warnings) build=$here/build-kernel
	[ "$1" = patched ] || return 0
	[ -e "$patches/series" ] || skip "there is no kvm-patches/6.12/series"
	options=(--patches "$patches")
	build+=" --patches $patches"
}

# Run job $2 in the folder $1 of $out, with more options of tests/bochs/run: $rc is how it ended, also
# in the file rc for who runs several at once, $run/serial the serial line without its CRs.
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

# What follows is about job $1.
in_job()
{
	name=$1
	run=$out/$1
	[ ! -e "$run/rc" ] || rc=$(cat "$run/rc")
}

# What there is of it where a check fails.
show()
{
	cat "$run/said"
	tail -n 20 "$run/serial" 2>/dev/null
}
