#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The bare VMM (tests/bochs/bare) on the Bochs PC: what its scenarios say, and whether the packets
# that came out are those of the manual's tables; on PCs with less of PT in VMX operation too.
#
#	test-bare.sh SOURCE FIRMWARE PROGRAM JUDGE VMPT OUT
set -u

source=$1 firmware=$2 program=$3 judge=$4 vmpt=$5
out=$6
bare=$source/tests/bochs/bare
checks=0 failures=0

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
mkdir -p "$out"
if ! pc=$("$source/bochs/build" --print 2>"$out/build.log"); then
	rc=$?
	cat "$out/build.log"
	grep -q '^skipped: ' "$out/build.log" && exit 77
	exit $rc
fi
nm "$program" >"$out/symbols"

# A PC named $1 with the PT words $2 and $5 processors (1) runs the scenarios $3; $4 of them must be
# there at least.
run()
{
	local name=$1 dir=$out/$1 cpus=${5:-1} rc=0 line results lines

	rm -rf "$dir"
	mkdir -p "$dir"
	# shellcheck disable=SC2086 # words
	"$bare/choose" "$firmware" "$dir/firmware.bin" $3
	"$source/bochs/vmpt-bochs" run --firmware "$dir/firmware.bin" --bochs "$pc" --memory 64 \
		--pt "$2" --cpus "$cpus" --timeout 600 --quiet --out "$dir/run" >"$dir/vmpt-bochs.log" 2>&1 || rc=$?
	check "$name: ends with status 0 (is $rc)" [ $rc = 0 ] || cat "$dir/vmpt-bochs.log"
	results=$dir/run/files/results.txt
	check "$name: it came to its end" grep -qx end "$results"
	lines=$(grep -c '^ok \|^not ok \|^skipped ' "$results")
	check "$name: $lines scenarios, $4 wanted" [ "$lines" -ge "$4" ]
	while read -r line; do
		case $line in
		'ok '*) check "$name: $line" true ;;
		'not ok '*) check "$name: ${line#not ok }" false ;;
		esac
	done <"$results"
	# None may be skipped on a PC that has all.
	[ -n "$2" ] || check "$name: nothing is skipped" [ "$(grep -c '^skipped ' "$results")" = 0 ]
}

# What the PC $1 left, against expectations $2...
compare()
{
	local name=$1 line
	shift
	"$judge" "$out/$name/run/files" "$out/symbols" "$@" >"$out/$name/judge.log"
	while read -r line; do
		case $line in
		'ok trace '*) check "$name: $line" true ;;
		'not ok trace '*) check "$name: ${line#not ok }" false ;;
		esac
	done <"$out/$name/judge.log"
	grep -v '^ok ' "$out/$name/judge.log"
	check "$name: the judge judged" grep -q '^traces: [1-9]' "$out/$name/judge.log"
}

# IPs of a trace as "vmpt dump" has them, and as libipt has them.
same_ips()
{
	local kinds='(TIP|TIP\.PGE|TIP\.PGD|FUP) +'

	diff <("$vmpt" dump "$1" 2>"$out/dump.log" | grep -oE "$kinds(0x[0-9a-f]+|no IP)" |
		sed 's/  */ /g; s/no IP/-/') \
		<("$judge" -p "$1" "$out/symbols" | grep -oE "$kinds(0x[0-9a-f]+|-)") >"$out/diff"
}

run all '' '' 45
compare all "$bare"/expect/*.expect
for file in "$out"/all/run/files/*.pt; do
	# Those of failed VM entries have nothing in them, as they must.
	[ -s "$file" ] || continue
	check "vmpt dump and libipt agree on $(basename "$file")" same_ips "$file"
done
# Each trace was expected by someone, but for those that the program looks through itself.
for file in "$out"/all/run/files/*.pt; do
	name=$(basename "$file" .pt)
	[[ $name == gpa-* ]] ||
		check "$name is expected" grep -qE "^trace $name( |$)" "$bare"/expect/*.expect
done

run named '' 'caps-all' 1
run second '' 'second' 2 2
compare second "$bare"/expect/pcs/second.expect
run no-vmx-pt no-vmx-pt 'caps-no-vmx-pt vmx suite nmi smi' 12
compare no-vmx-pt "$bare"/expect/pcs/no-vmx-pt.expect
# The suite's scenario for such a processor must not have been skipped.
check 'no-vmx-pt: VMX operation by the suite' grep -q 'conformance: passed vmx-operation' \
	"$out/no-vmx-pt/run/files/results.txt"
run no-load-clear no-load-clear 'caps-no-load-clear system guest-lists host-lists fail-early' 14
run no-gpa no-gpa 'caps-no-gpa guest fail-vm' 5
run no-ptwrite no-ptwrite 'no-ptwrite' 1

finish
