# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
# Shared by the tests of vmpt domain: running it, checks of its output, firmware images. The caller
# has set $source and $vmpt.

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"

# The leak checker stops and scans all threads. It crashes if those of libvirt's embedded driver are
# just ending. The other sanitizer checks stay on.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

here=$source/tests/domains
# Short: libvirt puts sockets into it, whose names have 107 characters at most.
work=$(mktemp -d /tmp/vmpt-domains-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT

show()
{
	cat "$work/stdout" "$work/stderr"
}

# Does the output contain this text?
says()
{
	grep -qF -- "$1" "$work/stderr"
}

prints()
{
	grep -qF -- "$1" "$work/stdout"
}

lacks()
{
	! prints "$1"
}

# Run vmpt domain: $rc, $work/stdout, $work/stderr. One that does not end is stopped after five
# minutes, as by wait_for, with $rc 124; limited waits longer.
domain()
{
	rc=0
	timeout -k 10 300 "$vmpt" domain "$@" <"${input:-/dev/null}" \
		>"$work/stdout" 2>"$work/stderr" || rc=$?
}

# The first line must be vmpt's message, not a library's.
starts_well()
{
	[[ $(head -n 1 "$work/stderr") == 'vmpt domain'* ]]
}

# fails CODE WORD... -- ARGUMENT...: vmpt domain fails with CODE, and its message has each word.
fails()
{
	local code=$1 words=() word
	shift
	while [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	shift
	domain "$@"
	check "domain $*: exit code" [ $rc = "$code" ]
	check "domain $*: nothing on stdout" [ ! -s "$work/stdout" ]
	check "domain $*: vmpt's message is the first" starts_well
	for word in "${words[@]}"; do
		check "domain $*: says why" says "$word"
	done
}

# firmware NAME ENDS ECHO [SLOW]: $work/NAME.bin
firmware()
{
	as --32 --defsym "ENDS=$2" --defsym "ECHO=$3" \
		--defsym "SLOW=${4-0}" -o "$work/$1.o" "$here/firmware.S" &&
		objcopy -O binary -j .text "$work/$1.o" "$work/$1.bin" &&
		[ "$(stat -c %s "$work/$1.bin")" = 65536 ]
}
