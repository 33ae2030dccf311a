#!/bin/sh
# repair.sh - what least squares brings back:  sh bench/repair.sh MODELS [BIN]
#
# MODELS: folder with fashion_{cnn,resnet20,densenet,mobilenet}.onnx; BIN: folder of the commands.
# Top-1 on the test images of Fashion-MNIST after cutting by l2_norm at uniform ratios, and after the
# repair from 1,280 training images (mean of three samples of them); share of MACs left; seconds.
models=${1:?folder of models}
bin=${2:-build/bin}
data='fashion-mnist?mean=0.286&std=0.353'
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

number() { grep -o "\"$1\":[0-9.]*" | head -n "${2:-1}" | tail -n 1 | cut -d: -f2; }
# prune NET RATIO SEED EXTRA : accuracy in percent; the report is left in $tmp/out
prune() {
    "$bin/accel-prune" "$models/fashion_$1.onnx" --config "{\"pruner\":\"l2_norm\",$4\"config_list\":[{\"op_types\":[\"Conv\",\"Linear\"],\"sparse_ratio\":$2}]}" \
        --seed "$3" -o "$tmp/p.onnx" --json --quiet >"$tmp/out" || exit 1
    "$bin/accel-eval" "$tmp/p.onnx" --data "$data" --json --quiet | number top1
}

printf '%-10s %5s %6s %6s %8s %8s\n' network ratio macs cut repaired seconds
for net in cnn resnet20 densenet mobilenet; do
    for ratio in 0.3 0.5 0.7; do
        cut=$(prune "$net" "$ratio" 0 '')
        macs=$(echo "$(number macs 2 <"$tmp/out") $(number macs <"$tmp/out")" | awk '{printf "%.3f", $1 / $2}')
        from=$(date +%s)
        sum=0
        for seed in 0 1 2; do
            one=$(prune "$net" "$ratio" "$seed" "\"repair\":\"least_squares\",\"data\":\"$data&limit=1280\",")
            sum=$(echo "$sum $one" | awk '{print $1 + $2}')
        done
        echo "$net $ratio $macs $cut $sum $(($(date +%s) - from))" |
            awk '{printf "%-10s %5s %6s %6.2f %8.2f %8.1f\n", $1, $2, $3, 100 * $4, 100 * $5 / 3, $6 / 3}'
    done
done
