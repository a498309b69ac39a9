#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# vmpt guest says of an image of a running guest's memory what the guest itself says: kallsyms,
# modules, tasks, and what processes have mapped; with KASLR and page table isolation and without,
# of all kinds of images. Of half an image it shows the rest.
#
#	test-image.sh SOURCE VMPT OUT
set -u

source=$(realpath "$1")
vmpt=$(realpath "$2")
guests=$source/tests/guests

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
mkdir -p "$3"
out=$(realpath "$3")
rm -rf "${out:?}"/*

# Tasks of /proc/PID/task/TID/stat as "TID PID? PARENT COMM TICKS". A worker of the kernel has what it
# works on after its name there, and other names are not cut.
tasks_said()
{
	sed -E 's/^([0-9]+) \((.*)\) . ([0-9]+) (.*)/\1 \3 \4 \2/' "$1" | awk '{
		name = $0
		for (i = 0; i < 50; i++)
			sub(/^[^ ]+ /, "", name)
		if (name ~ /^kworker/)
			sub(/[-+].*/, "", name)
		print $1, $2, $20, substr(name, 1, 15)
	}' | sort
}

# The same of vmpt guest --csv.
tasks_seen()
{
	"$vmpt" guest --csv "$1" | awk -F, 'NR > 1 { printf "%s %s %d %s\n", $3, $5, $9 / 1e7, $6 }' |
		sort
}

# The kernel reads the clock twice when it makes a task: /proc has the start by the one, struct task_struct's
# start_time is the other, which a tick of 10 ms may divide.
same_tasks()
{
	paste "$1" "$2" | awk -F '\t' '{
		split($1, a, " ")
		split($2, b, " ")
		sub(/^[0-9]+ [0-9]+ [0-9]+ /, "", $1)
		sub(/^[0-9]+ [0-9]+ [0-9]+ /, "", $2)
		late = a[3] - b[3]
		if ($1 != $2 || a[1] != b[1] || a[2] != b[2] || late < 0 || late > 1) {
			print
			wrong = 1
		}
	} END { exit wrong || !NR }'
}

# Maps as "PID START-END RIGHTS OFFSET FILE", of processes that are in both.
maps_said()
{
	awk '/^process/ { pid = $2; next }
		{ name = $0; sub(/^[^ ]+ [^ ]+ [^ ]+ [^ ]+ [^ ]+ */, "", name); print pid, $1, $2, $3, name }' \
		"$1" | sed 's/ $//' | sort
}

maps_seen()
{
	"$vmpt" guest --maps "$1" | awk '/^process/ { pid = $2; next } pid && NF { print pid, $0 }' |
		sed -E 's/ [0-9a-f]{40}$//; s/ $//' | sort
}

# Of file $1 what processes have that were there when the image was taken, and before: not the shell's
# children that collected it.
of_both()
{
	awk -v column="$1" 'NR == FNR { known[$1] = 1; next } $column in known' "$2" "$3"
}

# Check the image $1, taken with arguments $2...
image()
{
	local dir=$out/$1 folder
	shift

	"$guests/take-image" "$dir" "$@" >"$dir.log" 2>&1
	rc=$?
	[ $rc != 77 ] || { cat "$dir.log" && exit 77; }
	check "${dir##*/}: taken" [ $rc = 0 ]
	"$vmpt" guest --symbols "$dir/image" 2>"$dir/errors" | sort >"$dir/symbols"
	check "${dir##*/}: kallsyms" cmp "$dir/symbols" <(sort "$dir/kallsyms")
	check "${dir##*/}: eBPF" grep -q ' t bpf_prog_[0-9a-f]*_vmpt_filter	\[bpf\]$' "$dir/symbols"
	check "${dir##*/}: nothing is missing" [ ! -s "$dir/errors" ]
	check "${dir##*/}: many" [ "$(wc -l <"$dir/symbols")" -gt 50000 ]
	"$vmpt" guest "$dir/image" >"$dir/text"
	check "${dir##*/}: banner" [ "$(sed -n 's/^kernel    //p' "$dir/text")" = "$(cat "$dir/version")" ]
	"$vmpt" guest --csv "$dir/image" | awk -F, 'NR > 1 { print $3 }' >"$dir/pids"
	tasks_said "$dir/stat" >"$dir/tasks"
	tasks_seen "$dir/image" >"$dir/tasks.seen"
	check "${dir##*/}: tasks" same_tasks <(of_both 1 "$dir/pids" "$dir/tasks") \
		<(of_both 1 "$dir/tasks" "$dir/tasks.seen")
	check "${dir##*/}: all but what collected them" \
		[ "$(cat "$dir/tasks" "$dir/tasks.seen" | sort | uniq -u | wc -l)" -le 4 ]
	check "${dir##*/}: threads" [ "$(grep -c ' threads$' "$dir/tasks.seen")" = 5 ]
	maps_said "$dir/maps" >"$dir/maps.said"
	maps_seen "$dir/image" >"$dir/maps.seen"
	check "${dir##*/}: maps" cmp <(of_both 1 "$dir/maps.seen" "$dir/maps.said") \
		<(of_both 1 "$dir/maps.said" "$dir/maps.seen")
	for file in '/tmp/deleted (deleted)' '/tmp/mnt/a b' '/bin/threads' '[heap]' '[vdso]'; do
		check "${dir##*/}: maps: $file" grep -qF " $file" "$dir/maps.seen"
	done
	"$vmpt" guest --modules "$dir/image" | sed '1,/^MODULE/d; /^bpf /d' |
		awk '{ gsub(",", ""); print $1, $3, "0x" $2 }' | sort >"$dir/modules.seen"
	check "${dir##*/}: modules" cmp "$dir/modules.seen" <(awk '{ print $1, $2, $6 }' "$dir/modules" | sort)
	# Programs are found by their build ids, also those whose headers no process has mapped.
	id=$(readelf -n "$folder_work/programs/idle" | sed -n 's/.*Build ID: //p')
	check "${dir##*/}: build id" grep -q " /bin/idle $id$" <("$vmpt" guest --maps "$dir/image")
}

folder=$("$guests/build" work) || { rc=$? && echo "$folder" && exit $rc; }
folder_work=$out/work
mkdir -p "$folder_work/programs"
(cd "$folder_work/programs" && cpio -i --quiet --to-stdout bin/idle <"$folder/initramfs-work.cpio" >idle)

image plain raw --append pti=on --
image kaslr raw --smp 2 --append nopti -- -kernel "$folder/vmlinuz"
image elf elf --append pti=on -- -kernel "$folder/vmlinuz" -cpu max,vendor=GenuineIntel,la57=off
if [ -e "$(dirname "$vmpt")/../decoder/vmpt-kdump.so" ]; then
	image kdump kdump -- -kernel "$folder/vmlinuz"
fi
check 'KASLR: two kernels in two places' [ "$(grep -h ^KASLR "$out"/*/text | sort -u | wc -l)" -gt 2 ]

# ---- what is missing ----

head -c $((128 << 20)) "$out/plain/image" >"$out/half"
"$vmpt" guest "$out/half" >"$out/stdout" 2>"$out/stderr"
rc=$?
check 'half an image: shows the rest' [ $rc = 0 -o $rc = 1 ]
check 'half an image: says what is missing' [ -s "$out/stderr" ]
head -c 1000000 "$out/plain/image" >"$out/small"
"$vmpt" guest "$out/small" >"$out/stdout" 2>"$out/stderr"
check 'no kernel: status' [ $? = 1 ]
check 'no kernel: reported' grep -q 'no Linux kernel is found' "$out/stderr"
sed 's/kallsyms_names/kallsyms_nameZ/g' "$out/plain/image" >"$out/no-symbols"
"$vmpt" guest "$out/no-symbols" >"$out/stdout" 2>"$out/stderr"
check 'no kallsyms: status' [ $? = 0 ]
check 'no kallsyms: reported' grep -q 'neither functions nor processes are known' "$out/stderr"
check 'no kallsyms: the release' grep -q '^kernel    6' "$out/stdout"
"$vmpt" guest --paging=5 "$out/plain/image" >"$out/stdout" 2>"$out/stderr"
check 'wrong paging: status' [ $? = 1 ]
#KEEP

finish
