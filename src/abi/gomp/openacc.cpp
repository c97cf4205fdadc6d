// SPDX-License-Identifier: BSD-3-Clause
// Role: OpenACC as gcc's code calls it, where the only device is the host.
// Invariant: a compute construct is executed by the thread that meets it, at once, as libgomp does
// it there; data are the program's own, so what moves them has nothing to do.
#include "abi/gomp/openacc.hpp"

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "abi/gomp/refusals.hpp"
#include "abi/gomp/runtime.hpp"
#include "abi/libc/process/job_end.hpp"
#include "base/fatal.hpp"

namespace hiroba::abi::openacc {

namespace {

constexpr std::array<const char*, device_end> names = {
    "none", "default", "host", "(host)", "not_host", "nvidia", "(mic)", "(hsa)", "radeon"};

std::atomic<bool> in_use{false};

/// ACC_DEVICE_TYPE names what the program is to run on where it does not say.
void require_default() noexcept {
    const char* const wanted = std::getenv("ACC_DEVICE_TYPE");
    if (wanted != nullptr && *wanted != 0 && std::strcmp(wanted, "host") != 0)
        fail("device type %s not supported", wanted);
    const char* const number = std::getenv("ACC_DEVICE_NUM");
    const int device = number != nullptr ? std::atoi(number) : 0;
    if (device > 0) fail("device %d out of range", device);
}

}  // namespace

void fail(const char* format, ...) noexcept {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    say("OpenACC: %s", text);
    exit_as_program(exit_program);
}

void require_host(int device) noexcept {
    if (device < 0 || device >= device_end)
        fail("unknown device type %u", static_cast<unsigned>(device));
    if (device == device_default) return require_default();
    if (device == device_not_host) fail("no device found");
    if (device != device_host)
        fail("device type %s not supported", names[static_cast<std::size_t>(device)]);
}

void use_host(int device) noexcept {
    require_host(device);
    if (!in_use.load(std::memory_order_relaxed)) in_use.store(true, std::memory_order_relaxed);
}

void initialize(int device) noexcept {
    require_host(device);
    if (in_use.exchange(true)) fail("device already active");
}

void shut_down(int device) noexcept {
    require_host(device);
    if (!in_use.exchange(false)) fail("no device initialized");
}

void require_async(int async) noexcept {
    if (async < async_min) fail("invalid async-argument: %d", async);
}

void require_range(const void* begin, std::size_t bytes) noexcept {
    use_host(device_default);
    if (!is_present(begin, bytes)) fail("[%p,+%zu] is a bad range", begin, bytes);
}

}  // namespace hiroba::abi::openacc

using namespace hiroba::abi;
using namespace hiroba::abi::openacc;

#pragma GCC visibility push(default)

extern "C" {

// --- constructs ----------------------------------------------------------------------------------

void GOACC_parallel_keyed(int, void (*function)(void*), std::size_t, void** addresses, std::size_t*,
                          unsigned short*, ...) {
    use_host(device_default);
    function(addresses);
}
// Made by gcc 5 only.
void GOACC_parallel(int, void (*function)(void*), std::size_t, void** addresses, std::size_t*,
                    unsigned short*, int, int, int, int, int, ...) {
    use_host(device_default);
    function(addresses);
}
void GOACC_data_start(int, std::size_t, void**, std::size_t*, unsigned short*) {
    use_host(device_default);
}
void GOACC_data_end() {}
void GOACC_enter_exit_data(int, std::size_t, void**, std::size_t*, unsigned short*, int, int, ...) {
    use_host(device_default);
}
void GOACC_enter_data(int, std::size_t, void**, std::size_t*, unsigned short*, int, int, ...) {
    use_host(device_default);
}
void GOACC_exit_data(int, std::size_t, void**, std::size_t*, unsigned short*, int, int, ...) {
    use_host(device_default);
}
void GOACC_update(int, std::size_t, void**, std::size_t*, unsigned short*, int, int, ...) {
    use_host(device_default);
}
void GOACC_wait(int async, int, ...) { require_async(async); }
void GOACC_declare(int, std::size_t, void**, std::size_t*, unsigned short*) {}
int GOACC_get_num_threads() { return 1; }
int GOACC_get_thread_num() { return 0; }

// --- devices -------------------------------------------------------------------------------------

int acc_get_num_devices(int device) {
    if (device < 0 || device >= device_end) require_host(device);
    return device == device_host || device == device_default ? 1 : 0;
}
void acc_set_device_type(int device) { use_host(device); }
int acc_get_device_type() { return device_host; }
void acc_set_device_num(int number, int device) {
    if (device != device_none) use_host(device);
    if (number > 0) fail("device %d out of range", number);
}
int acc_get_device_num(int device) {
    require_host(device);
    return 0;
}
void acc_init(int device) { initialize(device); }
void acc_shutdown(int device) { shut_down(device); }
// The host is not told apart from no device at all.
int acc_on_device(int device) { return device == device_host || device == device_none; }

// The host tells nothing of its memory.
std::size_t acc_get_property(int number, int device, int) {
    if (device != device_current) require_host(device);
    if (number > 0) fail("device %d out of range", number);
    return 0;
}
const char* acc_get_property_string(int number, int device, int property) {
    acc_get_property(number, device, property);
    switch (property) {
        case 0x10001: return "GOMP";
        case 0x10002: return "GNU";
        case 0x10003: return "1.0";
        default: return nullptr;
    }
}

// --- waiting for what has been done at once ------------------------------------------------------

int acc_async_test(int async) {
    require_async(async);
    return 1;
}
int acc_async_test_all() { return 1; }
void acc_wait(int async) { require_async(async); }
void acc_async_wait(int async) { require_async(async); }
void acc_wait_async(int one, int other) {
    require_async(one);
    require_async(other);
}
void acc_wait_all() {}
void acc_async_wait_all() {}
void acc_wait_all_async(int async) { require_async(async); }

// --- memory --------------------------------------------------------------------------------------

void* acc_malloc(std::size_t bytes) {
    use_host(device_default);
    return bytes == 0 ? nullptr : allocate_by_allocator(bytes, 0, false);
}
void acc_free(void* block) {
    if (block != nullptr) free_for_program(block);
}
void acc_memcpy_to_device(void* to, void* from, std::size_t bytes) {
    std::memmove(to, from, bytes);
}
void acc_memcpy_from_device(void* to, void* from, std::size_t bytes) {
    std::memmove(to, from, bytes);
}
void acc_memcpy_to_device_async(void* to, void* from, std::size_t bytes, int) {
    std::memmove(to, from, bytes);
}
void acc_memcpy_from_device_async(void* to, void* from, std::size_t bytes, int) {
    std::memmove(to, from, bytes);
}
void* acc_deviceptr(void* host) { return host; }
void* acc_hostptr(void* device) { return device; }
int acc_is_present(void* begin, std::size_t bytes) { return is_present(begin, bytes); }
void acc_map_data(void* host, void* device, std::size_t) {
    if (host != device) fail("cannot map data on shared-memory system");
}
void acc_unmap_data(void*) {}

#define HIROBA_ENTERS(name)                      \
    void* name(void* begin, std::size_t bytes) { \
        require_range(begin, bytes);             \
        return begin;                            \
    }
#define HIROBA_ENTERS_ASYNC(name) \
    void name(void* begin, std::size_t bytes, int) { require_range(begin, bytes); }
#define HIROBA_LEAVES(name) \
    void name(void*, std::size_t) {}
#define HIROBA_LEAVES_ASYNC(name) \
    void name(void*, std::size_t, int) {}
HIROBA_ENTERS(acc_copyin)
HIROBA_ENTERS(acc_present_or_copyin)
HIROBA_ENTERS(acc_pcopyin)
HIROBA_ENTERS(acc_create)
HIROBA_ENTERS(acc_present_or_create)
HIROBA_ENTERS(acc_pcreate)
HIROBA_ENTERS_ASYNC(acc_copyin_async)
HIROBA_ENTERS_ASYNC(acc_create_async)
HIROBA_LEAVES(acc_copyout)
HIROBA_LEAVES(acc_copyout_finalize)
HIROBA_LEAVES(acc_delete)
HIROBA_LEAVES(acc_delete_finalize)
HIROBA_LEAVES(acc_update_device)
HIROBA_LEAVES(acc_update_self)
HIROBA_LEAVES_ASYNC(acc_copyout_async)
HIROBA_LEAVES_ASYNC(acc_copyout_finalize_async)
HIROBA_LEAVES_ASYNC(acc_delete_async)
HIROBA_LEAVES_ASYNC(acc_delete_finalize_async)
HIROBA_LEAVES_ASYNC(acc_update_device_async)
HIROBA_LEAVES_ASYNC(acc_update_self_async)
void acc_attach(void**) {}
void acc_attach_async(void**, int) {}
void acc_detach(void**) {}
void acc_detach_async(void**, int) {}
void acc_detach_finalize(void**) {}
void acc_detach_finalize_async(void**, int) {}

// --- of devices that are not there ---------------------------------------------------------------

void* acc_get_current_cuda_device() { return nullptr; }
void* acc_get_current_cuda_context() { return nullptr; }
void* acc_get_cuda_stream(int) { return nullptr; }
int acc_set_cuda_stream(int, void*) { return -1; }

HIROBA_REFUSED(acc_prof_register, "the profiling interface of OpenACC is")
HIROBA_REFUSED(acc_prof_unregister, "the profiling interface of OpenACC is")
HIROBA_REFUSED(acc_prof_lookup, "the profiling interface of OpenACC is")
HIROBA_REFUSED(acc_register_library, "the profiling interface of OpenACC is")

}  // extern "C"
