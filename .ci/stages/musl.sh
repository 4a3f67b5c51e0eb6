# SPDX-License-Identifier: BSD-3-Clause
# The wheel for musl, in a Python that is built for musl, since no index has one. It is not Alpine: musl alone is the
# same. Sourced by .ci/run.

musl_apt() { # ARGUMENTS: apt-get of Debian 13, with lists of its own. numpy's wheel needs a newer musl than Debian 12 has
    apt-get -o Dir::Etc::SourceList="$work/musl/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$work/musl/lists" -o Dir::Cache="$work/musl/cache" -o APT::Sandbox::User=root \
        -o Acquire::Retries=5 -qq "$@"
}

musl_sources() { # MIRROR: musl itself, and the sources of Python and of what it cannot do without
    mkdir -p "$work/musl"/{lists,cache,archives,sources}
    printf '%s [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s trixie main\n' deb "$1" deb-src "$1" \
        >"$work/musl/sources.list"
    musl_apt update
    (cd "$work/musl/archives" && musl_apt download musl && musl_apt --tar-only --download-only source python3.13 libffi zlib)
    dpkg-deb -x "$work"/musl/archives/musl_*.deb "$work/musl/root"
    find "$work/musl/archives" -name '*.orig.tar.*z' -exec tar -C "$work/musl/sources" -xf {} \;
}

# zig has musl's headers and a stub of its library. All is position-independent: the stub knows no second names, so a copy
# of `environ` would stay empty. The interpreter is Debian 13's musl, at its own place.
write_musl_compiler() { # FILE
    cat >"$1" <<COMPILER
#!/bin/bash
zig=($work/wheel-tools/bin/python -m ziglang cc -target x86_64-linux-musl -fPIC -fno-sanitize=all -Wno-date-time)
for argument; do
    case \$argument in
        -print-multiarch | --print-multiarch) echo x86_64-linux-musl && exit ;;
        # Python tells musl by a mark that musl's stdarg.h leaves, and clang's does not.
        -E) exec "\${zig[@]}" -D__DEFINED_va_list "\$@" ;;
        -c | -S) exec "\${zig[@]}" "\$@" ;;
    esac
done
exec "\${zig[@]}" -dynamic "\$@" -Wl,--dynamic-linker=$work/musl/root/usr/lib/x86_64-linux-musl/libc.so
COMPILER
    chmod +x "$1"
}

build_musl_python() { # into $work/musl/prefix
    local prefix=$work/musl/prefix zig="$work/wheel-tools/bin/python -m ziglang"
    write_musl_compiler "$work/musl/cc"
    (
        export CC=$work/musl/cc AR="$zig ar" RANLIB="$zig ranlib" CFLAGS=-O1 OPT='-O1 -DNDEBUG' \
            PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig ZIG_GLOBAL_CACHE_DIR=$work/wheel-tools/cache
        cd "$work"/musl/sources/zlib-*
        ./configure --static --prefix="$prefix"
        make -j2 libz.a
        make install
        cd "$work"/musl/sources/libffi-*
        autoreconf -i
        ./configure --host=x86_64-linux-musl --disable-shared --with-pic --disable-docs --prefix="$prefix"
        make -j2
        make install
        cd "$work"/musl/sources/Python-*
        ./configure --prefix="$prefix" --without-ensurepip --disable-test-modules
        make -j2
        make install
    ) >"$work/musl/build.log" 2>&1 || { tail -n 60 "$work/musl/build.log"; return 1; }
}

wheel_musl() {
    local mirror site=$work/musl/site python=$work/musl/python
    .ci/wheels musl-x86_64 --outdir "$work/wheel-musl" --tools "$work/wheel-tools"
    "$work/wheel-tools/bin/auditwheel" show "$work"/wheel-musl/*.whl | grep -F '"musllinux_1_2_x86_64"'
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || { echo "No mirror of Debian is known here, so that no Python was built for musl."; return 0; }
    apt_install make pkg-config autoconf automake libtool libltdl-dev debian-archive-keyring
    musl_sources "$mirror"
    build_musl_python
    pip install -qq --target "$site" --python-version 3.13 --implementation cp --only-binary :all: \
        --platform musllinux_1_2_x86_64 "$work"/wheel-musl/*.whl
    printf '#!/bin/sh\nPYTHONPATH=%s exec %s "$@"\n' "$site" "$work/musl/prefix/bin/python3" >"$python"
    chmod +x "$python"
    "$python" -c 'import platform, sysconfig; print(platform.python_version(), sysconfig.get_config_var("SOABI"))'
    for provider in shm tcp link; do
        "$python" -P -m ofipy pingpong --provider "$provider" --sizes 8,1m --iterations 20
    done
    # Beside this machine's Python: both roles, 1 MiB and memory that the other side reads and writes.
    OFIPY_OTHER_PYTHON=$python pytest tests/upgrade/test_other_python.py -n 0 --junit-xml="$work/musl.xml"
    python3 .ci/check_junit.py --name "musl and glibc" --least 8 "$work/musl.xml"
}
