#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""vmpt hot beside the flow alone (vmpt insn --count), and with --folded beside perf script with stacks of samples, on
real traces with their code: CPU time of one thread each, in turn in each round, medians. Traces are repeated, so
that the start of a program counts little. perf gets the same bytes as a perf.data of vmpt split, and an ELF file
of the same code; what folds its samples is not counted.

	bench/hot.py VMPT DATA [ROUNDS]
"""
import os
import pathlib
import resource
import statistics
import struct
import subprocess
import sys
import tempfile

VMPT, DATA = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
TRACES = (("guest-mruby", 32), ("guest-two-vmcs", 16))
PAGE, SEGMENTS = 4096, 64  # of a program that vmpt split takes


def cpu(args, folder):
	"""Seconds of CPU time, and what was printed."""
	before = resource.getrusage(resource.RUSAGE_CHILDREN)
	got = subprocess.run(args, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
	after = resource.getrusage(resource.RUSAGE_CHILDREN)
	return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, got.stdout


def write_elf(name, path):
	"""The pages as a program; those of gaps between them are zeros where there would be too many segments."""
	addr = (DATA / f"{name}.addr").read_bytes()
	dump = (DATA / f"{name}.dump").read_bytes()
	runs = []
	for at, i in sorted((at, i) for i, (at,) in enumerate(struct.iter_unpack("<Q", addr))):
		page = dump[i * PAGE:(i + 1) * PAGE]
		end = runs[-1][0] + len(runs[-1][1]) if runs else 0
		if runs and at - end <= 64 * PAGE:
			runs[-1][1].extend(bytes(at - end) + page)
		else:
			runs.append((at, bytearray(page)))
	if len(runs) > SEGMENTS:
		return False
	heads, sections, names, offset = b"", bytes(64), b"\0.text\0.shstrtab\0", PAGE
	for at, code in runs:
		heads += struct.pack("<IIQQQQQQ", 1, 5, offset, at, at, len(code), len(code), PAGE)
		sections += struct.pack("<IIQQQQIIQQ", 1, 1, 6, at, offset, len(code), 0, 0, 16, 0)
		offset += len(code)
	sections += struct.pack("<IIQQQQIIQQ", 7, 3, 0, 0, offset, len(names), 0, 0, 1, 0)
	head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, runs[0][0], 64, offset + len(names),
							  0, 64, 56, len(runs), 64, len(runs) + 2, len(runs) + 1)
	path.write_bytes((head + heads).ljust(PAGE, b"\0") + b"".join(code for _, code in runs) + names + sections)
	return True


def perf_data(folder, name):
	"""The trace for perf script; None: it has too many pieces of code."""
	if not write_elf(name, folder / "x.elf"):
		return None
	subprocess.run([VMPT, "split", "-q", "-o", "out", "--perf", f"--code={folder}/x.elf", "x.pt"], cwd=folder,
		       stdout=subprocess.DEVNULL, check=True)
	return next((folder / "out").glob("vm*.perf.data"), None)


def measure(folder, name, times):
	(folder / "x.pt").write_bytes((DATA / f"{name}.pt").read_bytes() * times)
	code = f"--code={DATA}/{name}.addr"
	run = {
		"insn --count": [VMPT, "insn", "--count", "-j1", "-q", code, "x.pt"],
		"hot": [VMPT, "hot", "-j1", "-q", code, "x.pt"],
		"hot --folded": [VMPT, "hot", "--folded", "-j1", "-q", code, "x.pt"],
	}
	perf = perf_data(folder, name)
	if perf:
		run["perf script"] = ["perf", "script", "-f", "-i", str(perf), "--itrace=g64i100us", "-F", "ip,sym,event"]
	seconds = {what: [] for what in run}
	for _ in range(ROUNDS):
		for what, args in run.items():
			seconds[what].append(cpu(args, folder)[0])
	median = {what: statistics.median(s) for what, s in seconds.items()}
	folded = cpu(run["hot --folded"], folder)[1].decode()
	count = sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines())
	print(f"{name} x {times}: {count:,} instructions, {len(folded.splitlines()):,} stacks")
	for what, s in median.items():
		print(f"  {what:14} {s:7.3f} s  {median['insn --count'] / s:6.3f} of the flow"
		      f"  {s / median['hot --folded']:6.2f} x hot --folded")


for one, repeated in TRACES:
	with tempfile.TemporaryDirectory() as place:
		measure(pathlib.Path(place), one, repeated)
