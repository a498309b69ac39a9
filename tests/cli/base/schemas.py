#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""The schemas of vmpt's JSON. Whether a file fits one: schemas.py NAME FILE; without jsonschema it does."""
import json
import pathlib
import sys

try:
	import jsonschema
except ImportError:
	jsonschema = None

SCHEMAS = pathlib.Path(__file__).resolve().parents[3] / "cli" / "schemas"
validators = {}


def schema_of(name):
	return json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))


def resolved(node, where):
	"""A copy in which references to other files are whole: not all versions resolve them."""
	if isinstance(node, list):
		return [resolved(n, where) for n in node]
	if not isinstance(node, dict):
		return node
	if "$ref" in node:
		name, path = node["$ref"].split("#")
		where = schema_of(name.removesuffix(".schema.json")) if name else where
		target = where
		for part in path.strip("/").split("/"):
			target = target[part]
		return resolved(target, where)
	return {k: resolved(v, where) for k, v in node.items() if k != "$defs"}


def validator(name):
	if name not in validators:
		schema = schema_of(name)
		validators[name] = jsonschema.Draft7Validator(resolved(schema, schema))
	return validators[name]


def main(name, path):
	if not jsonschema:
		print("no python3-jsonschema here: make deps")
		return 0
	doc = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
	errors = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator(name).iter_errors(doc)]
	print("\n".join(errors))
	return bool(errors)


if __name__ == "__main__":
	sys.exit(main(*sys.argv[1:]))
