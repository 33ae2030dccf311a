#!/bin/sh
# quickstart.sh - from a bare Debian 12 to a pruned network:  sh tools/quickstart.sh
#
# Installs the packages the build needs (as root, or through sudo), builds, writes an example network,
# prunes it and says where things are. Run again, it only does what is left to do.
set -eu
cd "$(dirname "$0")/.."
. tools/packages.sh

# shellcheck disable=SC2086
install_packages $build_packages

echo "Building in build/ ..."
cmake -S . -B build -G Ninja >build.log.tmp 2>&1 && cmake --build build >>build.log.tmp 2>&1 || {
    tail -n 30 build.log.tmp >&2
    exit 1
}
rm -f build.log.tmp

out=build/quickstart
mkdir -p "$out"
PATH=$PWD/build/bin:$PATH
echo '[{"op_types": ["Linear"], "exclude_op_names": ["fc2"], "sparse_ratio": 0.3}]' >"$out/prune.json"

# Shows a command, then runs it.
run() {
    printf '\n$ %s\n' "$*"
    "$@"
}
cd "$out"
run accel-new fashion-cnn -o cnn.onnx
run accel-inspect cnn.onnx
run cat prune.json
run accel-prune cnn.onnx --config prune.json --report report.html

cat <<END

The pruned network:  $out/cnn.pruned.onnx
The report:          $out/report.html (open it in a browser)
The programs:        build/bin/ (to install them: cmake --install build)
END
