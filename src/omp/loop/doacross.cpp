// SPDX-License-Identifier: BSD-3-Clause
#include "omp/loop/doacross.hpp"

#include <algorithm>

namespace hiroba::omp {

bool Doacross::begin(std::span<const std::uint64_t> counts, std::uint64_t chunk,
                     std::uint32_t threads, std::uint32_t thread, WordStore& constructs,
                     WordStore& progress, std::uint64_t sequence,
                     const Cancellation* cancellation) noexcept {
    std::uint64_t all = 1;
    for (const std::uint64_t count : counts)
        if (__builtin_mul_overflow(all, count, &all)) return false;
    // The number behind the last one is stored, too.
    if (counts.size() > dimensions_max || threads > threads_max || all == UINT64_MAX) return false;
    std::copy(counts.begin(), counts.end(), counts_.begin());
    dimensions_ = counts.size();
    chunk_ = chunk;
    threads_ = threads;
    thread_ = thread;
    progress_ = &progress;
    cancellation_ = cancellation;
    share_ = Workshare(constructs, sequence, cancellation);
    if (!share_.joined()) dimensions_ = 0;
    first_word_ = sequence % Workshare::slots * threads_max;
    return true;
}

void Doacross::post(const std::uint64_t* at) noexcept {
    progress_->store(word_of(thread_), number_of(counts(), at) + 1);
}

void Doacross::wait(const std::uint64_t* at) noexcept {
    const std::uint32_t owner = owner_of(at[0], counts_[0], chunk_, threads_);
    progress_->await_at_least(word_of(owner), number_of(counts(), at) + 1, cancellation_);
}

void Doacross::finish() noexcept {
    if (share_.is_last_to_leave(threads_)) {
        for (std::uint32_t t = 0; t < threads_; ++t) progress_->store(word_of(t), 0);
        share_.clear();
    }
    dimensions_ = 0;
}

}  // namespace hiroba::omp
