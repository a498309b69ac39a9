#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""What was executed: compared with the generator's truth, with the command, and with libipt's hash of a
real trace; images by their files' bytes."""
import os
import struct
import unittest

import numpy as np

import support
import vmpt
from support import Generated, command, path, write
from vmpt import FlowBlocks, FlowEnd, FlowGap, FlowReason, ImageKind, Owner, OwnerKind, Paging, Space, arrays

PAGE = 4096
PSB = bytes([2, 0x82] * 8)
HOST = Owner(OwnerKind.HOST)
# "exec:64 pip:1000 fup:1000 psbend tip.pge.." as tests/cli/insn/test-insn.c has it (SDM 3 33.4.2).
JUMP = (PSB + b"\x99\x01\x02\x43\x80\0\0\0\0\0\x7d\0\x10\0\0\0\0\x02\x23" + b"\x6d\0\x10\0\0\0\0")


class Program:
    """A trace of the generator with its code: the images of its index, each for its owner."""

    def __init__(self, script):
        self.folder = path(script + "-code")
        self.made = Generated(script, extra=("--code", self.folder))
        self.images, self.words = [], []
        with open(os.path.join(self.folder, "index"), encoding="utf-8") as file:
            for base, _, _, vmcs, name in map(str.split, file):
                self.images.append((os.path.join(self.folder, name), int(base, 16),
                                    HOST if vmcs == "-" else Owner(OwnerKind.VM, int(vmcs, 16))))
                self.words.append(f"--code={'host' if vmcs == '-' else vmcs}:{self.folder}/{name}@{base}")

    def code(self):
        code = vmpt.Code()
        for name, base, owner in self.images:
            code.add(vmpt.Image(name, kind=ImageKind.BYTES, address=base), owner)
        return code


def fnv1a(value, ips):
    for ip in ips:
        for byte in struct.pack("<Q", ip):
            value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return value


class Generates(unittest.TestCase):
    def test_total(self):
        """Counts per address space are the command's; blocks add up to them."""
        for script in ("timing", "ret-compressed", "events"):
            program = Program(script)
            want = command("insn", "--count", *program.words, *program.made.words)
            with vmpt.open(*program.made.files) as trace, program.code() as code:
                with trace.streams[0].flow(code) as flow:
                    parts = list(flow)
                    total = flow.total
                    self.assertEqual(total.instructions, want["total"]["instructions"])
                    self.assertEqual(total.branches, want["total"]["branches"])
                    self.assertEqual(total.calls, want["total"]["calls"])
                    self.assertEqual({r.name.lower(): n for r, n in total.gaps.items()}, want["total"]["gaps"])
                    self.assertEqual(sum(p.reason in FlowReason for p in parts if isinstance(p, FlowGap)),
                                     sum(total.gaps.values()))
                    self.assertEqual(sum(c.instructions for _, c in flow.spaces), total.instructions)
                    self.check_blocks(flow, parts)
                self.check_arrays(trace.streams[0], code, parts, total)

    def check_blocks(self, flow, parts):
        ran = {}
        for part in parts:
            if isinstance(part, FlowGap):
                continue
            for i, id in enumerate(part.blocks):
                size = flow.block(id).instructions
                n = part.last if i == len(part.blocks) - 1 else size
                whole, more = ran.get(id, (0, 0))
                ran[id] = (whole + 1, more) if n == size else (whole, more + n)
        self.assertEqual(ran, {id: flow.executed(id) for id in range(flow.blocks) if flow.executed(id) != (0, 0)})
        for id in ran:
            block = flow.block(id)
            self.assertEqual(len(flow.code(id)), block.next - block.ip)
            self.assertLessEqual(block.ip, block.end_ip)
            self.assertIn(flow.space(block.space).owner.kind, OwnerKind)

    def check_arrays(self, stream, code, parts, total):
        """The same by arrays of any size; a batch that does not fit is cut."""
        want = [id for part in parts if isinstance(part, FlowBlocks) for id in part.blocks]
        for n, m in ((1, 1), (3, 7), (1000, 50), (4096, 65536)):
            batches, ids = np.empty(n, arrays.BATCH), np.empty(m, arrays.ID)
            got, instructions, gaps = [], 0, 0
            with stream.flow(code) as flow:
                while True:
                    some, blocks = flow.fill(batches, ids)
                    if not len(some):
                        break
                    self.assertIs(blocks.base, ids)
                    got.extend(blocks.tolist())
                    table = np.empty(flow.blocks, arrays.BLOCK)
                    size = flow.fill_blocks(table)["instructions"].astype(np.int64) if len(table) else table
                    for b in some[some["kind"] == vmpt.FlowKind.BLOCKS]:
                        first, count = int(b["first"]), int(b["count"])
                        self.assertGreater(count, 0)
                        instructions += int(size[blocks[first:first + count - 1]].sum()) + int(b["last"])
                    gaps += int((some["kind"] == vmpt.FlowKind.GAP).sum())
                self.assertEqual(flow.total, total)
                whole, more = np.empty(len(table), arrays.COUNT), np.empty(len(table), arrays.COUNT)
                flow.fill_blocks(table, whole=whole, instructions=more)
                self.assertEqual(int((whole * table["instructions"] + more).sum()), total.instructions)
                self.assertEqual(len(flow.fill_blocks(table, len(table))), 0)
            self.assertEqual((got, instructions), (want, total.instructions))
            self.assertEqual(gaps, sum(isinstance(part, FlowGap) for part in parts))

    def test_truth(self):
        """Each owner's instructions, in order, are those that the generator executed."""
        program = Program("timing")
        seen = {}
        with vmpt.open(*program.made.files) as trace, program.code() as code:
            with trace.streams[0].flow(code) as flow:
                for part in flow:
                    self.assertIsInstance(part, FlowBlocks)
                    for i, id in enumerate(part.blocks):
                        block = flow.block(id)
                        n = part.last if i == len(part.blocks) - 1 else block.instructions
                        owner = flow.space(block.space).owner
                        name = "host" if owner.kind == OwnerKind.HOST else owner.vmcs
                        seen[name] = seen.get(name, 0) + n
        names = {name: int(vm["vmcs"], 16) for name, vm in program.made.vms.items()}
        want = {names.get(line["owner"], line["owner"]): line["instructions"] for line in program.made.of("count")
                if line["instructions"]}
        self.assertEqual(seen, want)

    def test_real(self):
        """By libipt 2.0.5, as tests/cli/insn/test-insn.c has it."""
        data = os.environ.get("VMPT_DATA") or os.path.join(support.ROOT, "../shared/data/real")
        if not os.path.exists(os.path.join(data, "guest-unzip.pt")):
            self.skipTest("no real traces here")
        with vmpt.open(os.path.join(data, "guest-unzip.pt")) as trace, \
                vmpt.Image(os.path.join(data, "guest-unzip.addr")) as image:
            for blocks in (False, True):
                with trace.streams[0].flow(vmpt.Code(image), blocks=blocks, hash=True) as flow:
                    for _ in flow:
                        pass
                    self.assertEqual((flow.total.instructions, f"{flow.hash:016x}"), (149576, "ec6cd6452ff6ef34"))
                    (space, counts), = flow.spaces
                    self.assertEqual((space.owner.vmcs, space.cr3, space.bits), (0x20CE5B000, 0x1EE4A000, 64))
                    self.assertEqual(counts, flow.total)
            self.assertGreater(image.counts.found, 0)


class Small(unittest.TestCase):
    """Bytes written by hand: two NOPs and a jump."""

    def setUp(self):
        self.stream = vmpt.open(write("jump.pt", JUMP)).streams[0]

    def flow(self, code, **options):
        image = vmpt.Image(write("code.bin", code), address=0x1000)
        return self.stream.flow(vmpt.Code(image), **options)

    def test_blocks(self):
        flow = self.flow(b"\x90\x90\xff\xe0")
        part = next(flow)
        self.assertEqual(flow.block(part.blocks[0]), (0x1000, 0x1002, 0x1004, 0, 0, 3, FlowEnd.JMP_IND))
        self.assertEqual(flow.code(part.blocks[0]), b"\x90\x90\xff\xe0")
        self.assertEqual(flow.space(0)[1:3], (0x800, 64))

    def test_no_code(self):
        for flow in (self.stream.flow(), self.stream.flow(vmpt.Code()), self.flow(b"\x90")):
            gaps = [part for part in flow if isinstance(part, FlowGap)]
            self.assertEqual(gaps[0].reason, FlowReason.NO_CODE)
            self.assertIn(gaps[0].ip, (0x1000, 0x1001))
            self.assertEqual(flow.total.gaps[FlowReason.NO_CODE], len(gaps))

    def test_wrong(self):
        flow = self.flow(b"\x90\x90\xff\xe0")
        list(flow)
        for call in (flow.block, flow.code, flow.executed, flow.space):
            for index in (-1, 1 << 31):
                with self.assertRaises(IndexError):
                    call(index)
        for batches, ids, error in ((np.empty(1, arrays.ITEM), np.empty(1, arrays.ID), TypeError),
                                    (np.empty(1, arrays.BATCH), np.empty(1, "u8"), TypeError),
                                    (np.empty(0, arrays.BATCH), np.empty(1, arrays.ID), ValueError)):
            with self.assertRaises(error):
                flow.fill(batches, ids)
        with self.assertRaises(IndexError):
            flow.fill_blocks(np.empty(1, arrays.BLOCK), -1)
        with self.assertRaises(ValueError):
            flow.fill_blocks(np.empty(2, arrays.BLOCK), whole=np.empty(1, arrays.COUNT))

    def test_lifetime(self):
        image = vmpt.Image(write("code.bin", b"\x90\xff\xe0"), address=0x1000)
        code = vmpt.Code(image)
        flow = self.stream.flow(code)
        with self.assertRaises(ValueError):
            code.add(image)
        image.close()
        for call in (lambda: next(flow), lambda: flow.total, lambda: flow.spaces, lambda: code.changes,
                     lambda: image.info, lambda: image.physical(0), lambda: self.stream.flow(code),
                     lambda: vmpt.Code(image)):
            with self.assertRaises(ValueError):
                call()
        flow = self.flow(b"\x90\xff\xe0")  # it alone keeps its code
        self.assertGreater(sum(len(part.blocks) for part in flow if isinstance(part, FlowBlocks)), 0)


class Images(unittest.TestCase):
    def test_pages(self):
        data = os.urandom(2 * PAGE)
        write("x.dump", data)
        with vmpt.Image(write("x.addr", struct.pack("<2Q", 0x7000, 0x5000))) as image:
            self.assertEqual(image.page(Space(HOST, None), 0x5000).data, data[PAGE:])
            self.assertEqual(image.page(Space(HOST, 0x1000, 32), 0x7000).known, (1 << PAGE) - 1)
            self.assertIsNone(image.page(Space(HOST, None), 0x6000))
            self.assertEqual((image.info.linear, image.info.physical), (2 * PAGE, 0))
            self.assertEqual(image.counts, (2, 1, 0, 0, 0, 0))
            with self.assertRaises(ValueError):
                image.page(Space(HOST, None), 0x5001)

    def test_memory(self):
        """Tables of four levels in raw memory, with a hole by ranges."""
        data = bytearray(5 * PAGE)
        for level, entry in enumerate((0x1003, 0x2003, 0x3003, 0x1234003)):
            data[level * PAGE:level * PAGE + 8] = struct.pack("<Q", entry)
        data[4 * PAGE:] = os.urandom(PAGE)
        parts = [(0, 4 * PAGE, 0), (0x1234010, PAGE - 0x10, 4 * PAGE + 0x10)]
        image = vmpt.Image(write("ram", bytes(data)), kind=ImageKind.RAM, paging=Paging.PAGING_4, ranges=parts)
        space = Space(HOST, 0)
        self.assertEqual(image.translate(space, 0x123), 0x1234123)
        self.assertIsNone(image.translate(space, 0x200000))
        got = image.page(space, 0)
        self.assertEqual((got.data[0x10:], got.known), (bytes(data[4 * PAGE + 0x10:]), (1 << PAGE) - (1 << 0x10)))
        self.assertEqual(image.physical(0x1000).data[:8], struct.pack("<Q", 0x2003))
        self.assertEqual(image.info.paging, Paging.PAGING_4)

    def test_order(self):
        """The first image that has a page; the next one for what differs; images of one space."""
        one, two = (vmpt.Image(write(f"i{i}", bytes([i] * PAGE)), address=0x1000) for i in (1, 2))
        code = vmpt.Code(one, two)
        code.add(one, Owner(OwnerKind.VM, 0x5000), 0x9000)
        self.assertEqual([code.page(Space(HOST, None), 0x1000, n).data[0] for n in (0, 1)], [1, 2])
        self.assertIsNone(code.page(Space(HOST, None), 0x1000, 2))
        self.assertFalse(code.changes)
        only = vmpt.Code()
        only.add(two, Owner(OwnerKind.VM, 0x5000), 0x9000)
        self.assertIsNone(only.page(Space(Owner(OwnerKind.VM, 0x5000), 0x8000), 0x1000))
        self.assertEqual(only.page(Space(Owner(OwnerKind.VM, 0x5000), 0x9000), 0x1000).data[0], 2)

    def test_bad(self):
        with self.assertRaises(vmpt.Error) as caught:
            vmpt.Image("/nonexistent")
        self.assertEqual((caught.exception.code, caught.exception.path), (vmpt.ErrorCode.IO, "/nonexistent"))
        with self.assertRaises(vmpt.Error) as caught:
            vmpt.Image(write("odd.addr", b"\1" * 8 + b"\0" * 8))
        self.assertEqual(caught.exception.code, vmpt.ErrorCode.IO)  # no odd.dump
        with self.assertRaises(ValueError):
            vmpt.Image("a\0b")


if __name__ == "__main__":
    support.main()
