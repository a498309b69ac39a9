#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""docs/python.md prints what it says, and the examples do what they say."""
import doctest
import os
import re
import subprocess
import sys
import unittest

import support
from support import ROOT, Generated, command, path

demo = Generated("demo", extra=("--code", path("code")))


class Docs(unittest.TestCase):
    def test_page(self):
        """In a folder with the files that the page's first command makes."""
        os.chdir(path(""))
        with open(os.path.join(ROOT, "docs/python.md"), encoding="utf-8") as file:
            page = re.sub(r"(?m)^```.*", "", file.read())
        test = doctest.DocTestParser().get_doctest(page, {}, "docs/python.md", "docs/python.md", 0)
        said = []
        done = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
        self.assertEqual(done.failed, 0, "".join(said))
        self.assertGreater(done.attempted, 20)

    def test_exits(self):
        """examples/python/exits.py counts as vmpt exits does."""
        got = subprocess.check_output([sys.executable, os.path.join(ROOT, "examples/python/exits.py"), *demo.words],
                                      text=True).splitlines()
        counts = {line.split()[0]: int(line.split()[1].replace(",", "")) for line in got[1:]}
        want = {}
        for row in command("exits", *demo.words)["exits"]:
            key = row["vmcs"][2:]
            want[key] = want.get(key, 0) + row["count"]
        self.assertTrue(want)
        self.assertEqual(counts, want)
        bad = subprocess.run([sys.executable, os.path.join(ROOT, "examples/python/exits.py"), "/nonexistent"],
                             capture_output=True, text=True, check=False)
        self.assertEqual(bad.returncode, 1)
        self.assertRegex(bad.stderr, r"\A\S+: /nonexistent: .*\n\Z")


if __name__ == "__main__":
    support.main()
