#!/usr/bin/env python3
"""The law of structured pruning: cutting channels out and writing zeros in their place are the same function.

    check_law.py --bin-dir build/bin --cut build/cut_random [--count N] [--seed S] [--models FILE...] [--inputs JSON]

Random graphs (residual, concat, groups, flatten, split, slices, transpose, channel shuffle, squeeze and excitation, attention, recurrence,
norms, weights behind Transpose, Cast, Identity and DequantizeLinear, shared weights) or the files given are cut by cut_random: random free
groups, 30 and 70 % of them. Both results must load in onnxruntime, pass onnx's full check and agree to 1e-5 of the largest output (or to
what a relative change of the input by 1e-6 does to the masked model), at two batch sizes; a second round cuts the sliced file again.
Needs onnx, onnxruntime and numpy. A failing round prints its seed; the last line counts.
"""
import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ort.set_default_logger_severity(4)
TOLERANCE = 1e-5


class Builder:
    """Grows a network from blocks. Values are [N, C, H, W] ("map"), [N, T, C] ("seq") or [N, C] ("flat")."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.inits, self.count = [], [], 0
        self.opset = int(self.rng.choice([13, 17, 18, 21]))
        self.shared = {}

    def chance(self, p):
        return self.rng.random() < p

    def one(self, *items):
        return items[int(self.rng.integers(len(items)))]

    def fresh(self, hint="v"):
        self.count += 1
        return f"{hint}{self.count}"

    def const(self, array, hint="c"):
        name = self.fresh(hint)
        self.inits.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *values):
        return self.const(np.array(values, np.int64), "i")

    def node(self, op, inputs, n_out=1, **attrs):
        outs = [self.fresh() for _ in range(n_out)]
        self.nodes.append(helper.make_node(op, inputs, outs, name=f"n{len(self.nodes)}", **attrs))
        return outs[0] if n_out == 1 else outs

    def random(self, *shape, scale=1.0):
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)

    def weight(self, *shape):
        """A weight matrix as files hold them: plain, shared, or behind an operator that passes it on."""
        if shape in self.shared and self.chance(0.08):
            return self.shared[shape]
        a = self.random(*shape, scale=1 / np.sqrt(max(1, np.prod(shape[1:]))))
        how = self.rng.random()
        if how < 0.07:
            perm = self.rng.permutation(len(shape))
            name = self.node("Transpose", [self.const(a.transpose(perm))], perm=[int(i) for i in np.argsort(perm)])
        elif how < 0.11:
            name = self.node("Identity", [self.const(a)])
        elif how < 0.15:
            name = self.node("Cast", [self.const(a.astype(np.float64))], to=1)
        elif how < 0.25 and self.opset >= 21 and shape[0] % 2 == 0 and len(shape) == 2:  # a scale for each block of two rows
            grid = (shape[0] // 2, shape[1])
            name = self.node("DequantizeLinear", [self.const(self.rng.integers(-90, 90, shape).astype(np.int8)),
                                                  self.const((0.01 + 0.01 * self.rng.random(grid)).astype(np.float32)),
                                                  self.const(self.rng.integers(-9, 9, grid).astype(np.int8))], axis=0, block_size=2)
        elif how < 0.32:
            axis = int(self.rng.integers(2))
            q = self.rng.integers(-90, 90, shape).astype(np.int8)
            if self.chance(0.6):
                scale = (0.01 + 0.01 * self.rng.random(shape[axis])).astype(np.float32)
                zero = self.rng.integers(-9, 9, shape[axis]).astype(np.int8)
                name = self.node("DequantizeLinear", [self.const(q), self.const(scale), self.const(zero)], axis=axis)
            else:
                name = self.node("DequantizeLinear", [self.const(q), self.const(np.float32(0.01)), self.const(np.int8(3))])
        else:
            name = self.const(a, "w")
        self.shared[shape] = name
        return name

    def vector(self, n, positive=False):
        a = self.random(n, scale=0.5)
        return self.const(np.abs(a) + 0.3 if positive else a)

    # ---- maps: (name, C, H, W)

    def conv(self, x, out, k=None, group=1, stride=1):
        name, c, h, w = x
        k = k or self.one(1, 3)
        ins = [name, self.weight(out, c // group, k, k)] + ([self.vector(out)] if self.chance(0.6) else [])
        y = self.node("Conv", ins, pads=[k // 2] * 4, group=group, strides=[stride] * 2)
        return y, out, (h + stride - 1) // stride, (w + stride - 1) // stride

    def bn(self, x):
        name, c, h, w = x
        y = self.node("BatchNormalization", [name, self.vector(c), self.vector(c), self.vector(c), self.vector(c, True)])
        return y, c, h, w

    def act(self, x):
        op = self.one("Relu", "Relu", "Sigmoid", "Tanh", "HardSwish", "Elu", "LeakyRelu", "PRelu", "Clip", "swish", "none")
        name = x[0]
        if op == "PRelu":
            y = self.node(op, [name, self.const(np.abs(self.random(x[1], 1, 1)))])
        elif op == "Clip":
            y = self.node(op, [name, self.const(np.float32(self.one(-1, 0, 0.5))), self.const(np.float32(3))])
        elif op == "swish":
            y = self.node("Mul", [name, self.node("Sigmoid", [name])])
        elif op == "HardSwish" and self.opset < 14 or op == "none":
            return x
        else:
            y = self.node(op, [name])
        return (y, *x[1:])

    def map_block(self, x):
        name, c, h, w = x
        kind = self.one("plain", "residual", "concat", "grouped", "depthwise", "se", "shuffle", "split", "pool", "pad", "slice", "norm",
                        "transposed", "scale", "gather", "two")
        if kind == "plain":
            return self.act(self.bn(self.conv(x, self.one(4, 6, 8, 12))))
        if kind == "residual":
            y = self.conv(self.act(self.conv(x, self.one(4, 6, 9))), c)
            return self.act((self.node(self.one("Add", "Sub", "Mul"), [y[0], name]), c, h, w))
        if kind == "concat":
            a, b = self.conv(x, self.one(3, 4, 5)), self.act(self.conv(x, self.one(2, 4)))
            parts = [a, b] + ([x] if self.chance(0.5) else [])
            return self.node("Concat", [p[0] for p in parts], axis=1), sum(p[1] for p in parts), h, w
        if kind == "grouped":
            g = self.one(2, 3, 4)
            y = self.conv(x, g * self.one(2, 3, 4), 1)
            return self.act(self.conv(y, g * self.one(1, 2, 3), 3, group=g))
        if kind == "depthwise":
            return self.conv(self.act(self.conv(x, c * self.one(1, 2), 3, group=c)), self.one(4, 8), 1)
        if kind == "se":
            g = self.node(self.one("GlobalAveragePool", "GlobalMaxPool"), [name])
            g = self.act(self.conv((g, c, 1, 1), self.one(2, 3, 5), 1))
            g = self.conv(g, c, 1)
            return self.node("Mul", [name, self.node("Sigmoid", [g[0]])]), c, h, w
        if kind == "shuffle":
            g = self.one(2, 3)
            y = self.conv(x, g * self.one(2, 4))
            v = self.node("Reshape", [y[0], self.ints(0, g, y[1] // g, h, w)])
            v = self.node("Transpose", [v], perm=[0, 2, 1, 3, 4])
            return self.node("Reshape", [v, self.ints(0, self.one(y[1], -1), h, w)]), y[1], h, w
        if kind == "split":
            y = self.conv(x, self.one(6, 8))
            half = y[1] // 2
            if self.opset >= 18 and self.chance(0.5):
                a, b = self.node("Split", [y[0]], 2, axis=1, num_outputs=2)
            else:
                a, b = self.node("Split", [y[0], self.ints(half, half)], 2, axis=1)
            if self.chance(0.5):
                return self.node("Mul", [a, self.node("Sigmoid", [b])]), half, h, w
            a = self.conv((a, half, h, w), self.one(3, 4))
            return self.node("Concat", [b, a[0]], axis=1), half + a[1], h, w
        if kind == "pool" and h >= 4:
            op = self.one("MaxPool", "AveragePool")
            return self.node(op, [name], kernel_shape=[2, 2], strides=[2, 2]), c, h // 2, w // 2
        if kind == "pad":
            n = self.one(1, 2)
            value = self.const(np.float32(self.one(0, 0, 0.7)))
            y = self.node("Pad", [name, self.ints(0, n, 0, 0, 0, 1, 0, 0), value])
            return self.conv((y, c + n + 1, h, w), self.one(4, 6))
        if kind == "slice":
            a = self.one(0, 1, 2)
            y = self.node("Slice", [name, self.ints(a), self.ints(self.one(c, 2**31)), self.ints(1)])
            return self.conv((y, c - a, h, w), self.one(4, 6)) if c > a else x
        if kind == "norm":
            y = self.conv(x, 4 * self.one(1, 2))
            if self.opset >= 21 and self.chance(0.5):
                v = self.node("GroupNormalization", [y[0], self.vector(y[1]), self.vector(y[1])], num_groups=self.one(2, 4))
            else:
                v = self.node("InstanceNormalization", [y[0], self.vector(y[1]), self.vector(y[1])])
            return v, *y[1:]
        if kind == "transposed":
            out = self.one(3, 4, 6)
            return self.act((self.node("ConvTranspose", [name, self.weight(c, out, 2, 2), self.vector(out)], strides=[2, 2]), out, 2 * h, 2 * w)
                            if h <= 8 else self.conv(x, out))
        if kind == "scale":
            v = self.node("Mul", [name, self.const(self.random(c, 1, 1))])
            v = self.node("Add", [v, self.const(self.random(1, c, 1, 1))])
            return self.node("Div", [v, self.const(np.abs(self.random(c, 1, 1)) + 0.5)]), c, h, w
        if kind == "gather":
            order = self.rng.permutation(c)[: max(2, c - self.one(0, 1))]
            return self.node("Gather", [name, self.const(order.astype(np.int64))], axis=1), len(order), h, w
        a, b = self.act(self.conv(x, c)), self.bn(self.conv(x, c))
        return self.node("Add", [self.node("Sum", [a[0], b[0]]), name]), c, h, w

    # ---- sequences: (name, T, C)

    def linear(self, name, c, out):
        y = self.node("MatMul", [name, self.weight(c, out)])
        return self.node("Add", [y, self.vector(out)]) if self.chance(0.6) else y

    def attention(self, x):
        name, t, c = x
        h = self.one(2, 3)
        d = self.one(2, 3, 4)
        q, k, v = (self.node("Reshape", [self.linear(name, c, h * d), self.ints(0, 0, h, d)]) for _ in range(3))
        q, v = (self.node("Transpose", [i], perm=[0, 2, 1, 3]) for i in (q, v))
        k = self.node("Transpose", [k], perm=[0, 2, 3, 1])
        s = self.node("MatMul", [q, k])
        s = self.node("Softmax", [self.node("Div", [s, self.const(np.float32(np.sqrt(d)))])], axis=-1)
        y = self.node("Transpose", [self.node("MatMul", [s, v])], perm=[0, 2, 1, 3])
        y = self.node("Reshape", [y, self.ints(0, 0, self.one(h * d, -1))])
        return self.node("Add", [self.linear(y, h * d, c), name]), t, c

    def fused_attention(self, x):
        """As onnxruntime's optimisers write it: one weight for Q, K and V, three operands, or fewer heads for K and V."""
        name, t, c = x
        h, d = self.one(2, 4), self.one(2, 4)
        kind = self.one("Attention", "Attention", "MultiHeadAttention", "GroupQueryAttention")
        ms = {"domain": "com.microsoft", "num_heads": h}
        if kind == "Attention":
            dv = self.one(d, d, 3)
            sizes = {"qkv_hidden_sizes": [h * d, h * d, h * dv]} if dv != d or self.chance(0.5) else {}
            ins = [name, self.const(self.random(c, 2 * h * d + h * dv, scale=0.4)), self.vector(2 * h * d + h * dv)]
            y = self.node(kind, ins, **sizes, **ms)
        elif kind == "MultiHeadAttention":
            dv = d
            ins = [self.linear(name, c, h * d) for _ in range(3)]
            y = self.node(kind, ins + ([self.vector(3 * h * d)] if self.chance(0.5) else []), **ms)
        else:
            dv, d = 8, 8
            kv = self.one(1, 2, h)
            lengths = self.node("Expand", [self.const(np.array([t - 1], np.int32)), self.node("Slice", [
                self.node("Shape", [name]), self.ints(0), self.ints(1)])])
            ins = [self.linear(name, c, h * d), self.linear(name, c, kv * d), self.linear(name, c, kv * d), "", "", lengths,
                   self.const(np.array(t, np.int32))]
            y = self.node(kind, ins, 3, kv_num_heads=kv, **ms)[0]
        return self.node("Add", [self.linear(y, h * dv, c), name]), t, c

    def rms_norm(self, x):
        name, t, c = x
        axes = self.ints(-1)
        square = self.node("Mul", [name, name])
        mean = self.node("ReduceMean", [square, axes]) if self.opset >= 18 else self.node("ReduceMean", [square], axes=[-1])
        root = self.node("Sqrt", [self.node("Add", [mean, self.const(np.float32(1e-3))])])
        return self.node("Mul", [self.node("Div", [name, root]), self.vector(c)]), t, c

    def seq_block(self, x):
        name, t, c = x
        kind = self.one("mlp", "attention", "fused", "rms", "layer", "lstm", "gate", "conv")
        if kind == "mlp":
            hidden = self.one(5, 8, 12)
            y = self.node(self.one("Relu", "Erf", "Tanh"), [self.linear(name, c, hidden)])
            return self.node("Add", [self.linear(y, hidden, c), name]), t, c
        if kind == "attention":
            return self.attention(x)
        if kind == "fused":
            return self.fused_attention(x)
        if kind == "rms":
            return self.rms_norm(x)
        if kind == "layer" and self.opset >= 17:
            return self.node("LayerNormalization", [name, self.vector(c), self.vector(c)], axis=-1), t, c
        if kind == "lstm":
            h = self.one(3, 4, 5)
            op, gates = self.one(("LSTM", 4), ("GRU", 3), ("RNN", 1))
            v = self.node("Transpose", [name], perm=[1, 0, 2])
            ins = [v, self.const(self.random(1, gates * h, c, scale=0.4)), self.const(self.random(1, gates * h, h, scale=0.4))]
            ins += [self.const(self.random(1, 2 * gates * h, scale=0.3))] if self.chance(0.7) else []
            out = self.node(op, ins, 1, hidden_size=h)
            return self.node("Transpose", [self.node("Squeeze", [out, self.ints(1)])], perm=[1, 0, 2]), t, h
        if kind == "gate":
            y = self.linear(name, c, 2 * c)
            a, b = self.node("Split", [y, self.ints(c, c)], 2, axis=-1)
            return self.node("Mul", [a, self.node("Sigmoid", [b])]), t, c
        out = self.one(4, 6, 8)
        v = self.node("Transpose", [name], perm=[0, 2, 1])
        v = self.node("Conv", [v, self.weight(out, c, 3), self.vector(out)], pads=[1, 1])
        return self.node("Transpose", [self.node("Relu", [v])], perm=[0, 2, 1]), t, out

    def quantized(self):
        """Integer convolutions and products between QuantizeLinear and DequantizeLinear."""
        scale, zero = (lambda: self.const(np.float32(0.03))), (lambda: self.const(np.uint8(128)))
        at = [self.node("QuantizeLinear", ["x", scale(), zero()])] + [self.nodes[-1].input[1], self.nodes[-1].input[2]]

        def layer(op, w, axis, bias, **attrs):
            n = w.shape[axis]
            per = self.chance(0.5)
            ws = self.const((0.01 + 0.01 * self.rng.random(n)).astype(np.float32) if per else np.float32(0.01))
            wz = self.const(np.zeros(n, np.int8) if per else np.int8(self.one(0, 3)))
            ins = [*at, self.const(w), ws, wz, scale(), zero()]
            ins += [self.const(self.rng.integers(-500, 500, n).astype(np.int32))] if bias else []
            return [self.node(op, ins, **attrs), ins[6], ins[7]]
        ints = lambda *shape: self.rng.integers(-40, 40, shape).astype(np.int8)
        c = 3
        for _ in range(int(self.rng.integers(1, 4))):
            out = self.one(4, 6, 8)
            at = layer("QLinearConv", ints(out, c, 3, 3), 0, self.chance(0.6), pads=[1] * 4)
            c = out
            if self.chance(0.4):
                at = layer("QLinearConv", ints(c, 1, 3, 3), 0, self.chance(0.5), pads=[1] * 4, group=c)
            if self.chance(0.3):
                at[0] = self.node("MaxPool", [at[0]], kernel_shape=[3, 3], pads=[1] * 4)
        y = self.node("Flatten", [self.node("GlobalAveragePool", [self.node("DequantizeLinear", at)])])
        at = [self.node("QuantizeLinear", [y, scale(), zero()])] + [self.nodes[-1].input[1], self.nodes[-1].input[2]]
        hidden = self.one(4, 6)
        at = layer("QLinearMatMul", ints(c, hidden), 1, False)
        at = layer("QLinearMatMul", ints(hidden, 3), 1, False)
        return self.finish([3, 6, 6], self.node("DequantizeLinear", at), [3])

    def model(self):
        if self.chance(0.06):
            return self.quantized()
        maps = self.chance(0.65)
        if maps:
            c, side = self.one(2, 3), self.one(4, 6, 8)
            shape, x = [c, side, side], ("x", c, side, side)
            for _ in range(int(self.rng.integers(2, 7))):
                x = self.map_block(x)
            name, c, h, w = x
            how = self.one("flatten", "reshape", "pool", "mean", "seq")
            if how == "seq":
                v = self.node("Transpose", [self.node("Reshape", [name, self.ints(0, c, h * w)])], perm=[0, 2, 1])
                y = self.seq_block(self.seq_block((v, h * w, c)))
                out = self.linear(y[0], y[2], 3)
                return self.finish(shape, out, [y[1], 3])
            if how == "pool":
                name, c = self.node("Flatten", [self.node("GlobalAveragePool", [name])]), c
            elif how == "mean":
                name = self.node("ReduceMean", [name, self.ints(2, 3)], keepdims=0) if self.opset >= 18 else self.node(
                    "ReduceMean", [name], axes=[2, 3], keepdims=0)
            elif how == "flatten":
                name, c = self.node("Flatten", [name]), c * h * w
            else:
                name, c = self.node("Reshape", [name, self.one(self.ints(0, -1), self.ints(-1, c * h * w))]), c * h * w
            hidden = self.one(4, 7)
            y = self.node("Relu", [self.node("Gemm", [name, self.weight(hidden, c), self.vector(hidden)], transB=1)])
            return self.finish(shape, self.node("Gemm", [y, self.weight(hidden, 3)]), [3])
        t, c = self.one(3, 5), self.one(4, 6)
        width = self.one(6, 8)
        x = (self.linear("x", c, width), t, width)
        for _ in range(int(self.rng.integers(2, 6))):
            x = self.seq_block(x)
        return self.finish([t, c], self.linear(x[0], x[2], 3), [t, 3])

    def finish(self, shape, out, out_shape):
        g = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape])],
                              [helper.make_tensor_value_info(out, TensorProto.FLOAT, ["N", *out_shape])], self.inits)
        return helper.make_model(g, opset_imports=[helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)], ir_version=10)


def session(path, optimise=False):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def made(rng, how, shape):
    kind, *numbers = how["gen"].split(":")
    if kind == "const":
        a = np.full(shape, float(numbers[0]))
    elif kind == "int":
        a = rng.integers(int(numbers[0]), int(numbers[1]), shape)
    elif kind == "uniform":
        a = rng.uniform(float(numbers[0]), float(numbers[1]), shape)
    else:
        a = rng.standard_normal(shape)
    return a.astype(how["dtype"])


def feed(s, batch, seed, known=None):
    rng = np.random.default_rng(seed)
    if known:
        return {n: made(rng, how, how["alt"] if batch > 1 and "alt" in how else how["shape"]) for n, how in known.items()}
    out = {}
    for i in s.get_inputs():
        dims, first = [], True
        for d in i.shape:
            dims.append(d if isinstance(d, int) and d > 0 else batch if first else 8)
            first = first and isinstance(d, int)
        out[i.name] = rng.standard_normal(dims).astype(np.float32) if "float" in i.type else rng.integers(0, 20, dims).astype(
            {"tensor(int32)": np.int32, "tensor(bool)": bool}.get(i.type, np.int64))
    return out


def valid(path):
    try:
        onnx.checker.check_model(str(path), full_check=True)
        return True
    except Exception:
        return False


def distance(a, b):
    worst = 0.0
    for x, y in zip(map(np.asarray, a), map(np.asarray, b)):
        if x.shape != y.shape:
            return float("inf")
        if not np.issubdtype(x.dtype, np.floating):
            worst = max(worst, float("inf") if (x != y).any() else 0.0)
            continue
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return float("inf")
        d = np.abs(x.astype(np.float64) - y)[np.isfinite(x)]
        worst = max(worst, d.max(initial=0) / (np.abs(y[np.isfinite(y)]).max(initial=0) + 1e-12))
    return worst


def nudged(inputs):
    rng = np.random.default_rng(1)
    return {n: (a * (1 + 1e-6 * rng.standard_normal(a.shape))).astype(a.dtype) if a.dtype == np.float32 else a for n, a in inputs.items()}


def law(args, path, seed, ratio, work, stats, round_two=True, extra=()):
    sliced, masked = work / "s.onnx", work / "m.onnx"
    run = subprocess.run([args.cut, path, str(seed), str(ratio), sliced, masked, *extra], capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(f"cut_random: {run.stderr.strip()}")
    words = run.stdout.split()
    stats["free"] += int(words[1])
    if words[3] == "0":
        return
    stats["cuts"] += 1
    if valid(path):
        onnx.checker.check_model(str(sliced), full_check=True)
    session(sliced, True)
    before, s, m = session(path), session(sliced), session(masked)
    moved = 0
    for batch in (1, 3):
        x = feed(before, batch, seed + batch, args.inputs.get(Path(path).stem))
        try:
            y = before.run(None, x)
        except Exception:
            continue
        a, b = s.run(None, x), m.run(None, x)
        e = distance(a, b)
        moved = max(moved, distance(b, y))
        if e > TOLERANCE and e > 30 * distance(m.run(None, nudged(x)), b):
            raise AssertionError(f"sliced and masked differ by {e:.1e} at ratio {ratio}, batch {batch}")
    stats["moved"] += moved > 1e-4
    if round_two:
        second = work / "second.onnx"
        shutil.copy(sliced, second)
        law(args, second, seed + 1, ratio, work, stats, False, extra)


NETWORKS = "mlp fashion-cnn resnet20 resnet18 mobilenet-v2 densenet121 unet encoder gpt".split()


def new_networks(bin_dir, work):
    """The networks of accel-new, with what is equal in a fresh one (biases, norms) made random: equal numbers hide wrong rules."""
    rng = np.random.default_rng(7)
    for name in NETWORKS if bin_dir else ():
        path = work / f"{name}.onnx"
        subprocess.run([Path(bin_dir) / "accel-new", name, "-o", path], check=True, capture_output=True)
        model = onnx.load(path)
        for t in model.graph.initializer:
            a = numpy_helper.to_array(t)
            if a.dtype == np.float32 and a.size > 1 and (a == a.flat[0]).all():
                t.CopyFrom(numpy_helper.from_array((0.75 + 0.5 * rng.random(a.shape)).astype(np.float32) * (a.flat[0] or 0.3), t.name))
        onnx.save(model, path)
        yield str(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin-dir", help="where accel-new is: its networks are cut too")
    parser.add_argument("--cut", required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--inputs", help="JSON: by model, shape, dtype and generator of each input")
    args = parser.parse_args()
    args.inputs = json.loads(Path(args.inputs).read_text()) if args.inputs else {}
    stats = {"graphs": 0, "free": 0, "cuts": 0, "moved": 0, "odd": 0}
    bad = []
    work = Path(tempfile.mkdtemp())
    jobs = args.models or [*new_networks(args.bin_dir, work), *range(args.seed, args.seed + args.count)]
    for job in jobs:
        path, seed = job, 1
        if isinstance(job, int):
            seed, path = job, work / "g.onnx"
            model = Builder(seed).model()
            try:
                onnx.checker.check_model(model, full_check=True)
                onnx.save(model, path)
                s = session(path)
                y = s.run(None, feed(s, 3, seed))
            except Exception as e:
                stats["odd"] += 1
                print(f"seed {seed}: not a model: {str(e)[:150]}")
                continue
            if not all(np.isfinite(a).all() and np.abs(a).max() < 1e6 for a in y):
                continue
        stats["graphs"] += 1
        for ratio in (0.3, 0.7) if isinstance(job, int) else (0.3, 0.5, 0.7):
            try:
                law(args, path, seed, ratio, work, stats, True, ("--dims",) if seed % 2 and isinstance(job, int) else ())
            except Exception as e:
                bad.append(job)
                print(f"FAIL {job} at {ratio}: {str(e)[:300]}", flush=True)
                break
    shutil.rmtree(work)
    print(f"{stats['graphs']} models, {stats['cuts']} cuts, {stats['moved']} moved the output, {len(bad)} failed")
    return 1 if bad or not stats["cuts"] or stats["odd"] * 20 > len(jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
