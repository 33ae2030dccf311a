#!/bin/sh
# run.sh - everything that can be checked, on a bare Debian 12:  sh tests/run.sh
#
# Installs what the tests need (as root, or through sudo), builds twice (release, and with the address
# and undefined-behaviour sanitizers; warnings are errors), runs the suites of both builds and the
# checks of the source tree, three fuzzers for a minute each, and black-box cases when their folder
# stands beside this one. What cannot run here is a line "SKIP: ..."; with CI=true it is a failure.
# The last line is "N passed, N failed, N skipped"; the exit status is 0 when nothing failed.
#
# FUZZ_SECONDS (60) and JOBS (all processors) may be set.
cd "$(dirname "$0")/.." || exit 1
exec </dev/null
. tools/packages.sh
jobs=${JOBS:-$(nproc)}
seconds=${FUZZ_SECONDS:-60}
top=$PWD
build=$PWD/build-test
passed=0 failed=0 skipped=0
mkdir -p "$build/log" || exit 1
start=$(date +%s)

say() { printf '\n== %s (%d s)\n' "$*" "$(($(date +%s) - start))"; }
finish() {
    printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ]
    exit
}
pass() {
    passed=$((passed + 1))
    echo "ok   $1"
}
fail() {
    failed=$((failed + 1))
    echo "FAIL $1"
}
# What is missing here: a visible skip for people, a failure where everything must be there.
skip() {
    if [ "${CI:-}" = true ]; then
        fail "$1"
    else
        skipped=$((skipped + 1))
        echo "SKIP: $1"
    fi
}
# step NAME COMMAND... : runs it, shows the end of its output when it fails.
step() {
    name=$1
    shift
    if "$@" >"$build/log/$name" 2>&1; then
        pass "$name"
    else
        fail "$name"
        tail -n 40 "$build/log/$name"
        return 1
    fi
}

say "packages"
test_packages="check libonnx-testdata dataset-fashion-mnist clang libclang-rt-14-dev clang-format python3 python3-venv man-db"
# shellcheck disable=SC2086
if ! install_packages $build_packages $test_packages; then
    # shellcheck disable=SC2086
    if [ -n "$(missing_packages $build_packages check)" ]; then
        fail "the build needs: $(missing_packages $build_packages check)"
        finish
    fi
    # shellcheck disable=SC2086
    skip "packages that are not there: $(missing_packages $test_packages)"
fi

say "builds"
# build NAME CMAKE_OPTION... : configures and builds in build-test/NAME.
build() {
    flavour=$1
    shift
    cmake -S . -B "$build/$flavour" -G Ninja -DACCEL_WERROR=ON "$@" && cmake --build "$build/$flavour" -j "$jobs"
}
step build-release build release || finish
step build-sanitize build sanitize -DACCEL_SANITIZE=ON || finish
fuzz=
if command -v clang >/dev/null && [ -n "$(find /usr/lib/llvm-*/lib/clang /usr/lib/clang -name 'libclang_rt.fuzzer-*.a' 2>/dev/null)" ]; then
    step build-fuzz build fuzz -DACCEL_FUZZ=ON -DCMAKE_C_COMPILER=clang && fuzz=yes
else
    skip "clang with libFuzzer is not installed: no fuzzing"
fi

# Counts single tests: Check's line "P%: Checks: N, Failures: N, Errors: N" where a program has one,
# else the program itself. Prints "passed failed skipped".
count() {
    awk '/^[0-9]+: [0-9]+%: Checks: / { id = $1 + 0; gsub(/[^0-9 ]/, " "); n[id] += $3; bad[id] += $4 + $5; next }
        / Test +#[0-9]+: / {
            match($0, /#[0-9]+/); id = substr($0, RSTART + 1, RLENGTH - 1)
            if (/Passed/) { if (n[id] == "") p++ }
            else if (/Skipped/) s++
            else if (bad[id] + 0 == 0) f++
        }
        END { for (id in n) { p += n[id] - bad[id]; f += bad[id] }
              print p + 0, f + 0, s + 0 }' "$1"
}
# suites NAME: all tests of a build.
suites() {
    log=$build/log/ctest-$1
    (cd "$build/$1" && ctest -V -j "$jobs" >"$log" 2>&1)
    status=$?
    grep -E '^[0-9]+: .*:[0-9]+:[FE]:|^[0-9]+: SKIP:|\*\*\*' "$log" | sed 's/^[0-9]*: //'
    grep -oE '#[0-9]+: [^ ]+ .*\*\*\*Failed' "$log" | sed 's/^#\([0-9]*\): .*/\1/' | while read -r id; do
        grep "^$id: " "$log" | tail -n 15
    done
    # shellcheck disable=SC2046
    set -- "$1" $(count "$log")
    [ $status = 0 ] || [ "$3" != 0 ] || set -- "$1" "$2" 1 "$4"
    echo "$1: $2 passed, $3 failed, $4 skipped"
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
}
say "suites and checks"
suites release
say "suites under the sanitizers"
suites sanitize

say "fuzzers, $seconds s each"
# fuzz_one NAME SEEDS: from the seeds, in a folder that is thrown away. What it finds stays in build-test.
fuzz_one() {
    work=$(mktemp -d) || return 1
    mkdir -p "$build/crash"
    ls -d "tests/data/$1" >/dev/null 2>&1 && cp tests/data/"$1"/* "$work" 2>/dev/null
    memory=$(mktemp -d /dev/shm/accel-XXXXXX 2>/dev/null || mktemp -d) || return 1
    TMPDIR=$memory timeout $((seconds + 120)) "$build/fuzz/$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="$build/crash/$1-" -print_final_stats=1 "$work" $2
    status=$?
    rm -rf "$work" "$memory"
    return $status
}
if [ -n "$fuzz" ]; then
    seeds=$build/seeds
    mkdir -p "$seeds"
    for d in /usr/share/libonnx-testdata/data/node/*/; do
        [ -f "$d/model.onnx" ] && cp "$d/model.onnx" "$seeds/$(basename "$d").onnx"
    done
    (step fuzz_onnx fuzz_one fuzz_onnx "$seeds" >"$build/log/fuzz_onnx.out") &
    first=$!
    (step fuzz_config fuzz_one fuzz_config "" >"$build/log/fuzz_config.out") &
    second=$!
    wait $first
    wait $second
    (step fuzz_data fuzz_one fuzz_data "" >"$build/log/fuzz_data.out")
    cat "$build/log/fuzz_onnx.out" "$build/log/fuzz_config.out" "$build/log/fuzz_data.out"
    passed=$((passed + $(cat "$build"/log/fuzz_*.out | grep -c '^ok ')))
    failed=$((failed + $(cat "$build"/log/fuzz_*.out | grep -c '^FAIL ')))
fi

say "python"
# The judges of our files: onnx and onnxruntime, in an environment of their own.
venv=$build/venv
python=$venv/bin/python3
if ! "$python" -c 'import onnx, onnxruntime, numpy' 2>/dev/null; then
    rm -rf "$venv"
    python3 -m venv "$venv" >"$build/log/venv" 2>&1 &&
        "$python" -m pip install -q onnx onnxruntime numpy >>"$build/log/venv" 2>&1
fi
if "$python" -c 'import onnx, onnxruntime, numpy' 2>/dev/null; then
    step check_ops "$python" tests/check_ops.py "$build/release"
    step check_new "$python" tests/check_new.py "$build/release"
    step check_random "$python" tests/check_random.py --bin-dir "$build/release/bin" --count 500
    step check_nodes "$python" tests/check_nodes.py --bin-dir "$build/release/bin"
    step check_scores "$python" tests/check_scores.py --bin-dir "$build/release/bin"
    step check_law "$python" tests/check_law.py --bin-dir "$build/release/bin" --cut "$build/release/cut_random" --count 1000
    corpus=/usr/share/libonnx-testdata
    [ -d "$corpus" ] && step check_corpus "$python" tests/check_corpus.py --bin-dir "$build/release/bin" "$corpus"
    cases=$top/../shared/cases
    if [ -d "$cases" ]; then
        log=$build/log/cases
        timeout 900 "$python" "$cases/run.py" --bin-dir "$build/release/bin" --wave io,level,run,structured >"$log" 2>&1
        status=$?
        grep -v '^ok ' "$log"
        good=$(grep -c '^ok ' "$log") wrong=$(grep -c '^FAIL ' "$log")
        [ $status = 0 ] || [ "$wrong" != 0 ] || wrong=1
        passed=$((passed + good)) failed=$((failed + wrong))
    else
        skip "no folder ../shared/cases: no black-box cases"
    fi
else
    tail -n 5 "$build/log/venv"
    skip "no Python with onnx, onnxruntime and numpy: no comparison with them, no black-box cases"
fi
finish
