// SPDX-License-Identifier: BSD-3-Clause
// Handlers that main sets for the whole process, called in the last thread: of an exception that
// leaves its region, or of memory that cannot be had.
#include <omp.h>
#include <stdint.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

static void say(const char* text) {
    if (write(STDOUT_FILENO, text, std::strlen(text)) < 0) _exit(9);
}

static void at_terminate() {
    try {
        std::rethrow_exception(std::current_exception());
    } catch (const std::exception& error) {
        say(error.what());
    }
    _exit(42);
}

static void at_no_memory() {
    say("no memory\n");
    _exit(43);
}

int main(int, char** arguments) {
    const bool terminates = std::strcmp(arguments[1], "terminate") == 0;
#pragma omp parallel  // before there is a handler
    {}
    std::set_terminate(at_terminate);
    std::set_new_handler(at_no_memory);
#pragma omp parallel
    {
#pragma omp barrier
        if (omp_get_thread_num() == omp_get_num_threads() - 1) {
            if (std::get_terminate() != at_terminate) say("another handler\n");
            if (terminates) throw std::runtime_error("the program's own ending\n");
            static volatile size_t too_much = SIZE_MAX / 4;
            static char* volatile made = new char[too_much];
            delete[] made;
        }
        for (;;) usleep(1000);
    }
}
