#!/usr/bin/env python3
"""Whole-model latency beside onnxruntime: one pinned thread, CPU time, both sides in turns so that
drift hits them alike. Times are the best round's 1st percentile (a smallest value may be a slip of the
clock) and the best round's median.

    run_ort.py BENCH_RUN WORK [--seconds S] [--rounds N] MODEL:BATCH...

MODEL is a file, or resnet18, resnet50, mobilenetv2, encoder: these are written to WORK with random
weights (needs onnx, numpy, onnxruntime). Prints a Markdown row per model."""
import argparse, json, os, subprocess, sys, time
import numpy as np, onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

os.environ["OMP_NUM_THREADS"] = "1"
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
rng = np.random.default_rng(0)


class Net:
    def __init__(s):
        s.nodes, s.init, s.n = [], [], 0

    def const(s, a):
        s.n += 1
        s.init.append(numpy_helper.from_array(a, f"w{s.n}"))
        return f"w{s.n}"

    def op(s, kind, *x, **a):
        s.n += 1
        s.nodes.append(helper.make_node(kind, list(x), [f"v{s.n}"], **a))
        return f"v{s.n}"

    def conv(s, x, cin, cout, k, stride=1, group=1, act=None):
        w = s.const((rng.standard_normal((cout, cin // group, k, k)) * (2 / (cin // group * k * k)) ** .5).astype(np.float32))
        y = s.op("Conv", x, w, s.const(np.zeros(cout, np.float32)), kernel_shape=[k, k], strides=[stride] * 2, pads=[k // 2] * 4, group=group)
        if act == "relu":
            return s.op("Relu", y)
        if act == "relu6":
            return s.op("Clip", y, s.const(np.float32(0)), s.const(np.float32(6)))
        return y

    def linear(s, x, cin, cout):
        return s.op("Add", s.op("MatMul", x, s.const((rng.standard_normal((cin, cout)) / cin ** .5).astype(np.float32))), s.const(np.zeros(cout, np.float32)))

    def save(s, path, shape, y):
        g = helper.make_graph(s.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape])], [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)], s.init)
        m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 20)])
        m.ir_version = 9
        onnx.save(m, path)

    def head(s, x, c):
        y = s.op("Flatten", s.op("GlobalAveragePool", x))
        return s.op("Gemm", y, s.const((rng.standard_normal((1000, c)) / c ** .5).astype(np.float32)), s.const(np.zeros(1000, np.float32)), transB=1)


def resnet(path, blocks, bottleneck):
    s = Net()
    x = s.op("MaxPool", s.conv("x", 3, 64, 7, 2, act="relu"), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    c = 64
    for i, n in enumerate(blocks):
        w = 64 << i
        out = w * 4 if bottleneck else w
        for k in range(n):
            st = 2 if k == 0 and i else 1
            if bottleneck:
                y = s.conv(s.conv(s.conv(x, c, w, 1, act="relu"), w, w, 3, st, act="relu"), w, out, 1)
            else:
                y = s.conv(s.conv(x, c, w, 3, st, act="relu"), w, w, 3)
            x = s.op("Relu", s.op("Add", y, s.conv(x, c, out, 1, st) if st > 1 or c != out else x))
            c = out
    s.save(path, [3, 224, 224], s.head(x, c))


def mobilenetv2(path):
    s = Net()
    x, c = s.conv("x", 3, 32, 3, 2, act="relu6"), 32
    for t, out, n, st in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for k in range(n):
            h = c * t
            y = s.conv(x, c, h, 1, act="relu6") if t > 1 else x
            y = s.conv(s.conv(y, h, h, 3, st if k == 0 else 1, h, "relu6"), h, out, 1)
            x = s.op("Add", x, y) if k and c == out else y
            c = out
    s.save(path, [3, 224, 224], s.head(s.conv(x, c, 1280, 1, act="relu6"), 1280))


def encoder(path, layers=6, d=256, h=4, seq=128):
    s = Net()
    x = "x"
    ints = lambda *v: s.const(np.array(v, np.int64))
    norm = lambda y: s.op("LayerNormalization", y, s.const(np.ones(d, np.float32)), s.const(np.zeros(d, np.float32)))
    for _ in range(layers):
        q, k, v = (s.op("Transpose", s.op("Reshape", s.linear(x, d, d), ints(0, seq, h, d // h)), perm=p) for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        a = s.op("Softmax", s.op("Div", s.op("MatMul", q, k), s.const(np.float32((d // h) ** .5))))
        o = s.op("Reshape", s.op("Transpose", s.op("MatMul", a, v), perm=[0, 2, 1, 3]), ints(0, seq, d))
        x = norm(s.op("Add", x, s.linear(o, d, d)))
        x = norm(s.op("Add", x, s.linear(s.op("Gelu", s.linear(x, d, 4 * d)), 4 * d, d)))
    s.save(path, [seq, d], x)


MADE = {"resnet18": lambda p: resnet(p, [2, 2, 2, 2], False), "resnet50": lambda p: resnet(p, [3, 4, 6, 3], True), "mobilenetv2": mobilenetv2, "encoder": encoder}


TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64}


def peer(path, batch, seconds):
    o = ort.SessionOptions()
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    f = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
    feed = {i.name: (np.arange(np.prod(s)) * 2654435761 % 1024 / 1024).astype(TYPES[i.type]).reshape(s) for i in f.get_inputs() for s in [[d if isinstance(d, int) else batch for d in i.shape]]}
    f.run(None, feed)
    t, end = [], time.process_time() + seconds
    while time.process_time() < end or len(t) < 5:
        u = time.process_time()
        f.run(None, feed)
        t.append(time.process_time() - u)
    t.sort()
    return t[len(t) // 100] * 1e3, t[len(t) // 2] * 1e3


a = argparse.ArgumentParser()
a.add_argument("bench_run"), a.add_argument("work"), a.add_argument("model", nargs="+")
a.add_argument("--seconds", type=float, default=1), a.add_argument("--rounds", type=int, default=3)
a = a.parse_args()
print(f"onnxruntime {ort.__version__}\n\n| model | batch | onnxruntime, ms | ours, ms | ratio | ratio of medians | first result, ms | fast nodes |\n|---|---|---|---|---|---|---|---|")
for spec in a.model:
    name, batch = spec.rsplit(":", 1)
    path = name
    if name in MADE:
        path = f"{a.work}/{name}.onnx"
        if not os.path.exists(path):
            MADE[name](path)
    theirs, ours = [], []
    for _ in range(a.rounds):
        theirs.append(peer(path, int(batch), a.seconds))
        r = subprocess.run([a.bench_run, path, batch, str(a.seconds)], capture_output=True, text=True)
        if r.returncode:
            sys.exit(f"{name}: {r.stderr}")
        ours.append(json.loads(r.stdout))
    low = min(o["low_ms"] for o in ours), min(t[0] for t in theirs)
    mid = min(o["median_ms"] for o in ours), min(t[1] for t in theirs)
    print(f"| {os.path.basename(path)[:-5]} | {batch} | {low[1]:.3f} | {low[0]:.3f} | {low[0] / low[1]:.2f} | {mid[0] / mid[1]:.2f} | {min(o['first_ms'] for o in ours):.0f} | {ours[0]['fast']} of {ours[0]['nodes']} |", flush=True)
