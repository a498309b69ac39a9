#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# KVM's selftests on the PC. intel_pt_test, which kvm-patches add, shows on the stock kernel each
# fault of faults/selftest.expect with its evidence, and passes completely on the kernel with the
# patches; so do those of the kernel's own selftests that cover what the patches touch, and the
# kernel prints no WARN there. In a soak the kernel's own also run on the stock kernel.
#
#	test-selftest.sh SOURCE OUT
set -u

source=$1
out=$2

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
choose_kernel patched
. "$source/tests/soak.sh" || exit
soak_takes
soak_made "$source/bochs/build" "$here/build-kernel" "$build"
make_all "$source/bochs/build" "$here/build-kernel" "$build" "$here/build base"
folder=$("$here/build-selftests" "$patches" 2>"$out/build.log") || {
	rc=$?
	echo "$folder"
	cat "$out/build.log"
	exit $rc
}

# Run the selftests $2... on kernel $1. APICv is off: on Bochs a virtual interrupt whose delivery
# meets an EPT violation is reported with vector 0.
run()
{
	local kernel=$1 test files=()

	shift
	choose_kernel "$kernel"
	for test; do
		files+=(--file "selftests/$test=$folder/$test")
	done
	job "$kernel" "selftest$(printf ',%s' "$@")" "${options[@]}" "${files[@]}" --append \
		'kvm-intel.pt_mode=1 kvm.force_emulation_prefix=1 kvm-intel.enable_apicv=0'
	check 'the run ends well' [ $rc = 0 ]
}

# The results of kernel $1's run: NAME: STATUS, SECONDS s.
results()
{
	sed -n 's/^selftest //p' "$out/$1/serial"
}

# The output of test $2 of intel_pt_test on kernel $1.
said()
{
	sed -n "/RUN  *intel_pt\.$2 \.\.\./,/ok [0-9]* intel_pt\.$2$/p" "$out/$1/serial"
}

# All but intel_pt_test, on kernel $1. Status 4: the test skips itself.
check_others()
{
	local name status

	while IFS=' :,' read -r name status _; do
		[ "$name" != intel_pt_test ] || continue
		check "$1: $name ends with $status" [ "$status" = 0 ] || grep "^$name: " "$out/$1/serial"
	done < <(results "$1")
}

mapfile -t all < <(ls "$folder")
stock=(intel_pt_test)
[ -z "${VMPT_SOAK-}" ] || stock=("${all[@]}")

run stock "${stock[@]}"
while IFS=$'\t' read -r name pattern; do
	[[ $name != '#'* ]] || continue
	check "stock: $name fails" grep -q "^intel_pt_test: not ok [0-9]* intel_pt\.$name$" "$out/stock/serial"
	check "stock: $name says $pattern" grep -qE "$pattern" <(said stock "$name") || said stock "$name"
done <"$here/faults/selftest.expect"
check 'stock: the rest passes' [ "$(grep -vc '^#' "$here/faults/selftest.expect")" = \
	"$(grep -c '^intel_pt_test: not ok' "$out/stock/serial")" ]
check_others stock

run patched "${all[@]}"
check 'patched: each selftest has run' [ "$(results patched | wc -l)" = ${#all[@]} ]
check 'patched: intel_pt_test passes' grep -qE \
	'^intel_pt_test: # Totals: pass:[1-9][0-9]* fail:0 xfail:0 xpass:0 skip:0 error:0' \
	"$out/patched/serial" || grep '^intel_pt_test: ' "$out/patched/serial" | grep -v ' OK '
check 'patched: as many tests as on stock' [ "$(grep -c '^intel_pt_test: ok' "$out/patched/serial")" = \
	"$(grep -cE '^intel_pt_test: (not )?ok' "$out/stock/serial")" ]
check_others patched
for kernel in stock patched; do
	echo "$kernel: $(grep '^intel_pt_test: # Totals' "$out/$kernel/serial"), $(results $kernel | wc -l) selftests"
done

finish
