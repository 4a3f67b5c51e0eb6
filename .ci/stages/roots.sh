# SPDX-License-Identifier: BSD-3-Clause
# README's commands as a newcomer runs them: in a bare Debian with the packages that README names and nothing else, as a
# user who is not root. Sourced by .ci/run.
#
# Of the machine a root gets what reaches the network: the mirror and the settings of apt while it is made; then the
# resolver, pip's settings, proxies and certificates, and the files that these name. All of it is read at run time.
#
# Each command within a root has mounts and processes of its own, which end with it, however it ends.

# What touches C and asyncio, for the Debians that the quick profile does not run whole.
c_and_asyncio=(
    tests/conformance/test_{any_object,asyncio,await_counters,events,lifetime,loop,multi_receive,objects,pickle,requests,waiting}.py
    tests/unit/test_{arguments,documentation,finalisers,lifetime,minimal_provider,package,poller,provider_abi,providers}.py
    tests/jobs/test_programs.py
)

pip_of_user=("$HOME/.pip/pip.conf" "${XDG_CONFIG_HOME:-$HOME/.config}/pip/pip.conf")

readme_packages() { # of the first line with `apt install`, with a comma between them
    sed -n '/apt install /{s/.*apt install //; s/`.*//; s/ /,/g; p; q}' README.md
}

readme_first_command() { # the first block of commands, verbatim
    awk '/^```sh/ { inside = 1; next } /^```/ && inside { exit } inside' README.md
}

readme_test_command() { # the block behind the marker, verbatim
    awk '/<!-- test-command -->/ { marked = 1; next }
         marked && /^```/ { if (inside) exit; inside = 1; next }
         inside' README.md
}

debian_mirror() { # which this machine uses; nothing on another system, whose mirror has no Debian
    local ID= VERSION_CODENAME= mirrors
    source /etc/os-release
    [ "$ID" = debian ] || return 0
    # Known before the lists are. The first one is taken when all are read: a pipe whose reader ends first ends the stage.
    mirrors=$(apt-get --print-uris update | sed -n "s|^'\(.*\)/dists/$VERSION_CODENAME/InRelease'.*|\1|p")
    printf '%s\n' "${mirrors%%$'\n'*}"
}

make_root() { # ROOT [PACKAGES]: of the suite before the first dash, in $work/ROOT, once in a run; default: README's packages
    local root=$work/$1
    [ ! -e "$root.made" ] || return 0
    { command -v mmdebstrap && [ -e /usr/share/keyrings/debian-archive-keyring.gpg ]; } >/dev/null ||
        apt_install mmdebstrap debian-archive-keyring || return
    apt-config dump | grep '^Acquire::' >"$root.apt"
    # In mounts of its own: what it mounts within the root nobody else sees, or could remove by mistake.
    as_root timeout 900 unshare --mount mmdebstrap --quiet --mode=root --variant=minbase --aptopt="$root.apt" \
        --include="${2:-$(readme_packages)}" --customize-hook='chroot "$1" useradd --create-home newcomer' \
        "${1%%-*}" "$root" $(debian_mirror) || return
    touch "$root.made"
}

settings_of_network() { # variables that hold for pip, for certificates and for proxies
    env | grep -E '^(PIP_[A-Z_]+|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|[A-Za-z]+_(proxy|PROXY))=' || true
}

files_of_network() { # what a root sees of the machine's files, one a line
    local file settings=(/etc/pip.conf "${XDG_CONFIG_DIRS:-/etc/xdg}/pip/pip.conf")
    {
        printf '%s\n' /etc/resolv.conf /etc/hosts "${settings[@]}"
        {
            cat "${settings[@]}" "${pip_of_user[@]}" 2>/dev/null || true
            settings_of_network
        } | grep -oE '(file://)?/[^ :]+'
    } | while read -r file; do
        # An index may keep its files beside its pages.
        case $file in file://*) file=$(dirname "${file#file://}") ;; esac
        [ ! -e "$file" ] || [ "$file" = / ] || echo "$file"
    done | sort -u
}

in_root() { # SUITE SCRIPT: as its user, in its home, for half an hour at most
    local settings=()
    mapfile -t settings < <(settings_of_network)
    files_of_network >"$work/$1.files"
    as_root timeout --kill-after=30 1800 unshare --mount --pid --fork --kill-child bash -euc '
        root=$1 files=$2 script=$3
        shift 3
        mount --make-rprivate /
        mount -t proc proc "$root/proc"
        mount -t sysfs -o ro sysfs "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
        while read -r file; do
            mkdir -p "$(dirname "$root$file")"
            if [ -d "$file" ]; then mkdir -p "$root$file"; else [ -e "$root$file" ] || : >"$root$file"; fi
            mount --bind -o ro "$file" "$root$file"
        done <"$files"
        exec chroot "$root" runuser -u newcomer -- env -i "$@" HOME=/home/newcomer USER=newcomer LC_ALL=C.UTF-8 \
            PATH=/usr/local/bin:/usr/bin:/bin bash -euc "cd; $script"
    ' in_root "$work/$1" "$work/$1.files" "$2" "${settings[@]}"
}

prepare_root() { # SUITE: a root with the tree in it
    local home=$work/$1/home/newcomer
    if ! make_root "$1"; then
        echo "No root of Debian $1 can be made here, so that README's commands were not tried in one."
        return 1
    fi
    [ ! -e "$home/ofipy" ] || return 0
    copy_tree "$work/$1.tree"
    as_root mv "$work/$1.tree" "$home/ofipy"
    give_pip_settings "$1"
}

give_pip_settings() { # ROOT: those of this user to the root's, who owns all at home
    local file
    for file in "${pip_of_user[@]}"; do
        [ ! -e "$file" ] || as_root install -D "$file" "$work/$1/home/newcomer/.config/pip/pip.conf"
    done
    as_root chroot "$work/$1" chown -R newcomer /home/newcomer
}

# A machine on which no root can be made does not fail for this, but in CI.
without_root() { [ "${CI:-}" != true ]; }

# LEAST REPORT [OPTION…]: what may be skipped is what README's packages leave out and later stages install, or what needs
# root, which the stage of network namespaces has.
check_readme() {
    python3 .ci/check_junit.py --name "README's tests" --least "$1" --allow "could not import 'zmq'" \
        --allow 'is not installed' --allow 'libssl-dev has what it needs' --allow 'only root becomes another user' \
        --allow 'moves bytes one way only' --allow 'no provider here has' \
        --allow "could not import 'mpi4py'" --allow 'the launcher .* is not here' --allow FABTESTS_BIN "${of_other_providers[@]}" "${@:3}" "$2"
}

bare_root() { # SUITE whole|part: both commands, verbatim, one behind the other
    local first test least=900 parts=()
    prepare_root "$1" || { without_root; return; }
    first=$(readme_first_command) test=$(readme_test_command)
    [ -n "$first" ] && [ -n "$test" ] || { echo "README.md lacks one of its two commands"; return 1; }
    [ "$2" = whole ] || [ "$profile" = full ] || { least=300 parts=("${c_and_asyncio[@]}"); }
    in_root "$1" "
        cd ofipy
        python3 --version
        gcc --version | sed -n 1p
        export PYTEST_ADDOPTS='--junit-xml=/home/newcomer/readme.xml ${parts[*]}'
        SECONDS=0
        set -x
        $first
        { set +x; echo \"--- README's first command: \$SECONDS s\"; SECONDS=0; set -x; } 2>/dev/null
        $test
        { set +x; echo \"--- README's test command: \$SECONDS s\"; } 2>/dev/null"
    check_readme "$least" "$work/$1/home/newcomer/readme.xml"
}

oldest_dependencies() { # SUITE: README's tests with the lowest version of each dependency that pyproject.toml allows
    local least=900 parts=()
    prepare_root "$1" || { without_root; return; }
    [ "$profile" = full ] || { least=300 parts=("${c_and_asyncio[@]}" tests/unit/test_cli_{commands,doctor,support,tables}.py); }
    python3 .ci/oldest.py | as_root tee "$work/$1/home/newcomer/oldest.txt"
    in_root "$1" "
        python3 -m venv oldest
        . oldest/bin/activate
        cd ofipy
        pip install -q -c ../oldest.txt '.[test]'
        pip freeze
        pytest --junit-xml=/home/newcomer/oldest.xml ${parts[*]}"
    check_readme "$least" "$work/$1/home/newcomer/oldest.xml" --allow 'click is older than'
}

build_errors() { # SUITE: each thing that a build cannot do without is named when it is missing; spoils the root
    prepare_root "$1" || { without_root; return; }
    fails_with() { # SUITE SENTENCE COMMAND
        local said
        if said=$(in_root "$1" "cd ofipy; $3" 2>&1); then echo "it did not fail: $3"; return 1; fi
        grep -F "$2" <<<"$said" || { printf '%s\nThis does not say: %s\n' "$said" "$2"; return 1; }
    }
    as_root tee "$work/$1/home/newcomer/darwin.ini" >/dev/null <<'CROSS'
[host_machine]
system = 'darwin'
cpu_family = 'aarch64'
cpu = 'arm64'
endian = 'little'
CROSS
    in_root "$1" 'python3 -m venv errors'
    local pip=/home/newcomer/errors/bin/pip
    fails_with "$1" 'ofipy needs a C compiler' "CC=/nonexistent $pip install ."
    fails_with "$1" 'ofipy builds on Linux only' "$pip install -Csetup-args=--cross-file=/home/newcomer/darwin.ini ."
    as_root find "$work/$1/usr/include" -name Python.h -delete
    fails_with "$1" 'ofipy needs Python.h' "$pip install ."
}
