#!/usr/bin/env python3
"""Random models and configs against a plain numpy account of what a pruning config means.

    check_random.py --bin-dir build/bin [--count N] [--seed S]

Each round builds a small model (Gemm, MatMul left and right, Conv, ConvTranspose, embedding, LSTM; weights in f32, f16, bf16, f64;
raw or typed fields, initializer or Constant node, behind Identity or Transpose; many ties and zeros), draws a config (ratio, threshold,
bounds, global groups, blocks, channels, n:m, exclusion) and compares every weight of the output with the expected one, bit for bit.
Needs onnx and numpy. The last line counts; a failing round prints its seed.
"""
import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DTYPES = [TensorProto.FLOAT] * 4 + [TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16]


class Weight:
    """A stored constant: name, values as float64, and its output and input axis."""

    def __init__(self, name, op, values, out_axis, in_axis):
        self.name, self.op, self.values, self.out_axis, self.in_axis = name, op, values, out_axis, in_axis


def draw_values(rng, shape):
    """Values on a coarse grid: ties and zeros are frequent, and all types hold them exactly."""
    v = rng.integers(-12, 13, shape) / 8.0
    return v * (rng.random(shape) < 0.9) if rng.random() < 0.5 else v


def tensor(rng, name, values, dtype):
    if dtype == TensorProto.BFLOAT16:
        raw = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return TensorProto(name=name, data_type=dtype, dims=values.shape, raw_data=raw.tobytes())
    arr = values.astype({TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.DOUBLE: np.float64}[dtype])
    if rng.random() < 0.7:
        return numpy_helper.from_array(arr, name)
    t = TensorProto(name=name, data_type=dtype, dims=values.shape)
    if dtype == TensorProto.FLOAT:
        t.float_data.extend(arr.ravel().tolist())
    elif dtype == TensorProto.DOUBLE:
        t.double_data.extend(arr.ravel().tolist())
    else:
        t.int32_data.extend(int(x) for x in arr.ravel().view(np.uint16))
    return t


def read(t):
    if t.data_type == TensorProto.BFLOAT16:
        return (np.frombuffer(t.raw_data, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(t.dims).astype(np.float64)
    return numpy_helper.to_array(t).astype(np.float64)


def build(rng):
    """Independent nodes, each with an input of its own."""
    nodes, inits, inputs, outputs, weights = [], [], [], [], []
    for i in range(int(rng.integers(1, 6))):
        kind = rng.choice(["gemm0", "gemm1", "right", "left", "conv", "convt", "gather", "lstm"])
        a, b = (int(x) for x in rng.integers(1, 5, 2) * rng.choice([1, 2, 4]))
        shape, op, out_axis, in_axis = {
            "gemm0": ((a, b), "Gemm", 1, 0), "gemm1": ((b, a), "Gemm", 0, 1), "right": ((a, b), "MatMul", 1, 0),
            "left": ((b, a), "MatMul", 0, 1), "conv": ((b, a, 3, 2), "Conv", 0, 1), "convt": ((a, b, 2, 2), "ConvTranspose", 1, 0),
            "gather": ((a + 1, b), "Gather", 1, None), "lstm": ((1, 4 * b, a), "LSTM", 1, 2)}[kind]
        values, name, x = draw_values(rng, shape), f"m{i}.weight", f"x{i}"
        dtype = TensorProto.FLOAT if kind == "lstm" else int(rng.choice(DTYPES))
        turn = op != "LSTM" and len(shape) == 2 and rng.random() < 0.2
        stored = np.ascontiguousarray(values.T) if turn else values
        t = tensor(rng, name, stored, dtype)
        if rng.random() < 0.3:
            nodes.append(helper.make_node("Constant", [], [name], name=f"/m{i}/Constant", value=t))
        else:
            inits.append(t)
        w = name
        if turn:
            nodes.append(helper.make_node("Transpose", [w], [f"t{i}"], name=f"/m{i}/Transpose", perm=[1, 0]))
            w = f"t{i}"
            out_axis, in_axis = (None if axis is None else 1 - axis for axis in (out_axis, in_axis))
        elif rng.random() < 0.2:
            nodes.append(helper.make_node("Identity", [w], [f"t{i}"], name=f"/m{i}/Identity"))
            w = f"t{i}"
        xs = {"gemm0": [2, a], "gemm1": [2, a], "right": [2, a], "left": [a, 2], "conv": [1, a, 5, 5], "convt": [1, a, 4, 4], "gather": [3],
              "lstm": [2, 1, a]}[kind]
        inputs.append(helper.make_tensor_value_info(x, TensorProto.INT64 if kind == "gather" else dtype, xs))
        ins, attrs = [x, w], {}
        if kind == "gemm1":
            attrs["transB"] = 1
        elif kind in ("left", "gather"):
            ins = [w, x]
        elif kind == "lstm":
            r = tensor(rng, f"m{i}.recurrence", draw_values(rng, (1, 4 * b, b)), dtype)
            inits.append(r)
            weights.append(Weight(r.name, op, read(r), 1, 2))
            ins, attrs = [x, w, r.name], {"hidden_size": b}
        nodes.append(helper.make_node(op, ins, [f"y{i}"], name=f"/m{i}/{op}", **attrs))
        outputs.append(helper.make_tensor_value_info(f"y{i}", dtype, None))
        weights.append(Weight(name, op, stored, out_axis, in_axis))
    g = helper.make_graph(nodes, "g", inputs, outputs, inits)
    return helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), weights


def count(n, ratio):
    return int(math.floor(n * ratio * (1 + 1e-12)))


def lowest(metric, k):
    """Mask of the k lowest, ties to the lower index."""
    mask = np.zeros(metric.size, bool)
    mask[np.argsort(metric.ravel(), kind="stable")[:k]] = True
    return mask.reshape(metric.shape)


def bounded(metric, k, sub):
    n = metric.size
    k = max(k, count(n, sub.get("min_sparse_ratio", 0)))
    return min(k, count(n, sub.get("max_sparse_ratio", 1)))


def expect_block(w, sub, block):
    """Blocks of this shape: mean magnitude ranks them."""
    v = np.abs(w.values)
    split = []
    for d, b in zip(v.shape, block):
        split += [d // b, b]
    inner = tuple(range(1, 2 * v.ndim, 2))
    metric = v.reshape(split).mean(axis=inner)
    if "sparse_threshold" in sub:
        k = int((metric < sub["sparse_threshold"]).sum())
    else:
        k = count(metric.size, sub["sparse_ratio"])
    mask = lowest(metric, bounded(metric, k, sub))
    for axis, b in enumerate(block):
        mask = np.repeat(mask, b, axis=axis)
    return mask


def expect_nm(w, n, m):
    v = np.moveaxis(np.abs(w.values), w.in_axis, -1)
    mask = np.zeros(v.shape, bool)
    for s in range(0, v.shape[-1], m):
        part = v[..., s:s + m]
        kill = max(0, part.shape[-1] - n)
        order = np.argsort(part, axis=-1, kind="stable")[..., :kill]
        np.put_along_axis(mask[..., s:s + m], order, True, axis=-1)
    return np.moveaxis(mask, -1, w.in_axis)


def expect_group(ws, sub):
    """One ranking over all members; what a bound takes from one the others make up."""
    total = count(sum(w.values.size for w in ws), sub["sparse_ratio"])
    low = [count(w.values.size, sub.get("min_sparse_ratio", 0)) for w in ws]
    high = [count(w.values.size, sub.get("max_sparse_ratio", 1)) for w in ws]
    taken = list(low)
    rank = [sorted(range(w.values.size), key=lambda j, w=w: abs(w.values.ravel()[j])) for w in ws]
    rest = sorted((abs(w.values.ravel()[j]), i, at) for i, w in enumerate(ws) for at, j in enumerate(rank[i]) if low[i] <= at < high[i])
    for _ in range(total - sum(low)):
        if not rest:
            break
        _, i, _ = rest.pop(0)
        taken[i] += 1
    return [lowest(np.abs(w.values), k) for w, k in zip(ws, taken)]


def draw_config(rng, weights):
    """(config, function from the chosen weights to their masks)."""
    kind = rng.choice(["ratio", "threshold", "group", "out", "in", "block", "nm"])
    sub = {"op_types": ["default"]}
    if kind == "nm":
        n, m = sorted(rng.choice(np.arange(1, 9), 2, replace=False).tolist())
        return {"pruner": "nm", "n": n, "m": m, "config_list": [sub]}, lambda ws: [
            expect_nm(w, n, m) if w.in_axis is not None else None for w in ws]
    if kind == "threshold":
        sub["sparse_threshold"] = float(rng.choice([0, 0.25, 0.5, 0.6, 1.5, 9]))
    else:
        sub["sparse_ratio"] = float(rng.choice([0, 0.1, 0.29, 0.3, 0.5, 0.7, 0.99, 1]))
    if rng.random() < 0.4:
        lo, hi = sorted(rng.random(2).round(2).tolist())
        sub["min_sparse_ratio"], sub["max_sparse_ratio"] = lo, hi
    if kind == "group":
        sub["global_group_id"] = 1
        return [sub], lambda ws: expect_group(ws, sub)
    if kind in ("out", "in"):
        sub["granularity"] = kind + "_channel"

        def channels(ws):
            masks = []
            for w in ws:
                axis = w.out_axis if kind == "out" else w.in_axis
                masks.append(None if axis is None else expect_block(w, sub, [1 if a == axis else d for a, d in enumerate(w.values.shape)]))
            return masks
        return [sub], channels
    if kind == "block":
        sub["granularity"] = [1, -1]
        return [sub], lambda ws: [expect_block(w, sub, [1] * (w.values.ndim - 1) + [w.values.shape[-1]]) for w in ws]
    return [sub], lambda ws: [expect_block(w, sub, [1] * w.values.ndim) for w in ws]


def run_round(exe, seed, tmp):
    rng = np.random.default_rng(seed)
    model, weights = build(rng)
    config, expect = draw_config(rng, weights)
    stored = [t.name for t in model.graph.initializer] + [n.output[0] for n in model.graph.node if n.op_type == "Constant"]
    weights.sort(key=lambda w: order_of(model, w.name))
    excluded = None
    if rng.random() < 0.3:
        excluded = weights[int(rng.integers(len(weights)))].name
        (config["config_list"] if isinstance(config, dict) else config)[0]["exclude_op_names"] = [excluded]
    assert sorted(w.name for w in weights) == sorted(stored)
    chosen = [w for w in weights if w.name != excluded]
    src, dst = Path(tmp) / "m.onnx", Path(tmp) / "o.onnx"
    src.write_bytes(model.SerializeToString())
    p = subprocess.run([exe, src, "--config", json.dumps(config), "-o", dst, "--json"], capture_output=True, timeout=60)
    assert p.returncode == 0, f"status {p.returncode}: {p.stderr.decode(errors='replace').strip()[:200]} for {json.dumps(config)}"
    report = {r["name"]: r for r in json.loads(p.stdout)["weights"]}
    out = onnx.load(str(dst))
    got = {t.name: t for t in out.graph.initializer}
    got.update({n.output[0]: n.attribute[0].t for n in out.graph.node if n.op_type == "Constant"})
    masks = dict(zip([w.name for w in chosen], expect(chosen)))
    for w in weights:
        mask = masks.get(w.name)
        want = w.values if mask is None else np.where(mask, 0.0, w.values)
        have = read(got[w.name])
        assert have.shape == want.shape and (have == want).all(), (
            f"'{w.name}' ({w.op} {w.values.shape}): {int((have == 0).sum())} zeros, expected {int((want == 0).sum())}; "
            f"reason {report[w.name]['reason']!r}; config {json.dumps(config)}")
        assert report[w.name]["zeros"] == int((have == 0).sum()), f"'{w.name}': the report counts {report[w.name]['zeros']} zeros"


def order_of(model, name):
    """Initializers first, then Constant nodes in their order, as the tool ranks members of a group with equal magnitudes."""
    names = [t.name for t in model.graph.initializer] + [n.output[0] for n in model.graph.node if n.op_type == "Constant"]
    return names.index(name)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--bin-dir", required=True)
    ap.add_argument("--count", type=int, default=300)
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    exe = str(Path(a.bin_dir) / "accel-prune")
    bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        for seed in range(a.seed, a.seed + a.count):
            try:
                run_round(exe, seed, tmp)
            except AssertionError as e:
                bad += 1
                print(f"FAIL seed {seed}: {e}", flush=True)
    print(f"{a.count - bad} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
