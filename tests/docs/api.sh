#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The comments of the public headers are complete (docs/site/api), and the check finds each fault of
# a header that is wrong.
#
#	api.sh SOURCE BUILD OUT
set -u
source "$1/tests/lib.sh"
api=$1/docs/site/api out=$3
need doxygen

headers=$(realpath "$2")
check 'the public headers' "$api" "$headers" || finish

# header TEXT: a build folder whose only header has it.
header()
{
	rm -rf "$out"
	mkdir -p "$out/include/vmpt"
	printf '/* SPDX */\n/*\n * A header.\n */\n#ifndef A\n#define A\n\n%b\n\n#endif\n' "$1" >"$out/include/vmpt/a.h"
	"$api" "$out" "$out/pages" >"$out/log" 2>&1
	rc=$?
}

# wrong WHAT TEXT: the header is refused, with this message.
wrong()
{
	name=$1
	header "$3"
	check 'is refused' [ $rc = 1 ]
	check_log "says \"$2\"" "$out/log" grep -qF "$2" "$out/log"
}

show()
{
	sed 's/^/	/' "$out/log"
}

wrong 'a function' '<vmpt/a.h> f: no comment' 'int f(int x);'
wrong 'an empty line between' '<vmpt/a.h> f: no comment' '/* 0 */\n\nint f(int x);'
wrong 'a macro' '<vmpt/a.h> M: no comment' '#define M 1'
wrong 'a struct' '<vmpt/a.h> s: no comment' 'struct s {\n\tint x; /* x */\n};'
wrong 'an enum' '<vmpt/a.h> e: no comment' 'enum e { E };'
wrong 'a parameter' '<vmpt/a.h> f: @y is no parameter' '/* 0 or @y. */\nint f(int x);'
wrong 'a result' '<vmpt/a.h> f: what does it return?' '/* Do it. */\nint f(int x);'
wrong 'a name' 'VMPT_NONE' '/* 0 or VMPT_NONE. */\nint f(int x);'
wrong 'a type' 'vmpt_none' '/* 0 or an enum vmpt_none. */\nint f(int x);'

# What comments belong to.
name=pages
header '/* 0 or @x. */\nint f(int x);\nint g(int x);\n\n/* A struct. */\nstruct s {\n\tint a, b; /* two */\n\t/* three */
\tint (*c)(int x);\n\tint d;\n};\n\n/* A flag. */\n#define F 1 /* first */\n#define G 2'
check 'is right' [ $rc = 0 ]
page=$out/pages/a.md
check 'two functions' grep -q '^### f(), g() { #f }$' "$page"
check 'and one comment' [ "$(grep -c 'or <code>x</code>' "$page")" = 1 ]
check 'fields by commas' grep -q '^<dt id="s.b"><code>int b</code></dt>$' "$page"
check 'the field after' [ "$(grep -A1 'id="s.b"' "$page" | tail -n 1)" = '<dd><div class=para>two</div></dd>' ]
check 'the last field' [ "$(grep -A1 'id="s.d"' "$page" | tail -n 1)" = '<dd><div class=para>three</div></dd>' ]
check 'a macro of two comments' [ "$(grep -A2 'id="F"' "$page" | tail -n 2 | tr -d '\n')" = \
	'<dd><div class=para>first</div><div class=para>A flag.</div></dd>' ]
name='text'
header '/*\n * It is\n * 1. 0 or <x> \\ #GP * @x:\n *   a   1\n *     b\n * the end\n * - an\n *   item\n */\nint f(int x);'
check 'is right' [ $rc = 0 ]
check 'a sentence that ends with a number' grep -qF 'It is 1. 0 or &lt;x&gt; \ #GP * <code>x</code>:' "$page"
check 'a table' [ "$(grep -A1 '<pre>a   1$' "$page" | tail -n 1)" = '  b' ]
check 'a list' grep -qF '<li><div class=para>an item</div></li>' "$page"
rm -rf "$out"
finish
