#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Links of a site that lead nowhere, and what its pages load from elsewhere.

	links.py FOLDER

A line for each; the last line is the number of pages and links looked at.
"""
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

top = Path(sys.argv[1]).resolve()
LOADS = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Page(HTMLParser):
	def __init__(self, path):
		super().__init__()
		self.ids, self.links, self.loads = set(), [], []
		self.feed(path.read_text(encoding="utf-8"))

	def handle_starttag(self, tag, attrs):
		attrs = dict(attrs)
		self.ids.update(filter(None, (attrs.get("id"), attrs.get("name") if tag == "a" else None)))
		if tag == "a" and attrs.get("href"):
			self.links.append(attrs["href"])
		load = attrs.get(LOADS.get(tag))
		if load and attrs.get("rel") != "canonical":
			self.loads.append(load)


pages = {path: Page(path) for path in top.rglob("*.html")}
count = 0
for path, page in sorted(pages.items()):
	name = path.relative_to(top)
	for link in page.loads:
		if re.match("([a-z]+:)?//", link):
			print(f"{name}: loads {link}")
	for link in page.links + page.loads:
		count += 1
		# The page of what is not found is served at any address.
		if re.match("([a-z]+:|//)", link) or name.name == "404.html":
			continue
		target, _, anchor = link.partition("#")
		to = (path.parent / unquote(target)).resolve() if target else path
		if not to.is_relative_to(top) or not to.exists():
			print(f"{name}: {link}: no such file")
		elif anchor and to in pages and unquote(anchor) not in pages[to].ids:
			print(f"{name}: {link}: no such place")
for path in top.rglob("*.css"):
	for url in re.findall(r"url\(['\"]?((?:https?:)?//[^)]*)", path.read_text(encoding="utf-8")):
		print(f"{path.relative_to(top)}: loads {url}")
print(len(pages), "pages,", count, "links")
