#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The bare VMM (tests/bochs/bare) on the Bochs PC: its scenarios' results, and whether the packets
# are those of the manual's tables; also on PCs with fewer PT features in VMX operation.
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

# Run the scenarios $3 on a PC named $1 with the --pt words $2 and $5 processors (default 1); at
# least $4 scenarios must report.
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
	check "$name: it ran to its end" grep -qx end "$results"
	lines=$(grep -c '^ok \|^not ok \|^skipped ' "$results")
	check "$name: $lines scenarios, $4 wanted" [ "$lines" -ge "$4" ]
	while read -r line; do
		case $line in
		'ok '*) check "$name: $line" true ;;
		'not ok '*) check "$name: ${line#not ok }" false ;;
		esac
	done <"$results"
	# None may be skipped on a PC with all features.
	[ -n "$2" ] || check "$name: nothing is skipped" [ "$(grep -c '^skipped ' "$results")" = 0 ]
}

# Compare the traces of the PC $1 with the expectations $2...
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

# The IPs of a trace by "vmpt dump" and by libipt.
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
	# Traces of failed VM entries must be empty.
	[ -s "$file" ] || continue
	check "vmpt dump and libipt agree on $(basename "$file")" same_ips "$file"
done
# Every trace must have an expectation, except those that the program checks itself.
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
# The suite's scenario for such a processor must have run.
check 'no-vmx-pt: VMX operation by the suite' grep -q 'conformance: passed vmx-operation' \
	"$out/no-vmx-pt/run/files/results.txt"
run no-load-clear no-load-clear 'caps-no-load-clear system guest-lists host-lists fail-early' 14
run no-gpa no-gpa 'caps-no-gpa guest fail-vm' 5
run no-ptwrite no-ptwrite 'no-ptwrite' 1

finish
