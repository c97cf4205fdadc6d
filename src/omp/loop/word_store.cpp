// SPDX-License-Identifier: BSD-3-Clause
// Role: waiting for a shared word whose change no thread announces.
// Invariant: the sleeps are short, because a one-sided store on another node wakes no thread here.
#include "omp/loop/word_store.hpp"

#include <time.h>

#include "base/latch.hpp"

namespace hiroba::omp {

namespace {
constexpr std::uint32_t yields_before_sleep = 2000;
constexpr long sleep_ns = 50'000;
}  // namespace

template <class Holds>
bool WordStore::await_that(Holds&& holds, const Cancellation* cancellation) noexcept {
    Backoff backoff;
    while (!holds()) {
        if (cancellation != nullptr && cancellation->region()) return false;
        between_looks();
        if (backoff.yields() < yields_before_sleep) {
            backoff.pause();
        } else {
            const timespec pause{0, sleep_ns};
            nanosleep(&pause, nullptr);
        }
    }
    return true;
}

bool WordStore::await(std::size_t word, std::uint64_t value,
                      const Cancellation* cancellation) noexcept {
    return await_that([&] { return load(word) == value; }, cancellation);
}

bool WordStore::await_at_least(std::size_t word, std::uint64_t value,
                               const Cancellation* cancellation) noexcept {
    return await_that([&] { return load(word) >= value; }, cancellation);
}

}  // namespace hiroba::omp
