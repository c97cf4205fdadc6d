// SPDX-License-Identifier: BSD-3-Clause
// Role: what each remote atomic does to its word; one copy for all processors that do it:
// providers, requests on mapped memory, delegated commands.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "base/fatal.hpp"
#include "net/provider/provider.hpp"

namespace hiroba::net {

/// Applies `op` with sequential consistency and returns the value before.
template <class Word>
Word apply_atomic(std::atomic_ref<Word> word, AtomicOp op, std::type_identity_t<Word> operand,
                  std::type_identity_t<Word> expected) noexcept {
    switch (op) {
        case AtomicOp::fetch_add: return word.fetch_add(operand);
        case AtomicOp::fetch_and: return word.fetch_and(operand);
        case AtomicOp::fetch_or: return word.fetch_or(operand);
        case AtomicOp::fetch_xor: return word.fetch_xor(operand);
        case AtomicOp::swap: return word.exchange(operand);
        case AtomicOp::compare_swap:
            word.compare_exchange_strong(expected, operand);
            return expected;
    }
    fatal("atomic operation %u does not exist", static_cast<unsigned>(op));
}

}  // namespace hiroba::net
