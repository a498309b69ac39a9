# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# For scripts of "make soak" that do their work once, however long it takes, rather than for
# VMPT_SOAK seconds. To be sourced.

# This script takes about $1 seconds. "make soak" runs all that say so, .ci/run one of them: by this
# word they are found (scripts/run-tests).
soak_takes()
{
	: "$1"
}

# A soak has no time to make the Bochs PC: each argument is a command of the tree $source with its
# words that knows --where, the folder that it makes.
soak_made()
{
	local what

	[ -n "${VMPT_SOAK-}" ] || return 0
	for what; do
		# shellcheck disable=SC2086 # a command and its words
		[ -d "$(cd "$source" && ${what//"$source/"/} --where)" ] ||
			{ echo 'skipped: the Bochs PC was not made: make test-kvm' && exit 77; }
	done
}
