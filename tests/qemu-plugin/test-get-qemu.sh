#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What scripts/get-qemu prints and which files it leaves if there is no suitable QEMU. Stand-ins for
# QEMU, apt-get and mmdebstrap come first in PATH; nothing uses the network.
#
#	test-get-qemu.sh SOURCE OUT
set -u

source=$1
out=$2

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
rm -rf "$out"
mkdir -p "$out/bin" "$out/cache"
export PATH=$out/bin:$PATH XDG_CACHE_HOME=$out/cache

show()
{
	cat "$out/stdout" "$out/stderr"
}

# Make a stand-in program $1 with the body from stdin.
stand_in()
{
	{
		echo '#!/bin/sh'
		cat
	} >"$out/bin/$1"
	chmod +x "$out/bin/$1"
}

run()
{
	rc=0
	"$source/scripts/get-qemu" "$@" >"$out/stdout" 2>"$out/stderr" || rc=$?
}

says()
{
	check "$1: says $2" grep -q "$2" "$out/stderr"
}

refused()
{
	check "$1: fails" [ $rc = 1 ]
	check "$1: no path" [ ! -s "$out/stdout" ]
	says "$1" '^get-qemu: no qemu-system-x86_64 with plugin API 7 (QEMU 11.1)$'
	check "$1: nothing left" [ -z "$(find "$out/cache/vmpt" -mindepth 1 ! -name '*.lock')" ]
}

# An installed QEMU as old as bookworm's, with its message.
stand_in qemu-system-x86_64 <<'END'
echo "plugin requires API version 7, but this QEMU supports only up to version 4" >&2
exit 1
END
run --no-fetch
refused 'old QEMU'
says 'old QEMU' "^get-qemu: $out/bin/qemu-system-x86_64: .*only up to version 4"
says 'old QEMU' 'none was fetched'

# A newer one that still accepts the plugin that asks for the version.
stand_in qemu-system-x86_64 <<'END'
echo "api 8 9"
END
run --no-fetch
refused 'new QEMU'
says 'new QEMU' "has plugin API 8 to 9, needed is 7"

stand_in apt-get <<'END'
exit 0
END
stand_in mmdebstrap <<'END'
echo "$@" >>"$XDG_CACHE_HOME/../mmdebstrap.args"
echo "I: trying" >&2
echo "E: no such suite" >&2
exit 1
END
run
refused 'no archive'
says 'no archive' 'apt has no archive configured'

stand_in apt-get <<'END'
[ "$1" = indextargets ] || exit 1
echo "http://one.invalid/debian/ bookworm"
echo "http://one.invalid/debian/ bookworm-updates"
echo "http://two.invalid/security/ bookworm-security"
END
run
refused 'archive without the suites'
says 'archive without the suites' 'http://one.invalid/debian/: mmdebstrap failed: E: no such suite'
says 'archive without the suites' 'looked in trixie trixie-backports of http://one.invalid/debian/$'
check 'one mirror, asked once' [ "$(wc -l <"$out/mmdebstrap.args")" = 1 ]
check 'the mirror of apt' grep -q 'deb http://one.invalid/debian/ trixie-backports main' \
	"$out/mmdebstrap.args"

# The suites have a QEMU of another API now: it is fetched once a day, not each time.
rm "$out/mmdebstrap.args"
stand_in mmdebstrap <<'END'
echo "$@" >>"$XDG_CACHE_HOME/../mmdebstrap.args"
for root; do
	case $root in
	*/root) break ;;
	esac
done
mkdir -p "$root/usr/lib64"
cp "$XDG_CACHE_HOME/../loader" "$root/usr/lib64/ld-linux-x86-64.so.2"
END
# Here it stands for QEMU itself.
loader()
{
	cat >"$out/loader" <<-END
		#!/bin/sh
		case \$* in
		*--version*) echo 'QEMU emulator version $1 (Debian 1:$1+ds-1)' ;;
		*) echo 'api $2' ;;
		esac
	END
	chmod +x "$out/loader"
}
loader 11.2.0 '8 8'
run
check 'moved on: fails' [ $rc = 1 ]
says 'moved on' 'qemu-system-x86 of trixie trixie-backports: has plugin API 8 to 8, needed is 7'
run
check 'moved on: fails again' [ $rc = 1 ]
says 'moved on' '/one.invalid/debian/: 1:11.2.0+ds-1 was fetched within a day and does not fit'
check 'moved on: fetched once' [ "$(wc -l <"$out/mmdebstrap.args")" = 1 ]
touch -d '25 hours ago' "$out/cache/vmpt/qemu-unfit"
loader 11.1.9 '7 7'
run
check 'the next day: fetched' [ "$rc $(cat "$out/stdout")" = \
	"0 $out/cache/vmpt/qemu-11.1.9+ds-1/qemu-system-x86_64" ]
check 'the next day: asked' [ "$(wc -l <"$out/mmdebstrap.args")" = 2 ]
rm -r "$out/cache/vmpt"
CC='no-such-cc -O1' run
check 'no compiler: fails' [ $rc = 1 ]
says 'no compiler' '^get-qemu: no C compiler (no-such-cc -O1)'
check 'no compiler: nothing fetched' [ "$(wc -l <"$out/mmdebstrap.args")" = 2 ]

# Installed beside its header.
mkdir "$out/installed"
cp "$source/scripts/get-qemu" "$source/qemu-plugin/qemu/api.h" "$out/installed"
check 'as installed' [ "$("$out/installed/get-qemu" 2>"$out/stderr")" = \
	"$out/cache/vmpt/qemu-11.1.9+ds-1/qemu-system-x86_64" ]
rm -r "$out/cache/vmpt"

# A suitable installed one is used, whatever else exists.
stand_in qemu-system-x86_64 <<'END'
echo "api 6 7"
END
run
check 'installed: found' [ "$rc $(cat "$out/stdout")" = "0 $out/bin/qemu-system-x86_64" ]

# A fetched one is used if it is for this API and starts.
stand_in qemu-system-x86_64 <<'END'
exit 1
END
for name in 6 7-broken 7-good; do
	mkdir -p "$out/cache/vmpt/qemu-$name"
	echo "${name%-*}" >"$out/cache/vmpt/qemu-$name/plugin-api"
	cp "$out/bin/qemu-system-x86_64" "$out/cache/vmpt/qemu-$name/"
done
run --no-fetch
check 'fetched: none starts' [ $rc = 1 ]
says 'fetched: none starts' 'qemu-7-good/qemu-system-x86_64 does not start'
for name in 6 7-good; do
	printf '#!/bin/sh\nexit 0\n' >"$out/cache/vmpt/qemu-$name/qemu-system-x86_64"
done
run --no-fetch
check 'fetched: found' [ "$rc $(cat "$out/stdout")" = \
	"0 $out/cache/vmpt/qemu-7-good/qemu-system-x86_64" ]
check 'fetched: nothing about the installed one' not grep -q "$out/bin/" "$out/stderr"
# It prints nothing if none is installed: PATH has only the script's tools, no QEMU.
rm -r "$out/cache/vmpt/qemu-7-broken"
mkdir -p "$out/tools"
for tool in bash cat dirname find id mkdir mktemp rm sed; do
	ln -s "$(command -v $tool)" "$out/tools/"
done
PATH=$out/tools run --no-fetch
check 'fetched, none installed: found' [ $rc = 0 ]
check 'fetched, none installed: quiet' [ ! -s "$out/stderr" ]

# What others may change is not run: G10.
touch_it()
{
	printf '#!/bin/sh\n: >%s\n' "$out/ran" >"$out/cache/vmpt/qemu-7-good/qemu-system-x86_64"
	rm -f "$out/ran"
	run --no-fetch
	check "G10: $1: fails" [ $rc = 1 ]
	check "G10: $1: not run" [ ! -e "$out/ran" ]
	says "G10: $1" "^get-qemu: $out/cache/vmpt$2: others own it or can write to it"
}
good=$out/cache/vmpt/qemu-7-good
mkdir -p "$good/root/usr/bin" "$good/root/tmp"
chmod 1777 "$good/root/tmp"
run --no-fetch
check 'G10: its /tmp does not matter' [ $rc = 0 ]
for file in '' /qemu-7-good /qemu-7-good/qemu-system-x86_64 /qemu-7-good/root/usr/bin; do
	chmod o+w "$out/cache/vmpt$file"
	touch_it "$file of all" "$file"
	chmod 775 "$out/cache/vmpt$file"
	touch_it "$file of a group" "$file"
	chmod 755 "$out/cache/vmpt$file"
	[ "$(id -u)" = 0 ] || continue
	chown 65534 "$out/cache/vmpt$file"
	touch_it "$file of another user" "$file"
	chown 0 "$out/cache/vmpt$file"
done
run --no-fetch
check 'G10: mended: found' [ $rc = 0 ]

run --wrong
check 'usage' [ $rc = 2 ]

finish
