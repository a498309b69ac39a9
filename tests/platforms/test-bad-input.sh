#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What a new user's machine may lack: a network, sudo, meson, packages that a release does not have,
# a path without spaces. Each gives one clear message, or does no harm. apt is the real one, with
# folders of its own.
#
#	test-bad-input.sh SOURCE-DIR OUT-DIR
set -uo pipefail

top=$1
out="$2/with spaces"
# shellcheck source=tests/lib.sh
. "$top/tests/lib.sh"

command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
	skip 'this is not a Debian system'
unset MAKEFLAGS MAKELEVEL
rm -rf "$2"
mkdir -p "$out"/{bin,scripts/packages,lists/partial,archives/partial} || exit
cp "$top/scripts/deps" "$out/scripts" || exit

# PATH has only the programs that the scripts need: no sudo, no meson. id prints a user's ID.
for tool in sh bash make sed sort grep tr awk cat wc head env mktemp rm dirname basename dpkg-query \
	apt-get apt-cache nproc readlink; do
	ln -s "$(command -v $tool)" "$out/bin/"
done
printf '#!/bin/sh\necho 1000\n' >"$out/bin/id"
chmod +x "$out/bin/id"
cat >"$out/apt.conf" <<END
Dir::State::lists "$out/lists";
Dir::Cache "$out";
Dir::Etc::sourcelist "$out/sources.list";
Dir::Etc::sourceparts "-";
APT::Sandbox::User "root";
Acquire::Retries "0";
END
echo 'deb [trusted=yes] http://vmpt.invalid/debian trixie main' >"$out/sources.list"

# The lines of stdin are a list of packages.
list()
{
	cat >"$out/scripts/packages/build.list"
}

# Run a command; its output is in $out/log. $1: the expected exit status.
run()
{
	local want=$1
	shift

	rc=0
	APT_CONFIG=$out/apt.conf "$@" </dev/null >"$out/log" 2>&1 || rc=$?
	check "exit status $want: $*" [ $rc = "$want" ]
}

show()
{
	sed 's/^/	/' "$out/log"
}

# $2 is in $1 lines of the output.
says()
{
	check "$1 lines with \"$2\"" [ "$(grep -c -e "$2" "$out/log")" = "$1" ]
}

# Nothing is missing: no output. dpkg is on every Debian system, the others on none.
list <<'END'
vmpt-none-1 | dpkg # the second will do
vmpt-none-2 | vmpt-none-3 | -
END
run 0 "$out/scripts/deps" build
check 'no output about packages that are not needed' [ ! -s "$out/log" ]

list <<'END'
vmpt-none-1 | vmpt-none-2
vmpt-none-3
vmpt-none-4 | -
END
run 1 env PATH="$out/bin" "$out/scripts/deps" build
says 1 '^deps: not root, and there is no sudo$'
says 2 '^deps:   vmpt-none-[13]$'
says 0 vmpt-none-[24]

if unshare --map-root-user --net true 2>/dev/null; then
	run 1 unshare --map-root-user --net "$out/scripts/deps" build
	says 1 'is there a network? apt cannot fetch http://vmpt.invalid/'
	says 0 'Unable to locate'
else
	skip_part 'no network: no permission to disable it (unshare)'
fi

for goal in all demo test; do
	run 2 env PATH="$out/bin" make --no-print-directory -C "$top" $goal DEPS=no BUILD="$out/build"
	says 1 'meson is missing, and DEPS=no installs nothing: scripts/deps'
	check "make $goal: one line, and make's own" [ "$(wc -l <"$out/log")" = 2 ]
done

run 77 env PATH="$out/bin" "$top/scripts/try-release" trixie
says 1 '^skipped: .* is missing: scripts/deps'
finish
