#!/usr/bin/python3 -IS
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The examples print what examples/README.md shows, and count what the generator knows.

	check-examples.py [--update|--page] README FOLDER TRACEGEN

FOLDER has the compiled examples. Each command in README ("    $ ./NAME …") is run there, and what it
prints must be the lines after it. --update writes these lines into README, --page checks only them.
"""
import collections
import csv
import io
import json
import os
import random
import re
import subprocess
import sys
import time

update = sys.argv[1] == "--update"
readme, folder, tracegen = map(os.path.abspath, sys.argv[-3:])
here = os.path.dirname(os.path.abspath(__file__))
os.chdir(folder)
os.environ["PATH"] = os.path.dirname(tracegen) + ":" + os.environ["PATH"]
checks = failures = 0


def check(what, good, *details):
	global checks, failures
	checks += 1
	if not good:
		failures += 1
		print(f"{what}: fails:", *details)


def run(*args, **more):
	return subprocess.run(args, stdout=subprocess.PIPE, check=False, text=True, **more)


# ---- the page ----

with open(os.path.join(here, "two-vms.trace"), encoding="utf-8") as script, \
     open("two-vms.trace", "w", encoding="utf-8") as copy:
	copy.write(script.read())
with open(readme, encoding="utf-8") as page:
	text = page.read()


def shown(match):
	got = run("bash", "-c", match.group(1))
	lines = "".join(f"    {line}\n" for line in got.stdout.splitlines())
	check(match.group(1), update or (lines == match.group(2) and not got.returncode),
	      f"status {got.returncode}, prints\n{lines}")
	return f"    $ {match.group(1)}\n{lines}"


new = re.sub(r"^    \$ (.*)\n((?:    (?!\$).*\n)*)", shown, text, flags=re.M)
if update:
	with open(readme, "w", encoding="utf-8") as page:
		page.write(new)



def finish():
	print(f"{100 * (checks - failures) // checks}%: Checks: {checks}, Failures: {failures}, Errors: 0")
	sys.exit(failures > 0)


if sys.argv[1] == "--page":
	finish()

# ---- packet-counts and slices-csv against the truth of a larger trace ----

demo = os.path.join(here, "../tracegen/scripts/demo.trace")
run(tracegen, "-o", "demo.pt", "--truth", "demo.json", demo)
traces = ["demo.cpu0.pt", "demo.cpu1.pt"]
want, sizes, names = collections.Counter(), collections.Counter(), {"host": "host"}
with open("demo.json", encoding="utf-8") as truth:
	for line in truth:
		row = json.loads(line)
		if row["type"] == "vm":
			names[row["name"]] = "VM " + row["vmcs"][2:]
		elif row["type"] == "packet":
			want[names[row["owner"]], row["kind"]] += 1
		elif row["type"] == "range" and row["cpu"] == 0:
			sizes[names[row["owner"]]] += row["size"]
got, owner = {}, None
for line in run("./packet-counts", *traces).stdout.splitlines():
	if not line.startswith(" "):
		owner = line
	else:
		got[owner, line.split()[0]] = int(line.split()[1])
check("packet-counts: the truth", want and got == want, got, want)
got, end = collections.Counter(), 0
for row in csv.DictReader(io.StringIO(run("./slices-csv", traces[0]).stdout)):
	if int(row["offset"]) != end:
		check("slices-csv: no holes", False, row)
	end += int(row["bytes"])
	got["VM " + row["vmcs"] if row["vmcs"] else row["owner"]] += int(row["bytes"])
check("slices-csv: the truth", sizes and got == sizes, got, sizes)

# ---- follow: a file that grows, in random pieces, its last packets cut ----

with open(traces[0], "rb") as trace:
	data = trace.read()
with open(traces[0], "rb") as trace:
	whole = run("./follow", "-", stdin=trace).stdout
check("follow: all packets", whole.count("\n") == sum(
	1 for line in open("demo.json", encoding="utf-8")
	if '"type":"packet","cpu":0' in line))
rng = random.Random(1)
for signal in False, True:
	with open("grows.pt", "wb", buffering=0) as grows, open("grown.txt", "w+", encoding="utf-8") as out:
		with subprocess.Popen(["./follow", "grows.pt"] + ([] if signal else ["3"]), stdout=out) as follow:
			at = 0
			while at < len(data):
				size = rng.choice([1, 7, 100, 3000, 60000])
				grows.write(data[at:at + size])
				at += size
				if rng.random() < 0.2:
					time.sleep(0.003)
			# All but the last packets must come without an end.
			for _ in range(3000):
				out.seek(0, os.SEEK_END)
				if out.tell() > len(whole) - 4096 or follow.poll() is not None:
					break
				time.sleep(0.1)
			check("follow: packets come while the file may grow", out.tell() > len(whole) - 4096)
			if signal:
				follow.terminate()
		out.seek(0)
		check("follow: as the whole", out.read() == whole and not follow.returncode)
# A disk that is full, as /dev/full is: it ends, at once, and says so. "100" is how long it would wait.
with open("/dev/full", "w", encoding="utf-8") as full:
	got = subprocess.run(["./follow", traces[0], "100"], stdout=full, stderr=subprocess.PIPE, check=False,
			     text=True, timeout=60)
check("follow: a full disk", got.returncode == 1 and "standard output: No space" in got.stderr,
      got.returncode, got.stderr)
finish()
