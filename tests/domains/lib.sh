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

# ---- a machine of our own ----

# In namespaces of the test's own: a libvirtd at qemu:///system, with nothing of the machine's in /etc,
# /run and /var. $system is the option for vmpt domain, $daemons are virtlogd and libvirtd.
own_libvirtd()
{
	local name dir

	mkdir etc && cp -a /etc/{passwd,group,nsswitch.conf,ld.so.*,localtime} etc 2>/dev/null
	for name in passwd group; do
		grep -q ^libvirt-qemu: etc/$name || case $name in
		passwd) echo 'libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin' >>etc/passwd ;;
		group) echo 'libvirt-qemu:x:64055:' >>etc/group ;;
		esac
	done
	mkdir -p etc/libvirt/qemu
	cat >etc/libvirt/libvirtd.conf <<-'END'
		auth_unix_ro = "none"
		auth_unix_rw = "none"
	END
	cat >etc/libvirt/qemu.conf <<-'END'
		user = "root"
		group = "root"
		security_driver = "none"
		namespaces = []
		cgroup_controllers = []
	END
	mount --make-rprivate / && mount --bind etc /etc || skip "cannot hide /etc"
	for dir in /run /var/lib /var/cache /var/log; do
		mount -t tmpfs tmpfs $dir || skip "cannot hide $dir"
	done
	mkdir -p /run/libvirt /run/lock /var/log/libvirt

	virtlogd >virtlogd.log 2>&1 &
	daemons=($!)
	libvirtd >libvirtd.log 2>&1 &
	daemons+=($!)
	wait_for test -S /run/libvirt/libvirt-sock -a -S /run/libvirt/virtlogd-sock
	# shellcheck disable=SC2034 # for the tests
	system=--connect=qemu:///system
}
