#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What other programs read of vmpt hot: folded stacks, speedscope's file format by its schema, pprof's by
python3-protobuf with messages that are described here, and by "go tool pprof" where that is installed.
All have the same sums by function as the table, and together what vmpt insn counts.

	test-readers.py VMPT TRACEGEN SOURCE
"""
import collections
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

VMPT, TRACEGEN, SOURCE = map(os.path.abspath, sys.argv[1:4])
HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = ("nested-calls", "group-orders", "clocks")
failed = 0


def check(ok, what):
	global failed
	if not ok:
		failed += 1
		print(f"FAILED: {what}")


def vmpt(folder, *words):
	got = subprocess.run([VMPT, *words, "-q"], cwd=folder, capture_output=True, check=False)
	check(got.returncode in (0, 3), f"{words}: {got.returncode}: {got.stderr[-300:]}")
	return got.stdout.decode()


def generate(folder, script):
	"""Options for the code of s.pt, each page for its owner."""
	shutil.rmtree(folder / "code", ignore_errors=True)
	subprocess.run([TRACEGEN, "-o", "s.pt", "--no-packets", "--code", "code",
			f"{SOURCE}/tests/tracegen/scripts/{script}.trace"], cwd=folder, check=True)
	rows = (line.split() for line in (folder / "code" / "index").read_text(encoding="utf-8").splitlines())
	return [f"--code={'host' if row[3] == '-' else row[3]}:code/{row[4]}@{row[0]}" for row in rows]


# ---- the readers: self and total by function, and the sum ----

class Sums:
	def __init__(self):
		self.own, self.total, self.sum = collections.Counter(), collections.Counter(), 0

	def add(self, stack, value):
		self.sum += value
		self.own[stack[-1]] += value
		for name in set(stack):
			self.total[name] += value


def read_folded(text):
	sums = Sums()
	for line in text.splitlines():
		stack, value = line.rsplit(" ", 1)
		vm, process, *frames = stack.split(";")
		check(vm and process, line)
		sums.add(frames or ["[unknown]"], int(value))
	return sums


def read_speedscope(path):
	doc = json.loads(path.read_text(encoding="utf-8"))
	try:
		import jsonschema
		schema = json.loads((HERE / "speedscope.schema.json").read_text(encoding="utf-8"))
		jsonschema.Draft7Validator(schema).validate(doc)
	except ImportError:
		print("no python3-jsonschema here: make deps")
	frames, sums = [f["name"] for f in doc["shared"]["frames"]], Sums()
	for profile in doc["profiles"]:
		stack, at = [], profile["startValue"]
		for event in profile["events"]:
			check(event["at"] >= at, f"time goes back at {event}")
			if event["at"] > at:
				sums.add(stack, event["at"] - at)
			at = event["at"]
			if event["type"] == "O":
				stack.append(frames[event["frame"]])
			else:
				check(stack.pop() == frames[event["frame"]], f"not the innermost frame: {event}")
		check(not stack and at == profile["endValue"], f"{profile['name']} ends at {at}")
	return sums


# profile.proto of pprof, as its documentation has it: name, number, type; "*": repeated.
PROFILE = {
	"ValueType": "type 1 int64, unit 2 int64",
	"Label": "key 1 int64, str 2 int64, num 3 int64, num_unit 4 int64",
	"Sample": "location_id 1 *uint64, value 2 *int64, label 3 *Label",
	"Mapping": "id 1 uint64, memory_start 2 uint64, memory_limit 3 uint64, file_offset 4 uint64, filename 5 int64,"
		   " build_id 6 int64, has_functions 7 bool",
	"Line": "function_id 1 uint64, line 2 int64",
	"Location": "id 1 uint64, mapping_id 2 uint64, address 3 uint64, line 4 *Line, is_folded 5 bool",
	"Function": "id 1 uint64, name 2 int64, system_name 3 int64, filename 4 int64, start_line 5 int64",
	"Profile": "sample_type 1 *ValueType, sample 2 *Sample, mapping 3 *Mapping, location 4 *Location,"
		   " function 5 *Function, string_table 6 *string, drop_frames 7 int64, keep_frames 8 int64,"
		   " time_nanos 9 int64, duration_nanos 10 int64, period_type 11 ValueType, period 12 int64,"
		   " comment 13 *int64, default_sample_type 14 int64",
}


def profile_class():
	from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

	types = {"int64": 3, "uint64": 4, "bool": 8, "string": 9}
	file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
	for message, fields in PROFILE.items():
		made = file.message_type.add(name=message)
		for field in fields.split(","):
			name, number, kind = field.split()
			label, kind = (3, kind[1:]) if kind[0] == "*" else (1, kind)
			one = made.field.add(name=name, number=int(number), label=label, type=types.get(kind, 11))
			if kind not in types:
				one.type_name = f".perftools.profiles.{kind}"
	pool = descriptor_pool.DescriptorPool()
	pool.Add(file)
	found = pool.FindMessageTypeByName("perftools.profiles.Profile")
	if hasattr(message_factory, "GetMessageClass"):
		return message_factory.GetMessageClass(found)
	return message_factory.MessageFactory(pool).GetPrototype(found)


def read_pprof(path, timed):
	try:
		profile = profile_class()()
	except ImportError:
		print("no python3-protobuf here: make deps")
		return None
	profile.ParseFromString(gzip.decompress(path.read_bytes()))
	text, sums = profile.string_table, Sums()
	check(text[0] == "", "the first string is empty")
	check([text[t.type] for t in profile.sample_type] == ["instructions", "time"][:1 + timed], "types")
	name = {f.id: text[f.name] for f in profile.function}
	place = {loc.id: name[loc.line[0].function_id] for loc in profile.location}
	check(0 not in name and 0 not in place, "ids are not 0")
	for sample in profile.sample:
		check(len(sample.value) == len(profile.sample_type), "a value of each type")
		check([text[label.key] for label in sample.label] == ["vm", "process"], "labels")
		check(all(text[label.str] for label in sample.label), "labels have texts")
		if sample.value[0]:
			sums.add([place[i] for i in reversed(sample.location_id)], sample.value[0])
	return sums


def read_go(path, want):
	if not shutil.which("go"):
		return
	got = subprocess.run(["go", "tool", "pprof", "-sample_index=instructions", "-top", "-nodecount=1", str(path)],
			     capture_output=True, check=False, env=dict(os.environ, HOME=str(path.parent)))
	check(got.returncode == 0 and b"flat%" in got.stdout and str(want)[:1].encode() in got.stdout,
	      f"go tool pprof: {got.stdout[-300:]} {got.stderr[-300:]}")


# ----

def same(what, sums, table, want):
	if sums is None:
		return
	check(sums.sum == want, f"{what}: {sums.sum} instead of {want}")
	check({k: v for k, v in sums.own.items() if v} == {k: v for k, v in table.own.items() if v},
	      f"{what}: by themselves: {sums.own} instead of {table.own}")
	check({k: v for k, v in sums.total.items() if v} == {k: v for k, v in table.total.items() if v},
	      f"{what}: in total: {sums.total} instead of {table.total}")


def read_table(text):
	"""Of all the trace, so that a function is one row: the rows of several are not to be added."""
	doc, sums = json.loads(text), Sums()
	for row in doc["functions"]:
		sums.own[row["function"]] += row["self_instructions"]
		sums.total[row["function"]] += row["total_instructions"]
	sums.sum = doc["total"]["self_instructions"]
	return sums, "self_ns" in doc["total"] or "self_ticks" in doc["total"]


def one(folder, script):
	code = generate(folder, script)
	want = json.loads(vmpt(folder, "insn", "--count", "--json", *code, "s.pt"))["total"]["instructions"]
	table, timed = read_table(vmpt(folder, "hot", "--json", "--per=trace", *code, "s.pt"))
	check(want > 0, f"{script}: instructions")
	vmpt(folder, "hot", "--folded=f", "--speedscope=s.json", "--pprof=p.pb.gz", *code, "s.pt")
	same(f"{script}: table", table, table, want)
	same(f"{script}: folded", read_folded((folder / "f").read_text(encoding="utf-8")), table, want)
	check(vmpt(folder, "hot", "--folded", *code, "s.pt") == (folder / "f").read_text(encoding="utf-8"), "to stdout")
	same(f"{script}: speedscope", read_speedscope(folder / "s.json"), table, want)
	same(f"{script}: pprof", read_pprof(folder / "p.pb.gz", timed), table, want)
	read_go(folder / "p.pb.gz", want)


with tempfile.TemporaryDirectory() as name:
	for script in SCRIPTS:
		one(pathlib.Path(name), script)
sys.exit(bool(failed))
