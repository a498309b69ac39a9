#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""vmpt perfetto, read by python3-protobuf: made-up calls against a second way to nest and fold them,
a generated trace of a host and two VMs against the generator's truth, and bad input.

	test_perfetto.py FOLDER MAKE VMPT TRACEGEN SCRIPT

FOLDER has trace_pb2.py, made by protoc.
"""
import json
import os
import random
import subprocess
import sys

folder, make, vmpt, tracegen, script = sys.argv[1:]
sys.path.insert(0, folder)
sys.path.insert(1, os.path.dirname(os.path.abspath(__file__)))
import trace_pb2 as pb  # noqa: E402
from reader import Trace  # noqa: E402

TRACKS = 8
failed = 0


def check(what, ok, *more):
	global failed
	if not ok:
		failed += 1
		print("failed:", what, *more)


# ---- made-up calls ----

class Call:
	def __init__(self, track, name, start, parent):
		self.track, self.name, self.start, self.parent = track, name, start, parent
		self.end = self.instructions = None
		self.depth = parent.depth + 1 if parent else 1


def make_calls(seed, count, deepest):
	"""Events as perfetto-make takes them, and the calls that they are."""
	rng = random.Random(seed)
	stacks = [[] for _ in range(TRACKS)]
	last = [0] * TRACKS
	lines, calls, now = [], [], 0
	while len(calls) < count:
		now += rng.choice((0, 0, 1, 2, 7, 100, 3000))
		track = rng.randrange(TRACKS)
		time = max(0, now - rng.choice((0, 0, 0, 50)))	# CPUs' clocks differ a little
		last[track] = max(last[track], time)
		stack = stacks[track]
		if len(stack) < deepest and (not stack or rng.random() < 0.5):
			name = "f%d" % rng.randrange(300)
			lines.append("b %d %d %s" % (track, time, name))
			calls.append(Call(track, name, last[track], stack[-1] if stack else None))
			stack.append(calls[-1])
		else:
			n = rng.randrange(1, 1000)
			lines.append("e %d %d %d" % (track, time, n))
			stack[-1].end, stack[-1].instructions = last[track], n
			stack.pop()
	for track, stack in enumerate(stacks):
		for call in stack:
			call.end = last[track]
	return lines, calls


def run_make(lines, limit, depth):
	path = os.path.join(folder, "made.pftrace")
	out = subprocess.run([make, path, str(limit), str(depth)], input="\n".join(lines) + "\n",
			     stdout=subprocess.PIPE, check=True, text=True).stdout
	shortest, folded = map(int, out.split())
	return Trace(path, pb), shortest, folded


def nearest(call, kept):
	call = call.parent
	while call and call not in kept:
		call = call.parent
	return call


def check_made(seed, count, limit, depth, deepest=30):
	what = "made %d %d %d %d" % (seed, count, limit, depth)
	lines, calls = make_calls(seed, count, deepest)
	trace, shortest, folded = run_make(lines, limit, depth)
	kept = [c for c in calls if c.end - c.start >= shortest and c.depth <= depth]
	inside = set(kept)
	check(what + ": number", len(trace.slices) == len(kept) <= limit, len(trace.slices), len(kept))
	check(what + ": folded", folded == len(calls) - len(kept), folded)
	check(what + ": said", bool(trace.instants) == (folded > 0) and
	      all("%d slices" % folded in name for _, name in trace.instants), trace.instants)
	under = {}
	for c in calls:
		if c not in inside and nearest(c, inside):
			under[nearest(c, inside)] = under.get(nearest(c, inside), 0) + 1
	want = sorted((c.track, c.start, c.depth, c.end, c.name, c.instructions or 0, under.get(c, 0))
		      for c in kept)
	# Times count from 5000, and the clock is BOOTTIME's.
	got = sorted((int(trace.name(s.track)[5:]), s.start - 5000, s.depth(), s.end - 5000, s.name,
		      s.notes.get("instructions", 0), s.notes.get("folded calls", 0))
		     for s in trace.slices)
	check(what + ": slices", got == want)
	check(what + ": cut", all(("not seen whole" in s.notes) == ("instructions" not in s.notes)
				  for s in trace.slices))
	return trace, folded


def made():
	trace, folded = check_made(1, 3000, 100000, 64)
	check("all are kept", folded == 0)
	check("about 40 bytes a slice", 30 * len(trace.slices) < trace.slice_bytes <
	      44 * len(trace.slices), trace.slice_bytes)
	trace, folded = check_made(2, 8000, 300, 64)
	check("a quarter to all of the limit", 75 <= len(trace.slices) <= 300, len(trace.slices))
	check_made(3, 2000, 100000, 5)
	check_made(4, 5000, 700, 12)
	# Flows: only those that lead somewhere.
	trace, _, _ = run_make(["f 1", "b 0 10 exit", "e 0 20 1", "f 2", "b 0 30 exit", "e 0 40 1",
				"f 1", "b 1 15 handle", "e 1 18 1"], 100, 9)
	check("flows", sorted((s.start - 5000, s.flows) for s in trace.slices) ==
	      [(10, [1]), (15, [1]), (30, [])])
	sums = [v for c in trace.counters.values() for _, v in c]
	check("counter", len(sums) > 1 and min(sums) == 0)


# ---- the command ----

def run(*args):
	return subprocess.run([vmpt, "perfetto", *args], stdout=subprocess.PIPE,
			      stderr=subprocess.PIPE, text=True, check=False)


def in_folder(name):
	return os.path.join(folder, name)


def generate():
	"""The trace's files, options for the code, and the truth."""
	subprocess.run([tracegen, "-o", in_folder("d.pt"), "--truth", in_folder("d.json"),
			"--no-packets", "--code", in_folder("code"), script], check=True)
	code = []
	with open(in_folder("code/index"), encoding="utf-8") as f:
		for line in f:
			base, _, owner, vmcs, name = line.split()
			vm = "host" if owner == "host" else vmcs[2:]
			code.append("--code=%s:%s@%s" % (vm, in_folder("code/" + name), base))
	with open(in_folder("d.json"), encoding="utf-8") as f:
		truth = [json.loads(line) for line in f]
	return [in_folder("d.cpu%d.pt" % i) for i in (0, 1)], code, truth


def check_truth(trace, truth, vmcs_of):
	"""Exits and calls, as the generator made them."""
	exits, calls = {}, {}
	for o in truth:
		if o["type"] == "count":
			name = vmcs_of.get(o["owner"], o["owner"])
			exits[name] = exits.get(name, 0) + o.get("seen_exits", 0)
			calls[name] = calls.get(name, 0) + o["calls"]
	for name in calls:
		of = [s for s in trace.slices if trace.process(s.track) == name]
		out = sum(bool({"exit", "halt"} & set(s.categories)) for s in of)
		seen = sum(not s.categories and "not seen whole" not in s.notes for s in of)
		check("exits of " + name, out == exits[name], out, exits[name])
		check("calls of " + name, calls[name] * 0.98 <= seen <= calls[name], seen, calls[name])


def check_flows(trace):
	flows = {}
	for s in trace.slices:
		for f in s.flows:
			flows.setdefault(f, []).append(s)
	check("flows: number", len(flows) > 1000, len(flows))
	late = 0
	for of in flows.values():
		of.sort(key=lambda s: (s.start, s.order))
		if len(of) < 2 or not {"exit", "halt"} & set(of[0].categories) or \
		   any(trace.process(s.track) != "host" for s in of[1:]):
			check("a flow leads from an exit to the host", False)
			return
		# Within the time out of the guest, but where db went to CPU 0, as it does 100 times.
		late += any(s.start > of[0].end for s in of[1:])
	check("flows: late", late <= 100, late)


def check_totals(trace, files, vmcs_of):
	"""Times on CPUs, as vmpt timeline sums them up."""
	doc = json.loads(subprocess.run([vmpt, "timeline", "-q", "--json", "--summary",
					 "--tsc-khz=2000000", *files],
					stdout=subprocess.PIPE, check=True).stdout)
	for vm in doc["vms"]:
		name = vm["vmcs"][2:]
		ran = sum(s.end - s.start for s in trace.slices if s.name == name and
			  trace.name(s.track).startswith("CPU ") and "run" in s.categories and
			  "tasks" not in trace.name(s.track))
		want = vm["running_ns"]
		check("time of " + name, abs(ran - want) <= want / 1000 + 1, ran, want)
	check("VMs", {vm["vmcs"][2:] for vm in doc["vms"]} == set(vmcs_of.values()))


def command():
	files, code, truth = generate()
	out = in_folder("d.pftrace")
	vmcs_of = {o["name"]: o["vmcs"][2:] for o in truth if o["type"] == "vm"}
	args = ["--tsc-khz=2000000", "-o", out]
	p = run(*args, *code, *files)
	check("status", p.returncode == 0, p.stderr)
	trace = Trace(out, pb)
	check_truth(trace, truth, vmcs_of)
	check_flows(trace)
	check_totals(trace, files, vmcs_of)
	all_slices = len(trace.slices)

	p = run(*args, "--slices=1000", *code, *files)
	trace = Trace(out, pb)
	check("limit", p.returncode == 0 and 250 <= len(trace.slices) <= 1000, len(trace.slices))
	check("limit: said", "slices are folded" in p.stderr and len(trace.instants) == 1, p.stderr)

	p = run(*args, "--from=0.0005", "--to=0.0007", *code, *files)
	trace = Trace(out, pb)
	check("times", 0 < len(trace.slices) < all_slices and
	      all(s.start >= 499999 and s.end <= 700000 for s in trace.slices),
	      [(s.start, s.end, s.name) for s in trace.slices if not 500000 <= s.start <= s.end <= 700000][:5])

	p = run(*args, "--vm=" + vmcs_of["web"], *code, *files)
	trace = Trace(out, pb)
	check("one VM", {trace.process(s.track) for s in trace.slices if s.flows or not s.categories} ==
	      {vmcs_of["web"]})

	# What is missing is said, and the rest shown.
	p = run(*args, *files)
	trace = Trace(out, pb)
	check("no code: said", p.returncode == 0 and "no code is known" in p.stderr, p.stderr)
	check("no code: spans", {c for s in trace.slices for c in s.categories} >= {"run", "exit"} and
	      all(s.categories for s in trace.slices))
	p = run(*args, "--spans", *files)
	check("spans", p.returncode == 0 and not p.stderr, p.stderr)
	same = trace
	trace = Trace(out, pb)
	check("spans: the same", len(trace.slices) == len(same.slices))

	with open(out, "w", encoding="utf-8") as f:
		f.write("mine")
	p = run(*args, "--spans", *files)
	check("not its own file", p.returncode != 0 and open(out, encoding="utf-8").read() == "mine",
	      p.stderr)
	os.unlink(out)
	p = run(*args, "--depth=0", *files)
	check("usage", p.returncode == 2, p.stderr)
	with open(in_folder("t.trace"), "w", encoding="utf-8") as f:
		f.write("set tsc=0\nvm A vmcs=0x1000 cr3=0x5000 ip=0x400000\nvmptrld A\nenter A\nrun 9\nexit hlt\n")
	subprocess.run([tracegen, "-o", in_folder("t.pt"), in_folder("t.trace")], check=True)
	p = run("-o", out, in_folder("t.pt"))
	check("no times", p.returncode == 1 and "has no times" in p.stderr and not os.path.exists(out),
	      p.stderr)


made()
command()
sys.exit(1 if failed else 0)
