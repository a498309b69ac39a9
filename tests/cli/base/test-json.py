#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The JSON of all commands: each document fits its schema, of generated traces and of those that
other tests write, and docs/json.md has each key: test-json.py VMPT TRACEGEN SOURCE TESTS."""
import copy
import csv
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from schemas import SCHEMAS, jsonschema, validator

if not jsonschema:
	print("skipped: no python3-jsonschema here: make deps")
	sys.exit(77)

VMPT, TRACEGEN = map(os.path.abspath, sys.argv[1:3])
SOURCE, TESTS = (pathlib.Path(p).absolute() for p in sys.argv[3:5])
SCRIPTS = SOURCE / "tests" / "tracegen" / "scripts"
# Suites of the other programs whose documents are kept: RTIT, losses, perf.data with events, names
# that change, clocks of guests, several CPUs and VMs.
SUITES = {"test-cli": ("rtit", "names", "host-only", "clocks", "vms", "commands", "split", "insn", "list",
		       "branches", "guest", "hot", "tree", "latency"),
	  "test-cli-timeline": ("perf", "timeline")}
checks = failures = 0


def check(good, what):
	global checks, failures
	checks += 1
	if not good:
		failures += 1
		print(f"FAILED: {what}")


def shape(node):
	"""What a schema can see of a value: two of one shape both fit, or neither does."""
	if isinstance(node, dict):
		return tuple((k, shape(v)) for k, v in sorted(node.items()))
	if isinstance(node, list):
		return tuple({shape(n): None for n in node}), min(len(node), 3)
	if isinstance(node, str):
		return re.sub("[0-9a-f]+", "#", node)
	if isinstance(node, (bool, type(None))):
		return str(node)
	return type(node).__name__, node < 0, min(abs(node), 2), abs(node) > 2**53


def some(members):
	"""The first, and every 97th."""
	return [n for i, n in enumerate(members) if i < 25 or i % 97 == 0 or i == len(members) - 1]


def sampled(node):
	"""Of long lists some members, of these one of each shape: validation is slow."""
	if isinstance(node, dict):
		return {k: sampled(v) for k, v in node.items()}
	if isinstance(node, list):
		long = len(node) > 4
		return [sampled(n) for n in ({shape(n): n for n in some(node)}.values() if long else node)]
	return node


def fits(name, what, documents):
	errors = [e for doc in sampled(documents) for e in itertools.islice(validator(name).iter_errors(doc), 1)]
	where = "/".join(map(str, errors[0].absolute_path)) if errors else ""
	check(not errors, f"{what}: {len(errors)} documents, at '{where}': {errors and errors[0].message[:300]}")


def name_of(command, words):
	"""The schema of a command line."""
	if command == "insn" and not {"--count", "--hash"} & set(words):
		return "insn-list"
	if command == "coverage" and [w for w in words if w.startswith(("--blocks", "--edges", "--functions", "--diff"))]:
		return "coverage-list"
	return "timeline-summary" if command == "timeline" and "--summary" in words else command


def documents_of(name, text):
	return list(map(json.loads, some(text.splitlines()))) if name in ("dump", "insn-list", "coverage-list") else [json.loads(text)]


def vmpt(folder, *words):
	got = subprocess.run([VMPT, *words, "--json", "-q"], cwd=folder, capture_output=True, check=False)
	check(got.returncode in (0, 3), f"{words}: {got.returncode}: {got.stderr[-300:]}")
	text = got.stdout.decode()
	name = name_of(words[0], words)
	fits(name, f"vmpt {' '.join(words)}", documents_of(name, text))
	return text


def generate(folder, name, script):
	text = (SCRIPTS / f"{script.replace('whole', 'demo')}.trace").read_text(encoding="utf-8")
	if script == "demo":
		text = text.replace("set tsc=1", "set event_en=1 tsc=1").replace("loop 100 ", "loop 10 ")
	(folder / f"{name}.trace").write_text(text, encoding="utf-8")
	subprocess.run([TRACEGEN, "-o", f"{name}.pt", f"{name}.trace"], cwd=folder, check=True)
	return sorted(p.name for p in folder.glob(f"{name}*.pt"))


def every_command(folder, files, *options):
	"""Of a trace of Intel PT."""
	rates = ["--tsc-ratio=84", "--mtc-freq=3"]
	timed = [*rates, "--tsc-khz=2000000"]
	vmpt(folder, "stat", *files)
	vmpt(folder, "vms", *options, *files)
	vmpt(folder, "clocks", *rates, *options, *files)
	for line in (timed, rates):
		vmpt(folder, "timeline", *line, *options, *files)
		vmpt(folder, "timeline", "--summary", *line, *options, *files)
		vmpt(folder, "exits", *line, *options, *files)
		vmpt(folder, "wait", *line, *options, *files)
	for by in ("ip", "vcpu", "cpu", "port", "gpa", "cr3"):
		vmpt(folder, "exits", f"--by={by}", *timed, *options, *files)
	vmpt(folder, "insn", "--count", *options, *files)
	vmpt(folder, "insn", *options, *files)
	vmpt(folder, "hot", *options, *files)
	for more in ([], ["--blocks"], ["--edges"], ["--functions"]):
		text = vmpt(folder, "coverage", *more, *options, *files)
		if more == ["--blocks"]:
			(folder / "blocks.jsonl").write_text(text, encoding="utf-8")
	vmpt(folder, "coverage", "--diff=blocks.jsonl", *options, *files)
	for per in ("cpu", "task"):
		vmpt(folder, "calls", f"--per={per}", *rates, *options, *files)
	vmpt(folder, "latency", "*", *timed, *options, *files)
	vmpt(folder, "dump", "--time", *rates, "--end=3000", *files)
	for more in ([], ["--clock=host"], ["--per-vm"]):
		vmpt(folder, "split", "-f", "-o", "out", *rates, *options, *more, *files)
		fits("split-index", f"index of {more} {files}",
		     [json.loads((folder / "out" / "index.json").read_text(encoding="utf-8"))])
		vmpt(folder, "index", "out")


def b8_generated(folder):
	record = folder / "vms.jsonl"
	record.write_text('{"vm":"web","vcpu":0,"vmcs":"0x12f7a4000"}\n{"vm":"db","vcpu":0,"vmcs":"0x13b2c9000"}\n',
			  encoding="utf-8")
	demo = generate(folder, "demo", "demo")
	every_command(folder, demo)
	every_command(folder, demo, "--side-record=vms.jsonl")
	for script in ("kinds", "damage", "ovf-other", "failed-entry-events", "concealed", "host-only", "timing"):
		every_command(folder, generate(folder, script, script))
	# Losses: a part of it is overwritten, another is missing.
	data = bytearray((folder / demo[0]).read_bytes())
	data[20000:20400] = b"\xd7" * 400
	del data[40000:41003]
	(folder / "lossy.pt").write_bytes(data)
	every_command(folder, ["lossy.pt@2"])
	text = vmpt(folder, "stat", "lossy.pt@2")
	check(json.loads(text)["losses"][0]["first"]["cpu"] == 2, "a loss is in the document")
	for path in sorted((SOURCE / "tests/fuzz/corpus/reader-perf").glob("file-*")):
		for command in ("stat", "vms", "timeline", "exits", "dump"):
			vmpt(folder, command, str(path))


def kept_by(folder, program, suite):
	"""The documents of a suite: those of its last run if that was of the same programs (keep-json.sh)."""
	kept, built = TESTS / "kept" / suite, max(os.stat(p).st_mtime for p in (VMPT, TESTS / program))
	if not (kept / "done").exists() or (kept / "done").stat().st_mtime < built:
		kept = folder / "kept" / suite
		env = dict(os.environ, VMPT=VMPT, TRACEGEN=TRACEGEN, SCRIPTS=str(SCRIPTS))
		subprocess.run([SOURCE / "tests/cli/keep-json.sh", kept, TESTS / program, suite], env=env,
			       cwd=folder, check=False, stdout=subprocess.DEVNULL)
	return sorted(path for path in kept.iterdir() if path.name != "done")


def b8_other_tests(folder):
	"""The documents that other tests of the commands make."""
	seen = set()
	for path in (path for program, suites in SUITES.items() for suite in suites
		     for path in kept_by(folder, program, suite)):
		line, text = path.read_bytes().decode("utf-8", "replace").split("\n", 1)
		command = line.split()[0]
		seen.add((command, '"isa": "rtit"' in text or '"isa":"rtit"' in text))
		name = name_of(command, line.split())
		fits(name, f"vmpt {line}", documents_of(name, text))
	for command in ("stat", "vms", "dump"):
		check((command, True) in seen, f"{command} of RTIT")
	for command in ("stat", "vms", "dump", "clocks", "timeline", "exits", "split", "insn", "guest", "hot", "calls", "latency"):
		check((command, False) in seen, command)


def b9_index(folder):
	"""It is small, complete, and no stream is stored twice."""
	trace = generate(folder, "whole", "whole")
	vmpt(folder, "split", "-o", "b9", *trace)
	doc = json.loads(vmpt(folder, "index", "b9"))
	size = sum((folder / "b9" / name).stat().st_size for name in ("index.json", "slices.gz"))
	check(doc["slices"] == len(doc["index"]) > 5000, f"{doc['slices']} slices")
	check(size <= 12 * doc["slices"], f"{size} bytes for {doc['slices']} slices")
	ends, written, owners, holes = {}, {}, {}, []
	for s in doc["index"]:
		if s["offset"] != ends.get(s["cpu"], 0):
			holes.append(s)
		ends[s["cpu"]] = s["offset"] + s["size"]
		if "file" in s:
			# Between them is the timing of others.
			if s["out_offset"] < written.get(s["file"], 0):
				holes.append(s)
			written[s["file"]] = s["out_offset"] + s["out_size"]
		key = s["owner"], s.get("vmcs")
		owners[key] = owners.get(key, 0) + 1
	check(not holes, f"{len(holes)} slices are not where the one before ends: {holes[:3]}")
	for cpu, name in enumerate(trace):
		check(ends[cpu] == (folder / name).stat().st_size, f"not all of {name}")
	for name, end in written.items():
		check(0.9 < end / (folder / "b9" / name).stat().st_size <= 1, f"not all of {name}")
	vms = json.loads(vmpt(folder, "vms", *trace))["owners"]
	check({(o["owner"], o.get("vmcs")): o["slices"] for o in vms} == owners, "the owners of vms")
	sizes = {}
	for option in ("--perf", "--per-vm"):
		vmpt(folder, "split", "-f", "-o", "b9", option, "--clock=host", "--tsc-ratio=84", "--mtc-freq=3", *trace)
		sizes[option] = sum(p.stat().st_size for p in (folder / "b9").iterdir())
	check(sizes["--per-vm"] < 1.05 * sizes["--perf"], f"--per-vm writes more: {sizes}")


def keys(node, found, of_properties=False):
	if isinstance(node, list):
		for n in node:
			keys(n, found)
	elif isinstance(node, dict):
		if of_properties:
			found.update(node)
		for key, value in node.items():
			keys(value, found, key == "properties" and not of_properties)


def closed(node, path, name, of_properties=False):
	"""Every object of a schema says which keys it has."""
	if isinstance(node, list):
		for i, n in enumerate(node):
			closed(n, f"{path}/{i}", name)
	elif isinstance(node, dict):
		if not of_properties and "properties" in node and "type" in node:
			check(node.get("additionalProperties") is False, f"{name}{path} is open")
		for key, value in node.items():
			closed(value, f"{path}/{key}", name, key in ("properties", "$defs") and not of_properties)


def b8_documented():
	text = (SOURCE / "docs" / "json.md").read_text(encoding="utf-8")
	common = set(re.findall(r"`([^`]+)`", text))
	# An example has its keys.
	text = (SOURCE / "docs" / "record.md").read_text(encoding="utf-8")
	recording = set(re.findall(r"[`\"]([a-z_]+)[`\"]", text))
	for path in sorted(SCHEMAS.glob("*.schema.json")):
		schema, found = json.loads(path.read_text(encoding="utf-8")), set()
		jsonschema.Draft7Validator.check_schema(schema)
		keys(schema, found)
		words = recording if path.name.startswith("recording") else common
		for key in sorted(found):
			stem = re.sub("_(ns|ticks|instructions)$", "_*", key)
			check(key in words or stem in words, f"the documents lack {key} of {path.name}")
		closed(schema, "", path.name)


def b8_a_schema_can_fail(folder):
	doc = json.loads(vmpt(folder, "exits", "--tsc-khz=2000000", "demo.cpu0.pt"))
	for change in (lambda d: d.update(extra=1), lambda d: d.update(format=2), lambda d: d.pop("losses"),
		       lambda d: d["exits"][0].update(vm=5), lambda d: d["exits"][0].update(vmcs="e595000"),
		       lambda d: d["exits"][0].update(total_ns=3948542.9999999995)):
		bad = copy.deepcopy(doc)
		change(bad)
		check(not validator("exits").is_valid(bad), "a wrong document fits")


def b8_names(folder):
	"""One name, one type: no VMCS without 0x, no VM that is one; times on the exit."""
	doc = json.loads(vmpt(folder, "exits", "--tsc-khz=2000000", "demo.cpu0.pt"))
	check(all("vm" not in e and e["vmcs"].startswith("0x") for e in doc["exits"]), "VMs without a name")
	spans = json.loads(vmpt(folder, "timeline", "--tsc-khz=2000000", "demo.cpu0.pt"))["spans"]
	exits = [s for s in spans if s["kind"] == "exit"]
	check(len(exits) == sum(s["ended"] == "exit" for s in spans if s["kind"] == "guest"), "an object for each exit")
	check(all("out_ns" not in s for s in spans if s["kind"] != "exit"), "out_ns is the exit's")
	back = {}
	for s in spans:
		if s["kind"] == "exit":
			back[s["vmcs"]] = s["start_ns"] + s["out_ns"] if s["out_ns"] is not None else None
		elif s["kind"] == "guest" and s["began"] == "entry" and back.get(s["vmcs"]) is not None:
			check(abs(back[s["vmcs"]] - s["start_ns"]) <= 1, "an exit ends at the entry")


def at(node, path):
	for key in path.split("/"):
		node = node.get(key) if isinstance(node, dict) else None
	return node


def cell(value):
	if isinstance(value, bool):
		return "true" if value else "false"
	if isinstance(value, list):
		return " ".join(value)
	return "" if value is None else f"{value:.9g}" if isinstance(value, float) else str(value)


def b8_csv(folder):
	"""A row for each object of the JSON, with its values."""
	name = 'a,"b"\nc'
	(folder / "csv.jsonl").write_text(json.dumps({"vm": name, "vcpu": 0, "vmcs": "0x12f7a4000"}) + "\n",
					  encoding="utf-8")
	rows = {"stat": lambda d: [{"cpu": s["cpu"], "key": k, **v} for s in d["streams"] for k, v in s["kinds"].items()],
		"vms": lambda d: d["owners"], "insn --count": lambda d: d["spaces"], "coverage": lambda d: d["spaces"], "exits": lambda d: d["exits"], "timeline": lambda d: d["spans"],
		"wait": lambda d: [{**{k: v for k, v in c.items() if k != "waits"}, **w} for c in d["vcpus"] for w in c["waits"]],
		"timeline --summary": lambda d: [v for m in d["vms"] for v in m["vcpus"]],
		"clocks": lambda d: [{"vmcs": v["vmcs"], **e} for v in d["vmcss"] for e in v["epochs"]],
		"split -f -o csv": lambda d: d["streams"], "index csv": lambda d: d["index"]}
	for command, of in rows.items():
		words = [*command.split(), "-q", *(["--side-record=csv.jsonl"] if command != "stat" else []),
			 *(["--tsc-khz=2000000"] if command.split()[0] in ("timeline", "exits", "wait") else []),
			 "demo.cpu0.pt", "demo.cpu1.pt"]
		words = command.split() if "index" in command else words
		want = of(json.loads(vmpt(folder, *words)))
		got = subprocess.run([VMPT, *words, "--csv"], cwd=folder, capture_output=True, text=True, check=False)
		check(got.returncode in (0, 3), f"{command} --csv: {got.stderr}")
		# csv.reader follows RFC 4180; newlines in names are shown, not sent.
		lines = list(csv.reader(got.stdout.splitlines(keepends=True), strict=True))
		check(len(lines) == len(want) + 1 and len(want) > 1, f"{command} --csv: {len(lines)} lines")
		for line, row in zip(lines, [None, *want]):
			expected = [cell(at(row, column)).replace("\n", "\\u000a") if row else column for column in lines[0]]
			check(line == expected, f"{command} --csv: {line}, not {expected}")
		if command == "vms":
			check(any(name.replace("\n", "\\u000a") in line for line in lines), "the name is quoted")
	for words in (["dump"], ["stat", "--json"]):
		got = subprocess.run([VMPT, *words, "--csv", "demo.cpu0.pt"], cwd=folder, capture_output=True, check=False)
		check(got.returncode == 2 and not got.stdout, f"{words} --csv")


with tempfile.TemporaryDirectory() as temp:
	b8_documented()
	b8_generated(pathlib.Path(temp))
	b8_a_schema_can_fail(pathlib.Path(temp))
	b8_names(pathlib.Path(temp))
	b8_csv(pathlib.Path(temp))
	b9_index(pathlib.Path(temp))
	b8_other_tests(pathlib.Path(temp))
print(f"{100 * (checks - failures) // checks}%: Checks: {checks}, Failures: {failures}, Errors: 0")
sys.exit(failures > 0)
