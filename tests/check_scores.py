#!/usr/bin/env python3
"""Scores of channels against numpy and onnxruntime: which channels go must be those that a plain account of each score says.

    check_scores.py --bin-dir build/bin [--seed S]

A small network (Conv, BatchNormalization, Relu, Conv, Relu, Gemm), random images as an npz data set; l1, l2, fpgm, bn_scale, lamp from the
weights, mean_activation, apoz and wanda from activations. Needs onnx, onnxruntime and numpy.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

N, C1, C2 = 40, 12, 10


def network(rng):
    w = {"c1.weight": rng.standard_normal((C1, 2, 3, 3)), "c1.bias": rng.standard_normal(C1) * 0.5, "bn.weight": rng.standard_normal(C1),
         "bn.bias": rng.standard_normal(C1) * 0.5, "bn.mean": rng.standard_normal(C1) * 0.1, "bn.var": 0.5 + rng.random(C1),
         "c2.weight": rng.standard_normal((C2, C1, 3, 3)), "c2.bias": rng.standard_normal(C2), "fc.weight": rng.standard_normal((4, C2 * 36))}
    w = {k: v.astype(np.float32) for k, v in w.items()}
    nodes = [helper.make_node("Conv", ["x", "c1.weight", "c1.bias"], ["a"], "c1", pads=[1] * 4),
             helper.make_node("BatchNormalization", ["a", "bn.weight", "bn.bias", "bn.mean", "bn.var"], ["b"], "bn"),
             helper.make_node("Relu", ["b"], ["r1"], "r1"), helper.make_node("Conv", ["r1", "c2.weight", "c2.bias"], ["c"], "c2", pads=[1] * 4),
             helper.make_node("Relu", ["c"], ["r2"], "r2"), helper.make_node("Flatten", ["r2"], ["f"], "f"),
             helper.make_node("Gemm", ["f", "fc.weight"], ["y"], "fc", transB=1)]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N", c, 6, 6]) for n, c in (("r1", C1), ("r2", C2))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2, 6, 6])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])], [numpy_helper.from_array(v, k) for k, v in w.items()])
    seen = helper.make_graph(nodes, "g", graph.input, list(graph.output) + values, graph.initializer)
    make = lambda g: helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return make(graph), make(seen), w


def lamp(squares):
    return np.array([s / squares[squares >= s].sum() for s in squares])


def expected(score, w, x, r1, r2):
    rows = {k: w[k].reshape(len(w[k]), -1).astype(np.float64) for k in ("c1.weight", "c2.weight")}
    if score == "l1_norm":
        return {k: np.abs(v).sum(1) for k, v in rows.items()}
    if score == "l2_norm":
        return {k: np.sqrt((v ** 2).sum(1)) for k, v in rows.items()}
    if score == "lamp":
        return {k: lamp((v ** 2).sum(1)) for k, v in rows.items()}
    if score == "fpgm":
        return {k: np.sqrt(((v[:, None] - v[None]) ** 2).sum(2)).sum(1) for k, v in rows.items()}
    if score == "bn_scale":
        return {"bn.weight": np.abs(w["bn.weight"])}
    if score == "mean_activation":
        return {"c1.weight": np.abs(r1).mean((0, 2, 3)), "c2.weight": np.abs(r2).mean((0, 2, 3))}
    if score == "apoz":
        return {"c1.weight": (r1 > 0).mean((0, 2, 3)), "c2.weight": (r2 > 0).mean((0, 2, 3))}
    norm = lambda v: np.sqrt((v.astype(np.float64) ** 2).sum((0, 2, 3)))
    return {k: (np.abs(w[k]).sum((2, 3)) * norm(v)).sum(1) for k, v in (("c1.weight", x), ("c2.weight", r1))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin-dir", required=True)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        for round_ in range(3):
            rng = np.random.default_rng(args.seed + round_)
            model, seen, w = network(rng)
            x = rng.standard_normal((N, 2, 6, 6)).astype(np.float32)
            onnx.save(model, work / "m.onnx")
            np.savez(work / "d.npz", x=x, label=rng.integers(0, 4, N))
            options = ort.SessionOptions()
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            _, r1, r2 = ort.InferenceSession(seen.SerializeToString(), options).run(None, {"x": x})
            for score in ("l1_norm", "l2_norm", "lamp", "fpgm", "bn_scale", "mean_activation", "apoz", "wanda"):
                types = ["BatchNorm2d"] if score == "bn_scale" else ["Conv2d"]
                config = {"pruner": score, "pattern": "channel", "config_list": [{"op_types": types, "sparse_ratio": 0.4}]}
                if score in ("mean_activation", "apoz", "wanda"):
                    config["data"] = f"npz:{work}/d.npz"
                run = subprocess.run([f"{args.bin_dir}/accel-prune", work / "m.onnx", "--config", json.dumps(config), "-o", work / "o.onnx", "--json"],
                                     capture_output=True, text=True)
                report = json.loads(run.stdout)
                for name, value in expected(score, w, x, r1, r2).items():
                    kept = next((r["kept"]["0"] for r in report.get("weights", ()) if r["name"] == name), report.get("error"))
                    want = sorted(np.argsort(value, kind="stable")[int(len(value) * 0.4):].tolist())
                    if kept != want:
                        bad += 1
                        print(f"FAIL seed {args.seed + round_}, {score}: {name} keeps {kept}, expected {want}")
    print(f"{bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
