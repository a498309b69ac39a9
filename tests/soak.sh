# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# For scripts of "make soak" that do their work once, however long it takes, rather than for
# VMPT_SOAK seconds. To be sourced.

# Marks a script that takes minutes: "make soak" runs all of them, .ci/run one. scripts/run-tests
# looks for this word at the beginning of a line.
soak_takes()
{
	:
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
