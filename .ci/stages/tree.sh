# SPDX-License-Identifier: BSD-3-Clause
# What is read rather than run. Sourced by .ci/run.

every_source_is_listed() { # a file that no meson.build names would be neither built nor tested
    local file folder result=0
    while read -r file; do
        folder=$(dirname "$file")
        until [ -e "$folder/meson.build" ]; do folder=$(dirname "$folder"); done
        grep -q "'\(.*/\)\?$(basename "${file%.c}")\(\.c\)\?'" "$folder/meson.build" ||
            { echo "no meson.build names $file"; result=1; }
    done < <(git ls-files -co --exclude-standard 'native/*.c' 'providers/*.c' 'ofipy/*.c' 'tests/native/*.c')
    return $result
}

libfabric_abi() { # what the bridge believes about libfabric, against its headers
    apt_install libfabric-dev
    tests/abi/check_libfabric
}

openssl_abi() { # what the provider tcp believes about OpenSSL, against its headers, which no build needs
    apt_install libssl-dev pkg-config
    tests/abi/check_openssl
}

verbs_abi() { # what the provider verbs believes about its libraries, against their headers, which no build needs
    apt_install libibverbs-dev librdmacm-dev
    python3 tests/abi/check_verbs.py
}

lint() {
    local result=0
    ruff check . || result=1
    ruff format --check . || result=1
    git ls-files -co --exclude-standard -z '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror || result=1
    codespell || result=1
    zizmor --offline --quiet .github/workflows || result=1
    python3 native/stub.py --check || result=1
    every_source_is_listed || result=1
    return $result
}

types() { # two checkers, and the types in C against what is said of them
    mypy
    basedpyright
    python3 -P -m mypy.stubtest ofipy._requests --mypy-config-file pyproject.toml
    pytest tests/types --junit-xml="$work/types.xml"
    python3 .ci/check_junit.py --name "types" --least 3 "$work/types.xml"
}

documentation() {
    sphinx-build -W --keep-going -q -b html docs "$work/html"
    echo "built $(find "$work/html" -name '*.html' | wc -l) pages"
}
