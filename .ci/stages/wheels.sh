# SPDX-License-Identifier: BSD-3-Clause
# Wheels of .ci/wheels, and where they run. Sourced by .ci/run.

wheel() { # of this machine's processor, as users get it
    .ci/wheels x86_64 --outdir "$work/wheel" --tools "$work/wheel-tools"
    "$work/wheel-tools/bin/auditwheel" show "$work"/wheel/*.whl | grep -F '"manylinux_2_28_x86_64"'
    abi3audit --strict "$work"/wheel/*.whl
}

wheel_twice() { # of other folders, and with another cache
    copy_tree "$work/elsewhere"
    # As an archive of the commit: the copy has no git to ask, and the wheel says which commit it is of.
    git rev-parse HEAD >"$work/elsewhere/native/COMMIT"
    cp -r "$work/wheel-tools" "$work/wheel-tools-elsewhere"
    rm -rf "$work/wheel-tools-elsewhere/cache"
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) "$work/elsewhere/.ci/wheels" x86_64 \
        --outdir "$work/wheel-again" --tools "$work/wheel-tools-elsewhere"
    cmp "$work"/wheel/*.whl "$work"/wheel-again/*.whl
}

wheel_open_symbol() { # one library calls what glibc 2.28 does not have: auditwheel takes the wheel, and check_wheel.py refuses it
    local tree=$work/open-symbol status=0
    copy_tree "$tree"
    sed -i 's/return syscall(SYS_getcpu, NULL, node, NULL) == 0/return getcpu(NULL, node) == 0/' \
        "$tree/providers/verbs/device/device.c"
    grep -q 'getcpu(NULL, node)' "$tree/providers/verbs/device/device.c"
    "$tree/.ci/wheels" x86_64 --outdir "$work/wheel-open" --tools "$work/wheel-tools" 2>"$work/wheel-open.log" || status=$?
    cat "$work/wheel-open.log"
    [ "$status" -eq 1 ]
    grep -F 'ofipy/providers/verbs/_verbs.abi3.so leaves open getcpu: ' "$work/wheel-open.log"
}

newer_interpreters() { # the one wheel on every other Python that this machine has
    local python name
    for python in python3.1{2,3,4,5} "${PYENV_ROOT:-/nowhere}"/versions/3.1[2-9]*/bin/python3; do
        "$python" -c '' 2>/dev/null || continue
        name=$("$python" -c 'import sys; print(*sys.version_info[:3], sep=".")')
        [ ! -e "$work/python-$name" ] || continue
        echo "Python $name"
        "$python" -m venv "$work/python-$name"
        "$work/python-$name/bin/pip" install -qq "$work"/wheel/*.whl
        "$work/python-$name/bin/ofipy" pingpong --provider shm --sizes 8 --iterations 100
    done
}

wheel_in_root() { # SUITE [PYTHON…]: as a user installs it who has neither a compiler nor root's rights; on further Pythons too
    local root=$1-user
    if ! make_root "$root" "python3,python3-venv,ca-certificates$(printf ',%s-venv' "${@:2}" | sed 's/^,-venv$//')"; then
        echo "No root of Debian $1 can be made here, so that the wheel was not tried in one."
        without_root
        return
    fi
    as_root cp "$work"/wheel/*.whl "$work/$root/home/newcomer/"
    give_pip_settings "$root"
    in_root "$root" "
        ! command -v gcc cc
        for python in python3 ${*:2}; do
            \$python --version
            \$python -m venv environment-\$python
            environment-\$python/bin/pip install -q --only-binary :all: ./*.whl
            for provider in shm tcp link; do
                environment-\$python/bin/ofipy pingpong --provider \$provider --sizes 8,1m --iterations 20
            done
            environment-\$python/bin/ofipy version
        done"
}

wheel_aarch64() { # emulated: what the processor orders in memory, and cross-memory attach, are the emulator's
    local root=$work/aarch64-root environment=$work/aarch64-python site
    command -v qemu-aarch64-static >/dev/null || apt_install qemu-user-static || { echo "no emulator here"; return 0; }
    command -v mmdebstrap >/dev/null || apt_install mmdebstrap debian-archive-keyring
    .ci/wheels aarch64 --outdir "$work/wheel-aarch64" --tools "$work/wheel-tools"
    apt-config dump | grep '^Acquire::' >"$root.apt"
    as_root mmdebstrap --quiet --mode=root --variant=extract --architectures=arm64 --aptopt="$root.apt" \
        --include=python3,libstdc++6,zlib1g,libffi8 bookworm "$root" $(debian_mirror)
    site=$environment/lib/python3.11/site-packages
    mkdir -p "$environment/bin" "$site"
    printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >"$environment/pyvenv.cfg"
    cat >"$environment/bin/python3" <<SCRIPT
#!/bin/sh
exec qemu-aarch64-static -0 "\$0" -L "$root" "$root/usr/bin/python3.11" "\$@"
SCRIPT
    chmod +x "$environment/bin/python3"
    pip install -qq --target "$site" --python-version 3.11 --implementation cp --only-binary :all: \
        --platform manylinux_2_17_aarch64 --platform manylinux_2_28_aarch64 "$work"/wheel-aarch64/*.whl
    for provider in shm tcp; do
        PYTHONPATH=$site "$environment/bin/python3" -P -m ofipy pingpong --provider "$provider" --sizes 8,1m --iterations 5
    done
}
