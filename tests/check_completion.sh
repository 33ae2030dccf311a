#!/bin/sh
# check_completion.sh - bash completes commands, options, values and networks as the programs have them.
#   sh tests/check_completion.sh BUILD_FOLDER
cd "$(dirname "$0")/.." || exit 1
bin=$1/bin
export PATH="$bin:$PATH"
bad=0
# offered WORD... : what bash offers for the last word.
offered() {
    bash -c '. completion/accel
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _accel
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@" 2>&1 | sort | tr '\n' ' '
}
# expect WANT WORD...
expect() {
    want=$1
    shift
    got=$(offered "$@")
    [ "$got" = "$want " ] || { echo "completing '$*': got '$got', want '$want '"; bad=1; }
}
expect "inspect" accel ins
expect "--pruner" accel-prune m.onnx --prun
expect "--pruner" accel prune m.onnx --prun
expect "--no-bias --no-color" accel-new --no-
expect "fashion-cnn" accel-new f
expect "csv" accel-inspect m.onnx --format c
expect "rooms.txt" accel-prune room
# Every network that is offered can be made, and every command has completion.
for name in $(offered accel-new ""); do
    "$bin/accel-new" "$name" --dry-run -q -o none.onnx || { echo "completion offers $name"; bad=1; }
done
for program in "$bin"/accel-*; do
    grep -q "^complete .* ${program##*/}\( \|$\)" completion/accel || { echo "no completion for ${program##*/}"; bad=1; }
done
exit $bad
