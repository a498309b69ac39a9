#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# A Linux guest, traced from outside: its stream, split from the host's and concealed, decodes with
# perf script like a native trace, given the guest's kernel and programs.
#
#	test-perf-script.sh SOURCE PLUGIN VMPT KERNEL-IMAGE OUT
set -u

source=$(realpath "$1")
plugin=$(realpath "$2")
vmpt=$(realpath "$3")
kernel_image=$(realpath "$4")
out=$5
saver=
rounds=50
vmcs=12345000

# shellcheck source=tests/lib.sh
. "$source/tests/lib.sh"
need perf cpio
mkdir -p "$out" && cd "$out" || exit 1
rm -rf ./*
guest=$("$source/tests/guests/build" --symbols work) || {
	echo "$guest"
	[[ $guest == *skipped:* ]] && exit 77
	exit 1
}

cleanup()
{
	[ -z "$saver" ] || kill "$saver" 2>/dev/null
}
trap cleanup EXIT

# The guest's shell has the same addresses as its other programs. This one has others, so that perf
# can have both in one process.
gcc -std=gnu11 -D_GNU_SOURCE -O1 -fno-inline -fno-stack-protector -fno-pie -no-pie -static \
	-Wl,-Ttext-segment=0x10000000 -o alpha "$source/tests/guests/programs/alpha.c" || exit 1
(mkdir -p guest && cd guest && cpio -id --quiet bin/busybox <"$guest/initramfs-work.cpio") || exit 1

# boot NAME OPTION…: traces NAME/cpu0.pt; the kernel's code at the guest's end NAME/memory.
boot()
{
	local name=$1 address size rc=0
	shift

	mkdir -p "$name.boot"
	mkfifo "$name.boot/qmp.in" "$name.boot/qmp.out"
	read -r address size < <("$kernel_image" "$guest/vmlinux")
	timeout 2000 "$source/tests/guests/save-memory" "$name.boot/qmp" "$address" "$size" \
		"$name.boot/memory" &
	saver=$!
	"$source/tests/guests/boot" --out "$name.boot" --file /bin/alpha=alpha \
		--run "alpha,$rounds" --plugin "$plugin,host-view=$name,vm=linux,vmcs=0x$vmcs,$*" work \
		-- -no-shutdown -qmp "pipe:$name.boot/qmp" >"$name.boot/said" 2>&1 || rc=$?
	[ $rc != 77 ] || skip "$(sed 's/^skipped: //' "$name.boot/said")"
	check "$name: the guest ends with 0" [ $rc = 0 ]
	[ $rc = 0 ] || kill "$saver"
	wait "$saver" || rc=$?
	saver=
	check "$name: its memory" [ $rc = 0 ]
	check "$name: its kernel" "$kernel_image" "$guest/vmlinux" "$name.boot/memory" \
		"$guest/System.map" "$name.vmlinux"
	cat "$name.boot/said"
}

# decode NAME KERNEL TO: perf script's output of the VM's branches and errors.
decode()
{
	perf script -f -k "$2" -i "$1.split/vmcs-$vmcs.cpu0.perf.data" --time "$(cat "$1.start")," \
		--itrace=be -F event,ip,sym,addr >"$3" 2>"$3.err"
}

# The time when the guest's first program starts: the last TSC before a TIP to its first
# instruction. perf has to begin there: code that is freed after the boot is not in the image.
first_program()
{
	local entry

	entry=$(LC_ALL=C readelf -h guest/bin/busybox | sed -n 's/.*Entry point address: *//p')
	"$vmpt" dump -q --no-bytes --kinds=TSC,TIP,TIP.PGE "$1.split/vmcs-$vmcs.cpu0.perf.data" |
		awk -v entry="$entry" '$3 == "TSC" { tsc = $4 }
			$4 == entry { sub(/tsc=/, "", tsc); print tsc; exit }' |
		while read -r tsc; do
			printf '%d.%09d\n' $((tsc / 1000000000)) $((tsc % 1000000000))
		done
}

errors()
{
	grep -c "instruction trace error.* ip 0x$2" "$1"
}

# The places of perf's decoding errors, and how many there are at each.
show()
{
	[ ! -e "${name-}.script" ] || grep -o 'instruction trace error.*' "$name.script" |
		grep -o ' ip 0x[0-9a-f]*' | sort | uniq -c | sort -rn | head -n 20
}

# The functions of alpha that one of its branches enters, in order. (Only the kernel's return from an
# interrupt goes to a function's first byte.)
calls()
{
	nm alpha | awk 'NR == FNR { if ($3 ~ /^(alpha|beta|gamma_even|delta_odd|epsilon)$/)
			at[$3] = $1; next }
		$1 == "branches:" && $2 ~ /^1000/ && $NF in at {
			to = sprintf("%16s", $(NF - 1)); gsub(/ /, "0", to)
			if (to == at[$NF]) print $NF }' - "$1"
}

for ((i = 0; i < rounds; i++)); do
	printf '%s\n' alpha beta "$( ((i % 2)) && echo delta_odd || echo gamma_even)" epsilon
done >calls.want

# follow NAME
follow()
{
	local kernel user branches
	name=$1

	"$vmpt" split -q --perf --kernel="$name.vmlinux" --image=alpha \
		--image=guest/bin/busybox -o "$name.split" "$name/cpu0.pt" >"$name.said"
	first_program "$name" >"$name.start"
	check "$name: a first program" [ -s "$name.start" ]
	check "$name: perf script" decode "$name" "$name.vmlinux" "$name.script"
	branches=$(grep -c '^ *branches:' "$name.script")
	kernel=$(errors "$name.script" ffffffff)
	user=$(grep -c 'instruction trace error' "$name.script")
	user=$((user - kernel))
	echo "$name: $branches branches; errors: $kernel in the kernel, $user in user mode"
	check "$name: many branches" [ "$branches" -gt 500000 ]
	# The vdso is in no file.
	check "$name: user mode" [ "$user" -le 8 ]
	check "$name: kernel" [ "$kernel" -le 8 ]
	calls "$name.script" >"$name.calls"
	check "$name: alpha's calls in their order" cmp calls.want "$name.calls"
	check "$name: system calls" grep -q '=> ffffffff[0-9a-f]* do_syscall_64$' "$name.script"
	check "$name: the write of its line" grep -q '=> ffffffff[0-9a-f]* ksys_write$' "$name.script"
	check "$name: the guest's end" grep -q '=> ffffffff[0-9a-f]* kernel_power_off$' "$name.script"
	check "$name: nothing of the host" [ "$(grep -c 'ffffffffa0000' "$name.script")" = 0 ]
}

boot alone host=none
follow alone
boot mixed host=synthetic
check 'mixed: a host too' "$vmpt" vms -q mixed/cpu0.pt >mixed.vms
check 'mixed: its share' grep -q '^host ' mixed.vms
follow mixed

# The kernel has modified its code: the code of its file is not enough.
"$kernel_image" "$guest/vmlinux" - "$guest/System.map" file.vmlinux
decode alone file.vmlinux file.script
echo "alone: with the file's code $(errors file.script ffffffff) errors in the kernel"
check 'file: is not enough' [ "$(errors file.script ffffffff)" -gt 1000 ]

[ $failures != 0 ] || rm -rf ./*.script ./*.vmlinux ./*/cpu0.pt ./*.split
finish
