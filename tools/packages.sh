# shellcheck shell=sh
# packages.sh - installs Debian packages; read in by tools/quickstart.sh and tests/run.sh.

# What the build needs.
# shellcheck disable=SC2034
build_packages="gcc libc6-dev cmake ninja-build pkg-config protobuf-c-compiler libprotobuf-c-dev libfyaml-dev libdnnl-dev zlib1g-dev libjpeg62-turbo-dev libpng-dev libopenblas-openmp-dev liblapacke-dev"

# missing_packages NAME... : prints those that are not installed.
missing_packages() {
    for p in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || printf '%s ' "$p"
    done
}

# install_packages NAME... : installs what is missing, as root or through sudo. Status 1, and a line
# that says what to do, when that is not possible.
install_packages() {
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    sudo=
    if [ "$(id -u)" != 0 ]; then
        sudo=sudo
        if ! command -v sudo >/dev/null; then
            echo "There is no sudo here. As root: apt-get install $missing" >&2
            return 1
        fi
    fi
    echo "Installing Debian packages: $missing"
    apt_log=$(mktemp) || return 1
    # shellcheck disable=SC2086
    if $sudo apt-get update >"$apt_log" 2>&1 </dev/null &&
        $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing \
            >>"$apt_log" 2>&1 </dev/null; then
        rm -f "$apt_log"
        return 0
    fi
    tail -n 15 "$apt_log" >&2
    rm -f "$apt_log"
    echo "apt-get could not install: $missing" >&2
    return 1
}
