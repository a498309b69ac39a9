#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Make the Python module's C source and its enums from the public headers.

    bindings.py INCLUDE-DIR EXPORTS.MAP OUT.c OUT.py COMPILER...

The compiler preprocesses <vmpt/…>; what is left are declarations, of which those of functions that
the shared library exports are kept, and all structs and enums. cffi makes an extension of them (API
mode): the C compiler then checks each declaration, and finds sizes, offsets and the values of macros.
"""
import re
import subprocess
import sys
from pathlib import Path

import cffi

HEADERS = ("decode", "extract", "clock", "events", "timeline", "flow")
# Of libvmpt-arch, linked statically: what it takes to print a packet is done in fill.c.
INCLUDES = "".join(f"#include <vmpt/{name}.h>\n" for name in HEADERS) + '#include "fill.h"\n'

# Called by vmpt_extract().
CALLBACKS = """
extern "Python" int vmpt_py_stream(void *, int, const struct vmpt_owner *);
extern "Python" int vmpt_py_write(void *, int, const u8 *, size_t);
extern "Python" int vmpt_py_slice(void *, const struct vmpt_extracted *);
extern "Python" int vmpt_py_wanted(void *, const struct vmpt_slice *);
"""

# Enums for Python: the name of the class, and what the members' names lose, where not derived.
CLASSES = {"vmpt_error": ("ErrorCode", "VMPT_(E_)?"), "vmpt_sure": ("Sure", "VMPT_"),
       "vmpt_trace_format": ("TraceFormat", "VMPT_TRACE_")}
# No values: numbers of members, ends of ranges.
COUNTS = re.compile(r"VMPT_(\w+_KINDS|FLOW_REASONS|E_NR|E_VMM|E_VMM_END)$")
# In Kind, which is all kinds of items.
KINDS = ("vmpt_pt_kind", "vmpt_item_kind", "vmpt_rtit_kind", "vmpt_rtit_item_kind")
HIDDEN = KINDS + ("vmpt_pt_size_rule", "vmpt_pt_coding", "vmpt_pt_format", "vmpt_rtit_coding",
          "vmpt_rtit_format", "vmpt_pt_cfe", "vmpt_pt_evd")


def preprocess(compiler, include):
    """The lines of our headers, and the macros that they define."""
    text = subprocess.run([*compiler, "-E", "-dD", "-I", include, "-I", str(Path(__file__).parent), "-"],
                          input=INCLUDES, stdout=subprocess.PIPE, check=True, text=True).stdout
    ours, lines, macros = False, [], {}
    for line in text.splitlines():
        if mark := re.match(r'# \d+ "(.*?)"', line):
            ours = "/vmpt/" in mark[1] or mark[1].endswith("/fill.h")
        elif ours and (macro := re.match(r"#define (VMPT_\w+) (.+)", line)):
            macros[macro[1]] = macro[2]
        elif ours and not line.startswith("#"):
            lines.append(line)
    return "\n".join(lines), macros


def declarations(text):
    """Each declaration, without the bodies of functions."""
    depth, begin, at = 0, 0, 0
    for at, char in enumerate(text):
        depth += (char == "{") - (char == "}")
        inline = text[begin:at].lstrip().startswith("static")
        if not depth and (char == ";" or char == "}" and inline):
            if not inline:
                yield text[begin:at + 1].strip()
            begin = at + 1


def wanted(declaration, exports):
    """Types, and functions that can be linked."""
    if declaration.startswith("extern"):
        return False
    function = re.match(r"(?!typedef)[^{(]*?\b(vmpt_\w+)\(", declaration)
    return not function or function[1] in exports or function[1].startswith("vmpt_py_")


def python_enums(ffi, text, macros, include):
    """Classes for the enums, as Python."""
    headers = {path.relative_to(include): path.read_text(encoding="utf-8")
               for path in sorted(Path(include, "vmpt").rglob("*.h"))}
    out = ['"""Generated from the headers of libvmpt-decode: their enums."""',
           "# SPDX-License-Identifier: GPL-2.0-only OR MIT",
           "from enum import IntEnum, IntFlag", "", "",
           "class _Enum(IntEnum):", "    def __repr__(self) -> str:",
           '        return f"{type(self).__name__}.{self.name}"']

    def put(base, name, title, members):
        out.extend(["", "", f"class {name}({base}):", f'    """{title}"""', ""])
        out.extend(f"    {member} = {value}" for member, value in members)

    def members(tag, prefix):
        values = ffi.typeof("enum " + tag).relements
        # PAGING_4: a name cannot begin with a digit.
        return [(re.sub("^" + prefix + r"(?!\d)|^VMPT_", "", name), value) for name, value in
            sorted(values.items(), key=lambda item: item[1]) if not COUNTS.match(name)]

    names = []
    for tag in re.findall(r"enum (vmpt_\w+)\s*{", text):
        if tag in HIDDEN:
            continue
        name, prefix = CLASSES.get(tag, (None, None))
        if not name:
            name = "".join(word.title() for word in tag.split("_")[1:])
            words = [member.split("_") for member in ffi.typeof("enum " + tag).relements]
            same = 0
            while all(len(w) > same + 1 and w[same] == words[0][same] for w in words):
                same += 1
            prefix = "_".join(words[0][:same]) + "_"
        names.append(name)
        header = next(path for path, code in headers.items() if f"enum {tag} {{" in code)
        put("_Enum", name, f"enum {tag} of <{header}>.", members(tag, prefix))
    kinds = dict(members("vmpt_pt_kind", "VMPT_PT_") + members("vmpt_item_kind", "VMPT_ITEM_"))
    base = ffi.typeof("enum vmpt_rtit_item_kind").relements["VMPT_ITEM_RTIT"]
    kinds.update((f"RTIT_{name}", base + value) for name, value in members("vmpt_rtit_kind", "VMPT_RTIT_"))
    kinds.update(members("vmpt_rtit_item_kind", "VMPT_ITEM_")[-2:])
    put("_Enum", "Kind", "Kinds of packets and items: enum vmpt_pt_kind, vmpt_item_kind and those of RTIT.",
        kinds.items())
    put("IntFlag", "GapFlags", "VMPT_GAP_* of <vmpt/decode.h>: why bytes do not continue those before them.",
        [(name[len("VMPT_GAP_"):], value) for name, value in macros.items() if name.startswith("VMPT_GAP_")])
    names += ["Kind", "GapFlags"]
    return "\n".join(out + ["", "", "__all__ = [" + ", ".join(f'"{n}"' for n in sorted(names)) + "]", ""])


def main(argv):
    include, exports_map, out_c, out_py, *compiler = argv
    exports = set(re.findall(r"^\t(vmpt_\w+);", Path(exports_map).read_text(encoding="utf-8"), re.M))
    text, macros = preprocess(compiler, include)
    types = "\n".join(d for d in declarations(text) if wanted(d, exports))
    constants = "".join(f"#define {name} ...\n" for name, body in macros.items()
                if not re.search(r'"|__', body))
    ffi = cffi.FFI()
    ffi.cdef(types + "\n" + constants + CALLBACKS)
    ffi.set_source("vmpt._vmpt", INCLUDES)
    ffi.emit_c_code(out_c)
    Path(out_py).write_text(python_enums(ffi, types, macros, include), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
