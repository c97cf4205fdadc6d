// SPDX-License-Identifier: BSD-3-Clause
// Role: see last_error.hpp. A key of pthreads rather than thread_local: there is little room for
// the latter in a process that loads the libraries late, as Python does.
#include "abi/c/last_error.hpp"

#include <pthread.h>

#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t line_bytes = 512;

pthread_key_t key() noexcept {
    static const pthread_key_t made = [] {
        pthread_key_t fresh;
        if (::pthread_key_create(&fresh, &std::free) != 0) std::abort();
        return fresh;
    }();
    return made;
}

}  // namespace

extern "C" {

void hiroba_keep_error(const char* line) noexcept {
    auto* kept = static_cast<char*>(::pthread_getspecific(key()));
    if (kept == nullptr) {
        kept = static_cast<char*>(std::malloc(line_bytes));
        if (kept == nullptr || ::pthread_setspecific(key(), kept) != 0) return std::free(kept);
    }
    std::strncpy(kept, line, line_bytes - 1);
    kept[line_bytes - 1] = 0;
}

const char* hiroba_last_error(void) {
    const auto* const kept = static_cast<const char*>(::pthread_getspecific(key()));
    return kept == nullptr ? "" : kept;
}

const char* hiroba_strerror(int code) {
    switch (code) {
        case HIROBA_OK: return "done";
        case HIROBA_REFUSED: return "an argument is wrong; nothing was done";
        case HIROBA_NO_JOB: return "the job could not be joined";
        case HIROBA_NO_MEMORY: return "there is no room";
        case HIROBA_PEER_LOST: return "a rank is lost; whether the access happened is unknown";
        case HIROBA_BUSY: return "the lock is held, or the time has passed";
        default: return "no code of hiroba";
    }
}

}  // extern "C"
