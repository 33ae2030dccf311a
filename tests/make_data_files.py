#!/usr/bin/env python3
"""Writes tests/data_files.h: small files made by NumPy and Pillow, and what Pillow says they hold.

    python3 tests/make_data_files.py        needs the Python packages numpy and pillow
"""
import io
import pathlib

import numpy as np
import PIL
from PIL import Image

out = [f"""/* data_files.h - files of other programs, for tests of data/. Made by make_data_files.py with NumPy
 * {np.__version__} and Pillow {PIL.__version__}; not to be edited. */
#ifndef ACCEL_TESTS_DATA_FILES_H
#define ACCEL_TESTS_DATA_FILES_H
"""]


def emit(name, data):
    out.append(f"static const unsigned char {name}[] = {{")
    data = bytes(data)
    out.extend("    " + ", ".join(str(b) for b in data[i:i + 20]) + "," for i in range(0, len(data), 20))
    out.append("};\n")


def saved(image, kind, **more):
    b = io.BytesIO()
    image.save(b, kind, **more)
    return b.getvalue()


x, y = np.meshgrid(np.arange(12), np.arange(10))
rgb = np.stack([x * 20, y * 25, (x * y * 7) % 256], 2).astype(np.uint8)
image = Image.fromarray(rgb)
emit("file_jpeg", saved(image, "JPEG", quality=90, subsampling=0))
emit("file_jpeg_pixels", np.asarray(Image.open(io.BytesIO(saved(image, "JPEG", quality=90, subsampling=0)))).tobytes())
emit("file_jpeg_gray", saved(image.convert("L"), "JPEG", quality=90))
emit("file_jpeg_cmyk", saved(image.convert("CMYK"), "JPEG", quality=90))
small = rgb[:4, :5]
emit("file_png", saved(Image.fromarray(small), "PNG"))
emit("file_png_pixels", small.tobytes())
emit("file_png_gray", saved(Image.fromarray(np.array([[0, 128], [255, 7]], np.uint8)), "PNG"))
emit("file_png_alpha", saved(Image.fromarray(np.array([[[10, 20, 30, 255], [200, 100, 50, 0]]], np.uint8), "RGBA"), "PNG"))
for name, size in (("down", (5, 4)), ("up", (17, 13)), ("wide", (30, 3))):
    emit(f"file_resized_{name}", np.asarray(image.resize(size, Image.BILINEAR)).tobytes())

arrays = {"x": np.arange(6, dtype=np.float32).reshape(3, 2), "ids": np.asfortranarray(np.arange(12, dtype=np.int64).reshape(3, 4)),
          "label": np.array([2, 0, 1], np.int32)}
for name, save in (("stored", np.savez), ("packed", np.savez_compressed)):
    b = io.BytesIO()
    save(b, **arrays)
    emit(f"file_npz_{name}", b.getvalue())
b = io.BytesIO()
np.lib.format.write_array(b, np.array([[1.5, -2], [3, 4], [5, 6]], np.float16), version=(2, 0))
emit("file_npy_v2", b.getvalue())
out.append("#endif")
(pathlib.Path(__file__).parent / "data_files.h").write_text("\n".join(out) + "\n")
