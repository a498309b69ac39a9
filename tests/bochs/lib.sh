# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What the tests that start the PC share; they source it, with the folder $out of their own.

# A test of the patched kernel has the patches' folder in the environment, as tests/bochs/run does.
if [ -n "${VMPT_BOCHS_PATCHES-}" ] && ! [ -e "$VMPT_BOCHS_PATCHES/series" ]; then
	echo "skipped: no patches in ${VMPT_BOCHS_PATCHES##*/}"
	exit 77
fi

# Make what the test runs on: each argument is a command with its words, which makes it or says
# "skipped:" and ends with 77, as this then does. What a failing one said is printed.
make_all()
{
	local what printed rc

	for what; do
		# shellcheck disable=SC2086 # a command and its words
		printed=$($what 2>"$out/build.log") || {
			rc=$?
			echo "$printed"
			cat "$out/build.log"
			exit $rc
		}
	done
}
