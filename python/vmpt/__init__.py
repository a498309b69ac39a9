# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Intel Processor Trace of hosts and their VMs: libvmpt-decode from Python.

    import vmpt

    with vmpt.open("perf.data") as trace:
        for stream in trace.streams:
            for s in stream.slices():
                print(stream.cpu, s.offset, s.size, s.owner)

What is opened is closed by close(), by `with`, or by garbage collection, in any order; a use after
that raises ValueError. An error of the library raises vmpt.Error. Calls into the library let other
threads run; threads may use the same object, one call at a time. vmpt.arrays has numpy's types.
"""
from . import _enums, _structs
from ._clock import Clocks, VmNames
from ._decode import Decoder, Splitter
from ._enums import *  # noqa: F403
from ._flow import Flow
from ._handle import Error
from ._image import Code, Image
from ._structs import *  # noqa: F403
from ._timeline import Timeline
from ._trace import Stream, Trace, Writer, open
from ._version import __version__
from ._vmpt import lib as _lib

if _lib.vmpt_py_version():
    raise ImportError(
        f"the module vmpt {__version__} was compiled for another version of libvmpt-decode.so.0 than "
        "the one that the linker found: install both of one version")

__all__ = [
    "Clocks", "Code", "Decoder", "Error", "Flow", "Image", "Splitter", "Stream", "Timeline", "Trace", "VmNames", "Writer",
    "__version__", "open",
]
__all__ += _enums.__all__
__all__ += _structs.__all__

# vmpt.Error, not vmpt._handle.Error, in tracebacks and help().
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
del _name
