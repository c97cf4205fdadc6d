// SPDX-License-Identifier: BSD-3-Clause
// Role: entry points of constructs that are not built: each ends the program with one line.
// Invariant: nothing here ever returns a wrong answer; compilers' start-up registration of device
// code is accepted, since a program that never offloads runs well without it.
#include "abi/gomp/refusals.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "abi/libc/process/job_end.hpp"
#include "base/fatal.hpp"

#pragma GCC visibility push(default)

namespace {

/// A length of SIZE_MAX means a terminated string.
std::string_view text_of(const char* message, std::size_t length) {
    if (message == nullptr) return "";
    return {message, length == SIZE_MAX ? std::strlen(message) : length};
}

}  // namespace

extern "C" {

void GOMP_offload_register(const void*, int, const void*) {}
void GOMP_offload_unregister(const void*, int, const void*) {}
void GOMP_offload_register_ver(unsigned, const void*, int, const void*) {}
void GOMP_offload_unregister_ver(unsigned, const void*, int, const void*) {}

// `#pragma omp error at(execution)`.
void GOMP_warning(const char* message, std::size_t length) {
    hiroba::abi::note_caller();
    const std::string_view text = text_of(message, length);
    hiroba::abi::tell_error(false, text.data(), text.size());
    hiroba::say("warning: %.*s", static_cast<int>(text.size()), text.data());
}
void GOMP_error(const char* message, std::size_t length) {
    hiroba::abi::note_caller();
    const std::string_view text = text_of(message, length);
    hiroba::abi::tell_error(true, text.data(), text.size());
    hiroba::say("error: %.*s", static_cast<int>(text.size()), text.data());
    hiroba::abi::exit_as_program(hiroba::exit_program);  // Its handlers run, as with libgomp.
}

}  // extern "C"
