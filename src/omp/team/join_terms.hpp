// SPDX-License-Identifier: BSD-3-Clause
// Role: terms of a region's reductions that travel in its join: what a thread would add to a
// variable by its last instruction before it leaves the region, node 0 adds when all have left.
// Invariant: a term is in one place only: here, in a join's mail, or in the variable. Terms of one
// variable and operator are one.
// Why and when: docs/decisions/reductions-travel-in-the-join.md.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include "base/latch.hpp"
#include "base/thread_context.hpp"

namespace hiroba::omp {

enum class TermOperator : std::uint8_t { none, add, multiply, least, greatest, and_, or_, xor_ };

/// How a term and a variable become one value.
struct TermArithmetic {
    TermOperator operation = TermOperator::none;
    bool floating = false;
    std::uint8_t bytes = 0;  ///< of the variable: 4 or 8 where floating, else 1, 2, 4 or 8
    bool reversed = false;   ///< term op variable
    friend bool operator==(const TermArithmetic&, const TermArithmetic&) = default;
};

struct JoinTerm {
    std::uintptr_t address = 0;  ///< of the variable, the same on every node
    std::uint64_t value = 0;     ///< its low bytes
    TermArithmetic arithmetic;
};

namespace detail {
/// Combines as the processor's instructions do: where a value is no number, least and greatest are
/// `b`.
template <class Value>
std::uint64_t combined_as(TermOperator operation, std::uint64_t a_bits, std::uint64_t b_bits) {
    Value a{}, b{};
    std::memcpy(&a, &a_bits, sizeof a);
    std::memcpy(&b, &b_bits, sizeof b);
    switch (operation) {
        case TermOperator::add: a += b; break;
        case TermOperator::multiply: a *= b; break;
        case TermOperator::least: a = a < b ? a : b; break;
        case TermOperator::greatest: a = a > b ? a : b; break;
        default: break;
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, &a, sizeof a);
    return bits;
}
}  // namespace detail

/// a op b, in the low bytes. Sums of integers modulo 2^64, of which the low bytes count.
inline std::uint64_t combined(const TermArithmetic& how, std::uint64_t a,
                              std::uint64_t b) noexcept {
    if (how.reversed) std::swap(a, b);
    if (how.floating && how.bytes == sizeof(float))
        return detail::combined_as<float>(how.operation, a, b);
    if (how.floating) return detail::combined_as<double>(how.operation, a, b);
    switch (how.operation) {
        case TermOperator::and_: return a & b;
        case TermOperator::or_: return a | b;
        case TermOperator::xor_: return a ^ b;
        default: return a + b;
    }
}

/// Makes the term's operation on the variable, as an access of the calling thread. Other threads of
/// the node may make theirs meanwhile.
template <class Word>
void apply_as(const JoinTerm& term) noexcept {
    auto* const variable = reinterpret_cast<Word*>(term.address);
    Word before = __atomic_load_n(variable, __ATOMIC_RELAXED), next;
    do {
        next = static_cast<Word>(combined(term.arithmetic, before, term.value));
    } while (!__atomic_compare_exchange_n(variable, &before, next, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_RELAXED));
}
inline void apply(const JoinTerm& term) noexcept {
    switch (term.arithmetic.bytes) {
        case 1: return apply_as<std::uint8_t>(term);
        case 2: return apply_as<std::uint16_t>(term);
        case 4: return apply_as<std::uint32_t>(term);
        default: return apply_as<std::uint64_t>(term);
    }
}

/// The terms of one node's threads, and on the way to node 0 those of the nodes below. Thread: any,
/// at once.
class JoinTerms {
public:
    /// A mail has room for so many. gcc's region ends in one at most.
    static constexpr std::size_t most = 4;
    using List = std::array<JoinTerm, most>;

    /// False: there is no room for another variable, nothing was done.
    bool add(const JoinTerm& term) noexcept {
        const RuntimeScope latches;
        const std::scoped_lock guard{latch_};
        for (JoinTerm& known : std::span(terms_).first(count_)) {
            if (known.address != term.address || known.arithmetic != term.arithmetic) continue;
            known.value = combined(term.arithmetic, known.value, term.value);
            return true;
        }
        if (count_ == most) return false;
        terms_[count_++] = term;
        return true;
    }
    /// Moves all into `list`. @return how many
    std::size_t take(List& list) noexcept {
        const RuntimeScope latches;
        const std::scoped_lock guard{latch_};
        std::copy_n(terms_.begin(), count_, list.begin());
        return std::exchange(count_, 0);
    }

private:
    Latch latch_;
    List terms_{};
    std::size_t count_ = 0;
};

/// An atomic that ends its function.
struct LastAtomic {
    JoinTerm term;
    std::uintptr_t data = 0;  ///< the variable may be a member of a struct that lies here
    const void* return_address = nullptr;  ///< of the function
    bool announced = false;                ///< by Runtime::announce_term()
};

/// Takes the term of the atomic that ends the function of the region the calling thread is in, if
/// it is sure to be a reduction's, so that no other thread looks at the variable before the join.
/// False: the atomic is to be carried out. In runtime_reduce.cpp.
bool leave_to_join(const LastAtomic& atomic) noexcept;

}  // namespace hiroba::omp
