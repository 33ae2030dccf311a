#!/bin/sh
# check_format.sh - every source file is as clang-format (Debian 12's, version 14) would write it.
cd "$(dirname "$0")/.." || exit 1
tool=$(command -v clang-format-14 || command -v clang-format)
if [ -z "$tool" ]; then
    echo "SKIP: clang-format is not installed"
    [ "${CI:-}" != true ] || exit 1
    exit 77
fi
rooms=$(sed -n 's/^\([a-z][a-z]*\) .*/\1/p' rooms.txt)
for room in $rooms; do
    [ ! -d "$room" ] || find "$room" -name '*.[ch]'
done | xargs "$tool" --dry-run --Werror
