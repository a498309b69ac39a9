# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
# What the tests of vmpt domain share: running it, what it says, images of firmware. The caller has
# set $source and $vmpt.

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"

# The leak checker stops all threads and walks through them. Those of libvirt's embedded driver may
# just be ending: it crashes. All else of the sanitizers holds.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

here=$source/tests/domains
# Short: libvirt puts sockets into it, whose names have 107 characters at most.
work=$(mktemp -d /tmp/vmpt-domains-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT

show()
{
	cat "$work/stdout" "$work/stderr"
}

# Does the output hold this text?
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

# Run vmpt domain: $rc, $work/stdout, $work/stderr.
domain()
{
	rc=0
	timeout -k 10 1200 "$vmpt" domain "$@" <"${input:-/dev/null}" \
		>"$work/stdout" 2>"$work/stderr" || rc=$?
}

# Our message is the first, not one of a library.
starts_well()
{
	[[ $(head -n 1 "$work/stderr") == 'vmpt domain'* ]]
}

# fails CODE WORD... -- ARGUMENT...: vmpt domain fails so, each word is in the message.
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
	check "domain $*: no words but ours" starts_well
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
