// SPDX-License-Identifier: BSD-3-Clause
#include "dsm/sync/debt_payer.hpp"

#include <mutex>

#include "base/fatal.hpp"
#include "base/service_thread.hpp"
#include "base/short_slice.hpp"
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
    bell_.ring();
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
    bell_.ring();
}

void DebtPayer::wait_for_a_debt() noexcept {
    const std::uint32_t paid = paid_.load(std::memory_order_relaxed);
    const auto has_work = [&] { return made_.load() != paid || stopping_.load(); };
    // Where threads take turns none may sleep in the kernel.
    if (turns_of_this_thread() != nullptr) return static_cast<void>(endpoint_.wait_until(has_work));
    for (std::uint32_t seen = bell_.rings(); !has_work(); seen = bell_.rings())
        bell_.sleep_past(seen);
}

void DebtPayer::work() noexcept {
    if (turns_of_this_thread() == nullptr) ask_for_short_slices(ShortSlice::of_service);
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
