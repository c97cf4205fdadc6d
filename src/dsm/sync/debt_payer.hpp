// SPDX-License-Identifier: BSD-3-Clause
// Role: the thread that pays owed releases: it does what message handlers may not, because they
// may not wait, and what the program's threads do not, because they may compute for long.
// Invariant: debts are paid one after the other, in the order in which they came. Paying one never
// waits for another.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/bell.hpp"
#include "base/ids.hpp"
#include "base/latch.hpp"
#include "base/sparse_array.hpp"

namespace hiroba::net {
class Endpoint;
}

namespace hiroba::dsm {

class DebtPayer {
public:
    /// What is to be done: pay(context, what, creditor), on the runtime stack.
    struct Debt {
        void (*pay)(void* context, std::uint64_t what, NodeId creditor) noexcept = nullptr;
        void* context = nullptr;
        std::uint64_t what = 0;
        NodeId creditor;
    };

    explicit DebtPayer(net::Endpoint& endpoint);
    DebtPayer(const DebtPayer&) = delete;
    DebtPayer& operator=(const DebtPayer&) = delete;
    ~DebtPayer() { stop(); }

    /// Starts the thread, which takes no signal of the program. After Endpoint::connect().
    void start();
    /// Body of the thread, for a caller that starts it otherwise (a simulator). Returns after
    /// stop().
    void work() noexcept;
    /// Any thread, a message handler too. More than 2^18 debts at once are fatal.
    void add(const Debt& debt) noexcept;
    /// No debt is paid from here on. The giver of debts calls it before its own end.
    void stop() noexcept;

private:
    static constexpr std::uint32_t debts_max = 1u << 18;
    void wait_for_a_debt() noexcept;

    net::Endpoint& endpoint_;
    Latch latch_;
    SparseArray<Debt> debts_;             ///< a ring
    std::atomic<std::uint32_t> paid_{0};  ///< by the thread alone
    std::atomic<std::uint32_t> made_{0};  ///< under latch_
    Bell bell_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace hiroba::dsm
