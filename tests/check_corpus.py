#!/usr/bin/env python3
"""Read and write back every model of one or more folders, and prune each by 30 %.

    check_corpus.py --bin-dir build/bin FOLDER...   [--limit N] [--no-ort]

For each *.onnx below the folders:
  * a run that removes nothing gives the input back: without the two accel.* entries the bytes are equal;
  * `level` 0.3 takes floor(0.3 n) entries (or the zeros that were there) from every weight that the report calls selected,
    leaves every other constant as it was, and the file grows by nothing but the two entries;
  * what onnxruntime loads before, it loads after.
Needs onnx, numpy, onnxruntime. Exit status 0: all as promised. The last line counts.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

NOOP = '[{"op_types": ["default"], "sparse_ratio": 0}]'
LEVEL = '[{"op_types": ["default"], "sparse_ratio": 0.3}]'
FLOATS = (1, 10, 11, 16)


def prune(exe, model, config, out):
    p = subprocess.run([exe, model, "--config", config, "-o", out, "--json"], capture_output=True, timeout=120)
    if p.returncode != 0:
        raise AssertionError(f"status {p.returncode}: {p.stderr.decode(errors='replace').strip()[:300]}")
    return json.loads(p.stdout)


def varint(v):
    out = b""
    while True:
        b, v = v & 127, v >> 7
        out += bytes([b | (128 if v else 0)])
        if not v:
            return out


def entry(key, value):
    """One metadata_props field (number 14 of ModelProto) as bytes."""
    k, v = key.encode(), value.encode()
    body = b"\x0a" + varint(len(k)) + k + b"\x12" + varint(len(v)) + v
    return b"\x72" + varint(len(body)) + body


def graphs(graph):
    yield graph
    for node in graph.node:
        for a in node.attribute:
            for g in ([a.g] if a.type == onnx.AttributeProto.GRAPH else []) + list(a.graphs):
                yield from graphs(g)


def constants(model):
    """[(name, array)] of all float constants of the main graph and its subgraphs."""
    found = []
    for g in graphs(model.graph):
        for t in g.initializer:
            found.append((t.name, t))
        for node in g.node:
            if node.op_type == "Constant":
                found += [(node.output[0], a.t) for a in node.attribute if a.name == "value"]
    return found


def bits(t):
    return numpy_helper.to_array(t).tobytes()


def loads(path):
    so = ort.SessionOptions()
    so.log_severity_level = 4
    so.intra_op_num_threads = 1
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        ort.InferenceSession(str(path), so, providers=["CPUExecutionProvider"])
        return True
    except Exception:
        return False


def check(exe, path, tmp, use_ort):
    out = Path(tmp) / "out.onnx"
    data = path.read_bytes()
    prune(exe, path, NOOP, out)
    back = out.read_bytes()
    head = onnx.load_model_from_string(back)
    meta = {p.key: p.value for p in head.metadata_props}
    added = entry("accel.version", meta["accel.version"]) + entry("accel.config", meta["accel.config"])
    rest = back.replace(entry("accel.version", meta["accel.version"]), b"").replace(entry("accel.config", meta["accel.config"]), b"")
    assert rest == data and len(back) == len(data) + len(added), "a run that removes nothing changed the bytes"

    report = prune(exe, path, LEVEL, out)
    size = os.path.getsize(out) - len(entry("accel.version", meta["accel.version"])) - len(entry("accel.config", LEVEL))
    assert size <= len(data), f"the file grew from {len(data)} to {size} bytes"
    before, after = constants(onnx.load_model_from_string(data)), constants(onnx.load(str(out)))
    assert [n for n, _ in before] == [n for n, _ in after], "constants came or went"
    rows = {w["name"].split("/")[-1] if "/" in w["name"] and w["name"] not in dict(before) else w["name"]: w for w in report["weights"]}
    selected = 0
    for (name, a), (_, b) in zip(before, after):
        w = rows.get(name)
        if w is None or w["status"] == "kept":
            if w is None and a.data_type not in FLOATS:
                assert bits(a) == bits(b), f"'{name}' changed without a row"
            continue
        if a.data_type not in FLOATS or [n for n, _ in before].count(name) > 1:
            continue
        x, y = numpy_helper.to_array(a).ravel(), numpy_helper.to_array(b).ravel()
        want = max(math.floor(x.size * 0.3 * (1 + 1e-12)), int((x == 0).sum()))
        got = int((y == 0).sum())
        assert got == want, f"'{name}': {got} zeros of {x.size}, expected {want}"
        assert x[y != 0].tobytes() == y[y != 0].tobytes(), f"'{name}': a surviving entry changed"
        selected += 1
    if use_ort and loads(path):
        assert loads(out), "onnxruntime does not load the output"
    return selected


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("folders", nargs="+")
    ap.add_argument("--bin-dir", required=True)
    ap.add_argument("--limit", type=int)
    ap.add_argument("--no-ort", action="store_true")
    a = ap.parse_args()
    exe = str(Path(a.bin_dir) / "accel-prune")
    models = sorted(p for f in a.folders for p in Path(f).rglob("*.onnx"))[: a.limit]
    if not models:
        print("check_corpus.py: no models in", *a.folders, file=sys.stderr)
        return 1
    bad = weights = with_weights = 0
    with tempfile.TemporaryDirectory() as tmp:
        for p in models:
            try:
                n = check(exe, p, tmp, not a.no_ort)
                weights += n
                with_weights += n > 0
            except Exception as e:
                bad += 1
                print(f"FAIL {p}: {' '.join(str(e).split())[:300]}", flush=True)
    print(f"{weights} weights pruned in {with_weights} models")
    print(f"{len(models) - bad} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
