// SPDX-License-Identifier: BSD-3-Clause
// Role: kmp_* calls: memory, and settings of LLVM's runtime.
// Invariant: memory is the job's. A setting that has no meaning here is kept and given back; how
// long threads spin and how large their stacks are was decided at the start (OMP_WAIT_POLICY,
// OMP_STACKSIZE).
#include <strings.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "abi/kmp/kmp.hpp"
#include "base/fatal.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;

namespace {

constexpr int library_serial = 1, library_turnaround = 2, library_throughput = 3;
constexpr std::size_t stack_default = std::size_t{4} << 20;

constexpr int not_set = -1;
std::atomic<int> block_time_ms{not_set}, library{library_throughput};

/// As LLVM's runtime tells it where the program has set none.
int block_time() noexcept {
    if (const int set = block_time_ms.load(); set != not_set) return set;
    if (const char* const value = std::getenv("KMP_BLOCKTIME"); value != nullptr)
        return std::strcmp(value, "infinite") == 0 ? INT_MAX : std::atoi(value);
    switch (runtime().environment().wait_policy) {
        case hiroba::omp::WaitPolicy::active: return INT_MAX;
        case hiroba::omp::WaitPolicy::passive: return 0;
        default: return 200;
    }
}
std::atomic<std::size_t> stack_bytes{0};

constexpr std::string_view offload_variable = "OMP_TARGET_OFFLOAD=";
std::atomic<int> offload{not_set};

/// What LLVM's runtime takes that variable's value for.
int offload_kind(const char* value) noexcept {
    if (value == nullptr) return 1;
    if (strcasecmp(value, "disabled") == 0) return 0;
    return strcasecmp(value, "mandatory") == 0 ? 2 : 1;
}

void set_defaults(const char* text) noexcept {
    if (std::string_view(text).starts_with(offload_variable))
        offload.store(offload_kind(text + offload_variable.size()));
}

std::size_t stack_in_force() noexcept {
    const std::size_t set = stack_bytes.load();
    if (set != 0) return set;
    const std::uint64_t from_environment = runtime().environment().stack_bytes;
    return from_environment != 0 ? from_environment : stack_default;
}

void choose_library(int kind) noexcept {
    if (kind < library_serial || kind > library_throughput) return;
    library.store(kind);
    if (kind == library_serial) runtime().icvs().threads = 1;
}

void* allocate(std::size_t bytes, std::size_t alignment, bool zero) noexcept {
    return allocate_by_allocator(bytes, alignment, zero);
}
void* allocate_zeroed(std::size_t count, std::size_t bytes) noexcept {
    return __builtin_mul_overflow(count, bytes, &bytes) ? nullptr : allocate(bytes, 0, true);
}
void release(void* block) noexcept {
    if (block != nullptr) free_for_program(block);
}
void* resize(void* block, std::size_t bytes) noexcept {
    if (bytes == 0) {
        release(block);
        return nullptr;
    }
    void* const larger = allocate(bytes, 0, false);
    if (larger == nullptr || block == nullptr) return larger;
    std::memcpy(larger, block, std::min(bytes, usable_bytes(block)));
    release(block);
    return larger;
}

/// Null where that is no power of two, as from LLVM's runtime.
void* allocate_aligned(std::size_t bytes, std::size_t alignment) noexcept {
    if ((alignment & (alignment - 1)) == 0) return allocate(bytes, alignment, false);
    errno = EINVAL;
    return nullptr;
}

}  // namespace

int hiroba::abi::kmp::target_offload() noexcept {
    const int set = offload.load();
    return set != not_set ? set : offload_kind(std::getenv("OMP_TARGET_OFFLOAD"));
}

extern "C" {

void* kmp_malloc(std::size_t bytes) { return allocate(bytes, 0, false); }
void* kmp_aligned_malloc(std::size_t bytes, std::size_t alignment) {
    return allocate_aligned(bytes, alignment);
}
void* kmp_calloc(std::size_t count, std::size_t bytes) { return allocate_zeroed(count, bytes); }
void* kmp_realloc(void* block, std::size_t bytes) { return resize(block, bytes); }
void kmp_free(void* block) { release(block); }
void* kmpc_malloc(std::size_t bytes) { return allocate(bytes, 0, false); }
void* kmpc_aligned_malloc(std::size_t bytes, std::size_t alignment) {
    return allocate_aligned(bytes, alignment);
}
void* kmpc_calloc(std::size_t count, std::size_t bytes) { return allocate_zeroed(count, bytes); }
void* kmpc_realloc(void* block, std::size_t bytes) { return resize(block, bytes); }
void kmpc_free(void* block) { release(block); }
void* kmp_malloc_(const std::size_t* bytes) { return allocate(*bytes, 0, false); }
void* kmp_aligned_malloc_(const std::size_t* bytes, const std::size_t* alignment) {
    return allocate_aligned(*bytes, *alignment);
}
void* kmp_calloc_(const std::size_t* count, const std::size_t* bytes) {
    return allocate_zeroed(*count, *bytes);
}
void* kmp_realloc_(void* const* block, const std::size_t* bytes) { return resize(*block, *bytes); }
void kmp_free_(void* const* block) { release(*block); }

void kmp_set_stacksize(int bytes) { stack_bytes.store(static_cast<std::size_t>(bytes)); }
void kmp_set_stacksize_s(std::size_t bytes) { stack_bytes.store(bytes); }
void kmpc_set_stacksize(int bytes) { stack_bytes.store(static_cast<std::size_t>(bytes)); }
void kmpc_set_stacksize_s(std::size_t bytes) { stack_bytes.store(bytes); }
void kmp_set_stacksize_(const int* bytes) { kmp_set_stacksize(*bytes); }
void kmp_set_stacksize_s_(const std::size_t* bytes) { stack_bytes.store(*bytes); }
int kmp_get_stacksize() { return static_cast<int>(stack_in_force()); }
std::size_t kmp_get_stacksize_s() { return stack_in_force(); }
int kmp_get_stacksize_() { return static_cast<int>(stack_in_force()); }
std::size_t kmp_get_stacksize_s_() { return stack_in_force(); }

void kmp_set_blocktime(int milliseconds) { block_time_ms.store(milliseconds); }
void kmpc_set_blocktime(int milliseconds) { block_time_ms.store(milliseconds); }
void kmp_set_blocktime_(const int* milliseconds) { block_time_ms.store(*milliseconds); }
int kmp_get_blocktime() { return block_time(); }
int kmp_get_blocktime_() { return block_time(); }

void kmp_set_library(int kind) { choose_library(kind); }
void kmpc_set_library(int kind) { choose_library(kind); }
void kmp_set_library_(const int* kind) { choose_library(*kind); }
void kmp_set_library_serial() { choose_library(library_serial); }
void kmp_set_library_serial_() { choose_library(library_serial); }
void kmp_set_library_turnaround() { choose_library(library_turnaround); }
void kmp_set_library_turnaround_() { choose_library(library_turnaround); }
void kmp_set_library_throughput() { choose_library(library_throughput); }
void kmp_set_library_throughput_() { choose_library(library_throughput); }
int kmp_get_library() { return library.load(); }
int kmp_get_library_() { return library.load(); }

// Environment text: every variable of it has been read by now, but for one.
void kmp_set_defaults(const char* text) { set_defaults(text); }
void kmpc_set_defaults(const char* text) { set_defaults(text); }
void kmp_set_defaults_(const char* text, std::size_t length) {
    set_defaults(std::string(text, length).c_str());
}
void kmp_set_disp_num_buffers(int) {}
void kmpc_set_disp_num_buffers(int) {}
void kmp_set_disp_num_buffers_(const int*) {}
void kmp_set_warnings_on() {}
void kmp_set_warnings_on_() {}
void kmp_set_warnings_off() {}
void kmp_set_warnings_off_() {}
int kmp_get_num_known_threads() { return static_cast<int>(runtime().processors()); }
int kmp_get_num_known_threads_() { return static_cast<int>(runtime().processors()); }

// `#pragma omp error at(execution)`: 2 is fatal.
void __kmpc_error(Location*, int severity, const char* message) {
    note_caller();
    if (message == nullptr) message = "";
    tell_error(severity == 2, message, std::strlen(message));
    hiroba::say(severity == 2 ? "error: %s" : "warning: %s", message);
    if (severity == 2) std::abort();  // As LLVM's runtime does: the program's handler is called.
}

}  // extern "C"
