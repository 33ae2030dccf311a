#!/usr/bin/env python3
"""Runs the node tests of the onnx package, newest opsets included, and compares outputs.

    check_nodes.py --bin-dir build/bin [NAME_PART]...

Needs the Python packages onnx and numpy. Tests over sequences, strings, optionals, training and types that NumPy
files cannot hold are counted and left out. Prints what differs; exit status 1 if more differ than KNOWN says.
"""
import argparse
import collections
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

LEAVE = re.compile(r"training|_seq|sequence|optional|_opt|string|strnorm|tfidf|bernoulli|adagrad|adam|momentum|image_decoder|"
                   r"ai_onnx_ml|label_encoder|regex")


def plain(a):
    return isinstance(a, np.ndarray) and a.dtype.kind in "fiub" and a.dtype.type.__module__ == "numpy"


def known(path):
    names = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, _, why = line.partition("  ")
        names[name] = why
    return names


def run(exe, case, folder):
    """'' when equal, else what is wrong; None: left out."""
    model, sets = case.model, case.data_sets
    if not sets or LEAVE.search(case.name):
        return None
    for inputs, outputs in sets:
        inputs = [np.asarray(x) if not isinstance(x, (list, dict, type(None))) else x for x in inputs]
        outputs = [np.asarray(x) if not isinstance(x, (list, dict, type(None))) else x for x in outputs]
        if not all(plain(a) for a in [*inputs, *outputs]):
            return None
        onnx.save(model, folder / "m.onnx")
        args = [exe, str(folder / "m.onnx"), "-q", "-o", str(folder / "out")]
        for i, (v, a) in enumerate(zip(model.graph.input, inputs)):
            np.save(folder / f"{i}.npy", a)
            args += ["--input", f"{v.name}={folder}/{i}.npy"]
        p = subprocess.run(args, capture_output=True, text=True, timeout=60)
        if p.returncode:
            return p.stderr.strip().splitlines()[-1] if p.stderr.strip() else f"status {p.returncode}"
        for v, want in zip(model.graph.output, outputs):
            path = folder / "out" / (v.name + ".npy")
            if not path.exists():
                path = folder / "out" / (re.sub("[^A-Za-z0-9.-]", "_", v.name) + ".npy")
            got = np.load(path)
            path.unlink()
            if got.shape != want.shape or got.dtype != want.dtype:
                return f"{v.name}: {got.dtype}{got.shape}, expected {want.dtype}{want.shape}"
            rtol, atol = max(case.rtol or 0, 1e-3), 1e-3 if got.dtype == np.float16 else 1e-5
            if not np.allclose(got.astype(float), want.astype(float), rtol=rtol, atol=max(case.atol or 0, atol), equal_nan=True):
                d = np.abs(got.astype(float) - want.astype(float))
                return f"{v.name}: differs by {np.nanmax(d):.3g}"
    return ""


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--bin-dir", required=True)
    ap.add_argument("parts", nargs="*")
    args = ap.parse_args()
    warnings.filterwarnings("ignore")
    skips = known(Path(__file__).with_name("check_nodes_known.txt"))
    count = collections.Counter()
    for case in collect_testcases(None):
        if args.parts and not any(p in case.name for p in args.parts):
            continue
        with tempfile.TemporaryDirectory() as d:
            why = run(args.bin_dir + "/accel-run", case, Path(d))
        kind = "left out" if why is None else "known" if why and case.name in skips else "differ" if why else "equal"
        if kind == "equal" and case.name in skips:
            why, kind = "passes: take it off the list", "differ"
        count[kind] += 1
        if kind == "differ":
            print(f"{case.name}  {why}", flush=True)
    print(", ".join(f"{n} {k}" for k, n in sorted(count.items())))
    return 1 if count["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
