#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The package's types, by mypy --strict: its own, and those that a program sees. Skipped without mypy."""
import os
import shutil
import subprocess
import sys
import unittest

import support
import vmpt
from support import write

GOOD = """
import io
import numpy as np
import vmpt
from vmpt import arrays

def kinds(path: str) -> dict[vmpt.Kind, int]:
    found: dict[vmpt.Kind, int] = {}
    with vmpt.open((path, 0), threads=2, guest_only=vmpt.GuestOnly.NO) as trace:
        for packet in trace.streams[0].decode():
            found[packet.kind] = found.get(packet.kind, 0) + packet.size
        out = np.empty(100, arrays.ITEM)
        with trace.clocks() as clocks, trace.streams[0].decode(clocks) as decoder:
            view = decoder.items(out, times=np.empty(100, arrays.TIME))
            print(view["kind"].sum(), decoder.base)
        for span in trace.timeline().exits():
            if span.exit and span.start:
                print(span.exit.name, span.start.tsc + 1, span.owner.vmcs)
        with trace.streams[0].flow(vmpt.Code(vmpt.Image("x", paging=vmpt.Paging.PAE))) as flow:
            for part in flow:
                if isinstance(part, vmpt.FlowGap):
                    print(part.reason.name)
                    continue
                print(sum(flow.block(id).instructions for id in part.blocks[:-1]) + part.last)
            some, ids = flow.fill(np.empty(9, arrays.BATCH), np.empty(9, arrays.ID))
            print(some["first"] + ids.sum(), flow.total.gaps[vmpt.FlowReason.LOSS])
        trace.streams[0].extract(lambda number, owner: io.BytesIO())
        cpu: int | None = trace.streams[0].cpu
        print(cpu)
    return found

try:
    kinds("x")
except vmpt.Error as error:
    code: vmpt.ErrorCode = error.code
"""
BAD = {
    'import vmpt\nvmpt.open("x").stream\n': "has no attribute",
    'import vmpt\nvmpt.open("x", thread=1)\n': "Unexpected keyword argument",
    'import vmpt\nfor s in vmpt.open("x").streams[0].slices():\n    s.owner.vmcs + "a"\n': "Unsupported operand",
    'import vmpt\nvmpt.Kind.TIPP\n': "has no attribute",
}


@unittest.skipUnless(shutil.which("mypy"), "no mypy")
class Types(unittest.TestCase):
    def mypy(self, *args):
        env = {**os.environ, "MYPYPATH": os.environ["PYTHONPATH"]}
        return subprocess.run(["mypy", "--strict", "--python-executable", sys.executable, "--cache-dir",
                               support.path("cache"), *args], env=env, stdout=subprocess.PIPE, text=True)

    def test_package(self):
        done = self.mypy(os.path.dirname(vmpt.__file__))
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_program(self):
        done = self.mypy(write("good.py", GOOD.encode()))
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_wrong(self):
        files = [write(f"bad{i}.py", code.encode()) for i, code in enumerate(BAD)]
        said = self.mypy(*files).stdout.splitlines()
        for file, message in zip(files, BAD.values()):
            name = os.path.basename(file)
            self.assertTrue(any(name in line and message in line for line in said), "\n".join(said))


if __name__ == "__main__":
    support.main()
