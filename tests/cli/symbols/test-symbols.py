#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Names and lines of code outside of guests' images: traces that are written here, of programs that
are compiled here, against nm, addr2line and c++filt.

	test-symbols.py VMPT CC lines|no-lines [TEST]
"""
import http.server
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

VMPT, CC, LINES = os.path.abspath(sys.argv[1]), sys.argv[2].split(), sys.argv[3] == "lines"
ONE_NS = (0, 1, 0)  # shift, multiplier, zero: a tick is a nanosecond


# ---- traces ----

def tip(kind, ip):
	return bytes([{"tip": 0x0d, "pge": 0x11, "fup": 0x1d}[kind] | 6 << 5]) + struct.pack("<Q", ip)


PGD = b"\x01"


def tsc(t):
	return b"\x19" + struct.pack("<Q", t)[:7]


def pip(cr3):
	return b"\x02\x43" + struct.pack("<Q", cr3 >> 5 << 1)[:6]


def psb(cr3, time=None):
	return b"\x02\x82" * 8 + (tsc(time) if time is not None else b"") + b"\x99\x01" + \
		pip(cr3) + b"\x02\x23"


def calls(ips):
	"""Enters the first; each has a RET without a CALL, which goes to the next."""
	return tip("pge", ips[0]) + b"".join(tip("tip", ip) for ip in ips[1:]) + PGD


# ---- perf.data ----

KERNEL, USER = 1, 2  # cpumode
TIME_CPU = 1 << 1 | 1 << 2 | 1 << 7  # sample_type: TID, TIME, CPU


class Perf:
	"""A perf.data with the records that are added, and one CPU's trace."""

	def __init__(self):
		self.records, self.ids = b"", b""

	def add(self, kind, body, misc=USER, time=0, pid=0, tid=None, cpu=0):
		body += b"\0" * (-len(body) % 8)
		body += struct.pack("<iiQiI", pid, pid if tid is None else tid, time, cpu, 0)
		self.records += struct.pack("<IHH", kind, misc, 8 + len(body)) + body

	def comm(self, pid, name, time=0, program=False):
		self.add(3, struct.pack("<II", pid, pid) + name.encode() + b"\0",
			 USER | (1 << 13 if program else 0), time, pid)

	def fork(self, pid, parent, time):
		self.add(7, struct.pack("<IIIIQ", pid, parent, pid, parent, time), USER, time, parent)

	def end(self, pid, time):
		self.add(4, struct.pack("<IIIIQ", pid, 1, pid, 1, time), USER, time, pid)

	def map(self, pid, start, size, offset, path, time=0, build_id=None):
		ident = struct.pack("<BBH20s", 20, 0, 0, build_id) if build_id else bytes(24)
		self.add(10, struct.pack("<IIQQQ", pid, pid, start, size, offset) + ident +
			 struct.pack("<II", 5, 2) + path.encode() + b"\0",
			 USER | (1 << 14 if build_id else 0), time, pid)

	def kernel(self, start, size, offset, name):
		self.add(1, struct.pack("<iIQQQ", -1, 0, start, size, offset) + name.encode() + b"\0",
			 KERNEL)

	def symbol(self, start, size, name, kind=1, gone=False, time=0):
		self.add(17, struct.pack("<QIHH", start, size, kind, gone) + name.encode() + b"\0",
			 KERNEL, time)

	def switch(self, pid, time, out=False, cpu=0):
		self.add(14, b"", USER | (1 << 13 if out else 0), time, pid, cpu=cpu)

	def build_id(self, name, ident, misc=USER):
		name = name.encode() + b"\0"
		name += b"\0" * (-len(name) % 8)
		self.ids += struct.pack("<IHHi20s4x", 0, misc, 36 + len(name), -1, ident) + name

	def write(self, path, trace):
		attr = struct.pack("<IIQQQQQ", 8, 112, 0, 1, TIME_CPU, 4, 1 << 18)
		attr += bytes(112 - len(attr)) + struct.pack("<QQ", 0, 0)
		info = struct.pack("<II", 1, 0) + struct.pack(
			"<15Q", 8, *ONE_NS, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0)
		head = struct.pack("<IHH", 70, 0, 8 + len(info)) + info
		trace += b"\0" * (-len(trace) % 8)
		aux = struct.pack("<QQQIiiI", len(trace), 0, 0, 0, -1, 0, 0)
		data = head + self.records + struct.pack("<IHH", 71, 0, 8 + len(aux)) + aux + trace
		at = 104 + len(attr)
		features = 1 << 2 if self.ids else 0
		with open(path, "wb") as out:
			out.write(b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, len(attr), 104, len(attr),
							     at, len(data), 0, 0))
			out.write(struct.pack("<QQQQ", features, 0, 0, 0) + attr + data)
			if self.ids:
				out.write(struct.pack("<QQ", at + len(data) + 16, len(self.ids)))
				out.write(self.ids)


# ---- programs ----

def run(*args, check=True, env=None, **more):
	done = subprocess.run(args, capture_output=True, text=True, check=False,
			      env={**os.environ, **(env or {})}, **more)
	if check and done.returncode:
		raise AssertionError(f"{' '.join(args)}: {done.returncode}\n{done.stderr}")
	return done


C = """
int first(int x) { x += 3;
	return x * 2; }
int second(int x)
{
	x -= 3;
	return x ^ 55;
}
int main(void) { return first(1) + second(2); }
"""


def compile_to(name, text=C, *options, suffix=".c"):
	with open(name + suffix, "w", encoding="utf-8") as out:
		out.write(text)
	run(*CC, "-g", "-O0", "-fcf-protection=none", "-no-pie", "-fno-pie", *options, "-o", name,
	    name + suffix)
	return symbols(name)


def symbols(name):
	words = (line.split() for line in run("nm", name).stdout.splitlines())
	return {w[2]: int(w[0], 16) for w in words if len(w) == 3}


def segment(name):
	"""Offset, address and size of the code, by readelf."""
	for line in run("readelf", "-lW", name).stdout.splitlines():
		w = line.split()
		if w[:1] == ["LOAD"] and "E" in w[6:8]:
			return int(w[1], 16), int(w[2], 16), int(w[4], 16)
	raise AssertionError("no code")


def build_id(name):
	text = run("readelf", "-n", name).stdout
	return bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", text).group(1))


def insn(*args, **more):
	"""The instructions, their summary left out."""
	done = run(VMPT, "insn", "-q", "--json", *args, **more)
	return [json.loads(line) for line in done.stdout.splitlines()[1:-1]]


def named(rows):
	"""Functions, or what there is instead, as they follow each other."""
	found = []
	for row in rows:
		base = row.get("module", "").rsplit("/", 1)[-1]
		name = row.get("function", row.get("module") and "?")
		name = f"{base}:{name}" if base else name
		if not found or found[-1] != name:
			found.append(name)
	return found


def expect(want, got):
	if want != got:
		raise AssertionError(f"expected {want}, got {got}")


# ---- tests ----

def test_lines():
	"""Each instruction's line is what addr2line says."""
	s = compile_to("fn")
	with open("x.pt", "wb") as out:
		out.write(psb(0x1000) + calls([s["first"], s["second"], s["first"]]))

	def check(*args):
		rows = insn(*args, "--lines", "x.pt")
		said = run("addr2line", "-e", "fn", *(r["ip"] for r in rows)).stdout.split("\n")
		assert len(rows) > 15
		for row, want in zip(rows, said):
			expect(want.split(" ")[0], f"{row['file']}:{row['line']}")

	check("--code=fn", "--symbols=fn")
	# In a file of its own: by the name in the program, by the build id, in another folder.
	run("objcopy", "--only-keep-debug", "fn", "fn.debug")
	run("objcopy", "--strip-debug", "--add-gnu-debuglink=fn.debug", "fn", "linked")
	check("--code=linked", "--symbols=linked")
	os.mkdir("folder")
	os.rename("fn.debug", "folder/fn.debug")
	expect(None, insn("--code=linked", "--symbols=linked", "--lines", "x.pt")[0].get("line"))
	check("--code=linked", "--symbols=linked", "--symbols=folder")
	run("objcopy", "--remove-section=.note.gnu.build-id", "linked")
	check("--code=linked", "--symbols=linked", "--symbols=folder")
	# Another file of that name has another CRC.
	with open("folder/fn.debug", "ab") as out:
		out.write(b"x")
	expect(None, insn("--code=linked", "--symbols=linked", "--symbols=folder", "--lines",
			  "x.pt")[0].get("line"))


def host_trace(name, s, other=0):
	"""Process 10 runs, then 20, with the same addresses; 30 is a thread of the kernel."""
	p = Perf()
	here = os.getcwd()
	offset, start, size = segment(name)
	p.comm(10, "ten")
	p.map(10, start, 0x1000, offset, f"{here}/{name}")
	p.comm(20, "before")
	p.map(20, start, 0x1000, offset, f"{here}/gone")
	p.comm(20, "twenty", 50, True)
	p.map(20, start, 0x1000, offset, f"{here}/{name}2", 60)
	p.comm(30, "kthread")
	for pid, time in (10, 100), (20, 200), (30, 300), (10, 400):
		p.switch(pid, time + 20)
		p.switch(pid, time + 90, True)
	trace = psb(0x1000, 110) + pip(0x1000) + tsc(130) + calls([s["first"], s["second"]])
	trace += tsc(205) + pip(0x2000) + tsc(230) + calls([s["first"], s["second"]])
	trace += tsc(430) + pip(0x1000) + calls([s["second"]])
	return p, trace


def test_host():
	"""Processes of the host by context switches and CR3; their programs by path and build id."""
	s = compile_to("fn")
	compile_to("fn2", C.replace("second", "zweite"))
	p, trace = host_trace("fn", s)
	p.write("perf.data", trace)
	rows = insn("--code=fn", "perf.data")
	expect(["fn:first", "fn:second", "fn2:first", "fn2:zweite", "fn:second"], named(rows))
	expect(["ten", "twenty", "ten"], [r["comm"] for r in rows if r["ip"] == f"{s['second']:#x}"])
	expect({10, 20}, {r["tgid"] for r in rows})
	out = run(VMPT, "insn", "-q", "--code=fn", "perf.data").stdout
	assert "10 ten" in out and "fn2:zweite+0x0" in out, out
	# A file with another build id is not that program.
	q, trace = host_trace("fn", s)
	q.build_id(f"{os.getcwd()}/fn2", bytes(20))
	q.build_id(f"{os.getcwd()}/fn", build_id("fn"))
	q.write("perf.data", trace)
	expect(["fn:first", "fn:second", "fn2:?", "fn:second"], named(insn("--code=fn", "perf.data")))
	# It is found by that in a folder, wherever it was.
	q, trace = host_trace("fn", s)
	q.build_id(f"{os.getcwd()}/fn2", build_id("fn2"))
	q.write("perf.data", trace)
	os.makedirs("folder/x")
	os.rename("fn2", "folder/x/y")
	expect(["fn:first", "fn:second", "fn2:?", "fn:second"], named(insn("--code=fn", "perf.data")))
	rows = insn("--code=fn", "--symbols=folder", *["--lines"] * LINES, "perf.data")
	expect(["fn:first", "fn:second", "fn2:first", "fn2:zweite", "fn:second"], named(rows))
	assert all("line" in r for r in rows) or not LINES


def test_host_real():
	"""A recording of one process, without PIPs: what perf says of it."""
	data = os.path.join(os.environ.get("VMPT_DATA", "/none"), "host-loopy.perf.data")
	if not os.path.exists(data) or not shutil.which("perf"):
		return
	said = run("perf", "script", "-D", "-i", data).stdout
	pid, path = re.search(r"MMAP2 (\d+)/\d+: \[0x400000\(.*r-xp (\S+)", said).groups()
	comm = re.search(r"COMM exec: (\S+):" + pid, said).group(1)
	with open("code", "wb") as out:
		out.write(b"\x90" * 0x1000)
	rows = [r for r in insn("--code=host:code@0x400000", data) if int(r["ip"], 16) >> 12 == 0x400]
	assert len(rows) > 100
	expect({(int(pid), comm, path)}, {(r["tgid"], r["comm"], r["module"]) for r in rows})


def test_host_kernel():
	"""eBPF programs, trampolines and modules of the host's kernel; its list in perf's cache."""
	code = bytes.fromhex("9090c3")
	base = 0xffffffffc0000000
	with open("code", "wb") as out:
		out.write(code * 0x400)
	p = Perf()
	p.kernel(0xffffffff81000000, 0x1000000, 0xffffffff81000000, "[kernel.kallsyms]_text")
	p.kernel(base + 0x300, 0x300, 0, "[kvm]")
	p.symbol(base, 3, "bpf_prog_1234_old", time=50)
	p.symbol(base, 3, "bpf_prog_1234_old", gone=True, time=150)
	p.symbol(base, 6, "bpf_prog_abcd_new", time=160)
	p.symbol(base + 6, 3, "ftrace_trampoline", kind=2)
	ident = bytes(range(20))
	p.build_id("[kernel.kallsyms]", ident, KERNEL)
	trace = psb(0x1000, 100) + calls([base, base + 6])
	trace += tsc(200) + calls([base, base + 3, base + 0x303, base + 0x900])
	p.write("perf.data", trace)
	args = (f"--code=code@{base:#x}", "perf.data")
	expect(["bpf:bpf_prog_1234_old", "ftrace_trampoline", "bpf:bpf_prog_abcd_new", "[kvm]:?", None],
	       named(insn(*args)))
	cache = f"folder/[kernel.kallsyms]/{ident.hex()}"
	os.makedirs(cache)
	with open(f"{cache}/kallsyms", "w", encoding="utf-8") as out:
		out.write("ffffffff81000000 T _text\nffffffffc0000900 t tail\n")
	expect("tail", named(insn("--symbols=folder", *args))[-1])
	# A kernel's file for the host that is another.
	s = compile_to("vmlinux", C + "int _text(void) { return 1; }\n")
	assert "_text" in s
	done = run(VMPT, "insn", "-q", "--symbols=host:vmlinux", *args, check=False)
	expect(1, done.returncode)
	assert "is of another kernel than the host's: its build id is " in done.stderr, done.stderr
	# Without the host's name it may be a guest's.
	insn("--symbols=vmlinux", *args)


NAMES = ["_ZNSt6vectorIiSaIiEE9push_backEOi", "_ZN4core3fmt5write17h0123456789abcdefE",
	 "_RNvC6_123foo3bar", "_Z3fooi.cold", "_Zplain"]


def test_demangling():
	"""Names are what c++filt has; hostile ones, and what c++filt may do, cost little time."""
	# Doubles at each S_: 2^20 and more.
	bomb = "_Z1fIi" + "".join(f"S{'' if not i else chr(47 + i) if i < 11 else chr(54 + i)}_"
				  for i in range(30)) + "EvT_"
	text = "".join(f".globl \"{n}\"\n.type \"{n}\", @function\n\"{n}\": ret\n.size \"{n}\", 1\n"
		       for n in [*NAMES, bomb])
	s = compile_to("names", text + ".globl main\nmain: ret\n", suffix=".s")
	with open("x.pt", "wb") as out:
		out.write(psb(0x1000) + calls([s[n] for n in [*NAMES, bomb, NAMES[0]]]))
	args = ("--code=names", "--symbols=names", "x.pt")
	want = run("c++filt", "-i", "-p", *NAMES).stdout.splitlines()
	assert "std::vector<int, std::allocator<int> >::push_back" in want[0], want
	got = named(insn(*args))
	expect(want, got[:5])
	expect(want[0], got[-1])
	expect(NAMES, named(insn("--no-demangle", *args))[:5])
	# None, one that dies, one that says nothing.
	os.mkdir("bin")
	for script in None, "exit 1", "exec sleep 100":
		if script:
			with open("bin/c++filt", "w", encoding="utf-8") as out:
				out.write(f"#!/bin/sh\n{script}\n")
			os.chmod("bin/c++filt", 0o755)
		done = run(VMPT, "insn", *args, env={"PATH": "bin:/none" if script != "exec sleep 100" else
						     "bin:" + os.environ["PATH"]})
		expect(1, done.stderr.count("c++filt (binutils) is missing or gave no answer"))
		assert NAMES[0] in done.stdout


def bodies(count, add):
	"""Functions that differ, of a page or more."""
	return "".join(f"int f{i}(int x) {{ x += {i * 7919 + add}; x ^= {i * 104729 % 65521}; "
		       f"return x * {i + 3}; }}\n" for i in range(count)) + "int main(void) { return 0; }\n"


def test_code():
	"""Programs without build ids by the code that was traced, wherever it is."""
	plain = ("-Wl,--build-id=none", "-fPIE", "-pie")
	os.mkdir("folder")
	s = compile_to("folder/some", bodies(400, 0), *plain)
	compile_to("folder/other", bodies(400, 1), *plain)
	offset, start, size = segment("folder/some")
	with open("folder/some", "rb") as full:
		full.seek(offset)
		code = full.read(size)
	base = 0x555555554000
	with open("code", "wb") as out:
		out.write(code)
	names = ["f3", "f200", "f399"]
	with open("x.pt", "wb") as out:
		out.write(psb(0x1000) + calls([base + s[n] for n in names]))
	args = (f"--code=code@{base + start:#x}", "x.pt", *["--lines"] * LINES)
	rows = insn("--symbols=folder", *args)
	expect([f"some:{n}" for n in names], named(rows))
	if LINES:
		said = run("addr2line", "-e", "folder/some", *(f"{int(r['ip'], 16) - base:#x}" for r in rows))
		expect(said.stdout.split(), [f"{r['file']}:{r['line']}" for r in rows])
	# Two that have it: which of them is not known. The same with symbols and without is no other.
	run("cp", "folder/some", "folder/copy")
	expect([None], named(insn("--symbols=folder", *args)))
	os.remove("folder/copy")
	run("strip", "-o", "folder/stripped", "folder/some")
	expect([None], named(insn("--symbols=folder", *args)))
	compile_to("folder/some", bodies(400, 0), "-fPIE", "-pie", "-Wl,--build-id=sha1")
	run("strip", "-o", "folder/stripped", "folder/some")
	expect([f"some:{n}" for n in names], [x.replace("stripped", "some") for x in
					      named(insn("--symbols=folder", *args))])
	# One byte of the page is another.
	with open("code", "r+b") as out:
		out.seek(s["f200"] - start + 2)
		out.write(b"\x06")
	expect([None], [x for x in named(insn("--symbols=folder", *args))
			if x is None or "f200" in x])


class Server:
	"""A debuginfod that has the files of a folder, by their build ids."""

	def __init__(self, files):
		asked = self.asked = []

		class Handler(http.server.BaseHTTPRequestHandler):
			def do_GET(self):
				asked.append(self.path)
				body = files.get(self.path)
				self.send_response(200 if body else 404)
				self.send_header("Content-Length", str(len(body or b"")))
				self.end_headers()
				self.wfile.write(body or b"")

			def log_message(self, *args):
				pass

		self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
		threading.Thread(target=self.server.serve_forever, daemon=True).start()
		# glibc's dprintf() in libdebuginfod leaks for LeakSanitizer.
		self.env = {"ASAN_OPTIONS": "detect_leaks=0", "DEBUGINFOD_URLS": f"http://127.0.0.1:{self.server.server_port}/",
			    "DEBUGINFOD_CACHE_PATH": os.path.abspath("cache"),
			    "no_proxy": "127.0.0.1"}


def test_debuginfod():
	"""Asked only with --debuginfod; what has another build id is not used."""
	s = compile_to("fn")
	with open("fn", "rb") as full:
		path, body = f"/buildid/{build_id('fn').hex()}/debuginfo", full.read()
	compile_to("other", C.replace("55", "66"))
	with open("other", "rb") as full:
		other = full.read()
	run("strip", "fn")
	p, trace = host_trace("fn", s)
	p.build_id(f"{os.getcwd()}/fn", build_id("fn"))
	p.write("perf.data", trace)
	args = ["--code=fn", "perf.data", *["--lines"] * LINES]
	server = Server({path: body})
	first = lambda *more, **env: insn(*args, *more, **env)[0]
	assert "function" not in first(env=server.env)
	expect([], server.asked)
	done = run(VMPT, "insn", "--debuginfod", *args, check=False, env={"DEBUGINFOD_URLS": ""})
	expect(2, done.returncode)
	assert "DEBUGINFOD_URLS is not set" in done.stderr
	done = run(VMPT, "insn", "--debuginfod", *args, check=False, env=server.env)
	if "is not installed" in done.stderr:
		return
	row = first("--debuginfod", env=server.env)
	expect("first", row["function"])
	expect(2 if LINES else None, row.get("line"))
	expect([path], server.asked)
	bad = Server({path: other})
	bad.env["DEBUGINFOD_CACHE_PATH"] += "2"
	done = run(VMPT, "insn", "--debuginfod", *args, env=bad.env)
	assert "has another: it is not used" in done.stderr and "fn:first" not in done.stdout


# ---- code made at run time ----

def load(name, address, size, index, time):
	body = struct.pack("<IIQQQQ", 10, 10, address, address, size, index) + name + b"\0" + \
		b"\x90" * (size - 1) + b"\xc3"
	return struct.pack("<IIQ", 0, 16 + len(body), time) + body


def move(old, new, size, index, time):
	return struct.pack("<IIQIIQQQQQ", 1, 64, time, 10, 10, old, old, new, size, index)


def jitdump(path, records, timed):
	with open(path, "wb") as out:
		out.write(struct.pack("<IIIIIIQQ", 0x4a695444, 1, 40, 62, 0, 10, 0, timed) + records)


def test_jit():
	"""perf's map files and jitdumps, given and found, with code that moves."""
	base, other = 0x7f0000000000, 0x7f0000002000
	with open("code", "wb") as out:
		out.write(b"\x90\x90\x90\xc3" * 0x1000)
	code = f"--code=code@{base:#x}"
	trace = psb(0x1000, 100) + calls([base, base + 0x100, other])
	with open("x.pt", "wb") as out:
		out.write(trace)
	with open("some.map", "w", encoding="utf-8") as out:
		out.write(f"{base:x} 40 one\n{base + 0x80:x} 100 LazyCompile:~two /x y.js:12\n"
			  f"{base + 0x100:x} 4 three\n")
	want = ["jit:one", "jit:three"]
	expect([*want, None], named(insn(code, "--symbols=some.map", "x.pt")))
	expect([*want, None], named(insn(code, "--symbols=host:some.map", "x.pt")))
	expect([None], named(insn(code, "--symbols=web:some.map", "x.pt")))

	# Moved from base to other at 200, where there was something before; another comes to base.
	records = load(b"gone", other, 0x10, 1, 50) + load(b"mover", base, 0x10, 2, 60) + \
		move(base, other, 0x10, 2, 200) + load(b"newer", base, 0x10, 3, 210)
	trace += tsc(205) + calls([base, other]) + tsc(300) + calls([base, other])
	with open("x.pt", "wb") as out:
		out.write(trace)
	jitdump("timed.dump", records, True)
	expect(["jit:mover", None, "jit:gone", None, "jit:mover", "jit:newer", "jit:mover"],
	       named(insn(code, "--symbols=timed.dump", "x.pt")))
	jitdump("untimed.dump", records, False)
	expect(["jit:newer", None, "jit:mover", "jit:newer", "jit:mover", "jit:newer", "jit:mover"],
	       named(insn(code, "--symbols=untimed.dump", "x.pt")))
	# Damaged, it has what was before.
	jitdump("cut.dump", records[:-9], True)
	expect("jit:mover", named(insn(code, "--symbols=cut.dump", "x.pt"))[-1])

	# Found: that of the process which runs.
	p = Perf()
	os.mkdir("folder")
	os.rename("some.map", "folder/perf-20.map")
	jitdump("jit-10.dump", records, True)
	for pid in 10, 20:
		p.comm(pid, "js")
		p.map(pid, base, 0x10000, 0, "//anon")
		p.switch(pid, 100 * pid)
	p.map(10, 0x5000, 0x1000, 0, f"{os.getcwd()}/jit-10.dump")
	p.write("perf.data", psb(0x1000, 1100) + calls([base, other]) + tsc(2100) + pip(0x2000) +
		calls([base, base + 0x100]))
	expect(["jit:newer", "jit:mover", "jit:one", "jit:three"],
	       named(insn(code, "--symbols=folder", "perf.data")))


def own_vdso():
	with open("/proc/self/maps", encoding="utf-8") as maps:
		start, end = (int(x, 16) for x in next(x for x in maps if "[vdso]" in x).split()[0].split("-"))
	with open("/proc/self/mem", "rb") as memory:
		memory.seek(start)
		return memory.read(end - start)


def test_vdso():
	"""The host's vdso is this machine's if it has that build id."""
	base = 0x7ffff7fc1000
	with open("vdso", "wb") as out:
		out.write(own_vdso())
	s = {}
	for line in run("readelf", "--dyn-syms", "-W", "vdso").stdout.splitlines():
		w = line.split()
		if w[3:4] == ["FUNC"]:
			s.setdefault(int(w[1], 16), set()).add("[vdso]:" + w[7].split("@")[0])
	address = max(s)
	trace = psb(0x1000, 100) + pip(0x1000) + tip("pge", base + address)

	def check(ident, *args):
		p = Perf()
		p.comm(10, "ten")
		p.map(10, base, os.path.getsize("vdso"), 0, "[vdso]")
		p.switch(10, 50)
		p.build_id("[vdso]", ident)
		p.write("perf.data", trace)
		return named(insn(f"--code=vdso@{base:#x}", *args, "perf.data"))[0]

	names = s[address]
	got = check(build_id("vdso"))
	assert got in names, (got, names)
	expect("[vdso]:?", check(bytes(20)))
	# That of another kernel, in perf's cache.
	os.makedirs("folder/[vdso]/x")
	os.rename("vdso", "folder/[vdso]/x/vdso")
	os.symlink("folder/[vdso]/x/vdso", "vdso")
	assert check(build_id("vdso"), "--symbols=folder") in names


def main():
	tests = {name: f for name, f in globals().items() if name.startswith("test_")}
	wanted = sys.argv[4:] or [name for name in tests if LINES or "lines" not in name]
	failed = 0
	for name in wanted:
		with tempfile.TemporaryDirectory() as folder:
			os.chdir(folder)
			os.environ["HOME"] = folder
			try:
				tests[name]()
			except AssertionError as e:
				failed += 1
				print(f"{name}: {e}")
			os.chdir("/")
	return 1 if failed else 0


sys.exit(main())
