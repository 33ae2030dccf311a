#!/bin/sh
# check_man.sh - manual pages and --help name the same options, and every command has its page.
#   sh tests/check_man.sh BUILD_FOLDER
cd "$(dirname "$0")/.." || exit 1
bin=$1/bin
bad=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for program in "$bin"/accel-*; do
    name=${program##*/}
    page=man/$name.1
    if [ ! -f "$page" ]; then
        echo "$name: no manual page $page"
        bad=1
        continue
    fi
    "$program" --help >"$work/text" || { echo "$name --help: status $?"; bad=1; }
    grep -oE '^ +(-[a-z], )?--[a-z-]+' "$work/text" | grep -oE -- '--[a-z-]+' | sort -u >"$work/help"
    # Options are the tags of .TP paragraphs.
    awk '/^\.TP/ { getline; print }' "$page" | sed 's/\\-/-/g' | grep -oE -- '--[a-z-]+' | sort -u >"$work/man"
    if ! cmp -s "$work/help" "$work/man"; then
        echo "$name: options of --help (<) and of $page (>) differ:"
        diff "$work/help" "$work/man"
        bad=1
    fi
    awk -v name="$name" 'length($0) > 80 { print name " --help is wider than 80 columns: " $0; bad = 1 } END { exit bad }' "$work/text" || bad=1
done
version=$("$bin/accel" --version | head -n 1)
for page in man/*.1; do
    grep -q "\"$version\"" "$page" || { echo "$page: not of this version, $version"; bad=1; }
    if command -v man >/dev/null && man --warnings -l "$page" 2>&1 >/dev/null | grep .; then
        bad=1
    fi
done
exit $bad
