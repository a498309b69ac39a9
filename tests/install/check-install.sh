#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# The files of "make install" are sufficient. Programs are built from them alone, with pkg-config's
# flags, as C and C++, shared and static, and run. What the shared libraries export is what the
# public headers declare and exports.map lists; the archives have no name without the prefix and can be
# linked whole. Each header compiles alone, and all together. The installed command runs.
#
#	check-install.sh BUILD-DIR OUT-DIR	(VMPT_ROOT, VMPT_CC, VMPT_CFLAGS,
#	VMPT_DOMAIN, VMPT_PYTHON: see meson.build)
# shellcheck disable=SC2046,SC2086 # words
set -u

# shellcheck source=tests/lib.sh
. "$VMPT_ROOT/tests/lib.sh"
build=$1
out=$2
# pkg-config does not support a sysroot with a space.
dest=$(mktemp -d) || exit
trap 'rm -rf "$dest"' EXIT
rm -rf "$out"
mkdir -p "$out"
DESTDIR=$dest meson install -C "$build" --no-rebuild >"$out/install.log" 2>&1 || rc=$?
check_log 'meson install' "$out/install.log" [ $rc = 0 ] || finish
pc=$(find "$dest" -name vmpt.pc)
check 'vmpt.pc is installed' [ -n "$pc" ] || finish
check 'vmpt-model.pc is installed' [ -f "$(dirname "$pc")/vmpt-model.pc" ] || finish

# The sysroot is like the folder that packagers install to.
tell()
{
	env -u PKG_CONFIG_PATH PKG_CONFIG_LIBDIR="$(dirname "$pc"):$(pkg-config --variable pc_path pkg-config)" PKG_CONFIG_SYSROOT_DIR="$dest" \
		pkg-config "$@"
}
cflags=$(tell --cflags vmpt)
libs=$(tell --libs vmpt)
arch=$(tell --libs vmpt-arch)
libdir=$(dirname "$pc")/..
export LD_LIBRARY_PATH=$libdir
tell --modversion vmpt

# works PROGRAM COMPILER WORD...: it is built without a warning, and runs.
works()
{
	check "$1 is built" "${@:2}" -Wall -Wextra -Werror $VMPT_CFLAGS -o "$1" && check "$1 runs" "./$1"
}

# make install without PREFIX installs to /usr/local, also after one with it.
goes_to()
{
	env -u MAKEFLAGS -u PREFIX make -n -C "$VMPT_ROOT" install DEPS=no "$@" | sed -n 's/.* --prefix \(.*\)/\1/p'
}
check 'make install goes to' [ "$(goes_to)" = /usr/local ]
check 'PREFIX: goes to' [ "$(goes_to PREFIX=/opt/x)" = /opt/x ]

# Copy only the two files, so that no header of the source tree can be found.
cp "$VMPT_ROOT/tests/kernel/vcpu-run.c" "$VMPT_ROOT/tests/kernel/vcpu-run.h" "$out"
cat >"$out/main.c" <<'END'
#include <stdio.h>
#include <vmpt/vmpt.h>
#include "vcpu-run.h"

int main(void)
{
	static struct vmpt_vcpu vcpu;
	int step = vcpu_run(&vcpu);

	printf("step %d, %zu bytes a vCPU\n", step, sizeof(vcpu));
	return step;
}
END
cd "$out" || exit
works main $VMPT_CC -std=c11 -DVMPT_INSTALLED $cflags main.c vcpu-run.c $libs $arch
check 'main uses libvmpt.so.0' grep 'NEEDED.*libvmpt\.so\.0' <(readelf -d main)
works main-static $VMPT_CC -std=c11 -static -DVMPT_INSTALLED $cflags main.c vcpu-run.c \
	$(tell --static --libs vmpt)

# A program that was compiled with newer headers than the library: each call that begins something is an
# error, and nothing is written. Newer are: each struct is larger; only the version differs.
cat >newer.c <<'END'
#include <stdio.h>
#include <vmpt/calls.h>
#include <vmpt/clock.h>
#include <vmpt/conformance.h>
#include <vmpt/decode.h>
#include <vmpt/events.h>
#include <vmpt/extract.h>
#include <vmpt/flow.h>
#include <vmpt/guest.h>
#include <vmpt/host.h>
#include <vmpt/image.h>
#include <vmpt/model-rtit.h>
#include <vmpt/model.h>
#include <vmpt/parts.h>
#include <vmpt/rtit-clock.h>
#include <vmpt/rtit.h>
#include <vmpt/timeline.h>
#include <vmpt/vmpt.h>

static int wrong;

#define REFUSED(call)                                         \
	do {                                                  \
		int err = (call);                             \
		if (err == -VMPT_E_VERSION)                   \
			break;                                \
		printf("not refused, %d: %s\n", err, #call); \
		wrong = 1;                                    \
	} while (0)

int main(void)
{
	static struct vmpt_vcpu vcpu, zero;
	static struct vmpt_rtit_vcpu rtit_vcpu;
	static struct vmpt_unit unit;
	static struct vmpt_rtit_unit rtit_unit;
	static struct vmpt_rtit_clock rtit_clock;
	struct vmpt_trace *trace = (void *)&vcpu;
	struct vmpt_decoder *dec = (void *)&vcpu;
	struct vmpt_clocks *clocks = (void *)&vcpu;
	struct vmpt_names *names = (void *)&vcpu;
	struct vmpt_timeline *timeline = (void *)&vcpu;
	struct vmpt_image *image = (void *)&vcpu;
	struct vmpt_code *code = (void *)&vcpu;
	struct vmpt_guest *guest = (void *)&vcpu;
	struct vmpt_flow *flow = (void *)&vcpu;
	struct vmpt_calls *calls = (void *)&vcpu;
	struct vmpt_host *host = (void *)&vcpu;
	struct vmpt_conformance_ops ops = { 0 };
	struct vmpt_caps caps;

	REFUSED(vmpt_vcpu_init(&vcpu, NULL, NULL));
	REFUSED(vmpt_rtit_vcpu_init(&rtit_vcpu, NULL));
	REFUSED(vmpt_caps_read(&caps, NULL));
	REFUSED(vmpt_conformance_run(&ops, NULL, NULL, NULL));
	REFUSED(vmpt_unit_init(&unit, NULL));
	REFUSED(vmpt_rtit_unit_init(&rtit_unit, NULL));
	REFUSED(vmpt_trace_open(&trace, "/dev/null", 0, NULL));
	REFUSED(vmpt_trace_open_raw(&trace, "/dev/null", 0, NULL));
	REFUSED(vmpt_trace_open_rtit(&trace, "/dev/null", 0, NULL));
	REFUSED(vmpt_trace_open_perf(&trace, "/dev/null", NULL));
	REFUSED(vmpt_decoder_open_parts(&dec, NULL));
	REFUSED(vmpt_extract(NULL, NULL, NULL, NULL));
	REFUSED(vmpt_clocks_open(&clocks, NULL, 0, NULL));
	REFUSED(vmpt_names_open(&names, NULL));
	REFUSED(vmpt_timeline_open(&timeline, NULL, NULL, 0, NULL));
	REFUSED(vmpt_image_open(&image, "/dev/null", NULL, NULL));
	REFUSED(vmpt_image_make(&image, NULL, NULL));
	REFUSED(vmpt_code_new(&code));
	REFUSED(vmpt_guest_open(&guest, NULL, NULL));
	REFUSED(vmpt_flow_open(&flow, NULL, NULL, NULL));
	REFUSED(vmpt_calls_open(&calls, NULL, 0, NULL, NULL, NULL));
	REFUSED(vmpt_host_open(&host, NULL));
	REFUSED(vmpt_rtit_clock_init(&rtit_clock, 0));
	return wrong || image != (void *)&vcpu || code != (void *)&vcpu || flow != (void *)&vcpu ||
	       guest != (void *)&vcpu || calls != (void *)&vcpu || host != (void *)&vcpu ||
	       memcmp(&vcpu, &zero, sizeof(vcpu)) || trace != (void *)&vcpu ||
	       dec != (void *)&vcpu || clocks != (void *)&vcpu || names != (void *)&vcpu ||
	       timeline != (void *)&vcpu || !strstr(vmpt_strerror(-VMPT_E_VERSION), "version");
}
END
for newer in larger version; do
	rm -rf newer
	mkdir newer
	cp -r "$dest/usr/local/include/vmpt" newer
	if [ $newer = larger ]; then
		sed -i -E 's/^(struct vmpt_[a-z_]+) \{$/\1 { u64 newer;/' newer/vmpt/*.h newer/vmpt/arch/*.h
	else
		sed -i -E 's/^(#define VMPT_ABI_VERSION).*/\1 1000/' newer/vmpt/arch/types.h
	fi
	works newer-$newer $VMPT_CC -std=c11 -I newer newer.c \
		$(tell --libs-only-L --libs-only-l vmpt vmpt-model vmpt-decode)
done
# None is forgotten.
sed -n 's/^\t\(vmpt_[a-z0-9_]*\)_abi;$/\1/p' "$VMPT_ROOT"/{vmm-lib,model,decoder}/exports.map | sort >versioned
sed -n 's/.*REFUSED(\(vmpt_[a-z0-9_]*\)(.*/\1/p' newer.c | sort >refused
check 'all that have a version' diff versioned refused
# Each struct alone: a larger one changes a number. Not so what no shared library sees: the tables of arch/,
# and the cursor of an inline function.
{
	cat <(sed -n '/^#include <vmpt/p' newer.c)
	echo 'const unsigned long long numbers[] = {'
	cat "$dest"/usr/local/include/vmpt/*.h | sed -n 's/^#define \(VMPT_[A-Z_]*_ABI\)\b.*/\t\1,/p'
	echo '};'
} >numbers.c
$VMPT_CC -std=c11 -E -P $cflags numbers.c >numbers.i
numbers()
{
	$VMPT_CC -w -x cpp-output -S -o - -
}
numbers <numbers.i >numbers.same
structs=$(sed -n 's/^struct \(vmpt_[a-z0-9_]*\) {$/\1/p' numbers.i)
check 'structs are found' [ "$(echo "$structs" | wc -l)" -gt 90 ]
for struct in $structs; do
	case $struct in
	vmpt_cursor | vmpt_*_desc | vmpt_*_field | vmpt_rtit_last_lip) continue ;;
	esac
	sed "s/^struct $struct {\$/& u64 newer;/" numbers.i | numbers >numbers.larger
	check "a larger $struct shows" not cmp -s numbers.same numbers.larger
done

# Names: all of the archives with the prefix; of the shared libraries those that exports.map lists, each
# of which a public header declares.
for lib in vmpt:vmm-lib vmpt-model:model vmpt-decode:decoder vmpt-arch:arch; do
	nm -g --defined-only "$libdir/lib${lib%:*}.a" | awk 'NF == 3 && $3 !~ /^vmpt_/ { print $3 }' >bare
	check "names of lib${lib%:*}.a" [ ! -s bare ] || cat bare
	[ $lib != vmpt-arch:arch ] || continue
	sed -n 's/^\t\(vmpt_[a-z0-9_]*\);$/\1/p' "$VMPT_ROOT/${lib#*:}/exports.map" | sort >map
	nm -D --defined-only "$libdir/lib${lib%:*}.so.0" | sed -n 's/.* [TRD] \(.*\)@@VMPT_0$/\1/p' | sort >so
	check "exports of lib${lib%:*}" diff map so
	cat "$dest"/usr/local/include/vmpt/{*.h,arch/*.h} | grep -o 'vmpt_[a-z0-9_]*' | sort -u >declared
	check "lib${lib%:*}: exports are declared" [ -z "$(comm -23 map declared)" ]
done

# The examples, built as a reader would: example NAME PACKAGES FILE... in the folder shared/, linked with
# what is in their folder, and in static/ without a shared library of ours; those of decode in C++, too, and
# with a shared Zydis, since Debian has no other.
case $VMPT_CC in
*clang*) cxx=clang++ ;;
*) cxx=g++ ;;
esac
example()
{
	local program=$1 files=() alone

	for file in "${@:3}"; do
		files+=("$VMPT_ROOT/examples/$file")
	done
	check "$program is built" $VMPT_CC -Wall -Wextra -Werror $VMPT_CFLAGS -I "$VMPT_ROOT/examples/vmm" $cflags \
		"${files[@]}" $(tell --libs $2) -o "shared/$program"
	case $2 in
	vmpt-decode) alone=-Wl,--as-needed ;;
	*) alone=-static ;;
	esac
	check "$program is built, static" $VMPT_CC -Wall -Wextra -Werror $VMPT_CFLAGS -I "$VMPT_ROOT/examples/vmm" \
		$cflags $alone "${files[@]}" $(tell --static --libs $2 | sed 's/-l\(vmpt[a-z-]*\)/-l:lib\1.a/g') \
		-o "static/$program"
	check "$program needs no library of ours" [ "$(objdump -p "static/$program" | grep -c 'NEEDED.*vmpt')" = 0 ]
	[ "$2" != vmpt-decode ] || check "$program is built, C++" $cxx -x c++ -std=c++17 -Wall -Wextra -Werror \
		$VMPT_CFLAGS $cflags "${files[@]}" $(tell --libs $2) -o "cxx/$program"
}
mkdir -p shared static cxx
example vmm 'vmpt vmpt-model vmpt-arch' vmm/vmm.c vmm/cpu.c vmm/main.c
example tiny-vmm 'vmpt vmpt-model vmpt-arch' tiny-vmm/vmm.c vmm/cpu.c vmm/main.c
example kvm-user 'vmpt vmpt-arch' kvm-user/main.c kvm-user/model.c kvm-user/pt.c
for reader in packet-counts slices-csv follow; do
	example $reader vmpt-decode $reader/$reader.c
done
check 'vmm runs' ./shared/vmm
check 'vmm runs, static' ./static/vmm
cp shared/tiny-vmm shared/kvm-user cxx
# Numbers of seconds that are none would be waited for without end.
for seconds in 0 -1 abc 1x ''; do
	check "follow: '$seconds' seconds" grep -q '^usage: ' <(timeout 10 ./shared/follow /dev/null "$seconds" 2>&1)
done
for way in shared static cxx; do
	rc=0
	"$VMPT_ROOT/tests/examples/check-examples.py" --page "$VMPT_ROOT/examples/README.md" $way \
		"$VMPT_TRACEGEN" >$way.log || rc=$?
	check_log "what the examples print, $way" $way.log [ $rc = 0 ]
done

# The same VMM with headers like those inside of the libraries, and with all of their internal names as its
# own. It does what it did, shared and with the whole archives.
mkdir -p theirs/arch
echo '#define THEIRS 42' | tee theirs/arch/output.h >theirs/arch/pt-regs.h
{
	printf '#include "arch/output.h"\n#include "arch/pt-regs.h"\nint conformance_read = THEIRS;\n'
	nm "$libdir"/libvmpt{,-model,-arch}.a | sed -n 's/^[0-9a-f]* [tdbr] \([a-z][a-z0-9_]*\)$/\1/p' |
		sort -u | comm -23 - <(nm -D --defined-only "$($VMPT_CC -print-file-name=libc.so.6)" |
			sed 's/.* //; s/@.*//' | sort -u) | sed 's/.*/int & = THEIRS;/'
} >theirs/names.c
check 'internal names are found' [ "$(wc -l <theirs/names.c)" -gt 50 ]
whole=('-Wl,--whole-archive' "$libdir/libvmpt.a" "$libdir/libvmpt-model.a" "$libdir/libvmpt-decode.a"
	"$libdir/libvmpt-arch.a" '-Wl,--no-whole-archive')
theirs=(theirs/names.c "$VMPT_ROOT"/examples/vmm/{cpu,main,vmm}.c)
works theirs/vmm $VMPT_CC -fno-builtin -I theirs $cflags "${theirs[@]}" $(tell --libs vmpt vmpt-model vmpt-arch)
works theirs/vmm-whole $VMPT_CC -fno-builtin -I theirs $cflags "${theirs[@]}" "${whole[@]}" \
	$(tell --static --libs vmpt-decode)
for program in theirs/vmm theirs/vmm-whole; do
	check "$program is right" diff <(./shared/vmm) <(./$program)
done

# A VMM with integer types of its own.
cat >own.c <<'END'
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
#define VMPT_NO_TYPES
#include <vmpt/conformance.h>
#include <vmpt/vmpt.h>

int main(void)
{
	u64 info = vmpt_platform_info(0x2a00, 1ULL << 47); /* half the rate */

	return info == 0x1500 ? 0 : 1;
}
END
works own $VMPT_CC $cflags own.c $libs

# A VMM in C++. Not pedantic: anonymous unions that declare structs are an extension there.
cat >plus.cc <<'END'
#include <vmpt/conformance.h>
#include <vmpt/vmpt.h>

static int no_leaf(void *, u32, u32, vmpt_cpuid_regs *regs)
{
	*regs = vmpt_cpuid_regs();
	return 0;
}

int main()
{
	static vmpt_vcpu vcpu;
	vmpt_cpu_reader reader = { no_leaf, nullptr, nullptr };
	vmpt_conformance_ops none = vmpt_conformance_ops();
	vmpt_position to = { 0, 0 };
	vmpt_pt_packet packet;
	vmpt_caps caps;

	return vmpt_vcpu_init(&vcpu, nullptr, nullptr) == -VMPT_E_INVAL &&
			       !vmpt_caps_read(&caps, &reader) && !caps.cpuid.present &&
			       vmpt_conformance_run(&none, nullptr, nullptr, nullptr) == -VMPT_E_INVAL &&
			       vmpt_vcpu_tsc_adjust(&vcpu, nullptr, &to) == -VMPT_E_INVAL &&
			       vmpt_pt_decode(&packet, nullptr, 0, 0) < 0 &&
			       !vmpt_shadow_invalidate(&vcpu, 0, 4096)
		       ? 0
		       : 1;
}
END
works plus $cxx -std=c++17 $cflags plus.cc $libs $arch

# The trace unit: a TIP after the PSB+ of enabling, in C and C++; the last bytes are TIP(0x402000)
# after TIP.PGE(0x401000), two bytes of the IP (SDM 3, Table 33-18).
cat >unit.c <<'END'
#include <vmpt/model.h>
#include <vmpt/model-fast.h>

static struct vmpt_unit unit;
static u8 trace[256];
static size_t size;

static int take(void *opaque, const u8 *bytes, size_t len)
{
	(void)opaque;
	if (size + len > sizeof(trace))
		return -1;
	memcpy(trace + size, bytes, len);
	size += len;
	return 0;
}

int main(void)
{
	static const u8 psb[] = { 0x02, 0x82, 0x02, 0x82 }, tip[] = { 0x2d, 0x00, 0x20 };
	struct vmpt_unit_config config;
	struct vmpt_sink sink = { take, NULL };

	memset(&config, 0, sizeof(config));
	config.cpuid.present = 1;
	vmpt_pt_cap_set(&config.cpuid, VMPT_CAP_SINGLE_RANGE, 1);
	config.sink = &sink;
	if (vmpt_unit_init(&unit, &config) ||
	    vmpt_unit_wrmsr(&unit, VMPT_MSR_RTIT_CTL,
			    VMPT_CTL_OS | VMPT_CTL_BRANCH_EN | VMPT_CTL_TRACE_EN, 0x400ffe,
			    0x401000))
		return 1;
	vmpt_unit_jmp_fast(&unit, 0x401800);
	vmpt_unit_jmp_indirect(&unit, 0x402000);
	if (vmpt_unit_flush(&unit) || size < sizeof(psb) + sizeof(tip))
		return 2;
	return memcmp(trace, psb, sizeof(psb)) ||
	       memcmp(trace + size - sizeof(tip), tip, sizeof(tip));
}
END
cp unit.c unit.cc
model_cflags=$(tell --cflags vmpt-model)
model_libs=$(tell --libs vmpt-model)
works unit $VMPT_CC -std=c11 $model_cflags unit.c $model_libs $arch
works unit-plus $cxx -std=c++17 $model_cflags unit.cc $model_libs $arch

# RTIT's: PSB, FUP.PGE(0x401000) with four bytes of LIP, TIP(0x402000) with two, since Last LIP has
# the others (Table 18).
cat >rtit.c <<'END'
#include <vmpt/model-rtit.h>
#include <vmpt/model-rtit-fast.h>

static struct vmpt_rtit_unit unit;
static u8 trace[256];
static size_t size;

static int take(void *opaque, u64 pa, const u8 *bytes, size_t len)
{
	(void)opaque;
	(void)pa;
	if (size + len > sizeof(trace))
		return -1;
	memcpy(trace + size, bytes, len);
	size += len;
	return 0;
}

int main(void)
{
	static const u8 want[] = { 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0x85, 0x00, 0x10, 0x40, 0x00,
				   0xb0, 0x00, 0x20 };
	struct vmpt_rtit_unit_config config;
	struct vmpt_rtit_sink sink = { take, NULL };
	u64 ctl;

	memset(&config, 0, sizeof(config));
	config.sink = &sink;
	if (vmpt_rtit_unit_init(&unit, &config) ||
	    vmpt_rtit_unit_rdmsr(&unit, VMPT_RTIT_MSR_CTL, &ctl) ||
	    vmpt_rtit_unit_wrmsr(&unit, VMPT_RTIT_MSR_EVENTS, 0x37, 0x401000) ||
	    vmpt_rtit_unit_wrmsr(&unit, VMPT_RTIT_MSR_CTL,
				 VMPT_RTIT_CTL_OS | VMPT_RTIT_CTL_TRIGGER, 0x401000))
		return 1;
	vmpt_rtit_unit_jmp_fast(&unit, 0x401002, 0x401800);
	vmpt_rtit_unit_jmp_indirect(&unit, 0x401802, 0x402000);
	if (vmpt_rtit_unit_drain(&unit) || size != sizeof(want))
		return 2;
	return memcmp(trace, want, sizeof(want)) ? 3 : 0;
}
END
cp rtit.c rtit.cc
works rtit $VMPT_CC -std=c11 $model_cflags rtit.c $model_libs $arch
works rtit-plus $cxx -std=c++17 $model_cflags rtit.cc $model_libs $arch

rm -f all.c
for header in $(cd "$dest" && find . -path '*/include/*.h'); do
	header=${header#*/include/}
	echo "#include <$header>" | tee -a all.c >one.c
	check "$header alone" $VMPT_CC -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only $cflags one.c
	check "$header alone, C++" $cxx -x c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror \
		-fsyntax-only $cflags one.c
done
# In both orders: a macro that is an enumerator elsewhere would pass in one of them.
sort all.c >one.c
check 'all headers' $VMPT_CC -std=c11 -Wall -Wextra -Werror -fsyntax-only $cflags one.c
sort -r all.c >one.c
check 'all headers, in reverse' $VMPT_CC -std=c11 -Wall -Wextra -Werror -fsyntax-only $cflags one.c

# The Python module, in the folder where it lies; with the library that it finds there.
if [ -n "$VMPT_PYTHON" ]; then
	package=$(find "$dest" -path '*-packages/vmpt')
	check 'the Python module is installed' [ -f "$package/__init__.py" ] && {
		check 'typed' [ -f "$package/py.typed" ]
		check 'by no path of the build' not grep -q "$build" <(readelf -d "$package"/_vmpt.*.so)
		printf '\002\202%.0s' 1 2 3 4 5 6 7 8 >psb.pt
		printf '\002\043\006' >>psb.pt
		cat >use.py <<-'END'
			import sys, vmpt
			kinds = [p.name for p in vmpt.open("psb.pt").streams[0].decode()]
			sys.exit(kinds != ["PSB", "PSBEND", "TNT-8"] or not vmpt.__file__.startswith(sys.argv[1]))
		END
		check 'import vmpt' env PYTHONPATH="$(dirname "$package")" PYTHONDONTWRITEBYTECODE=1 \
			"$VMPT_PYTHON" use.py "$package"
		! "$VMPT_PYTHON" -c 'import numpy' 2>/dev/null ||
			check 'examples/python/exits.py' grep -q '^VMCS ' <(PYTHONPATH=$(dirname "$package") \
				PYTHONDONTWRITEBYTECODE=1 "$VMPT_PYTHON" "$VMPT_ROOT/examples/python/exits.py" psb.pt)
	}
fi

command=$(find "$dest" -path '*/bin/vmpt')
check 'vmpt is installed' "$command" --version
# vmpt domain is a separate program, which the installed vmpt must find. So is the script that finds
# its QEMU. The cache has a stand-in.
if [ -n "$VMPT_DOMAIN" ]; then
	check 'vmpt domain' "$command" domain list --version
	fetched=$out/cache/vmpt/qemu-x
	mkdir -p "$fetched"
	sed -n 's/^#define VMPT_QEMU_PLUGIN_API //p' "$VMPT_ROOT/qemu-plugin/qemu/api.h" >"$fetched/plugin-api"
	ln -s /bin/true "$fetched/qemu-system-x86_64"
	check 'vmpt domain qemu' grep '/qemu-system-x86_64$' \
		<(XDG_CACHE_HOME=$out/cache "$command" domain qemu)
	# As in a distribution's package.
	find "$dest" -name get-qemu -delete
	check 'vmpt domain qemu without get-qemu' grep "^$fetched/qemu-system-x86_64\$" \
		<(PATH=$fetched:$PATH "$command" domain qemu)
fi
finish
