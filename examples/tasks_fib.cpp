// SPDX-License-Identifier: BSD-3-Clause
// What a task costs on hiroba/tasks.hpp: the doubly recursive Fibonacci numbers, a task for each
// call, by continuations that stay on the node and by closures that may move. Beside it a bare pool
// of threads, whose tasks wait for nothing: it could not run this function.
//
//     hiroba run --spmd -n 1 ./tasks_fib [number] [workers]
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hiroba/tasks.hpp"

using namespace hiroba;

static std::uint64_t plain(int n) {
    return n < 2 ? static_cast<std::uint64_t>(n) : plain(n - 1) + plain(n - 2);
}

static std::uint64_t by_children(int n) {
    if (n < 2) return static_cast<std::uint64_t>(n);
    auto child = tasks::async([n] { return by_children(n - 1); });
    const std::uint64_t mine = by_children(n - 2);
    return mine + child.get();
}

static std::uint64_t by_offers(int n) {
    if (n < 2) return static_cast<std::uint64_t>(n);
    auto child = tasks::async(tasks::anywhere, [n] { return by_offers(n - 1); });
    const std::uint64_t mine = by_offers(n - 2);
    return mine + child.get();
}

/// Threads that take functions from one queue.
class Pool {
public:
    explicit Pool(std::uint32_t workers) {
        for (std::uint32_t i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
    }
    ~Pool() {
        post({});
        for (std::thread& each : threads_) each.join();
    }
    void post(std::function<void()> task) {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
        some_.notify_one();
    }

private:
    void work() {
        while (true) {
            std::unique_lock lock(mutex_);
            some_.wait(lock, [this] { return !tasks_.empty(); });
            if (!tasks_.front()) return some_.notify_one();  // the end, which all are to see
            const auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
        }
    }
    std::mutex mutex_;
    std::condition_variable some_;
    std::deque<std::function<void()>> tasks_;
    std::vector<std::thread> threads_;
};

static double nanoseconds_of_pool(std::uint32_t workers) {
    constexpr int count = 200'000;
    std::atomic<int> ran{0};
    const auto begin = std::chrono::steady_clock::now();
    {
        Pool pool(workers);
        for (int i = 0; i < count; ++i) pool.post([&ran] { ran.fetch_add(1); });
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    return ran.load() == count ? took.count() / count : -1;
}

int main(int words, char** word) {
    const int number = words > 1 ? std::atoi(word[1]) : 20;
    const std::uint32_t workers = words > 2 ? static_cast<std::uint32_t>(std::atoi(word[2])) : 1;
    std::string why;
    const auto network = net::Network::open(&why);
    const auto scheduler =
        network ? tasks::Scheduler::open(network.get(), {.workers = workers}, &why) : nullptr;
    if (!scheduler || !network->connect(&why)) return std::fprintf(stderr, "%s\n", why.c_str()), 78;

    const bool tells = network->self().value == 0;
    const std::uint64_t wanted = plain(number);
    const auto calls = static_cast<double>(plain(number + 1) - 1);  // those that start a task
    bool is_right = true;
    const auto measure = [&](const char* name, std::uint64_t (*function)(int)) {
        network->barrier();
        const auto begin = std::chrono::steady_clock::now();
        const std::uint64_t found = scheduler->run([=] { return function(number); });
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        is_right = is_right && found == wanted;
        if (tells)
            std::printf("fib(%d) by %s: %.3f s, %.1f ns a task\n", number, name, took.count(),
                        took.count() / calls * 1e9);
    };
    measure("calls", &plain);
    measure("children", &by_children);
    measure("offers", &by_offers);
    if (tells)
        std::printf("an empty task of a pool of threads: %.1f ns\n", nanoseconds_of_pool(workers));
    if (tells)
        std::printf("fib(%d) on %u nodes over %s: %s\n", number, network->nodes(),
                    network->provider(),
                    is_right ? "VERIFICATION SUCCESSFUL" : "VERIFICATION FAILED");
    return is_right ? 0 : 1;
}
