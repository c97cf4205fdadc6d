// SPDX-License-Identifier: BSD-3-Clause
// Role: a program's own memory, exposed to other nodes at any time: its node's handlers read and
// write it for those who ask. Also 16-byte compare-swaps of words that are not mapped.
//
// Invariant: a handler touches exposed memory under the latch, which withdraw() takes: once that
// has returned, nobody does. A number is never used again.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "net/questions.hpp"

namespace hiroba::net {

/// Whether this processor swaps 16 bytes at once.
bool swaps_wide_words() noexcept;
/// What is at `at`, a multiple of 16, and puts `wanted` there if that is `expected`.
struct WideWord {
    std::uint64_t low = 0, high = 0;
    bool operator==(const WideWord&) const = default;
};
WideWord swap_wide_word(std::byte* at, WideWord expected, WideWord wanted) noexcept;

class ServedMemory {
public:
    explicit ServedMemory(Questions& questions);
    ServedMemory(const ServedMemory&) = delete;
    ServedMemory& operator=(const ServedMemory&) = delete;

    // --- at the node that has the memory ---------------------------------------------------------
    std::uint64_t expose(MutableBytes memory);
    /// False: it is not exposed.
    bool withdraw(std::uint64_t number) noexcept;

    // --- at the others: as the requests of Async, whose checks are done --------------------------
    struct At {
        std::uint64_t number, offset;
    };
    Submission try_copy(bool reads, NodeId peer, At at, std::byte* local, std::size_t bytes,
                        const Completion& done) noexcept;
    Submission try_atomic(const AtomicParams& params, At at, std::byte* old) noexcept;
    /// Swaps a word that is not mapped; `found` is borrowed.
    Submission try_wide_swap(NodeId peer, const Async::Place& place, WideWord expected,
                             WideWord wanted, WideWord& found, const Completion& done) noexcept;

private:
    static bool copied(Questions& of, Questions::Asking& asking, std::uint64_t word,
                       Bytes bytes) noexcept;
    static void copy_out(void* context, const Questions::Asked& asked) noexcept;
    static void copy_in(void* context, const Questions::Asked& asked) noexcept;
    static void change_word(void* context, const Questions::Asked& asked) noexcept;
    static void change_wide_word(void* context, const Questions::Asked& asked) noexcept;
    /// Under the latch. Ends the process where `from` asks for what is not exposed.
    std::byte* place(NodeId from, std::uint64_t number, std::uint64_t offset,
                     std::uint64_t bytes) noexcept;

    Questions& questions_;
    Latch latch_;
    std::unordered_map<std::uint64_t, MutableBytes> exposed_;
    std::uint64_t next_ = 1;
};

}  // namespace hiroba::net
