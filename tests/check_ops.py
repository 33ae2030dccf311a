#!/usr/bin/env python3
"""Compares the operator table with the onnx package: names, first opset, arity, attributes.

usage: check_ops.py BUILD     needs the Python package onnx; prints differences, exit status 1 if any
"""
import collections
import os
import subprocess
import sys
import tempfile

import onnx

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DUMP = r"""
#include <stdio.h>
#include "ops/ops.h"
int main(void)
{
    for (int i = 0; i < accel_op_count(); i++) {
        const struct accel_op *o = accel_op_table[i];
        printf("%s|%s|%d|%d|%d|%d|%d|%d|", o->domain, o->name, o->since, o->min_in, o->max_in,
               o->min_out, o->max_out, o->infer != 0);
        for (const struct accel_attr_rule *a = o->attrs; a && a->name; a++)
            printf("%s:%d,", a->name, (int)a->kind);
        puts("");
    }
}
"""


def table(build):
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/dump.c", "w") as f:
            f.write(DUMP)
        flags = subprocess.run(["pkg-config", "--libs", "libfyaml", "libprotobuf-c"], check=True,
                               capture_output=True, text=True).stdout.split()
        subprocess.run(["cc", "-D_GNU_SOURCE", "-I", ROOT, d + "/dump.c", "-o", d + "/dump",
                        build + "/libaccel_static.a", *flags, "-lm", "-lpthread", "-ldl"], check=True)
        out = subprocess.run([d + "/dump"], check=True, capture_output=True, text=True).stdout
    rows = {}
    for line in out.splitlines():
        dom, name, since, a, b, c, e, known, attrs = line.split("|")
        rules = dict(x.split(":") for x in attrs.split(",") if x)
        rows[dom, name] = ([int(since), int(a), int(b), int(c), int(e)], known == "1",
                           {k: int(v) for k, v in rules.items()})
    return rows


def main():
    ours, bad = table(sys.argv[1]), []
    theirs = collections.defaultdict(list)
    for s in onnx.defs.get_all_schemas_with_history():
        theirs[s.domain, s.name].append(s)
    for key, schemas in sorted(theirs.items()):
        if key not in ours:
            bad.append(f"{key}: not in the table")
            continue
        arity, known, rules = ours[key]
        want = [min(s.since_version for s in schemas), min(s.min_input for s in schemas),
                max(s.max_input for s in schemas), min(s.min_output for s in schemas),
                max(s.max_output for s in schemas)]
        if arity != want:
            bad.append(f"{key}: since, inputs, outputs {arity}, onnx has {want}")
        if not known:
            continue
        attrs = collections.defaultdict(set)
        for s in schemas:
            for name, a in s.attributes.items():
                attrs[name].add(int(a.type.value))
        for name, kinds in attrs.items():
            if name == "consumed_inputs":
                continue
            if name not in rules:
                bad.append(f"{key}: attribute {name} is missing")
            elif rules[name] not in kinds:
                bad.append(f"{key}: attribute {name} has kind {rules[name]}, onnx {kinds}")
        for name in rules:
            if name not in attrs and name != "consumed_inputs":
                bad.append(f"{key}: attribute {name} is not in onnx")
    print("\n".join(bad))
    print(f"{len(bad)} differences, {len(theirs)} operators in onnx {onnx.__version__}, {len(ours)} here")
    return 1 if bad else 0


sys.exit(main())
