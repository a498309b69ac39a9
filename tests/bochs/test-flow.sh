#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Stock KVM, traced by stock perf on the Bochs PC: does the trace match what was executed?
#
# "vmpt vms" finds the VMCSs, entries and exits that the PC, KVM and perf counted. "vmpt split
# --conceal" splits the trace, and each stream, the host's and each guest's, matches the executed
# code instruction for instruction (flow-check). The code is in memory images that were taken while
# the guests existed, except for modified pages (image-check). "vmpt insn" finds the same in the trace
# as it is, host and guests in one stream, by the code of the truths (insn-check); what it finds by one
# of the images alone is printed. Then the checkers get wrong streams, truths and images, and must
# refuse them.
#
#	test-flow.sh SOURCE VMPT FLOW-CHECK IMAGE-CHECK INSN-CHECK TRUTH-CODE OUT [small]
#
# small: one recording of two small guests. In a soak a whole Linux is the guest.
set -u

source=$1
vmpt=$2
flow_check=$3
image_check=$4
insn_check=$5
truth_code=$6
out=$7

mkdir -p "$out"
export LC_ALL=C
. "$source/tests/soak.sh" || exit
soak_takes
soak_made "$source/bochs/build" \
	"$source/tests/bochs/build-kernel${VMPT_BOCHS_PATCHES:+ --patches $VMPT_BOCHS_PATCHES}"
# Images, truths and traces are large.
trap 'rm -rf "$out"/*/files/image-* "$out"/*/files/*.truth.* "$out"/*/split "$out"/*/files/perf.data \
	"$out/wrong"' EXIT
. "$source/tests/bochs/lib.sh" || exit
make_all "$source/bochs/build" "$source/tests/bochs/build-kernel" \
	"$source/tests/bochs/build base perf"

# Run a command with its output in $run/said; its status is $rc.
try()
{
	rc=0
	"$@" >"$run/said" 2>&1 || rc=$?
	return $rc
}

# Test $1: run job $2 with the other options, then split the trace.
record()
{
	name=$1
	run=$out/$name
	files=$run/files
	mkdir -p "$run"
	try "$source/tests/bochs/run" --with perf --out "$run" "${@:3}" "$2"
	check_log 'the PC ran' "$run/said" [ $rc = 0 ]
	check_log 'the host port has no errors' "$files/run.log" \
		[ "$(grep -c '^[0-9]* error:' "$files/run.log")" = 0 ]
	rm -rf "$run/split"
	try "$vmpt" split --conceal -o "$run/split" "$files/perf.data"
}

# ---- entries and exits ----

# VMCS, entries, exits: counted by the PC.
counted_by_pc()
{
	awk '$2 == "entries" { entries[$6] += $8 } $2 == "exits" { exits[$6] += $10 }
		END { for (v in entries) print v, entries[v], exits[v] }' "$files/run.log" | sort
}

# Counted in the trace.
counted_by_vmpt()
{
	"$vmpt" vms --json "$files/perf.data" 2>"$run/vms.log" |
		python3 -c 'import json, sys
for vm in json.load(sys.stdin)["owners"]:
    if vm["owner"] == "vm":
        print(vm["vmcs"].removeprefix("0x"), vm["entries"], vm["exits"])' | sort
}

# Sums of KVM's counters of each VM, and of perf's counts of the tracepoints.
counted_by_kvm()
{
	sed -n 's/.* KVM: exits \([0-9]*\) .*/\1/p' "$files"/l2vmm-[12] | sort -n
	awk '/kvm_(entry|exit)/ { print $1 }' "$files/kvm-events"
}

sums_of_pc()
{
	counted_by_pc | cut -d ' ' -f 3 | sort -n
	counted_by_pc | awk '{ entries += $2; exits += $3 } END { print entries; print exits }'
}

# Compare the counts of $1 VMs.
counts_of_pc()
{
	counted_by_pc >"$run/pc"
	counted_by_vmpt >"$run/vms"
	diff "$run/pc" "$run/vms" >"$run/said"
	check_log 'VMCSs, entries and exits are those of the PC' "$run/said" [ ! -s "$run/said" ]
	check_log "there are $1 VMs" "$run/pc" [ "$(wc -l <"$run/pc")" = "$1" ]
}

counts()
{
	counts_of_pc 2
	diff <(sums_of_pc) <(counted_by_kvm) >"$run/said"
	check_log 'and those of KVM and perf' "$run/said" [ ! -s "$run/said" ]
}

# ---- what was executed ----

# The stream of the truth file $1: vm-VMCS.truth.CPU or host.truth.CPU.
stream_of()
{
	local who=${1##*/} cpu=${1##*.}

	who=${who%.truth.*}
	echo "$run/split/${who/#vm-/vmcs-}.cpu$cpu.pt"
}

# $1: which RETs are compressed: no; some, also after returns that went elsewhere, where libipt
# alone would lose the flow; careful: some, but none there. If some are, host and guests share the
# processor's return stack, which a single stream does not show: such RETs are counted, and must be
# rare.
flows()
{
	local truth shared=

	[ "$1" != some ] || shared=--shared-returns
	: >"$run/rets"
	for truth in "$files"/*.truth.*; do
		try "$flow_check" $shared --traced "$(stream_of "$truth")" "$truth"
		check_log "the flow of ${truth##*/}" "$run/said" [ $rc = 0 ]
		echo "$name ${truth##*/}: $(head -n 1 "$run/said")"
		sed -n "s/.* \(RETs compressed\|compressed RETs where\)/$name ${truth##*/}: &/p" \
			"$run/said" >>"$run/rets"
	done
	case $1 in
	no) check_log 'no RET is compressed' "$run/rets" [ ! -s "$run/rets" ] ;;
	some) check_log 'RETs are compressed, some where libipt alone would fail' "$run/rets" \
		grep -q 'host.* [1-9][0-9]* of them' "$run/rets"
		check_log 'fewer than 1 of 10,000 compressed RETs is at a shifted stack' \
			"$run/rets" awk '/ RETs compressed/ { all += $3 }
			/ compressed RETs where/ { shifted += $3 }
			END { exit !(10000 * shifted < all) }' "$run/rets" ;;
	careful) check_log 'RETs are compressed, none where libipt alone would fail' "$run/rets" \
		awk '/host/ { host++ } !/ 0 of them/ { astray++ } END { exit !host || astray }' \
		"$run/rets" ;;
	esac
	cat "$run/rets"
}

# "vmpt insn" of the trace itself, with one return stack for host and guests as the processor has: what
# all of them executed, in order, without a gap; $1: of how many instructions the bytes may be others,
# where guests changed their code: that of a truth has no times; $2: how many the trace may lack at its
# end. Two processors: two streams.
decoded()
{
	local owner truth file cpu code=() truths count hash

	for owner in host $(find "$files" -name 'vm-*.truth.*' -printf '%f\n' | sed 's/vm-\(.*\).truth.*/\1/' | sort -u); do
		truth=$files/vm-$owner
		[ "$owner" != host ] || truth=$files/host
		try "$truth_code" "$run/$owner.code" "$truth".truth.*
		check_log "the code of $owner" "$run/said" [ $rc = 0 ]
		echo "$name $owner: $(cat "$run/said")"
		code+=(--code="$owner:$run/$owner.code")
	done
	: >"$run/all"
	for truth in "$files"/host.truth.*; do
		cpu=${truth##*.}
		truths=()
		for file in "$files"/*.truth."$cpu"; do
			owner=${file##*/} && owner=${owner%.truth.*}
			truths+=("${owner#vm-}=$file")
		done
		try "$insn_check" --traced --cpu="$cpu" --altered="$1" --tail="${2-0}" "${code[@]}" "$files/perf.data" \
			"${truths[@]}"
		check_log "vmpt insn: CPU $cpu" "$run/said" [ $rc = 0 ]
		check_log "vmpt insn: CPU $cpu: no gap" "$run/said" grep -q ', 0 gaps; 0 of owners' "$run/said"
		echo "$name CPU $cpu: $(tail -n 1 "$run/said")"
		tail -n 1 "$run/said" >>"$run/all"
	done
	count=$(awk '{ n += $1 } END { print n }' "$run/all")
	hash=$(sed -n 's/.* hash \([0-9a-f]*\),.*/\1/p' "$run/all")
	"$vmpt" insn -q --hash "${code[@]}" "$files/perf.data" >"$run/said" 2>&1
	# The bytes at the end that have no owner have no code either.
	check_log 'vmpt insn: as many, no gap' "$run/said" \
		[ "$(awk '{ gsub(",", "") } $1 == "unknown" { none += $NF }
			$1 == "total" { print $2, $NF - none }' "$run/said")" = "$count 0" ]
	# With one stream its hash is that of all.
	[ "$(wc -l <"$run/all")" != 1 ] ||
		check_log 'vmpt insn: the hash' "$run/said" grep -q "^hash: $hash\$" "$run/said"
}

# By an image of the PC's memory, taken while the guests existed: the host's page tables are in it, not
# those of its processes that have ended. What it lacks is printed, for what it is.
by_image()
{
	local image=$files/image-1-0

	try "$vmpt" insn -q --count --code="host:$image" --owner host "$files/perf.data"
	echo "$name, by an image alone: $(sed -n 's/^total  */instructions, branches, calls, gaps: /p' "$run/said")"
	check_log 'by an image: most of it' "$run/said" \
		awk -v all="$(sed -n 's/.* truth host.truth.0 instructions //p' "$files/run.log")" \
		'$1 == "total" { gsub(",", ""); found = $2 > 0.8 * all && $2 <= all } END { exit !found }' \
		"$run/said"
}

# What "split" writes to no file: "last" if it is one piece at the end of the trace, else "more";
# its start and its size.
left_out()
{
	"$vmpt" index "$run/split" | python3 -c 'import json, sys
index = json.load(sys.stdin)
last = index["index"][-1]
print("last" if last["owner"] == "unknown" and last["size"] == index["left_out_bytes"] else "more",
      last["offset"], last["size"])'
}

# The trace's bytes from $1 on; they need not be contiguous in the file.
bytes_from()
{
	"$vmpt" dump --json --start "$1" "$files/perf.data" 2>"$run/dump.log" |
		python3 -c 'import json, sys
for packet in map(json.loads, sys.stdin):
    pads = packet["size"] if packet.get("packet") == "PAD" else 0
    sys.stdout.buffer.write(bytes.fromhex(packet.get("raw", "")) or bytes(pads))'
}

# The last bytes of a kernel-only trace have no known owner. They are what the host's stream lacks.
give_last_bytes()
{
	local host=$run/split/host.cpu0.pt piece offset size

	read -r piece offset size < <(left_out)
	check_log 'only the last bytes have no owner' "$run/said" [ "$piece" = last ]
	try "$flow_check" --traced "$host" "$files/host.truth.0"
	check_log 'the host lacks no more than its last instructions' "$run/said" \
		grep -q '^the trace ends after instruction' "$run/said"
	bytes_from "$offset" >"$run/last"
	check_log 'all of the last bytes' "$run/dump.log" [ "$(wc -c <"$run/last")" = "$size" ]
	cat "$run/last" >>"$host"
}

# Both VMMs take an image; each guest's code must be in one, the kernel's in both, and that of the
# host's processes where image-check requires it. $1: how many pages of each guest changed their
# code.
images()
{
	local truth image found

	for truth in "$files"/vm-*.truth.*; do
		# On one of two processors a guest may have exited before its first instruction.
		! grep -q "truth ${truth##*/} instructions 0$" "$files/run.log" || continue
		found=no
		for image in "$files"/image-*; do
			try "$image_check" --modified="$files/run.log" "$image" "$truth" || continue
			found=yes
			check_log "modified pages of ${truth##*/}" "$run/said" \
				[ "$(grep -c '^page.*, was modified$' "$run/said")" = "$1" ]
			break
		done
		check_log "the code of ${truth##*/} is in an image" "$run/said" [ $found = yes ]
		echo "$name ${truth##*/}: $(tail -n 1 "$run/said")"
	done
	for truth in "$files"/host.truth.*; do
		try "$image_check" --host --modified="$files/run.log" "$files"/image-* "$truth"
		check_log "the code of ${truth##*/} is in the images" "$run/said" [ $rc = 0 ]
		echo "$name ${truth##*/}: $(tail -n 2 "$run/said" | paste -s -d ';')"
	done
}

# ---- the checkers with wrong input ----

# Write a wrong copy of truth $1 to file $3, by $2: no-block: one block less; event: one event has
# another target; user: other code in the larger blocks of the lower half. code: the image $4
# without the code of the truth's first block.
spoil()
{
	python3 - "$@" <<-'END'
		import struct, sys
		truth, what, to = sys.argv[1:4]
		words = list(struct.unpack("<%dI" % (len(data := open(truth, "rb").read()) // 4), data))
		sizes = {2: 3, 3: 5, 4: 3, 5: 3, 6: 10}
		at, blocks, events, code = 2, [], [], None
		while at < len(words):
		    kind, size = words[at] - 0xf0000000, 1
		    if kind == 1:
		        count, n = words[at + 4:at + 6]
		        code = code or data[4 * at + 24 + count:4 * at + 24 + count + n]
		        if what == "user" and n > 16 and not words[at + 3] >> 31:
		            words[at + 6 + (count + 3) // 4] ^= 255
		        size = 6 + (count + n + 3) // 4
		    elif kind > 0:
		        size = sizes[kind]
		        events += [at] if kind == 3 else []
		    else:
		        blocks += [at]
		    at += size
		if what == "code":
		    image = open(sys.argv[4], "rb").read()
		    open(to, "wb").write(image.replace(code, bytes(b ^ 255 for b in code)))
		    sys.exit()
		if what == "no-block":
		    del words[blocks[len(blocks) // 2]]
		elif what == "event":
		    words[events[-1] + 3] += 1
		open(to, "wb").write(struct.pack("<%dI" % len(words), *words))
	END
}

refuses()
{
	local what=$1
	shift
	try "$@"
	check_log "refuses $what" "$run/said" [ $rc = 1 ]
}

# Two guests' streams and truths, and an image, of the last recording.
wrong()
{
	local truths=("$files"/vm-*.truth.*) what

	mkdir -p "$out/wrong"
	for what in no-block event; do
		spoil "${truths[0]}" $what "$out/wrong/truth"
		refuses "$what" "$flow_check" --traced "$(stream_of "${truths[0]}")" "$out/wrong/truth"
	done
	refuses "another's stream" "$flow_check" --traced "$(stream_of "${truths[1]}")" "${truths[0]}"
	spoil "${truths[0]}" code "$out/wrong/image" "$files/image-1-0"
	refuses 'other code' "$image_check" --modified="$files/run.log" "$out/wrong/image" "${truths[0]}"
	spoil "$files/host.truth.0" user "$out/wrong/truth"
	refuses "other code of the host's processes" "$image_check" --host "$files"/image-* \
		"$out/wrong/truth"
}

# The same of a whole Linux, which changes its code as it boots: how much of it is found by what it was
# last is printed.
linux_decoded()
{
	local owner code=() executed found gaps

	for owner in host $(find "$files" -name 'vm-*.truth.0' -printf '%f\n' | sed 's/vm-\(.*\).truth.*/\1/'); do
		[ "$owner" != host ] && executed=$files/vm-$owner || executed=$files/host
		try "$truth_code" "$run/$owner.code" "$executed.truth.0"
		check_log "the code of $owner" "$run/said" [ $rc = 0 ]
		echo "$name $owner: $(cat "$run/said")"
		code+=(--code="$owner:$run/$owner.code")
	done
	executed=$(sed -n 's/.* truth .* instructions //p' "$files/run.log" | awk '{ n += $1 } END { print n }')
	"$vmpt" insn -q --count "${code[@]}" "$files/perf.data" >"$run/said" 2>&1
	read -r found gaps < <(sed -n 's/,//g; s/^total  *\([0-9]*\) .* \([0-9]*\)$/\1 \2/p' "$run/said")
	echo "$name, all: $found of $executed instructions, $gaps gaps"
	check_log 'vmpt insn: nearly all' "$run/said" [ "$((100 * found))" -gt "$((98 * executed))" ]
	check_log 'vmpt insn: few gaps' "$run/said" [ "$((100000 * gaps))" -lt "$found" ]
}

# ---- the recordings ----

# A whole Linux as guest, from its BIOS to its end. $1: the PC's seed; $2: perf's event: with RET
# compression a stream of its own is no more to be followed for flow-check, the whole is.
linux()
{
	rm -rf "$out/linux"
	record linux "flow-linux,$2,traced" --with qemu --seed "$1"
	check_log 'nothing is lost' "$run/said" [ $rc = 0 ]
	counts_of_pc 1
	[ "$2" = / ] || flows no
	linux_decoded
}

# The same, of the kernel alone.
linux_kernel()
{
	rm -rf "$out/linux-kernel"
	record linux-kernel flow-linux,noretcomp/k,traced --with qemu --seed "$1"
	check_log 'the loss is reported' "$run/said" [ $rc = 3 ]
	give_last_bytes
	counts_of_pc 1
	flows no
}

# In a soak it is Linux alone, with one seed after another.
if [ -n "${VMPT_SOAK-}" ] && [ "${8-}" != small ]; then
	seed=1001
	while linux $seed noretcomp/ && linux $seed / && linux_kernel $seed && [ $failures = 0 ] &&
		[ $SECONDS -lt "$VMPT_SOAK" ]; do
		seed=$((seed + 1))
	done
	echo "note: $((seed - 1000)) runs of a Linux under KVM"
	finish
fi
record noretcomp flow,noretcomp/,traced,long64,prot32
check_log 'nothing is lost' "$run/said" [ $rc = 0 ]
counts
flows no
decoded 0
by_image
images 0
[ "${8-}" != small ] || finish
wrong

# As perf records by default.
record retcomp flow,/,traced,real16,pae32,--smc,--irqchip
check_log 'nothing is lost' "$run/said" [ $rc = 0 ]
counts
flows some
decoded 100
images 1

# A processor whose compressed RETs libipt can follow.
record careful flow,/,traced,page32,prot32 --pt careful-retc
check_log 'nothing is lost' "$run/said" [ $rc = 0 ]
flows careful
decoded 0

record two flow,noretcomp/,traced,page32,long64,--irqchip --cpus 2
check_log 'nothing is lost' "$run/said" [ $rc = 0 ]
counts
flows no
decoded 0
images 0

# The kernel alone: after each return to user space the owner is unknown until a packet determines
# it. It stays unknown only for the last bytes.
record kernel flow,noretcomp/k,traced,long64,page32
check_log 'the loss is reported' "$run/said" [ $rc = 3 ]
give_last_bytes
decoded 0 10000
counts
flows no
images 0

finish
