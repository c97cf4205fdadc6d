// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/sync/debt_payer.hpp"

#include <mutex>

#include "base/fatal.hpp"
#include "base/service_thread.hpp"
#include "base/thread_context.hpp"
#include "base/turns.hpp"
#include "net/net.hpp"

namespace hiroba::dsm {

DebtPayer::DebtPayer(net::Endpoint& endpoint) : endpoint_(endpoint), debts_(debts_max) {}

void DebtPayer::start() {
    thread_ = start_service_thread("releases for waiting nodes", [this] { work(); });
}

void DebtPayer::stop() noexcept {
    stopping_.store(true, std::memory_order_relaxed);  // published by the next line
    made_.fetch_add(1);
    made_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void DebtPayer::add(const Debt& debt) noexcept {
    {
        const std::scoped_lock guard{latch_};
        const std::uint32_t made = made_.load(std::memory_order_relaxed);
        HIROBA_INVARIANT(made - paid_.load(std::memory_order_relaxed) < debts_max,
                         "%u releases owed at once", debts_max);
        debts_[made % debts_max] = debt;
        made_.store(made + 1);
    }
    made_.notify_all();
}

void DebtPayer::wait_for_a_debt() noexcept {
    const std::uint32_t paid = paid_.load(std::memory_order_relaxed);
    if (turns_of_this_thread() == nullptr) return made_.wait(paid);
    // Where threads take turns none may sleep in the kernel.
    endpoint_.wait_until([&] { return made_.load() != paid || stopping_.load(); });
}

void DebtPayer::work() noexcept {
    for (;;) {
        wait_for_a_debt();
        if (stopping_.load(std::memory_order_relaxed)) return;
        Debt debt;
        {
            const std::scoped_lock guard{latch_};
            const std::uint32_t paid = paid_.load(std::memory_order_relaxed);
            debt = debts_[paid % debts_max];
            paid_.store(paid + 1, std::memory_order_relaxed);
        }
        on_runtime_stack([&debt] { debt.pay(debt.context, debt.what, debt.creditor); });
    }
}

}  // namespace hiroba::dsm
