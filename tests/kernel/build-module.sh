#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# arch/ and vmm-lib/ are also kernel code: build their files, unchanged and in place, as a module
# against the headers of Debian's linux-source-6.12, and check the result.
#
#	build-module.sh OUT-DIR SOURCE...	(VMPT_ROOT: see meson.build)
set -uo pipefail

out=$1
shift
root=${VMPT_ROOT:?}
# shellcheck source=tests/lib.sh
. "$root/tests/lib.sh"
# Limits of a function's stack and of a call chain's, in bytes: a kernel's stack is 16 KiB.
frame=1024 chain=3072

# The kernel's make must not inherit a make or a compiler from our caller.
unset MAKEFLAGS MFLAGS MAKELEVEL CC CFLAGS LDFLAGS KBUILD_OUTPUT ARCH CROSS_COMPILE
unset MALLOC_PERTURB_
export LC_ALL=C

mkdir -p "$out"
kernel=$("$(dirname "$0")/prepare-kernel.sh" "$out") || {
	status=$?
	echo "$kernel"
	exit $status
}

# kbuild puts each object beside its source: build in a folder of links to the sources. Build all
# each time, since a warning only appears when its file is compiled. kbuild does not support a path
# with a space.
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
ln -s "$root" "$work/root"
mod=$work/module
mkdir "$mod"
objects=
for source; do
	name=$(realpath --relative-to="$root" "$source")
	mkdir -p "$mod/$(dirname "$name")"
	ln -s "$(realpath "$source")" "$mod/$name"
	objects+=" ${name%.c}.o"
done
cat >"$mod/Kbuild" <<END
obj-m := vmpt.o
vmpt-y := $objects
ccflags-y := -I$work/root -I$work/root/tests/kernel -Werror -Wframe-larger-than=$frame -fstack-usage -fcallgraph-info=su
END
make -C "$kernel" "M=$mod" -j "$(nproc)" W=1 KBUILD_MODPOST_WARN=1 modules \
	>"$out/build.log" 2>&1 </dev/null || rc=$?
check_log "the kernel's build" "$out/build.log" [ $rc = 0 ] || finish

# modpost knows no kernel symbols here, since there is no vmlinux. They are checked below.
warnings=$(grep -i 'warning' "$out/build.log" |
	grep -v -e 'modpost: .* undefined!$' -e 'unresolved symbol warnings because' \
		-e 'Symbol info of vmlinux is missing' \
		-e 'Module.symvers is missing' -e 'You can set KBUILD_MODPOST_WARN=1')
check 'no warnings' [ -z "$warnings" ]

# Functions that the C library provides elsewhere, and those that the compiler and objtool call in a
# kernel.
nm "$mod/vmpt.ko" >"$out/symbols"
foreign=$(awk '$1 == "U" { print $2 }' "$out/symbols" |
	grep -v -x -e 'mem\(cpy\|set\|move\|cmp\)' -e strlen -e _printk -e __fortify_panic \
		-e __stack_chk_fail -e __x86_return_thunk -e __kmalloc_cache_noprof -e __kmalloc_noprof \
		-e kmalloc_caches -e kfree -e '__x86_indirect_thunk_r[a-z0-9]*')
check 'only these symbols of the kernel' [ -z "$foreign" ]
for symbol in vmpt_strerror init_module cleanup_module; do
	check "the module has $symbol" grep -qw "[TtDd] $symbol" "$out/symbols"
done
writable=$(size -A "$mod/vmpt.ko" | awk '$1 ~ /^\.(data|bss)/ && $2 > 0 { print $1, $2 }')
check 'no writable data' [ -z "$writable" ]

readelf -SW "$mod/vmpt.ko" >"$out/sections"
check 'objtool processed the module' grep -q ' \.orc_unwind ' "$out/sections"
objdump -d --no-show-raw-insn "$mod/vmpt.ko" >"$out/vmpt.dis"
check 'objdump shows code' grep -q '[[:space:]]mov ' "$out/vmpt.dis"
check 'no vector or x87 registers' not grep -m 5 '%[xyz]mm[0-9]\|%st\b' "$out/vmpt.dis"

# name:line:column:function, bytes, kind
find "$mod" -name '*.su' -exec cat {} + | sed "s|^$mod/||" | sort -t '	' -k 2 -n -r >"$out/stack"
check 'the compiler reports stack usage' [ -s "$out/stack" ]
check 'stack has bounds' not grep -v '	\(static\|dynamic,bounded\)$' "$out/stack"
echo "$# sources, $(grep -c ' [Tt] ' "$out/symbols") functions," \
	"$(size -A "$mod/vmpt.ko" | awk '/^\.text/ { n += $2 } END { print n }') bytes of code"
echo "most stack: $(sed -n '1s/.*:\(.*\)\t\(.*\)\t.*/\1 \2/p' "$out/stack") bytes"
check 'the depth of calls' "$(dirname "$0")/stack-depth" $chain "$mod"
finish
