#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The processes of a recording are those that the guest says on its console (inside/short-lived).

	check-tasks.py SOURCE VMPT CONSOLE RECORDING ALPHA

Each is in the list, with page tables. By those of alpha, "vmpt insn" finds that ALPHA's functions were
executed, in the process with the number and name that the guest says, as functions of ALPHA.
"""
import json
import re
import subprocess
import sys

source, vmpt, console, recording, program = sys.argv[1:]
sys.path.insert(0, source + "/tests/cli/base")
import schemas  # noqa: E402

ran = {}
with open(console, encoding="utf-8", errors="replace") as f:
	for pid, name in re.findall(r"^ran (\d+) (\S+)\r?$", f.read(), re.M):
		ran[int(pid)] = name
assert len(ran) == 10 and "alpha" in ran.values(), ran

# ---- the list ----

head = json.load(open(recording + "/recording.json", encoding="utf-8"))
assert [(t["file"], t["vm"]) for t in head["tasks"]] == [("vm0.tasks", "two")], head["tasks"]
lines = [json.loads(line) for line in open(recording + "/vm0.tasks", encoding="utf-8")]
if schemas.jsonschema:
	for line in lines:
		schemas.validator("tasks").validate(line)
names, cr3 = {}, {}
for line in lines:
	if line["kind"] == "task" and "cr3" in line:
		names.setdefault(line["tgid"], []).append(line["comm"])
		cr3.setdefault(line["tgid"], []).append(line["cr3"])
for pid, name in ran.items():
	assert name in names.get(pid, []), (pid, name, names.get(pid))
# fork() only: 84 "pipes" has children of the same name.
pipes = next(pid for pid, name in ran.items() if name == "pipes")
children = {t["tgid"] for t in lines if t["kind"] == "task" and t["parent"] == pipes}
assert children and all("pipes" in names[c] for c in children), children
# All that ran had ended when the list at the end was read.
end = {t["tgid"] for t in lines if t["kind"] == "task" and t["tsc"] == lines[-1]["tsc"]}
assert len(end) > 20 and 1 in end and 2 in end and not end & set(ran), end
print(f"{len(ran)} processes, {len(names)} in the list, {len(end)} at the end")

# ---- vmpt insn ----

out = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
symbols = [line.split() for line in out.splitlines()]
where = {int(s[0], 16): s[2] for s in symbols if len(s) == 3 and s[2] in ("alpha", "beta", "epsilon")}
alpha = next(pid for pid, name in ran.items() if name == "alpha")
# The page tables that it had last: exec gave it new ones. With page table isolation a process's own
# code runs with bit 12 set, and little of the kernel's.
own = int(cr3[alpha][-1], 16) | 0x1000
seen, kernel, others = set(), set(), set()
command = [vmpt, "insn", "--quiet", "--json", f"--cr3={own:x}", "--symbols=bin", recording]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as insn:
	for line in insn.stdout:
		o = json.loads(line)
		if "ip" not in o or "tgid" not in o:
			continue
		others.add((o["tgid"], o["comm"]))
		name = where.get(int(o["ip"], 16))
		if name and o["tgid"] == alpha:
			assert o["comm"] == "alpha" and o["function"] == name and o["function_offset"] == "0x0", o
			seen.add(name)
		elif int(o["ip"], 16) >> 63 and o["tgid"] == alpha:
			kernel.add(o.get("function"))
assert seen == {"alpha", "beta", "epsilon"}, (seen, others)
# The kernel's functions are known without an image.
assert {"entry_SYSCALL_64", "asm_exc_page_fault"} <= kernel, kernel
print(f"its page tables: {len(others)} names, {len(kernel)} functions of the kernel")
