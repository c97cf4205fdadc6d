// SPDX-License-Identifier: BSD-3-Clause
// Role: a kick that lands after an asynchronous put is visible: the flag behind a block that went
// by other means. Invariant: the put's own completion stores it, on whichever thread polls then;
// no thread waits in between.
#pragma once

#include <cstdint>

#include "net/async.hpp"
#include "net/kick/kick_store.hpp"

namespace hiroba::net::kick {

/// One kick behind one put. Thread: one makes it and gives callback() to one put; it lives until
/// over(), and is used for one put at a time.
template <Kickable T>
class KickAfter {
public:
    explicit KickAfter(Kick<T>& kick) noexcept : kick_(kick) {}
    KickAfter(const KickAfter&) = delete;
    KickAfter& operator=(const KickAfter&) = delete;

    /// For WriteParams::on_complete of a put to any memory of the kick's node: `value` lands at
    /// `offset` of the kick's page when the put's bytes are visible, and sleepers there are woken.
    /// Where nothing is mapped it is in no order with other kicks. A put that fails kicks nothing.
    Callback callback(std::uint32_t offset, T value) noexcept {
        offset_ = offset;
        value_ = value;
        outcome_.store(State::waiting, std::memory_order_relaxed);
        return {[](void* self, Outcome outcome) noexcept {
                    static_cast<KickAfter*>(self)->complete(outcome);
                },
                this};
    }
    /// The put is over, and the kick on its way unless it failed.
    bool over() const noexcept {
        return outcome_.load(std::memory_order_acquire) != State::waiting;  // complete()
    }
    bool failed() const noexcept {
        return outcome_.load(std::memory_order_acquire) == State::failed;  // complete()
    }

private:
    enum class State : std::uint8_t { waiting, kicked, failed };
    void complete(Outcome outcome) noexcept {
        if (outcome == Outcome::done) kick_.store_from_handler(offset_, value_);
        outcome_.store(outcome == Outcome::done ? State::kicked : State::failed,
                       std::memory_order_release);
    }

    Kick<T>& kick_;
    std::uint32_t offset_ = 0;
    T value_{};
    std::atomic<State> outcome_{State::kicked};
};

}  // namespace hiroba::net::kick
