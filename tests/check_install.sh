#!/bin/sh
# check_install.sh - what `cmake --install` puts in place works from there:
#   sh tests/check_install.sh BUILD_FOLDER
# programs, manual pages, completion, schema; the library shows its public functions only; an example
# is compiled against it by pkg-config and by find_package, and runs.
cd "$(dirname "$0")/.." || exit 1
top=$PWD
build=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
die() {
    echo "check_install: $*"
    exit 1
}
# Where the project says it will live; DESTDIR puts it below the work folder instead.
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
DESTDIR=$work/root cmake --install "$build" >"$work/log" 2>&1 || { cat "$work/log"; die "cmake --install failed"; }
at=$work/root$prefix
lib=$(dirname "$(find "$at" -name libaccel.so)")
[ -e "$lib/libaccel.so" ] || die "no libaccel.so"

for f in bin/accel bin/accel-prune bin/accel-inspect bin/accel-new include/accel/accel.h share/man/man1/accel.1 \
    share/man/man1/accel-prune.1 share/man/man1/accel-inspect.1 share/man/man1/accel-new.1 \
    share/bash-completion/completions/accel share/bash-completion/completions/accel-prune \
    share/accel/prune.schema.json; do
    [ -e "$at/$f" ] || die "$f was not installed"
done
[ "$(readlink "$at/bin/accel-prune")" = accel ] || die "accel-prune is no link to accel"

# Exported: exactly the functions that the public headers declare.
nm -D --defined-only "$lib/libaccel.so" | awk '{ print $3 }' | sort >"$work/shown"
grep -ohE 'ACCEL_API [^(]*\(' include/accel/*.h | grep -oE 'accel_[a-z_]+' | sort >"$work/declared"
[ -s "$work/declared" ] || die "no public function found"
diff "$work/declared" "$work/shown" || die "declared (<) and exported (>) functions differ"
objdump -p "$lib/libaccel.so" | grep -q 'SONAME *libaccel\.so\.[0-9]' || die "libaccel.so has no versioned SONAME"

"$at/bin/accel-new" mlp -o "$work/in.onnx" >/dev/null || die "the installed accel-new failed"
config='[{"op_types": ["Linear"], "exclude_op_names": ["fc3"], "sparse_ratio": 0.3}]'
# 30 % of 784*300 and 300*100 weights, rounded down, are zeros; 266,610 parameters.
check_example() {
    LD_LIBRARY_PATH=$lib "$1" "$work/in.onnx" "$config" "$work/out.onnx" >"$work/said" || { cat "$work/said"; die "$1 failed"; }
    grep -q '187050 of 266610 parameters are not zero' "$work/said" || { cat "$work/said"; die "$1: other numbers"; }
    rm "$work/out.onnx"
}
export PKG_CONFIG_PATH="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$work/root"
# shellcheck disable=SC2046
cc -Wall -Werror "$top/examples/prune.c" $(pkg-config --cflags --libs accel) -o "$work/by-pkg-config" || die "pkg-config accel"
check_example "$work/by-pkg-config"

mkdir "$work/project"
cat >"$work/project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.20)
project(example C)
find_package(accel 0.1 REQUIRED)
add_executable(by-cmake $top/examples/prune.c)
target_link_libraries(by-cmake accel::accel)
END
cmake -G Ninja -S "$work/project" -B "$work/project/build" -DCMAKE_PREFIX_PATH="$at" >"$work/log" 2>&1 &&
    cmake --build "$work/project/build" >>"$work/log" 2>&1 || { cat "$work/log"; die "find_package(accel)"; }
check_example "$work/project/build/by-cmake"
echo "install: $(find "$at" -type f | wc -l) files, $(wc -l <"$work/shown") public functions"
