# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Where to install a module, so that this Python finds it.

    install-dir.py PREFIX DIR

Prints DIR, meson's choice; but where Python does not look there, and has a folder of its own for modules
below PREFIX, that one.
"""
import os
import sys
import sysconfig

prefix, meson = sys.argv[1], os.path.join(sys.argv[1], sys.argv[2])
own = sysconfig.get_path("platlib")
looks = os.path.normpath(meson) in map(os.path.normpath, sys.path)
print(meson if looks or not own.startswith(prefix + "/") else own)
