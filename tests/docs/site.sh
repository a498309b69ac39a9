#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# "make site" builds without a warning, its links lead somewhere, and it loads nothing from elsewhere.
#
#	site.sh SOURCE BUILD
set -u
source "$1/tests/lib.sh"
links=$1/tests/docs/links.py build=$2

"$1/docs/site/build" "$build"
rc=$?
[ $rc = 77 ] && exit 77
check 'the site' [ $rc = 0 ] || finish
found=$("$links" "$build/site")
rc=$?
show()
{
	echo "$found" | tail -n 30
}
check 'its links' [ "$rc $(echo "$found" | wc -l)" = '0 1' ]
check 'a page for each header' [ "$(find "$build/include/vmpt" -name '*.h' ! -name mem.h | wc -l)" = \
	"$(find "$build/site/api" -name '*.html' ! -name index.html | wc -l)" ]
check 'a page for each man page' [ "$(find "$build/docs/man" -name '*.1' | wc -l)" = \
	"$(find "$build/site/man" -name '*.html' | wc -l)" ]
check 'a search index with the functions' grep -q vmpt_vcpu_enter "$build/site/search/search_index.json"

check 'functions in documents are links' grep -q 'href="api/vmpt.html#vmpt_vcpu_init"><code>' "$build/site/vmm-guide.html"
check 'folders are links' grep -q 'href="source/cli/schemas/index.html"' "$build/site/json.html"
check 'a folder lists its files' grep -q 'href="insn.schema.json.txt"' "$build/site/source/cli/schemas/index.html"

# What it does not pass.
bad=$(mktemp -d) || exit
trap 'rm -rf "$bad"' EXIT
cat >"$bad/a.html" <<'END'
<link href="https://fonts.invalid/x.css"><script src="//cdn.invalid/x.js"></script><img src="a.png">
<a href="b.html">b</a><a href="#there">there</a><a href="https://example.invalid/">elsewhere</a><p id="here">
END
echo 'p { background: url(https://cdn.invalid/x.png); }' >"$bad/a.css"
found=$("$links" "$bad")
check 'faults' [ "$(echo "$found" | sort)" = "$(sort <<'END'
a.html: loads https://fonts.invalid/x.css
a.html: loads //cdn.invalid/x.js
a.html: a.png: no such file
a.html: b.html: no such file
a.html: #there: no such place
a.css: loads https://cdn.invalid/x.png
1 pages, 6 links
END
)" ]
finish
