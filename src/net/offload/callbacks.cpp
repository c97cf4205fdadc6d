// SPDX-License-Identifier: BSD-3-Clause
// Role: runs callbacks. A request made in a callback may complete before it returns; its callback
// waits until the running one is over, in a short line on the stack of whoever runs the first.
// Invariant: the line is reached through the thread's context, because thread-local data of a
// program's threads lies in global memory.
#include <array>

#include "base/fatal.hpp"
#include "base/thread_context.hpp"
#include "net/offload/engine.hpp"

namespace hiroba::net::offload {
namespace {

struct Ended {
    Callback callback;
    Outcome outcome;
};

struct Line {
    static constexpr std::uint32_t length_max = 32;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    Ended ended[length_max];
};

Line* line_of(ThreadContext& thread) { return static_cast<Line*>(thread.callbacks); }

}  // namespace

bool may_run_callback() noexcept {
    const Line* line = line_of(this_thread());
    return line == nullptr || line->count < Line::length_max;
}

void run_callback(const Callback& callback, Outcome outcome) noexcept {
    if (callback.function == nullptr) return;
    ThreadContext& thread = this_thread();
    if (Line* line = line_of(thread)) {
        HIROBA_INVARIANT(line->count < Line::length_max, "%u callbacks wait for one to end",
                         line->count);
        line->ended[(line->first + line->count++) % Line::length_max] = {callback, outcome};
        return;
    }
    Line line;
    thread.callbacks = &line;
    callback.function(callback.data, outcome);
    while (line.count != 0) {
        const Ended next = line.ended[line.first];
        line.first = (line.first + 1) % Line::length_max;
        --line.count;
        next.callback.function(next.callback.data, next.outcome);
    }
    thread.callbacks = nullptr;
}

}  // namespace hiroba::net::offload
