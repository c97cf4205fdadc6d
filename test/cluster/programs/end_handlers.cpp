// SPDX-License-Identifier: BSD-3-Clause
// Handlers of exit() and quick_exit(), and statics with destructors, registered by every thread in
// turn: they run once each, in the opposite order, and see what was written after it.
#include <omp.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

static int written;

template <int which>
struct Noted {
    std::string text = "static made by thread";
    ~Noted() { std::printf("%s, %d written\n", text.c_str(), written); }
};

template <int which>
static Noted<which>& noted() {
    static Noted<which> one;
    return one;
}

static void first() { std::printf("first, %d written\n", written); }
static void second() { std::printf("second, %d written\n", written); }
static void with_status(int status, void* text) {
    std::printf("%s, status %d\n", static_cast<const char*>(text), status);
}
static void at_quick_end() {
    std::printf("quick end, %d written\n", written);
    std::fflush(stdout);
}

// Ends in the call, so that a compiler makes a jump of it.
[[gnu::noinline]] static int remember(void (*handler)()) { return std::atexit(handler); }

static void registrations(int turn, int thread) {
    switch (turn) {
        case 0: std::atexit(first); break;
        case 1: noted<0>().text += " " + std::to_string(thread) + " of the first turn"; break;
        case 2: on_exit(with_status, const_cast<char*>("with a status")); break;
        case 3: remember(second); break;
        case 4: noted<1>().text += " " + std::to_string(thread) + ", which is rather long"; break;
        case 5: std::at_quick_exit(at_quick_end); break;
        default: break;
    }
}

int main(int argc, char** argv) {
    const int threads = omp_get_max_threads();
    std::atexit([] { std::puts("main's own"); });
    for (int turn = 0; turn < 12; ++turn) {
#pragma omp parallel
        {
            const int self = omp_get_thread_num();
            if (self == threads - 1 - turn % threads) registrations(turn / 2, self);
        }
    }
    const char* const how = argc > 1 ? argv[1] : "return";
    written = 1;
#pragma omp parallel
    {
        if (omp_get_thread_num() == threads - 1) {
            written = 2;
            if (!std::strcmp(how, "exit")) std::exit(3);
            if (!std::strcmp(how, "quick_exit")) std::quick_exit(4);
        }
    }
    return 5;
}
