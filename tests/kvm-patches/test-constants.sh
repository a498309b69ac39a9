#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel's constants that replace those of arch/ in pt_core.c have the same values, in the shim
# of these tests and in the kernel's own asm/msr-index.h.
#
#	test-constants.sh CC...	(a C compiler)
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
tarball=${VMPT_LINUX_612_TARBALL:-/usr/src/linux-source-6.12.tar.xz}
work=$(mktemp -d "${TMPDIR:-/tmp}/vmpt-constants.XXXXXX")
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/lib.sh
. "$root/tests/lib.sh"

# One assertion per line of generate's table; macros that take arguments have no value.
python3 - "$root/kvm-patches/pt_core/generate" >"$work/asserts.h" <<'END'
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.SourceFileLoader("generate", sys.argv[1])
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("generate", loader))
loader.exec_module(module)
pairs = [(ours, kernel) for ours, kernel in module.KERNEL.items()
         if kernel.startswith(("MSR_", "RTIT_"))]
assert len(pairs) > 30
for ours, kernel in pairs:
    print(f'_Static_assert({ours} == {kernel}, "{ours}");')
print(f'_Static_assert({len(pairs)} == {len(set(k for _, k in pairs))}, "twice");')
END

# $1: where the constants are from, then flags.
compare()
{
	local what=$1
	shift
	checks=$((checks + 1))
	cat >"$work/constants.c" <<-END
		#include "shim.h"
		#define VMPT_NO_TYPES
		#include "arch/pt-regs.h"
		#include <asm/msr-index.h>
		#include "asserts.h"
	END
	"${cc[@]}" -std=gnu11 -fsyntax-only -I"$work" "$@" -I"$root/tests/kvm-patches/shim" -I"$root" \
		"$work/constants.c" || {
		failures=$((failures + 1))
		echo "failed: $what"
	}
}

cc=("${@:-cc}")
compare "the shim"
if [ -r "$tarball" ]; then
	# It comes early in the archive: the rest need not be unpacked.
	mkdir "$work/asm" "$work/linux"
	xz -dc "$tarball" 2>/dev/null | tar -x -O --occurrence=1 -f - \
		linux-source-6.12/arch/x86/include/asm/msr-index.h >"$work/asm/msr-index.h" || true
	grep -q MSR_IA32_RTIT_CTL "$work/asm/msr-index.h" ||
		{ echo "failed: no asm/msr-index.h in $tarball" && exit 1; }
	compare "linux-source-6.12" -I"$work"
else
	skip_part "the package linux-source-6.12 is not installed"
fi
finish
