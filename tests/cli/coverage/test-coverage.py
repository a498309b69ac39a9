#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""vmpt coverage against a run that was stepped instruction by instruction, and against gcov.

	test-coverage.py VMPT STEP CC LINES

A program is built, run under STEP (step.c), which writes a trace of it and the address of each
instruction that it executed. Blocks, edges, drcov and bitmap must be what these addresses say; lines of
lcov's tracefile what gcov counted. LINES: "lines" if vmpt was built with libdw."""
import collections
import json
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "base"))
import schemas  # noqa: E402  pylint: disable=wrong-import-position

VMPT, STEP = (str(pathlib.Path(name).resolve()) for name in sys.argv[1:3])
CC, LINES = sys.argv[3].split(), sys.argv[4:] == ["lines"]
SOURCE = pathlib.Path(__file__).resolve().parent / "program.c"


def run(*words, code=0, **more):
	r = subprocess.run(list(map(str, words)), capture_output=True, check=False, **more)
	assert r.returncode == code, (words, r.returncode, r.stderr.decode())
	return r


def vmpt(*words, **more):
	return run(VMPT, "coverage", *words, **more)


def rows(*words):
	"""The list of --blocks or another, without head and end; each line fits the schema."""
	lines = [json.loads(line) for line in vmpt("--json", *words).stdout.splitlines()]
	assert lines[0]["command"] == "coverage" and "losses" in lines[-1]
	for line in lines[:50] + lines[-50:] if schemas.jsonschema else []:
		schemas.validator("coverage-list").validate(line)
	return lines[1:-1]


class Traced:
	"""A program, its trace, and what it executed."""

	def __init__(self, folder, *flags):
		self.folder, self.program = folder, folder / "program"
		folder.mkdir()
		run(*CC, "-O0", "-g", "-static", "-no-pie", *flags, "-o", self.program, SOURCE, cwd=folder)
		main = next(line.split()[0] for line in run("nm", self.program).stdout.decode().splitlines()
			    if line.endswith(" T main"))
		self.trace = folder / "program.pt"
		segments = re.findall(r"LOAD +\S+ (\S+) \S+ \S+ (\S+) R E", run("readelf", "-lW", self.program).stdout.decode())
		start, size = (int(n, 16) for n in segments[0])
		self.start = start
		r = subprocess.run([STEP, main, f"{start:x}", f"{start + size:x}", self.trace, folder / "truth", self.program],
				   check=False, cwd=folder)
		if r.returncode == 77:
			print("this machine does not allow to trace a process")
			sys.exit(77)
		assert r.returncode == 0
		raw = (folder / "truth").read_bytes()
		self.ips = struct.unpack(f"<{len(raw) // 8}Q", raw)
		self.counts = collections.Counter(self.ips)
		self.words = [f"--code={self.program}", "-q", self.trace]


# ---- blocks and edges ----

def check_blocks(t):
	blocks = rows("--blocks", *t.words)
	seen = set()
	for b in blocks:
		ip = int(b["ip"], 16)
		inside = {n for n in t.counts if ip <= n < ip + b["size"]}
		assert b["count"] == t.counts[ip], b
		assert b["instructions"] == len(inside) and not inside & seen, b
		assert b["executed"] == sum(t.counts[n] for n in inside), b
		seen |= inside
	assert seen == set(t.counts)
	counted = json.loads(run(VMPT, "insn", "--count", "--json", *t.words).stdout)
	assert sum(b["executed"] for b in blocks) == counted["total"]["instructions"] == len(t.ips)
	summary = json.loads(vmpt("--json", *t.words).stdout)["total"]
	assert summary["blocks"] == len(blocks) and summary["executed"] == len(t.ips)
	listed = {json.loads(line)["ip"] for line in run(VMPT, "insn", "--json", *t.words).stdout.splitlines()[1:-1]}
	assert {int(n, 16) for n in listed} == seen
	return blocks


def check_edges(t):
	"""What follows what; code that was not traced is between some."""
	edges = rows("--edges", *t.words)
	pairs = collections.Counter(zip(t.ips, t.ips[1:]))
	branches = {int(e["from"], 16) for e in edges}
	for e in edges:
		pair = int(e["from"], 16), int(e["to"], 16)
		# A branch out of the filter's range has no successor in the list.
		assert pairs[pair] == e["count"] or pair[1] not in t.counts, e
	listed = {(int(e["from"], 16), int(e["to"], 16)) for e in edges}
	for a, b in pairs:
		if not a < b <= a + 15 and t.counts[a]:
			assert (a, b) in listed, (hex(a), hex(b))
	for a in branches:
		assert t.counts[a] == sum(e["count"] for e in edges if int(e["from"], 16) == a) or a == t.ips[-1], hex(a)
	return edges


# ---- files ----

def read_drcov(path):
	"""Modules and blocks, as DynamoRIO's drcov2lcov and Lighthouse read them."""
	data = path.read_bytes()
	head, rest = data.split(b"BB Table: ", 1)
	lines = head.decode().splitlines()
	assert lines[:2] == ["DRCOV VERSION: 2", "DRCOV FLAVOR: drcov"]
	count = int(re.fullmatch(r"Module Table: version 2, count (\d+)", lines[2])[1])
	assert lines[3] == "Columns: id, base, end, entry, path"
	modules = []
	for i, line in enumerate(lines[4:]):
		number, base, end, _, name = line.strip().split(", ")
		assert int(number) == i
		modules.append((int(base, 16), int(end, 16), name))
	assert len(modules) == count
	number, table = rest.split(b" bbs\n", 1)
	assert len(table) == 8 * int(number)
	return modules, list(struct.iter_unpack("<IHH", table))


def check_drcov(t, blocks):
	path = t.folder / "run.drcov"
	vmpt(f"--drcov={path}", *t.words)
	modules, entries = read_drcov(path)
	assert [m[2] for m in modules] == [str(t.program)]
	have = sorted((modules[m][0] + at, size) for at, size, m in entries)
	assert have == sorted((int(b["ip"], 16), b["size"]) for b in blocks)
	assert all(modules[m][0] + at + size <= modules[m][1] for at, size, m in entries)
	# Raw bytes: no file is known.
	raw = t.folder / "raw"
	raw.write_bytes(t.program.read_bytes()[t.start & 0xfff | 0x1000:])
	vmpt(f"--drcov={path}", f"--code={raw}@0x{t.start:x}", "-q", t.trace)
	modules, entries = read_drcov(path)
	assert len(modules) == 1 and modules[0][2] == "host"
	assert sorted((modules[m][0] + at, size) for at, size, m in entries) == have


def check_bitmap(t, blocks, edges):
	"""As docs/coverage.md says."""
	def place(ip, size):
		return (ip >> 4 ^ ip << 8) % size

	starts = {int(b["ip"], 16): b["size"] for b in blocks}
	for size in 65536, 256:
		want = [0] * size
		for e in edges:
			begin = next(ip for ip in starts if ip <= int(e["from"], 16) < ip + starts[ip])
			at = place(int(e["to"], 16), size) ^ place(begin, size) >> 1
			want[at] = min(255, want[at] + e["count"])
		path = t.folder / f"map{size}"
		vmpt(f"--bitmap={path}", *([] if size == 65536 else [f"--bitmap-size={size}"]), *t.words)
		assert list(path.read_bytes()) == want and any(want)
	vmpt("--bitmap=x", "--bitmap-size=1000", *t.words, code=2)
	vmpt(f"--bitmap={path}", *t.words, code=1)
	assert list(path.read_bytes()) == want


def check_diff(t, blocks):
	"""A run that had not the last block, and had another one."""
	lines = vmpt("--blocks", "--json", *t.words).stdout.splitlines()
	gone = dict(json.loads(lines[1]), module_offset="0xfff000", function="other")
	before = t.folder / "before.jsonl"
	before.write_bytes(b"\n".join([*lines[:-2], json.dumps(gone).encode(), lines[-1], b""]))
	words = [f"--symbols={t.program}", f"--diff={before}", *t.words]
	changes = rows(*words)
	by_block = {(c["change"], c["module_offset"]) for c in changes if "size" in c}
	assert by_block == {("new", blocks[-1]["module_offset"]), ("gone", "0xfff000")}, changes
	assert [c for c in changes if c.get("function") == "other"][-1]["change"] == "gone"
	assert f"1 new, 1 gone, {len(blocks) - 1}".encode() in vmpt(*words).stdout.replace(b",", b",")
	before.write_bytes(b"\n".join(lines[:-1]))
	assert b"is not whole" in vmpt(f"--diff={before}", f"--code={t.program}", t.trace).stderr
	before.write_bytes(b'{"format":1}\n')
	vmpt(*words, code=1)


# ---- gcov ----

def read_info(path):
	"""Counts of the lines of program.c, of its functions, of branches."""
	lines, functions, branches, mine = {}, {}, collections.defaultdict(list), False
	for text in path.read_text().splitlines():
		key, _, value = text.partition(":")
		if key == "SF":
			mine = value == str(SOURCE)
		elif mine and key == "DA":
			line, count = map(int, value.split(","))
			lines[line] = count
		elif mine and key == "FNDA":
			count, name = value.split(",")
			functions[name] = int(count)
		elif mine and key == "BRDA":
			line, _, _, count = map(int, value.split(","))
			branches[line].append(count)
	return lines, functions, branches


def pairs_of(branches):
	return sorted(sorted(branches[i:i + 2]) for i in range(0, len(branches), 2))


def gcov(folder):
	tool = next(filter(None, map(shutil.which, ("gcov-" + run(*CC, "-dumpversion").stdout.decode().split(".")[0].strip(), "gcov"))), None)
	if not tool:
		return None
	r = run(tool, "-b", "-t", "--json-format", *folder.glob("*.gcda"), cwd=folder)
	return next(f for f in json.loads(r.stdout)["files"] if f["file"] == str(SOURCE))


def check_lcov(folder, plain):
	"""Counts of gcov's program say how often each line of both ran."""
	counted = Traced(folder / "counted", "--coverage")
	truth = gcov(counted.folder)
	for t in counted, plain:
		info = t.folder / "run.info"
		vmpt(f"--symbols={t.program}", f"--lcov={info}", *t.words)
		if not truth:
			continue
		lines, functions, branches = read_info(info)
		want = {n["line_number"]: n["count"] for n in truth["lines"]}
		both = set(lines) & set(want)
		# gcov has labels and heads of functions, DWARF the braces.
		assert len(both) > 20, both
		assert {n for n in both if lines[n]} == {n for n in both if want[n]}
		for f in truth["functions"]:
			assert functions[f["name"]] == f["execution_count"], f
		if t is counted:
			continue
		# The code that counts has no line of its own, so only the other program's counts are those of lines.
		assert {n: lines[n] for n in both} == {n: want[n] for n in both}
		for n in truth["lines"]:
			ways = [b["count"] for b in n["branches"]]
			if len(ways) in (2, 4):
				assert pairs_of(branches[n["line_number"]]) == pairs_of(ways), n
	if shutil.which("lcov"):
		r = run("lcov", "--summary", info)
		assert b"lines......: " in r.stdout + r.stderr
	stripped = plain.folder / "stripped"
	run("strip", "-o", stripped, plain.program)
	r = vmpt(f"--lcov={info}", f"--code={stripped}", plain.trace)
	assert b"no source lines" in r.stderr and not info.read_bytes()


# ---- bad input ----

def small_files():
	signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
	resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def check_bad(t):
	r = vmpt(t.trace)
	assert b"no code is known" in r.stderr and b"total" in r.stdout
	half = t.folder / "half"
	half.write_bytes(t.program.read_bytes()[:0x1200])
	r = vmpt(f"--code={half}", t.trace)
	assert b"the file ends early" in r.stderr and b"the code is missing" in r.stderr
	# The wrong code: what fits is shown.
	r = vmpt(f"--code={shutil.which('true')}@0x400000", t.trace)
	assert b"code" in r.stderr and b"total" in r.stdout
	for option in "drcov", "bitmap":
		left = t.folder / f"{option}.file"
		vmpt(f"--{option}={left}", *t.words, code=1, preexec_fn=small_files)
		vmpt(f"--{option}=/dev/full", *t.words, code=1)
		assert not left.exists() and not list(t.folder.glob(".*vmpt*"))
	foreign = t.folder / "foreign"
	foreign.write_text("mine\n")
	vmpt(f"--drcov={foreign}", *t.words, code=1)
	assert foreign.read_text() == "mine\n"
	assert rows("--functions", f"--symbols={t.program}", *t.words)
	vmpt("--blocks", "--edges", *t.words, code=2)
	assert vmpt("--blocks", "--csv", *t.words).stdout.startswith(b"owner,vm,vmcs,cr3,bits,")


def main():
	with tempfile.TemporaryDirectory() as folder:
		folder = pathlib.Path(folder)
		plain = Traced(folder / "plain")
		blocks = check_blocks(plain)
		edges = check_edges(plain)
		check_drcov(plain, blocks)
		check_bitmap(plain, blocks, edges)
		check_diff(plain, blocks)
		check_bad(plain)
		if LINES:
			check_lcov(folder, plain)


main()
