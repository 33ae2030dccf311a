#!/usr/bin/env python3
"""Every network of accel-new against onnx's checker and onnxruntime.

    check_new.py BUILD [NAME...]

full_check passes, onnxruntime's outputs are finite and not constant, and accel-run gives the same to 1e-4 of the
largest. Needs onnx, onnxruntime and numpy; exit status 77 without them.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
except ImportError as e:
    print(f"SKIP: {e}")
    sys.exit(77)

ALL = ("linear mlp mlp4 fashion-cnn resnet20 resnet18 resnet50 mobilenet-v2 densenet121 unet encoder gpt").split()
SIZES = {"N": 2, "T": 17}


def check(bin_dir, name, box):
    path = box / f"{name}.onnx"
    subprocess.run([bin_dir / "accel-new", name, "-q", "-o", path], check=True)
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(path)
    trained = sum(int(np.prod(t.dims)) for t in model.graph.initializer
                  if t.data_type in (1, 11) and t.dims and not t.name.endswith(("running_mean", "running_var")))
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    feed, words = {}, []
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else SIZES[d] for d in i.shape]
        if "int64" in i.type:
            feed[i.name] = rng.integers(0, 1000, shape)
        else:
            feed[i.name] = rng.standard_normal(shape).astype(np.float64 if "double" in i.type else np.float32)
        np.save(box / f"{i.name}.npy", feed[i.name])
        words += ["--input", f"{i.name}={box / i.name}.npy"]
    want = session.run(None, feed)
    subprocess.run([bin_dir / "accel-run", path, *words, "-q", "-o", box / name], check=True)
    for o, w in zip(session.get_outputs(), want):
        got = np.load(box / name / f"{o.name}.npy")
        if got.shape != w.shape or not np.isfinite(w).all():
            raise AssertionError(f"shape {got.shape}, want {w.shape}; or not finite")
        declared = [d if isinstance(d, int) else SIZES[d] for d in o.shape]
        if declared != list(w.shape):
            raise AssertionError(f"declared {declared}, got {w.shape}")
        off, big, spread = np.abs(got - w).max(), np.abs(w).max(), w.std()
        print(f"{name:14} {trained:>10,} trainable  {str(w.shape):18} std {spread:.3g}  largest {big:.3g}  off {off:.2g}")
        if off > 1e-4 * max(1, big):
            raise AssertionError(f"off by {off:.3g} of {big:.3g}")
        if name != "linear" and not 1e-4 < spread < 1e4:
            raise AssertionError(f"standard deviation {spread:.3g}")


def main():
    build, names = Path(sys.argv[1]), sys.argv[2:] or ALL
    bad = 0
    with tempfile.TemporaryDirectory() as box:
        for name in names:
            try:
                check(build / "bin", name, Path(box))
            except Exception as e:
                bad += 1
                print(f"{name}: {e}")
    print(f"{len(names) - bad} of {len(names)} networks as promised")
    return bad != 0


sys.exit(main())
