# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What cffi makes: bindings.py.
from typing import Any

lib: Any
ffi: Any
