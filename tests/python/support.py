# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Shared by the tests of the Python module: traces with their truth, the command's JSON."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VMPT, TRACEGEN = os.environ["VMPT"], os.environ["TRACEGEN"]
CORPUS = os.path.join(ROOT, "tests/fuzz/corpus/reader-perf")

_dir = tempfile.mkdtemp()
atexit.register(shutil.rmtree, _dir)


def path(name):
    """A file of this test."""
    return os.path.join(_dir, name)


def write(name, data):
    with open(path(name), "wb") as file:
        file.write(data)
    return path(name)


class Generated:
    """A trace of the generator, and what really happened: docs/tracegen.md."""

    def __init__(self, script, edit=lambda text: text, extra=()):
        name = script.replace("/", "-")
        with open(os.path.join(ROOT, "tests/tracegen/scripts", script + ".trace"), encoding="utf-8") as file:
            write(name + ".trace", edit(file.read()).encode())
        subprocess.run([TRACEGEN, "-o", path(name + ".pt"), "--truth", path(name + ".json"), *extra,
                        path(name + ".trace")], check=True)
        with open(path(name + ".json"), encoding="utf-8") as file:
            self.truth = [json.loads(line) for line in file]
        cpus = [line["cpu"] for line in self.of("stream")]
        self.files = [(path(f"{name}.cpu{cpu}.pt") if len(cpus) > 1 else path(name + ".pt"), cpu)
                      for cpu in cpus]
        self.words = [f"{file}@{cpu}" for file, cpu in self.files]  # for the command
        self.vms = {line["name"]: line for line in self.of("vm")}

    def of(self, kind, cpu=None):
        return [line for line in self.truth if line["type"] == kind and cpu in (None, line.get("cpu"))]


def command(*words):
    """The command's JSON; of dump its packets. It exits with 3 where something is lost."""
    done = subprocess.run([VMPT, words[0], "-q", "--json", *words[1:]], stdout=subprocess.PIPE)
    if done.returncode not in (0, 3):
        raise RuntimeError(f"vmpt {words}: {done.returncode}")
    if words[0] == "dump":
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return [line for line in lines if "offset" in line]
    return json.loads(done.stdout)


def python(code, **env):
    """Run @code by this Python; its end and output."""
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **env}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def main():
    """All tests of the file, and Check's line, which scripts/test-summary reads."""
    result = unittest.main(exit=False).result
    bad = len(result.failures), len(result.errors)
    ran = max(result.testsRun, 1)
    print(f"{100 * (ran - sum(bad)) // ran}%: Checks: {ran}, Failures: {bad[0]}, Errors: {bad[1]}")
    sys.exit(not result.wasSuccessful() or not result.testsRun)
