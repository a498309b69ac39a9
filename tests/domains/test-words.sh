#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# vmpt domain without any QEMU: what it refuses and its messages, and list and stop with libvirt's
# own test driver, which gives each connection a new domain.
#
#	test-words.sh SOURCE VMPT
# shellcheck disable=SC2154 # set by lib.sh
set -u

source=$1
vmpt=$(realpath "$2")
# shellcheck source=tests/domains/lib.sh
. "$source/tests/domains/lib.sh"
cd "$work" || exit 1
export XDG_STATE_HOME=$work/state

# ---- usage ----

fails 2 'no action given' "Try 'vmpt domain --help'" --
fails 2 "unknown action 'nonsense'" -- nonsense
fails 2 "unknown option '--nonsense'" -- --nonsense
fails 2 "unexpected argument 'web'" -- list web
for action in start stop console trace; do
	fails 2 'no domain given' "Try 'vmpt domain $action --help'" -- $action
	fails 2 -- $action --nonsense web
done
fails 2 'one domain at a time' -- console a b
fails 2 'one domain at a time' -- start --console a.xml b.xml
for set in '' NAME =x name=x a:b=x 1A=x ' A=x'; do
	fails 2 "'$set' is not [DOMAIN:]NAME=VALUE" -- start --set "$set" x.xml
done
for cpus in '' x 3-1 '1,' ',1' 0-70000 99999 -1; do
	fails 2 "'$cpus' is not a list like 0,2-5" -- trace "--cpus=$cpus" x.xml
done
fails 2 'more than 256' -- trace --cpus=0-256 x.xml
for seconds in 0 -1 x 1000001; do
	fails 2 --seconds -- trace "--seconds=$seconds" x.xml
done
fails 2 "'some' is not one of pt, rtit" -- trace --isa=some x.xml
fails 2 "'some' is not one of none, synthetic" -- trace --host=some x.xml
fails 2 '--connect: no URI given' -- list --connect=
fails 2 'no folder' -- trace --output= x.xml
fails 2 'no folder' -- start --root= x.xml

domain --help
check 'help' [ $rc = 0 ]
for action in list start stop console trace; do
	check "help: $action" prints "  $action"
done
cp stdout help
rc=0
"$vmpt" help domain >stdout 2>stderr || rc=$?
check 'help domain: the same' cmp -s help stdout
domain trace --help
check 'trace --help' prints 'Usage: vmpt domain trace '
check 'trace --help: options' prints --perf-data
cp stdout help
"$vmpt" help domain trace >stdout 2>stderr || rc=$?
check 'help domain trace: the same' cmp -s help stdout
rc=0
"$vmpt" help domain nonsense >stdout 2>stderr || rc=$?
check 'help domain nonsense' [ $rc = 2 ]
check 'help domain nonsense: says so' says "vmpt domain: unknown action 'nonsense'"

# ---- the program ----

# Only vmpt-domain may load libvirt: it costs memory and time.
ldd "$vmpt" >stdout 2>stderr
check 'what vmpt loads' prints libc.so
check 'vmpt loads no libvirt' lacks libvirt
ldd "${vmpt%/*}/vmpt-domain" >stdout 2>stderr
check 'vmpt-domain loads libvirt' prints libvirt
# A vmpt without vmpt-domain beside it.
mkdir -p bin && cp "$vmpt" bin/vmpt
for args in 'domain list' 'help domain'; do
	rc=0
	# shellcheck disable=SC2086 # words
	bin/vmpt $args >stdout 2>stderr || rc=$?
	check "$args without vmpt-domain" [ $rc = 1 ]
	check "$args without vmpt-domain: says so" \
		grep -qx 'vmpt domain: error: cannot run .*/vmpt-domain: No such file or directory' stderr
done

# ---- libvirt's test driver ----

test=--connect=test:///default
domain list $test
check 'list' [ $rc = 0 ]
check 'list: the title' grep -qx 'NAME  ID  STATE    VCPUS  MEMORY MB  EMULATOR' stdout
check 'list: the domain' grep -qx 'test   1  running      2      8,192  –' stdout
check 'list: nothing else' [ "$(wc -l <stdout)" = 2 ]
check 'list: no noise' [ ! -s stderr ]

domain list $test --json
python3 - stdout <<-'END' || rc=99
	import json, sys
	doc = json.load(open(sys.argv[1], encoding="utf-8"))
	assert doc["command"] == "domain list" and doc["connect"] == "test:///default", doc
	assert doc["domains"] == [{"name": "test", "id": 1, "state": "running", "vcpus": 2,
	                           "memory_kib": 8388608, "emulator": None}], doc
END
check 'list --json' [ $rc = 0 ]

# Two domains of a file of the driver's, one of them with an emulator, and off.
cat >node.xml <<-'END'
	<node>
	  <domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>
	    <name>zeta</name><memory unit='MiB'>64</memory><vcpu>3</vcpu>
	    <os><type>hvm</type></os>
	  </domain>
	  <domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>
	    <test:runstate>5</test:runstate>
	    <name>alpha</name><memory unit='MiB'>2048</memory><vcpu>1</vcpu>
	    <os><type>hvm</type></os>
	    <devices><emulator>/usr/bin/none</emulator></devices>
	  </domain>
	</node>
END
two=--connect=test://$work/node.xml
domain list "$two"
check 'two domains' [ $rc = 0 ]
check 'two domains: the running one first' grep -qx 'zeta    1  running .* 3  *64  –' <(sed -n 2p stdout)
check 'two domains: the other' grep -qx 'alpha   –  shut off .* 1  *2,048  /usr/bin/none' <(sed -n 3p stdout)

domain stop $test test
check 'stop' [ $rc = 0 ]
check 'stop: says so' says 'test: stopped'
domain stop $test --force --quiet test
check 'stop --force --quiet' [ $rc = 0 ]
check 'stop --quiet: silent' [ ! -s stderr ]
domain stop $test nope test
check 'stop: one of two' [ $rc = 1 ]
check 'stop: the missing one' says 'nope: not found'
check 'stop: the other one nevertheless' says 'test: stopped'
fails 1 'alpha: not running' -- stop "$two" alpha
fails 1 'zeta: already running' 'vmpt domain stop zeta' -- start "$two" zeta
domain start "$two" alpha
check 'start by name' [ $rc = 0 ]
check 'start by name: says so' says 'alpha: runs'
fails 1 'test: no console: this function is not supported' -- console $test test
fails 1 'alpha: not running' -- console "$two" alpha
fails 1 'nope: not found' -- console $test nope
fails 1 'nope: not found' 'vmpt domain list' -- start $test nope
fails 1 'zeta: already running' -- trace "$two" zeta

# ---- connections ----

fails 1 "nonsense:///x: cannot connect: libvirt has no driver 'nonsense'" 'like qemu:///system' -- \
	list --connect=nonsense:///x
fails 1 'nonsense+ssh://x: cannot connect: libvirt has no driver' -- list --connect=nonsense+ssh://x
fails 1 'system: cannot connect' 'like qemu:///system' -- list --connect=system
fails 1 "test:///$work/no.xml: cannot connect" -- list "--connect=test:///$work/no.xml"
fails 1 'web: an embedded domain belongs' Ctrl-C -- stop web
fails 1 'web: an embedded domain belongs' -- console web
: >a-file
fails 1 'a-file' 'Not a directory' -- list --root=a-file
mkdir -m 777 open
fails 1 'open: others own it or can write to it' --root=DIR -- list --root=open
(unset XDG_STATE_HOME HOME && "$vmpt" domain list </dev/null >stdout 2>stderr)
check 'no $HOME' says '$HOME is not set'

# ---- files ----

fails 1 'no.xml: No such file' -- start $test no.xml
mkdir folder
fails 1 'folder/: is a folder' -- start $test folder/
echo '<domain>' >bad.xml
fails 1 'bad.xml: line 2: ' -- start $test bad.xml
echo '<pool/>' >bad.xml
fails 1 "bad.xml: not a domain's XML: the outermost element is <pool>" -- start $test bad.xml
: >bad.xml
fails 1 'bad.xml: ' -- start $test bad.xml
echo '<domain/>' >bad.xml
fails 1 'bad.xml: the domain has no <name>' -- start $test bad.xml
echo "<domain type='test'><name>x</name></domain>" >bad.xml
fails 1 'x: cannot be started: XML error' -- start $test bad.xml

# @QEMU@ has a value of its own, if there is a QEMU; the test driver takes no emulator. This one was
# fetched for an API that does not exist.
export XDG_CACHE_HOME=$work/cache
mkdir -p "$work/cache/vmpt/qemu-x"
printf '#!/bin/sh\n' >"$work/cache/vmpt/qemu-x/qemu-system-x86_64"
chmod +x "$work/cache/vmpt/qemu-x/qemu-system-x86_64"
echo 0 >"$work/cache/vmpt/qemu-x/plugin-api"
echo "<domain type='test'><name>@QEMU@</name></domain>" >qemu.xml
if ! type qemu-system-x86_64 >/dev/null 2>&1; then
	fails 1 'qemu.xml: no value for @QEMU@' 'vmpt domain qemu prints' -- start $test qemu.xml
	sed -n 's/^#define VMPT_QEMU_PLUGIN_API //p' "$source/qemu-plugin/qemu/api.h" \
		>"$work/cache/vmpt/qemu-x/plugin-api"
	domain qemu
	check 'a QEMU' [ "$rc $(cat "$work/stdout")" = \
		"0 $work/cache/vmpt/qemu-x/qemu-system-x86_64" ]
	fails 1 "$work/cache/vmpt/qemu-x/qemu-system-x86_64: cannot be started" -- start $test qemu.xml
fi
fails 2 "unexpected argument 'x'" -- qemu x

# These files are domains of the test driver; an @…@ that is not a placeholder stays.
cat >fill.xml <<-'END'
	<domain type='@TYPE=test@'>
	  <!-- @COMMENT@ -->
	  <name>@NAME@</name><title>@a@ @ user@host @@ @TITLE@</title>
	  <memory unit='@UNIT@'>@SIZE=16@</memory>
	  <os><type>hvm</type></os>
	</domain>
END
fails 1 'fill.xml: no value for @TITLE@ @UNIT@' '--set NAME=VALUE' -- start $test fill.xml
fails 1 'fill.xml: no value for @TITLE@' -- start $test --set UNIT=MiB fill.xml
fails 1 'no value for @UNIT@' -- start $test --set TITLE=x --set other:UNIT=MiB fill.xml
domain start $test --set UNIT=MiB --set 'TITLE=<&">@SIZE@' fill.xml
check 'filled' [ $rc = 0 ]
check 'filled: its name' says 'fill: runs'
domain start $test --set UNIT=wrong --set b:UNIT=MiB --set TITLE=x b=fill.xml
check 'a set of one domain' [ $rc = 0 ]
check 'a name given' says 'b: runs'
fails 1 "a: cannot be started" "unknown suffix 'wrong'" -- \
	start $test --set UNIT=wrong --set b:UNIT=MiB --set TITLE=x a=fill.xml b=fill.xml
fails 1 '--set TYPO: no such placeholder' 'no file given has @TYPO@' -- \
	start $test --set UNIT=MiB --set TITLE=x --set TYPO=y a=fill.xml
fails 1 '--set b:UNIT: no such placeholder' 'no file of a domain b has @UNIT@' -- \
	start $test --set UNIT=MiB --set TITLE=x --set b:UNIT=MiB a=fill.xml
fails 1 '--set a:COMMENT: no such placeholder' -- \
	start $test --set UNIT=MiB --set TITLE=x --set a:COMMENT=y a=fill.xml b=fill.xml
fails 1 '--set UNIT: no such placeholder' -- start "$two" --set UNIT=MiB alpha
domain start $test --set UNIT=wrong --set a:UNIT=MiB --set TITLE=x a=fill.xml
check 'a setting for one domain has priority' [ $rc = 0 ]
fails 1 'are both named c' -- \
	start $test --set UNIT=MiB --set TITLE=x --set NAME=c a=fill.xml b=fill.xml
domain start $test --set UNIT=MiB --set TITLE=x --set NAME=test fill.xml
check 'a name in use' [ $rc = 1 ]
check 'a name in use: says so' says "test: cannot be started"
fails 1 "fill: its type is 'test'" "type='qemu'" -- \
	trace $test --set UNIT=MiB --set TITLE=x fill.xml

# ---- names ----

name=G9
bad=$(printf 'a\xc2\x9bb\xe2\x80\xaec')
safe='a\u009bb\u202ec'
domain start $test --set UNIT=MiB --set TITLE=x "$bad=fill.xml"
check 'runs' says "$safe: runs"
fails 1 "$safe: its type is 'test'" -- trace $test -o g9 --set UNIT=MiB --set TITLE=x "$bad=fill.xml"
printf "<domain type='test'><name>a&#10;vmpt: %s</name><memory>16384</memory><os><type>hvm</type>%s" \
	"$bad" '</os></domain>' >line.xml
for action in start 'trace -o g9'; do
	# shellcheck disable=SC2086 # words
	domain $action $test line.xml
	check "$action: a line end in a name" says "a\u000avmpt: $safe: "
	check "$action: no line of its own" [ "$(grep -c '^vmpt: ' stderr)" = 0 ]
done
sed "s|zeta|$bad|; s|/usr/bin/none|/$bad|" node.xml >bad-node.xml
domain list "--connect=test://$work/bad-node.xml"
check 'list: name' prints "$safe   1 "
check 'list: emulator' prints "/$safe"
name=''

# ---- the folder of a trace ----

mkdir full && : >full/cpu0.pt
fails 1 "$work/full is not empty: it has cpu0.pt" --force -- trace $test -o full \
	--set UNIT=MiB --set TITLE=x fill.xml
: >full/mine
fails 1 "$work/full is not empty: it has mine" -- trace $test -o full --force \
	--set UNIT=MiB --set TITLE=x fill.xml
check 'nothing was removed' [ -e full/cpu0.pt ]

# A command that fails after the earlier trace was set aside, and puts it back.
ends_early=(trace "$test" --force --set UNIT=MiB --set TITLE=x fill.xml -o)
# stream FOLDER N [TEXT]: a stream and its state, which shows whose it is.
stream()
{
	mkdir -p "$1"
	printf '%s' "${3-old $2}" >"$1/cpu$2.pt"
	printf VMPTCP2 >"$1/cpu$2.state"
}
# Names and contents of the folder.
contents()
{
	(cd "$1" && find . -type f ! -name '*.state' -printf '%P: ' -exec cat {} \; -printf '\n' | sort)
}

name=G7
for what in stream record recording perf.data code code-stream tasks symbols state link fifo hardlink folder; do
	stream mine.$what 1
	case $what in
	stream) echo mine >mine.$what/cpu0.pt ;;
	record) echo mine >mine.$what/vms.jsonl ;;
	recording) echo mine >mine.$what/recording.json ;;
	perf.data) echo mine >mine.$what/perf.data ;;
	code) echo mine >mine.$what/host.bin ;;
	code-stream) echo mine >mine.$what/vm0.code ;;
	tasks) echo mine >mine.$what/vm0.tasks ;;
	symbols) echo mine >mine.$what/vm0.symbols ;;
	state) echo mine >mine.$what/cpu0.state ;;
	link) ln -s "$work/fill.xml" mine.$what/vms.jsonl ;;
	fifo) mkfifo mine.$what/cpu1.rtit ;;
	hardlink) ln mine.$what/cpu1.pt mine.$what/other ;;
	folder) mkdir mine.$what/perf.data ;;
	esac
	ls -lAR --time-style=full-iso mine.$what >before
	within 10 "$vmpt" domain "${ends_early[@]}" mine.$what </dev/null >stdout 2>stderr
	check "$what: refused" [ $? = 1 ]
	check "$what: says why" says '--force only removes files of a trace, which the plugin wrote'
	check "$what: nothing has changed" diff before <(ls -lAR --time-style=full-iso mine.$what)
done
stream linked 0
ln -s linked link
mkdir linked/images && : >linked/images/mine
domain "${ends_early[@]}" link
check 'a link to a folder is the folder' says "its type is 'test'"
check "the guests' code stays" [ -e linked/images/mine ]
(
	exec 9<linked && flock 9
	fails 1 "$work/linked: another vmpt domain trace writes to it" -- "${ends_early[@]}" linked
	[ $failures = 0 ]
)
check 'a second command is refused the folder' [ $? = 0 ]
# As a QEMU that was left running locks it.
python3 - "$work/linked/cpu0.state" <<-'END' >locked &
	import fcntl, struct, sys, time
	file = open(sys.argv[1], "rb")
	fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 1, 0)) # F_OFD_SETLK
	print("locked", flush=True)
	time.sleep(600)
END
pid=$!
wait_for grep -qs locked locked
fails 1 "$work/linked: a QEMU still writes to it: cpu0.state" -- "${ends_early[@]}" linked
kill $pid
wait $pid 2>/dev/null
touch $'linked/a\e[2Jb'
domain "${ends_early[@]}" linked
check 'names of files are safe' says 'it has a\u001b[2Jb'

# Killed at each step: what is left, and what the next command makes of it.
name=G10
stream steps 1
stream steps/.vmpt-moving 0
domain "${ends_early[@]}" steps
check 'killed while it was moved' [ "$(contents steps)" = $'cpu0.pt: old 0\ncpu1.pt: old 1' ]
mkdir steps/.vmpt-moving && mv steps/cpu0.pt steps/.vmpt-moving
domain "${ends_early[@]}" steps
check '… a stream before its state' [ "$(contents steps)" = $'cpu0.pt: old 0\ncpu1.pt: old 1' ]
mkdir steps/.vmpt-earlier && mv steps/cpu* steps/.vmpt-earlier
stream steps 1 new
domain "${ends_early[@]}" steps
check 'killed before the domains ran' [ "$(contents steps)" = $'cpu0.pt: old 0\ncpu1.pt: old 1' ]
mkdir steps/.vmpt-dropped && mv steps/cpu* steps/.vmpt-dropped && rm steps/.vmpt-dropped/cpu0.state
stream steps 1 new
domain "${ends_early[@]}" steps
check 'killed after they ran' [ "$(contents steps)" = 'cpu1.pt: new' ]
check 'no folder is left' [ "$(find steps -type d)" = steps ]
mkdir steps/.vmpt-earlier && echo mine >steps/.vmpt-earlier/mine
domain "${ends_early[@]}" steps
check 'a file of somebody: fails' [ $rc = 1 ]
check 'a file of somebody: is kept' [ "$(cat steps/.vmpt-*/mine)" = mine ]

# At any moment: all of it is there, in one place or the other.
for n in {0..149}; do
	stream killed "$n"
done
contents killed >before
kills=0
for n in {1..25}; do
	"$vmpt" domain "${ends_early[@]}" killed </dev/null >/dev/null 2>&1 &
	pid=$!
	sleep "0.0$((RANDOM % 9))$((RANDOM % 10))"
	kill -KILL $pid 2>/dev/null && kills=$((kills + 1))
	wait $pid 2>/dev/null
	[ "$(find killed -name '*.pt' | wc -l)" = 150 ] || break
done
check "killed $kills times: all is there" [ "$n" = 25 ]
domain "${ends_early[@]}" killed
check "killed $kills times: all is in its place" diff before <(contents killed)
name=''
fails 1 'no/such: No such file' -- trace $test -o no/such --set UNIT=MiB --set TITLE=x fill.xml
fails 1 'no.so: No such file' -- trace $test --plugin no.so -o new --set UNIT=MiB --set TITLE=x \
	--set TYPE=qemu fill.xml

finish
