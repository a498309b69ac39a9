#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Each file that is installed is in one package, and each line of packaging/debian/*.install names
one; a version of symbols is in the list of its package.

	test-packaging.py SOURCE BUILD whole|partly

partly: something is not built, since a library is missing.
"""

import fnmatch
import glob
import json
import os
import re
import subprocess
import sys

source, build, built = sys.argv[1:]
debian = os.path.join(source, "packaging/debian")
checks = failures = 0


def check(what, good):
	global checks, failures
	checks += 1
	if not good:
		failures += 1
		print(what)


def lines(path):
	with open(path, encoding="utf-8") as f:
		return [line.split()[0] for line in f if line.strip() and not line.startswith("#")]


lists = {}
for path in glob.glob(debian + "/*.install") + [debian + "/not-installed"]:
	for line in lines(path):
		lists.setdefault(line, []).append(os.path.basename(path))

installed = json.loads(subprocess.run(["meson", "introspect", "--installed", build], capture_output=True,
				 check=True).stdout)
prefix = next(o["value"] for o in json.loads(subprocess.run(
	["meson", "introspect", "--buildoptions", build], capture_output=True, check=True).stdout)
	if o["name"] == "prefix")
used = set()
for path in sorted(installed.values()):
	path = "usr/" + os.path.relpath(path, prefix)
	# A folder of a list is all that is in it.
	found = [line for line in lists if any(fnmatch.fnmatchcase(part, line) for part in (
		path, *(path[:at.start()] for at in re.finditer("/", path))))]
	used.update(found)
	check("%s: in no package: packaging/debian/*.install" % path if not found else
	      "%s: in several: %s" % (path, found), len(found) == 1)
for line, files in lists.items():
	check("%s: in %s, but is not installed" % (line, files), line in used or built == "partly")
for path in glob.glob(debian + "/*.docs") + glob.glob(debian + "/*.examples"):
	for line in lines(path):
		check("%s: in %s, but is not there" % (line, path), glob.glob(os.path.join(source, line)))
for room, lib in ("vmm-lib", "vmpt"), ("model", "vmpt-model"), ("decoder", "vmpt-decode"):
	with open(os.path.join(source, room, "exports.map"), encoding="utf-8") as f:
		nodes = re.findall(r"^(VMPT_\w+) \{", f.read(), re.M)
	with open("%s/lib%s0.symbols" % (debian, lib), encoding="utf-8") as f:
		listed = re.findall(r"^ \*@(\w+) ", f.read(), re.M)
	check("%s: %s in exports.map, %s in debian/*.symbols" % (lib, nodes, listed), nodes and nodes == listed)
with open(debian + "/changelog", encoding="utf-8") as f:
	packaged = re.match(r"vmpt \((.*)-", f.readline())[1]
with open(os.path.join(source, "meson.build"), encoding="utf-8") as f:
	version = re.search("version: '(.*?)'", f.read())[1]
check("version %s in meson.build, %s in debian/changelog" % (version, packaged), version == packaged)
print("%d%%: Checks: %d, Failures: %d, Errors: 0" % (100 * (checks - failures) // checks, checks, failures))
sys.exit(failures != 0)
