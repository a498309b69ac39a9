#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# vmpt record on the stock kernel in the Bochs PC, while two VMMs run a guest each with a TSC
# offset, the second also with TSC scaling: its output must match what the VMMs set and what KVM's
# debugfs says; the events of its perf.data are those that perf itself shows; and each VMCS gets the
# name of the VMM whose guest it was, supported by each of the guest's runs. By perf script, what
# each VM executed is within these runs. Where the vCPUs' time went, and who waited for whom, is what
# KVM's tracepoints and the scheduler's events say.
#
#	test-record.sh SOURCE OUT VMPT EVENTS-PRINT NAMES-PRINT
set -u

source=$1
out=$2
vmpt=$3
events_print=$4
names_print=$5
# The TSC offsets of the first and the second guest, and the second's rate.
first=-3000000000 second=77777777 khz=60000

mkdir -p "$out"
export LC_ALL=C PERF_CONFIG=/dev/null
. "$source/tests/bochs/lib.sh" || exit
make_all "$source/bochs/build" "$source/tests/bochs/build-kernel" \
	"$source/tests/bochs/build base perf"
trap 'rm -f "$out"/run/files/perf.data' EXIT

# Put the program and its libraries into the PC.
files=(--file "vmpt/vmpt=$vmpt")
while read -r library; do
	case $library in
	*/ld-linux*) files+=(--file "$library=$(readlink -f "$library")") ;;
	*) files+=(--file "vmpt/${library##*/}=$(readlink -f "$library")") ;;
	esac
done < <(ldd "$vmpt" | grep -o '/[^ ]*')

job run "record,$first,$second,$khz" --with perf "${files[@]}"
got=$out/run/files

check 'the run' [ $rc = 0 ]
check 'the host can be recorded' grep -q '^check: 0$' "$out/run/serial"
check 'an existing recording is not overwritten' grep -q '^again: 1$' "$out/run/serial"
check 'others may not read it' [ "$(grep -c '^-rw------- .* \(perf.data\|vms.jsonl\|recording.json\|kallsyms\)$' \
	"$out/run/serial")" = 4 ]

# ---- events: the perf tool's own ----

"$events_print" "$got/perf.data" >"$out/run/events"
perf script -f --no-itrace --ns -F pid,tid,cpu,time,event,trace -i "$got/perf.data" 2>/dev/null |
	sed -nE -e 's,^ *([0-9]+)/([0-9]+) +\[0*([0-9]+)\] +([0-9]+)\.([0-9]+): +kvm:kvm_entry: vcpu ([0-9]+)\, rip (0x[0-9a-f]+).*,entry \3 \1 \2 \4\5 \6 \7,p' \
		-e 's,^ *([0-9]+)/([0-9]+) +\[0*([0-9]+)\] +([0-9]+)\.([0-9]+): +kvm:kvm_exit: vcpu ([0-9]+) reason [^ ]+ rip (0x[0-9a-f]+) info1 0x0*([0-9a-f]+) info2 0x0*([0-9a-f]+).*,exit \3 \1 \2 \4\5 \6 \7 0x\8 0x\9,p' \
		>"$out/run/perf-events"
# perf gives the reason in words.
awk '$1 == "exit" { $8 = ""; $0 = $0; $1 = $1 } $1 == "exit" || $1 == "entry"' "$out/run/events" \
	>"$out/run/our-events"
check 'entries and exits are those that perf shows' cmp "$out/run/our-events" "$out/run/perf-events"
check 'there are many' [ "$(wc -l <"$out/run/our-events")" -gt 1000 ]
# The guests' port accesses are I/O-instruction exits (SDM 3, Appendix C: 30), their MMIO EPT
# violations (48).
check 'reasons' [ "$(awk '$1 == "exit" && $8 == 30' "$out/run/events" | wc -l)" -gt 200 ]
check 'context switches' [ "$(grep -c '^in ' "$out/run/events")" -gt 100 ]

# ---- names, and given clocks ----

"$names_print" "$got" >"$out/run/names" 2>&1
cat "$out/run/names"
"$vmpt" clocks "$got" 2>&1 | sed -n '/^VMCS/,$p'
"$vmpt" vms --json "$got" >"$out/run/vms.json" 2>"$out/run/vms.said"
"$vmpt" clocks --json "$got" >"$out/run/clocks.json" 2>"$out/run/clocks.said"
"$vmpt" exits --json "$got" >"$out/run/exits.json" 2>/dev/null
"$vmpt" timeline --summary --json "$got" >"$out/run/summary.json" 2>/dev/null
"$vmpt" wait --json --top=0 "$got" >"$out/run/wait.json" 2>/dev/null
"$vmpt" wait "$got" 2>/dev/null
check 'nothing contradicts the values from KVM' [ ! -s "$out/run/clocks.said" ]
python3 - "$out/run" "$first" "$second" "$khz" <<-'END' || failures=$((failures + 1))
	import json, re, sys
	run, first, second, khz = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
	bad = 0

	def check(what, holds):
	    global bad
	    if not holds:
	        bad += 1
	        print(what + ": failed")

	pid = {}
	for line in open(run + "/files/vmms"):
	    number, guest = line.split()
	    pid[int(number)] = guest
	exits = dict(zip(("first", "second"),
	                 map(int, re.findall(r"KVM: exits (\d+)", open(run + "/serial").read()))))
	debugfs = {}
	for line in open(run + "/files/debugfs"):
	    words = line.split()
	    # Sometimes a file vanishes between its listing and its reading.
	    if len(words) == 3:
	        debugfs[pid[int(words[0].split("-")[0])], words[1]] = int(words[2])
	names, given, found = {}, {}, {}
	for line in open(run + "/names"):
	    words = line.split()
	    {"name": names, "given": given, "found": found}[words[0]].setdefault(words[1], []).append(words[2:])

	# Each VMCS belongs to one guest, supported by that guest's runs: as many as it has exits.
	check("two VMCSs have a name", len(names) == 2)
	whose = {}
	for vmcs, of in names.items():
	    check("one name of " + vmcs, len(of) == 1)
	    vm, number, tid, vcpu, runs, against = of[0][:6]
	    guest = whose[vmcs] = pid.get(int(number))
	    check("the VMM's process", vm == "l2vmm/" + number)
	    check("the vCPU's thread", int(tid) == debugfs.get((guest, "pid")))
	    check("the vCPU's number", vcpu == "0")
	    # All except those during which another thread may have run there.
	    check("each run supports it",  0.95 * exits[guest] <= int(runs) <= exits[guest])
	    check("no run contradicts it", against == "0")
	check("two guests", sorted(map(str, whose.values())) == ["first", "second"])

	# The given values: those that the VMM set and debugfs shows.
	offset = {"first": first, "second": second}
	for vmcs, guest in whose.items():
	    check("given for " + vmcs, len(given.get(vmcs, [])) == 1)
	    ratio = debugfs[guest, "tsc-scaling-ratio"]
	    for words in given.get(vmcs, []):
	        check("the offset", int(words[0]) == offset[guest] == debugfs[guest, "tsc-offset"])
	        check("the multiplier", int(words[1], 16) == ratio)
	    # The trace alone gives the same, within its stated error.
	    for words in found.get(vmcs, []):
	        check("the multiplier found", abs(int(words[1], 16) / ratio - 1) * 1e6 <=
	              max(10, float(words[3])))
	        if guest == "first":
	            check("the offset found", abs(int(words[0]) - offset[guest]) <= int(words[2]))

	# A guest has a TSC packet only if a PSB falls into one of its short runs.
	check("one was found", set(found) and set(found) <= set(names))

	# vmpt clocks uses the values from KVM, assigned by name.
	clocks = {v["vmcs"][2:]: v["epochs"] for v in json.load(open(run + "/clocks.json"))["vmcss"]}
	check("clocks of the same VMCSs", set(clocks) == set(names))
	for vmcs, epochs in clocks.items():
	    guest = whose[vmcs]
	    for e in epochs:
	        check("clocks: by KVM", e["source"] == "kvm" and e["outliers"] == 0)
	        check("clocks: the name", (e["vm"], e["vcpu"]) == (names[vmcs][0][0], 0))
	        check("clocks: the map", (int(e["tsc_offset"]), int(e["multiplier"], 16)) ==
	              (offset[guest], debugfs[guest, "tsc-scaling-ratio"]))

	# vmpt vms names both VMs.
	vms = {v["vmcs"][2:]: (v.get("vm"), v.get("vcpu"))
	       for v in json.load(open(run + "/vms.json"))["owners"] if v["owner"] == "vm"}
	check("vms: the names", vms == {vmcs: (of[0][0], 0) for vmcs, of in names.items()})

	# vmpt exits shows each VM's exits by name, with the reasons of KVM's events.
	want, have = {}, {}
	for line in open(run + "/events"):
	    words = line.split()
	    if words[0] == "exit":
	        key = "l2vmm/" + words[2], int(words[7])
	        want[key] = want.get(key, 0) + 1
	for e in json.load(open(run + "/exits.json"))["exits"]:
	    if not e["guessed"]:
	        key = e.get("vm"), e["reason"]
	        have[key] = have.get(key, 0) + e["count"]
	apart = {key: (want.get(key, 0), have.get(key, 0)) for key in want.keys() | have.keys()
	         if want.get(key, 0) != have.get(key, 0)}
	print("note: %d exits of %d kinds" % (sum(want.values()), len(want)), apart or "are all there")
	# If an exit's time is not known well enough, its reason may be unknown.
	check("exits", len(want) > 15 and sum(abs(a - b) for a, b in apart.values()) <=
	      0.01 * sum(want.values()))

	# The second guest's rate is the host's TSC rate, from the times in the side file, times the
	# ratio.
	lines = [json.loads(line) for line in open(run + "/files/vms.jsonl")]
	doc = json.load(open(run + "/files/recording.json"))
	check("the end", doc["end"] == {"perf_exit": 0, "stopped": False})
	ends = doc["clocks"][0], doc["clocks"][-1]
	host_khz = 1e6 * (int(ends[1]["tsc"], 16) - int(ends[0]["tsc"], 16)) / \
	    (ends[1]["monotonic_raw_ns"] - ends[0]["monotonic_raw_ns"])
	check("the recorded rate", abs(doc["rates"]["tsc_khz"] / host_khz - 1) < 1e-4)
	scaled = host_khz * debugfs["second", "tsc-scaling-ratio"] / 2 ** 48
	print("note: the host's TSC has %.0f kHz, the second guest's %.0f" % (host_khz, scaled))
	check("the rate", abs(scaled / khz - 1) < 0.01)
	check("both ran", {l["pid"] for l in lines if l["kind"] == "vcpu" and l["tid"]} == set(pid))
	check("both ended", sorted(l["pid"] for l in lines if l["kind"] == "vcpu-gone") == sorted(pid))
	check("each was read within its time", all(int(l["tsc_before"], 16) < int(l["tsc_after"], 16)
	      for l in lines if "vcpu" in l))
	check("the processor", doc["host"]["family"] == 6 and doc["host"]["pt_mode"] == 0 and
	      doc["rates"]["tsc_art_numerator"] > 0)
	sys.exit(bad != 0)
END
checks=$((checks + 1))

# ---- where the time went: by KVM's tracepoints and the scheduler's events ----

python3 - "$out/run" <<-'END' || failures=$((failures + 1))
	import json, sys
	run, bad = sys.argv[1], 0

	def check(what, holds):
	    global bad
	    if not holds:
	        bad += 1
	        print(what + ": failed")

	# The guests' runs by thread: entry, exit, reason; when the threads had the CPU.
	runs, entry, on, since = {}, {}, {}, {}
	vm = {}
	for words in map(str.split, open(run + "/events")):
	    if words[0] == "entry":
	        entry[words[3]] = int(words[4])
	        vm[words[3]] = "l2vmm/" + words[2]
	    elif words[0] == "exit" and words[3] in entry:
	        runs.setdefault(words[3], []).append((entry.pop(words[3]), int(words[4]), int(words[7])))
	    elif words[0] == "in":
	        since[words[3]] = int(words[4])
	    elif words[0] == "out" and words[3] in since:
	        on.setdefault(words[3], []).append((since.pop(words[3]), int(words[4])))
	check("two vCPUs", len(runs) == 2)

	# kvm:kvm_entry comes before the entry, kvm:kvm_exit after the exit, by always the same code. So
	# their distance is the run and a constant, which the shortest run shows: its guest leaves at its
	# first instruction.
	apart = min(b - a for list in runs.values() for a, b, _ in list)
	print("note: tracepoints are %d ns outside a run" % apart)

	def overlap(list, start, end, less=0):
	    return sum(max(0, min(b, end) - max(a, start) - less) for a, b, *_ in list if a < end and b > start)

	want = {}
	for tid, list in runs.items():
	    other = next(t for t in runs if t != tid)
	    w = want[vm[tid]] = {"running": 0, "host": 0, "wait": 0, "halted": 0, "untraced": 0, "thread": 0}
	    w["other"] = vm[other]
	    w["running"] = sum(b - a - apart for a, b, _ in list)
	    for (_, start, reason), (end, _, _) in zip(list, list[1:]):
	        if reason == 12:
	            w["halted"] += end - start + apart
	            continue
	        waited = overlap(runs[other], start, end, apart)
	        w["wait"] += waited
	        w["host"] += end - start + apart - waited
	        w["thread"] += overlap(on[other], start, end)

	for v in json.load(open(run + "/summary.json"))["vms"]:
	    w, n = want[v["vm"]], v["entries"]
	    for part in ("running", "host", "wait", "halted", "untraced"):
	        got, error = v["vcpus"][0][part + "_ns"], v["vcpus"][0][part + "_error_ns"]
	        print("note: %s %-8s %12d ns, by tracepoints %12d, apart %8d, bound %d" %
	              (v["vm"], part, got, w[part], abs(got - w[part]), error))
	        check(part + ": within the bound", abs(got - w[part]) <= error)
	        # With cycles the times are far better than the bounds: 2 us a run are the tracepoints'.
	        check(part + ": not far off", abs(got - w[part]) <= 0.02 * w[part] + 2000 * n)
	check("one waited", max(w["wait"] for w in want.values()) > 5e6)

	# Each waited for the other, while the scheduler had the other's thread on the CPU.
	for v in json.load(open(run + "/wait.json"))["vcpus"]:
	    w = want[v["vm"]]
	    vcpus = [x for x in v["waits"] if x["kind"] == "vcpu"]
	    check("one other", [x["for_vm"] for x in vcpus] == [w["other"]])
	    got, error = vcpus[0]["time_ns"], vcpus[0]["time_error_ns"]
	    check("waited for it", abs(got - w["wait"]) <= error)
	    print("note: %s waited for %s: %d ns, and the host's between %d; its thread had the CPU for %d" %
	          (v["vm"], w["other"], got, vcpus[0]["host_between_ns"], w["thread"]))
	    check("the thread", got <= w["thread"] + error)
	first = json.load(open(run + "/wait.json"))["vcpus"][0]
	check("who waited most", want[first["vm"]]["wait"] == max(w["wait"] for w in want.values()))
	sys.exit(bad != 0)
END
checks=$((checks + 1))

# ---- perf.data per VM: what perf prints from it was executed while KVM ran that VM ----

rm -rf "$out/run/split"
rc=0
"$vmpt" split --per-vm -o "$out/run/split" "$got" >"$out/run/said" 2>&1 || rc=$?
check 'a perf.data per VM' [ $rc = 0 ]
while read -r pid _; do
	perf script --ns -F time,event,ip --itrace=b -i "$out/run/split/vm-l2vmm_$pid"+*.perf.data \
		>"$out/run/script" 2>/dev/null
	python3 - "$out/run" "$pid" <<-'END' || failures=$((failures + 1))
		import bisect, re, sys
		run, pid = sys.argv[1:]
		runs, entry = [], None
		for line in open(run + "/events"):
		    words = line.split()
		    if words[0] in ("entry", "exit") and words[2] == pid:
		        if words[0] == "exit" and entry is not None:
		            runs.append((entry, int(words[4])))
		        entry = int(words[4]) if words[0] == "entry" else None
		branches, outside, back, last, seen = 0, 0, 0, 0, set()
		for line in open(run + "/script"):
		    found = re.match(r"\s*(\d+)\.(\d{9}):", line)
		    if not found:
		        continue
		    at = int(found[1]) * 10**9 + int(found[2])
		    i = bisect.bisect(runs, (at, 1 << 62)) - 1
		    branches += 1
		    if i >= 0 and at <= runs[i][1]:
		        seen.add(i)
		    else:
		        outside += 1
		    back += at < last
		    last = max(at, last)
		print(f"note: l2vmm/{pid}: {branches} branches by perf script in {len(seen)} of {len(runs)} runs")
		sys.exit(outside or back or not 0.95 * len(runs) <= len(seen))
	END
	checks=$((checks + 1))
done <"$got/vmms"
rm -rf "$out/run/split"
finish
