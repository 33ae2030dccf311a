#!/bin/sh
# check_style.sh - rules of this code that a compiler does not watch.
#
# Fails on: typedef of a struct, heap outside base/alloc.c, output or process exit in the library, two
# files of one name, a file without an opening comment, a test file that asserts nothing, leftovers.
# Names files and functions past the sizes at which to look for a split (.c 500 lines, .h 200,
# functions 60); twice that size fails.
cd "$(dirname "$0")/.." || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
rooms=$(sed -n 's/^\([a-z][a-z]*\) .*/\1/p' rooms.txt)
library="base graph device ops exec onnx pass data prune quant train api"
: >"$work/bad"
bad() { echo "$*" >>"$work/bad"; }

# The files of these rooms.
files() {
    for room in "$@"; do
        [ ! -d "$room" ] || find "$room" -name '*.[ch]' -o -name '*.cu'
    done | sort
}
files $rooms >"$work/files"

# Without comments and strings, line numbers kept: what the rules look at.
while read -r f; do
    mkdir -p "$work/bare/$(dirname "$f")"
    awk '{ line = $0; out = ""
           while (line != "") {
               if (in_comment) {
                   i = index(line, "*/")
                   if (!i) { line = ""; break }
                   line = substr(line, i + 2); in_comment = 0; continue
               }
               if (!match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|\x27([^\x27\\]|\\.)*\x27/)) { out = out line; break }
               out = out substr(line, 1, RSTART - 1); hit = substr(line, RSTART, 2)
               rest = substr(line, RSTART + RLENGTH)
               if (hit == "/*") in_comment = 1
               else if (hit == "//") rest = ""
               else out = out "\"\""
               line = rest
           }
           print out }' "$f" >"$work/bare/$f"
    head -n 1 "$f" | grep -q '^/\*' || bad "$f:1: no opening comment"
done <"$work/files"

# forbid ROOMS REGEX TEXT [EXCEPT]: no line of these rooms may match.
forbid() {
    files $1 | while read -r f; do
        [ "$f" = "${4:-}" ] || grep -nE "$2" "$work/bare/$f" | sed "s|^\([0-9]*\):.*|$f:\1: $3|"
    done >>"$work/bad"
}
# call NAMES: a regular expression for a call of one of them.
call() { echo "(^|[^A-Za-z0-9_.>])($1)[[:space:]]*\\("; }
forbid "$rooms" 'typedef[[:space:]]+(struct|union|enum)[^(]*$' 'typedef of a struct, union or enum'
forbid "$library tools" "$(call 'malloc|calloc|realloc|reallocarray|aligned_alloc|posix_memalign|strdup|strndup|v?asprintf|getline|open_memstream|alloca')" \
    'heap outside base/alloc.h' base/alloc.c
forbid "$library" "$(call 'v?printf|v?fprintf|v?dprintf|puts|fputs|putchar|putc|fputc|perror|exit|_exit|_Exit|quick_exit|abort')" \
    'the library never prints, exits or aborts'
forbid "$library tools" "$(call 'strcat|sprintf|vsprintf|gets|strtok')" 'unbounded or stateful string function'
files $rooms | xargs grep -nE 'TODO|FIXME|(^|[^X])XXX([^X]|$)|#if 0' /dev/null | sed 's/^\([^:]*:[0-9]*\):.*/\1: leftover/' >>"$work/bad"
for f in tests/test_*.c; do
    [ ! -e "$f" ] || grep -qE 'ck_|op_(gives|runs) *\(' "$work/bare/$f" || bad "$f: asserts nothing"
done
# (Programs in examples/ are users' files, named after what they show.)
grep -v '^examples/' "$work/files" | sed 's|.*/||' | sort | uniq -d | while read -r name; do
    bad "$(grep "/$name\$" "$work/files" | tr '\n' ' '): one name, several files"
done

# Sizes: lines of files, and of functions from their { to their }.
while read -r f; do
    case $f in *.h) most=200 ;; *) most=500 ;; esac
    awk -v f="$f" -v most=$most '
        /^{/ { start = NR }
        /^}/ { if (start && NR - start + 1 > 60) printf "%d 60 %s:%d: function of %d lines\n", NR - start + 1, f, start, NR - start + 1; start = 0 }
        END { if (NR > most) printf "%d %d %s: %d lines\n", NR, most, f, NR }' "$f"
done <"$work/files" >"$work/sizes"
awk '$1 <= 2 * $2 { sub(/^[0-9]+ [0-9]+ /, "look for a split: "); print }' "$work/sizes"
awk '$1 > 2 * $2 { sub(/^[0-9]+ [0-9]+ /, ""); print $0 ", far too long" }' "$work/sizes" >>"$work/bad"

cat "$work/bad"
echo "style: $(wc -l <"$work/files") files, $(wc -l <"$work/bad") faults"
[ ! -s "$work/bad" ]
