# SPDX-License-Identifier: BSD-3-Clause
# C by itself: its tests under sanitizers, another compiler and another processor, and fuzzing. Sourced by .ci/run.

native() { # NAME MESON-OPTION…
    local build=$work/native-$1 fixed=()
    shift
    # One layout for all runs: the thread sanitizer cannot live with every one that the kernel draws.
    setarch -R true 2>/dev/null && fixed=(setarch -R)
    meson setup "$build" -Dpython=false -Dtests=enabled -Dwerror=true "$@" >"$build.log" || { cat "$build.log"; return 1; }
    ninja -C "$build" >"$build.log" || { cat "$build.log"; return 1; }
    "${fixed[@]}" meson test -C "$build" --no-rebuild --print-errorlogs --timeout-multiplier 5
    python3 .ci/check_native.py "$build/meson-logs/testlog.junit.xml" "$(ls tests/native/test_*.c | wc -l)"
}

native_sanitized() { # SANITIZERS
    native "${1%%,*}" -Dbuildtype=debugoptimized -Db_lundef=false -Db_sanitize="$1"
}

native_clang() { # in the full profile with as many callers as the bounds on memory are meant for
    local callers=()
    [ "$profile" != full ] || callers=(OFIPY_TEST_RDM_PEERS=1000000 OFIPY_TEST_TCP_PEERS=100000)
    (export CC=clang ${callers[@]+"${callers[@]}"} && native clang -Dbuildtype=release)
}

aarch64() { # the core's tests on the other memory model's instructions, emulated
    apt_install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user || { echo "no cross compiler here"; return 0; }
    local root=$work/aarch64 library=usr/lib/aarch64-linux-gnu
    mkdir "$root"
    as_root dpkg --add-architecture arm64
    apt_update
    (cd "$root" && apt-get download -qq libcmocka0:arm64 libcmocka-dev:arm64)
    as_root dpkg --remove-architecture arm64
    find "$root" -name '*.deb' -exec dpkg -x {} "$root" \;
    cat >"$root/cross" <<FILE
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
pkg-config = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu', '-E', 'LD_LIBRARY_PATH=$root/$library']
[properties]
sys_root = '$root'
pkg_config_libdir = '$root/$library/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
FILE
    meson setup "$root/build" --cross-file "$root/cross" -Dpython=false -Dtests=enabled -Dwerror=true -Dbuildtype=release
    meson test -C "$root/build" --suite core --print-errorlogs --timeout-multiplier 20
    # The other two of shared memory's stop and kill processes, which the emulator does not carry out as a kernel does.
    meson test -C "$root/build" --print-errorlogs --timeout-multiplier 20 \
        test_shm_address test_shm_endpoints test_shm_hostile test_shm_ring test_shm_ring_orders test_shm_sleep_model test_shm_visit_model
}

fuzz() { # for some seconds all targets together
    echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' >"$work/probe.c"
    clang -fsanitize=fuzzer "$work/probe.c" -o "$work/probe" 2>/dev/null ||
        apt_install "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
    tests/fuzz/run "$fuzzing_seconds"
}
