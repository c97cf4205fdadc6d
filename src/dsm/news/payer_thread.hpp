// SPDX-License-Identifier: BSD-3-Clause
// Role: a thread of the runtime's that stands in for the program's threads where those compute: it
// makes releases and gives up blocks that other nodes ask for.
// Invariant: it sleeps until it is woken; a wake-up that comes while it works is not lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/bell.hpp"
#include "base/service_thread.hpp"
#include "base/short_slice.hpp"

namespace hiroba::dsm {

/// Thread: its owner's, but wake().
class PayerThread {
public:
    PayerThread() = default;
    PayerThread(const PayerThread&) = delete;
    PayerThread& operator=(const PayerThread&) = delete;
    ~PayerThread() { stop(); }

    /// @param pays  serves what is asked for; true: again, though nobody has woken it
    template <class Pays>
    void start(Pays pays) {
        thread_ = start_service_thread("makes releases that other nodes ask for", [this, pays] {
            ask_for_short_slices(ShortSlice::of_service);
            std::uint32_t seen = 0;
            while (!stopping_.load(std::memory_order_relaxed)) {  // published by stop()
                asked_.sleep_past(seen);
                seen = asked_.rings();
                do {
                    if (stopping_.load(std::memory_order_relaxed)) break;
                } while (pays());
            }
        });
    }
    /// Thread: any; async-signal-safe.
    void wake() noexcept { asked_.ring(); }
    void stop() noexcept {
        if (!thread_.joinable()) return;
        stopping_.store(true, std::memory_order_relaxed);  // published by the next line
        wake();
        thread_.join();
    }

private:
    Bell asked_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

}  // namespace hiroba::dsm
