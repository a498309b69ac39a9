#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Known faults of KVM's Processor Trace virtualization, on the stock kernel: each scenario of ptfault
# shall show its fault, with the evidence that goes with it. A scenario that finds all well fails
# here: either the kernel was mended or the scenario no longer sees.
#
#	test-faults.sh SOURCE OUT
#
# What the scenarios said goes to OUT/faults.md, the table of docs/bochs/faults.md.
set -u

source=$1
out=$2
failures=0 checks=0

mkdir -p "$out"
. "$source/tests/bochs/lib.sh" || exit
make_all "$source/bochs/build" "$source/tests/bochs/build-kernel" \
	"$source/tests/bochs/build base"

# What each must say, as a pattern.
declare -A expected=(
	# VM-instruction error 7: invalid control fields, for "load IA32_RTIT_CTL" while TraceEn is 1
	[D01]='FAULT: VM entry failed, reason 0x7;'
	[D02]='FAULT: after [0-9]+ exits: .*unchecked MSR access error: WRMSR to 0x5'
	[D03]='FAULT: guest wrote RTIT_CTL 0x210d, KVM_GET_MSRS says 0: .*RDMSR from 0x58[4-9a-d]'
	[D04]='FAULT: after [0-9]+ exits: (perf says [0-9]{8,} bytes came|.*(BUG|WARNING))'
	[D05]='FAULT: RTIT_CTL reads 0, yet [1-9][0-9]* bytes came'
	[D06]='FAULT: .*unchecked MSR access error: WRMSR to 0x572'
	[D07]='FAULT: .*unchecked MSR access error: WRMSR to 0x560'
	[D08]='FAULT: unchecked MSR access error: (RDMSR from|WRMSR to) 0x572'
	# exit reason 33, invalid guest state, of a failed entry
	[D09]='FAULT: the write of 0x8000000000000000 was taken; VM entry failed, reason 0x80000021'
	[D10]='FAULT: .* InjectPsbPmiOnEnable EventEn DisTNT$'
	[D11]='FAULT: FabricEn goes to the VMCS; VM entry failed, reason 0x80000021'
	[D12]='FAULT: KVM_SET_CPUID2 takes leaf 14H with all bits of EBX and ECX set$'
	[D13]='FAULT: KVM_SET_MSRS takes 1 of 9;'
	[D14]='FAULT: KVM_SET_MSRS refuses RTIT_STATUS 0xc0'
	[D15]='FAULT: reads 0$'
	[D16]='FAULT: no interrupt, .*NMI received for unknown reason'
	[D17]='skipped: '
	[D18]='FAULT: after [0-9]+ exits RTIT_CTL.TraceEn is 1 with perf.s buffer full'
	[D19]='FAULT: done 0; KVM emulated [1-9][0-9]* instructions'
	[D20]='FAULT: RTIT_CTL stays 0x210d, PIP packets [1-9][0-9]*, none of them with the new CR3'
	[D21]='FAULT: RTIT_CTL reads 0x210d in SMM'
	[D22]='FAULT: 1 PIP packets where the processor makes 9'
	[D22b]='FAULT: [01] PIP packets for 8 MOV CR3'
	[D23]='FAULT: 9 TIP packets where the processor makes 17'
	[D24]='FAULT: .*\(ratio 0\), CPUID 15H EAX is 0'
	[D25]='skipped: '
	[D26]='ok: '
	[D27]='FAULT: the write is taken'
	[D28]='FAULT: #GP with MTC periods 0x248 and MTCEn 0'
	[D29]='FAULT: 1[0-9]{2} reads of RTIT_CTL in 1[0-9]{2} exits; no RTIT_CTL behind '
	[ctl]='FAULT: #GP'
)

# Run the scenarios $3..., as test $1, with an option and its value in $2.
run()
{
	local name=$1 words
	local -a option
	read -ra option <<<"$2"
	words=$(printf ',%s' "${@:3}")
	rc=0
	rm -rf "${out:?}/$name"
	mkdir -p "$out/$name"
	"$source/tests/bochs/run" --out "$out/$name" --timeout 180 --allow-warnings \
		--append "kvm-intel.pt_mode=1 msr.allow_writes=on" "${option[@]}" "faults${words%,}" >"$out/$name/said" \
		2>&1 || rc=$?
	checks=$((checks + 1))
	if [ $rc != 0 ]; then
		failures=$((failures + 1))
		echo "$name: ends with $rc"
		cat "$out/$name/said"
		tail -n 20 "$out/$name/serial.log"
	fi
	tr -d '\r' <"$out/$name/serial.log" >"$out/$name/serial"
}

# What scenario $2 said in run $1.
line()
{
	sed -n "s/^$2: //p" "$out/$1/serial" | head -n 1
}

# D18 and D04 leave a host that cannot be trusted.
mapfile -t names < <(printf '%s\n' "${!expected[@]}" | grep -vxE 'D04|D08|D18|D22b' | sort)
run most '' "${names[@]}"
run apart '' D18 D04
run no-unrestricted '--append kvm-intel.unrestricted_guest=0' D22b
run no-cr3-filter '--pt no-cr3-filter' D08

{
	echo '| | scenario | right would be | stock 6.12 on the Bochs PC |'
	echo '| --- | --- | --- | --- |'
} >"$out/faults.md"
while IFS='|' read -r name what right; do
	case $name in
	D22b) said=$(line no-unrestricted "$name") ;;
	D08) said=$(line no-cr3-filter "$name") ;;
	D04 | D18) said=$(line apart "$name") ;;
	*) said=$(line most "$name") ;;
	esac
	checks=$((checks + 1))
	if ! grep -qE "^${expected[$name]-no expectation}" <<<"$said"; then
		failures=$((failures + 1))
		echo "$name: \"$said\" is not ${expected[$name]-something that was thought of}"
	fi
	unset "expected[$name]"
	echo "| $name | $what | $right | $said |" >>"$out/faults.md"
done < <(sed -n 's/^list: //p' "$out/most/serial")
checks=$((checks + 1))
if [ ${#expected[@]} != 0 ]; then
	failures=$((failures + 1))
	echo "not tried: ${!expected[*]}"
fi

echo "$((checks ? 100 * (checks - failures) / checks : 0))%: Checks: $checks, Failures: $failures, Errors: 0"
[ $failures = 0 ]
