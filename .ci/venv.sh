# shellcheck shell=bash
# Sourced by the scripts that need a venv: makes one in $venv, and installs what apt alone can.
# PYTHON names the interpreter (else the first python3 of 3.11 or newer is taken).

say() { printf '== %s\n' "$*"; }
die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
            command -v "$candidate"
            return
        fi
        [[ -z ${PYTHON:-} ]] || die "PYTHON: $PYTHON is not a Python of 3.11 or newer"
    done
    die "no Python 3.11 or newer found; install one, or name it in PYTHON"
}

apt_updated=
apt_install() { # package...; fails when this user or this system cannot
    [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || return 1
    say "installing $* with apt-get"
    if [[ -z $apt_updated ]]; then
        apt-get update -qq </dev/null || return 1
        apt_updated=yes
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" \
        </dev/null >/dev/null
}

make_venv() {
    if [[ -x $venv/bin/python ]] && new_enough "$venv/bin/python"; then return; fi
    if [[ -d $venv && ! -f $venv/pyvenv.cfg && -n $(ls -A "$venv") ]]; then
        die "$venv is a folder with something else in it; name another in its variable"
    fi
    local python package
    python=$(find_python)
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        package=$("$python" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')
        apt_install "$package" || die "$python cannot make a venv; as root: apt-get install $package"
    fi
    say "making a venv in $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
    echo '*' >"$venv/.gitignore"
}
