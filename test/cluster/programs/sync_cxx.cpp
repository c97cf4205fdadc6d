// SPDX-License-Identifier: BSD-3-Clause
// C++'s own: mutexes, condition variables, call_once with an exception, function statics,
// shared_ptr counts and atomics, between the threads of a region.
#include <omp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// What two nodes do with one object without a lock of the program's would not survive.
class Queue {
public:
    void put(std::string text) {
        {
            const std::lock_guard guard{mutex_};
            texts_.push_back(std::move(text));
        }
        there_is_.notify_one();
    }
    std::string take() {
        std::unique_lock guard{mutex_};
        there_is_.wait(guard, [&] { return !texts_.empty(); });
        std::string text = std::move(texts_.front());
        texts_.pop_front();
        return text;
    }

private:
    std::mutex mutex_;
    std::condition_variable there_is_;
    std::deque<std::string> texts_;
};

std::atomic<int> statics_made{0};
struct Made {
    std::vector<int> numbers;
    Made() : numbers(5000, 0) {
        ++statics_made;
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i) * 2;
    }
};
const Made& made() {
    static const Made only;
    return only;
}

int attempts = 0;
int value_after_failure() {
    static const int value = [] {
        if (++attempts < 3) throw std::runtime_error("not yet");
        return 7 * attempts;
    }();
    return value;
}

std::atomic<int> counted_alive{0};
struct Counted {
    Counted() { ++counted_alive; }
    ~Counted() { --counted_alive; }
};

void pass_strings(int threads) {
    Queue there;
    Queue back;
    std::size_t letters = 0;
#pragma omp parallel
    {
        const int thread = omp_get_thread_num();
        if (threads > 1 && thread == threads - 1) {
            for (int i = 0; i < 100; ++i) back.put(there.take() + std::string(i, 'b'));
        } else if (threads > 1 && thread == 0) {
            for (int i = 0; i < 100; ++i) {
                there.put(std::string(static_cast<std::size_t>(i), 'a'));
                letters += back.take().size();
            }
        }
    }
    std::printf("letters %zu\n", letters);
}

void initialize_once() {
    std::once_flag flag;
    int tries = 0;
    int caught = 0;
    int runs = 0;
    std::mutex mutex;
#pragma omp parallel
    for (int i = 0; i < 3; ++i) {
        try {
            std::call_once(flag, [&] {
                if (++tries <= 2) throw std::runtime_error("fails twice");
                ++runs;
            });
        } catch (const std::runtime_error&) {
            const std::lock_guard guard{mutex};
            ++caught;
        }
    }
    std::printf("tries %d, caught %d, runs %d\n", tries, caught, runs);
}

void make_statics() {
    int wrong = 0;
    int failed = 0;
    int sum = 0;
#pragma omp parallel reduction(+ : wrong, failed, sum)
    for (int i = 0; i < 200; ++i) {
        const Made& object = made();
        wrong += object.numbers[static_cast<std::size_t>(i) * 20] != i * 40;
        if (i > 2) continue;
        try {
            sum += value_after_failure() == 21;
        } catch (const std::runtime_error&) {
            ++failed;
        }
    }
    std::printf("static made %d, wrong %d, failed %d, values %d\n", statics_made.load(), wrong,
                failed, sum == 3 * omp_get_max_threads() - 2);
}

void share_pointers() {
    auto shared = std::make_shared<Counted>();
    std::weak_ptr<Counted> weak = shared;
    std::atomic<long> ups{0};
#pragma omp parallel
    {
        std::vector<std::shared_ptr<Counted>> copies;
        for (int i = 0; i < 200; ++i) {
            copies.push_back(shared);
            ups.fetch_add(1, std::memory_order_relaxed);
        }
    }
    std::printf("uses %ld, ups %d, alive %d\n", shared.use_count(),
                ups == 200 * omp_get_max_threads(), counted_alive.load());
    shared.reset();
    std::printf("expired %d, alive %d\n", weak.expired(), counted_alive.load());
}

void lock_in_every_way() {
    std::timed_mutex timed;
    std::recursive_mutex recursive;
    std::shared_mutex shared;
    std::map<int, int> map;
    std::condition_variable_any any;
    int turn = 0;
    int late = 0;
#pragma omp parallel reduction(+ : late)
    {
        const int thread = omp_get_thread_num();
        for (int i = 0; i < 50; ++i) {
            const std::scoped_lock both{recursive, timed};
            const std::lock_guard again{recursive};
            ++map[i % 7];
        }
#pragma omp barrier  // from here on another lock guards the map
        for (int i = 0; i < 50; ++i) {
            if (i % 10 == thread % 10) {
                const std::unique_lock guard{shared};
                map[100 + thread] += i;
            } else {
                const std::shared_lock guard{shared};
                late += map.size() < 7 ? 1 : 0;
            }
        }
        std::unique_lock guard{timed};
        any.wait(guard, [&] { return turn == thread; });
        ++turn;
        any.notify_all();
        using namespace std::chrono_literals;
        late += any.wait_for(guard, 1ms, [] { return false; }) ? 1 : 0;
    }
    int sum = 0;
    for (int i = 0; i < 7; ++i) sum += map[i];
    std::printf("sum %d, late %d\n", sum, late);
}

}  // namespace

int main() {
    const int threads = omp_get_max_threads();
    pass_strings(threads);
    initialize_once();
    make_statics();
    share_pointers();
    lock_in_every_way();
    return 0;
}
