# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# For scripts of "make soak" that do their work once, however long it takes, rather than for
# VMPT_SOAK seconds. To be sourced.

# This script takes about $1 seconds. "make soak" runs all scripts that call this, .ci/run one of
# them: scripts/run-tests finds them by this word.
soak_takes()
{
	: "$1"
}

# A soak has no time to build the Bochs PC: each argument is a command line of the tree $source with an
# option --where, which prints the folder that it makes.
soak_made()
{
	local what

	[ -n "${VMPT_SOAK-}" ] || return 0
	for what; do
		# shellcheck disable=SC2086 # a command and its arguments
		[ -d "$(cd "$source" && ${what//"$source/"/} --where)" ] ||
			{ echo 'skipped: the Bochs PC is missing: make test-kvm' && exit 77; }
	done
}
