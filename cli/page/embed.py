#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Make a C header of the page's files: embed.py OUT.h page.html page.css SCRIPT.js...

The style and the scripts, one after the other, go where page.html says @CSS@ and @JS@; their
hashes, by which the page's Content-Security-Policy allows them and nothing else, to @CSP@. What is
written for each trace, @META@ and @DATA@, cuts the page into three pieces.
"""
import base64
import hashlib
import sys


def read(name):
	with open(name, encoding="utf-8") as file:
		return file.read()


def tight(text):
	"""Without indentation and comment lines, but for the licence; no string has several lines."""
	lines = [line.strip() for line in text.splitlines()]
	return "\n".join(line for line in lines if line and (not line.startswith("//") or "SPDX" in line)) + "\n"


def source(text):
	"""What CSP calls the source of an inline element."""
	digest = hashlib.sha256(text.encode()).digest()
	return "'sha256-" + base64.b64encode(digest).decode() + "'"


def main(out, page, style, *scripts):
	css = "\n" + tight(read(style))
	js = "\n'use strict';\n(() => {\n" + "".join(tight(read(name)) for name in scripts) + "})();\n"
	for text, end in ((css, "</style"), (js, "</script")):
		if end in text.lower():
			sys.exit(f"embed.py: {end} in a file that is embedded")
	csp = (f"default-src 'none'; script-src {source(js)}; style-src {source(css)}; "
	       "base-uri 'none'; form-action 'none'")
	html = read(page)
	for mark, text in (("@CSP@", csp), ("@CSS@", css), ("@JS@", js)):
		before, found, after = html.partition(mark)
		if not found:
			sys.exit(f"embed.py: {page} has no {mark}")
		html = before + text + after
	head, rest = html.split("@META@")
	middle, tail = rest.split("@DATA@")
	with open(out, "w", encoding="ascii") as file:
		file.write("/* SPDX-License-Identifier: GPL-2.0-only OR MIT */\n"
			   "/* Made by cli/page/embed.py. */\n")
		for name, text in (("head", head), ("middle", middle), ("tail", tail)):
			data = text.encode()
			file.write(f"static const char page_{name}[{len(data)}] = {{\n")
			for i in range(0, len(data), 24):
				row = ",".join(str(b if b < 128 else b - 256) for b in data[i:i + 24])
				file.write(row + ",\n")
			file.write("};\n")


main(*sys.argv[1:])
