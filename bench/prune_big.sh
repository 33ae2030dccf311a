#!/bin/sh
# Import + prune half + export of 1 GiB in 64 MatMul weights, and of 1 MiB: accel-prune beside
# onnx+numpy in one run (both once warm, files in the page cache, one core), with the C floor program.
# Prints a line per row, then the ratios. The peer's scripts and the models' maker are in ../shared.
#
# usage: bench/prune_big.sh BIN_DIR WORK_DIR [PYTHON] [REPEAT]
#   BIN_DIR   folder with accel-prune      WORK_DIR  about 6 GB free; its models are kept
#   PYTHON    one with onnx and numpy      REPEAT    best of so many (default 2)
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
shared=$here/../shared/bench
bin=$(cd "$1" && pwd)
mkdir -p "$2"
work=$(cd "$2" && pwd)
python=${3:-python3}
repeat=${4:-2}

echo '[{"op_types": ["default"], "sparse_ratio": 0.5}]' >"$work/half.json"
[ -f "$work/tiny.onnx" ] || "$python" "$shared/big.py" make "$work"

gcc -O3 -mavx512f -mavx512dq -mavx512bw -o "$work/prune_floor" "$shared/prune_floor.c"
: >"$work/rows.jsonl"
"$python" "$shared/run_big.py" "$work" --python "$python" --repeat "$repeat" --only tiny,big \
    --tools onnx-numpy \
    --own "accel=$bin/accel-prune {src} --config $work/half.json -o {dst} --quiet" |
    tee -a "$work/rows.jsonl"
for mode in "" direct; do
    # not every machine has the instructions, not every file system the direct path
    taskset -c 0 "$work/prune_floor" "$work/ext/weights.bin" "$work/floor.bin" 4194304 $mode |
        tee -a "$work/rows.jsonl" || true
    rm -f "$work/floor.bin"
done

"$python" - "$work/rows.jsonl" <<'END'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
at = {(r["bench"], r.get("name")): r for r in rows if "wall_s" in r}
for kind in ("tiny_prune", "big_prune_inline", "big_prune_external"):
    a, b = at.get((kind, "accel")), at.get((kind, "onnx-numpy"))
    if a and b:
        print(f'{kind}: wall {b["wall_s"] / a["wall_s"]:.1f}x faster, CPU {b["cpu_s"] / max(a["cpu_s"], 1e-3):.1f}x less '
              f'({a["cpu_s"]:.3f} s), peak {a["peak_rss_MB"]:.1f} MB against {b["peak_rss_MB"]:.0f}')
END
