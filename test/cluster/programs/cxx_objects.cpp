// SPDX-License-Identifier: BSD-3-Clause
// Objects whose code, or whose counter, lies in libstdc++: made by one node, used and destroyed by
// others. With the older strings (-D_GLIBCXX_USE_CXX11_ABI=0) each copy counts.
#include <omp.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <exception>
#include <locale>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
#if _GLIBCXX_USE_CXX11_ABI
#include <memory_resource>
#endif

/// Every node makes what another destroys; more often than libstdc++'s locale "C" is counted.
static void streams_and_expressions() {
    long hits = 0;
    for (int round = 0; round < 10; ++round) {
        std::vector<std::unique_ptr<std::regex>> expressions(40);
        std::vector<std::unique_ptr<std::stringstream>> streams(40);
#pragma omp parallel for schedule(static, 1)
        for (int i = 0; i < 40; ++i) {
            expressions[i] =
                std::make_unique<std::regex>("a+" + std::to_string(i) + "[[:digit:]]*");
            streams[i] = std::make_unique<std::stringstream>();
            *streams[i] << i << ' ' << 1.5 * i;
        }
#pragma omp parallel for schedule(static, 1) reduction(+ : hits)
        for (int i = 0; i < 40; ++i) {
            const int k = 39 - i;
            hits += std::regex_match("aaa" + std::to_string(k) + "77", *expressions[k]);
            int whole = 0;
            double half = 0;
            *streams[k] >> whole >> half;
            hits += whole == k && half == 1.5 * k;
            expressions[k].reset();
            streams[k].reset();
        }
    }
    std::printf("%ld of 800\n", hits);
}

static void strings() {
    std::vector<std::string> names;
    for (int i = 0; i < 50; ++i) names.push_back("a rather long name " + std::to_string(i));
    std::vector<std::string> all(2000);
    long bytes = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : bytes)
    for (int i = 0; i < 20000; ++i) {
        std::string copy = names[i % 50], second = copy;
        bytes += second.size();
    }
#pragma omp parallel for schedule(static, 7)
    for (int i = 0; i < 2000; ++i) all[i] = names[i % 50];
    names.clear();
    long same = 0;
    for (int i = 0; i < 2000; ++i) same += all[i] == "a rather long name " + std::to_string(i % 50);
    std::printf("%ld bytes, %ld of 2000\n", bytes, same);
}

static void exceptions() {
    std::vector<std::exception_ptr> caught(16);
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < 16; ++i) try {
            throw std::runtime_error("error " + std::to_string(i));
        } catch (...) {
            caught[i] = std::current_exception();
        }
    long seen = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : seen)
    for (int i = 0; i < 16; ++i) try {
            std::rethrow_exception(caught[15 - i]);
        } catch (const std::runtime_error& error) {
            seen += error.what() == "error " + std::to_string(15 - i);
        }
    std::printf("%ld of 16\n", seen);
}

static void shared_pointers() {
    auto shared = std::make_shared<int>(0);
#pragma omp parallel
    for (int i = 0; i < 50; ++i) {
        auto before = std::atomic_load(&shared);
        std::shared_ptr<int> next;
        do next = std::make_shared<int>(*before + 1);
        while (!std::atomic_compare_exchange_strong(&shared, &before, next));
    }
    std::printf("%d each\n", *shared / omp_get_max_threads());
}

static void locales() {
    const std::locale named("C.UTF-8");
    long same = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : same)
    for (int i = 0; i < 100; ++i) {
        const std::locale copy = named;
        std::wostringstream text;
        text.imbue(copy);
        text << 1.5;
        const std::tm day{0, 0, 0, 3, 0, 100, 1, 2, 0, 0, nullptr};
        std::use_facet<std::time_put<wchar_t>>(copy).put(text, text, L' ', &day, 'A');
        same += text.str() == L"1.5Monday";
        same += std::use_facet<std::ctype<wchar_t>>(copy).is(std::ctype_base::alpha, L'\xe9');
        same += std::tolower('A', copy) == 'a';
    }
    std::printf("%ld of 300\n", same);
}

struct Commas : std::numpunct<char> {
    char do_thousands_sep() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
};

/// What main sets for the process.
static void settings() {
    std::locale::global(std::locale(std::locale(), new Commas));
    std::vector<std::string> texts(8);
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < 8; ++i) {
        std::ostringstream text;
        text << 1234567 * (i + 1);
        texts[i] = text.str();
    }
    for (const std::string& text : texts) std::printf("%s ", text.c_str());
    std::printf("\n");
    std::locale::global(std::locale::classic());
}

#if _GLIBCXX_USE_CXX11_ABI
struct Counting : std::pmr::memory_resource {
    std::atomic<long> blocks{0};
    void* do_allocate(size_t bytes, size_t alignment) override {
        ++blocks;
        return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    void do_deallocate(void* block, size_t bytes, size_t alignment) override {
        --blocks;
        std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
    }
    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }
};

static void resources() {
    static Counting counting;
    std::pmr::set_default_resource(&counting);
    std::vector<std::pmr::string> kept(8);
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < 8; ++i) kept[i] = std::pmr::string(100, 'a');
    std::printf("%ld blocks\n", counting.blocks.load());
    std::pmr::set_default_resource(nullptr);

    std::pmr::synchronized_pool_resource pool;
    std::vector<std::pmr::vector<std::pmr::string>> rows;
    for (int i = 0; i < 32; ++i) rows.emplace_back(&pool);
#pragma omp parallel for schedule(static, 1)
    for (int i = 0; i < 32; ++i)
        for (int k = 0; k < 50; ++k) rows[i].emplace_back(20 + i * k % 60, char('a' + k % 26));
    long bytes = 0;
#pragma omp parallel for schedule(static, 1) reduction(+ : bytes)
    for (int i = 0; i < 32; ++i) {
        for (const auto& text : rows[31 - i]) bytes += text.size() + text[0];
        rows[31 - i].clear();
        rows[31 - i].shrink_to_fit();
    }
    std::printf("%ld bytes\n", bytes);
}
#endif

int main() {
    streams_and_expressions();
    strings();
    exceptions();
    shared_pointers();
    locales();
    settings();
#if _GLIBCXX_USE_CXX11_ABI
    resources();
#endif
}
