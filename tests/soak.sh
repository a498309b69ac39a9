# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# For scripts of "make soak" that do their work once, however long it takes, rather than for
# VMPT_SOAK seconds. To be sourced.

# This script takes about $1 seconds. Where a soak has not that much left it is skipped: VMPT_SOAK_END
# is when the soak needs the machine for others, in seconds of the epoch. Not in a soak: nothing.
soak_takes()
{
	local left=$((${VMPT_SOAK_END:-0} - EPOCHSECONDS))

	[ -z "${VMPT_SOAK_END-}" ] || [ $left -ge "$1" ] || {
		echo "skipped: takes about $1 s, and of the soak $((left > 0 ? left : 0)) s are left: SOAK_SECONDS"
		exit 77
	}
}

# A soak has no time to make the Bochs PC: each argument is a command with its words that knows
# --where, the folder that it makes.
soak_made()
{
	local what

	[ -n "${VMPT_SOAK_END-}" ] || return 0
	for what; do
		# shellcheck disable=SC2086 # a command and its words
		[ -d "$($what --where)" ] ||
			{ echo 'skipped: the Bochs PC was not made: make test-kvm' && exit 77; }
	done
}
