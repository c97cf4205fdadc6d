// SPDX-License-Identifier: BSD-3-Clause
// Role: lets a function run again and again from places in its middle: what it did before such a
// place is done once.
// Invariant: from mark() on, the function changes nothing but memory: it maps and unmaps none, and
// opens and closes nothing.
//
// At mark() all memory that the function may write is made read-only: what it has mapped, its
// stack, and the program's own data. A first write to a page faults, the handler keeps a copy of
// the page and makes it writable for good. To go back, the copies are written back. So one that
// writes few pages goes back in the time that it takes to copy these. At remember() the pages that
// are writable by then are copied once more, as they are there. Source: Litzkow et al.,
// "Checkpoint and migration of UNIX processes in the Condor distributed processing system", 1997;
// copies by faults: Plank et al., "Libckpt", USENIX 1995, section 3.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace hiroba::sim_test {

/// At most one in a process, on a thread that has no other. What lies in the heap of malloc, and
/// the stack it is made on, are not taken back.
class Checkpoint {
public:
    /// @param body  runs on a stack of its own; does not return, but ends with leave()
    explicit Checkpoint(std::function<void()> body);
    Checkpoint(const Checkpoint&) = delete;
    ~Checkpoint();

    /// Runs the body to its next leave(): from its beginning, or once it has come to mark(), from
    /// there, or from the last remember() that is not forgotten, with the memory as it was.
    void go();
    /// The last remember() is no place to begin any more.
    void forget() noexcept { --places_count_; }

    // --- by the body -----------------------------------------------------------------------------

    /// Later runs begin here. Once.
    void mark();
    /// Later runs begin here, until forget(); returns in each of them again. After mark(), from a
    /// run that is not left by an exception.
    void remember();
    [[noreturn]] void leave();

    /// Pages that some run has changed so far.
    std::size_t pages() const noexcept { return saved_; }

private:
    struct Range {
        std::uintptr_t begin, end;
    };
    static void enter();
    static void on_fault(int signal, siginfo_t* info, void* context);
    static std::vector<Range> writable();
    /// Where later runs may begin, and all that was changed since mark() as it was there.
    struct Place {
        ucontext_t context;
        std::size_t saved = 0;
        std::vector<std::byte> pages, thread_local_copy;
    };
    void watch_memory();
    void take_back(const std::byte* pages, std::size_t count,
                   const std::vector<std::byte>& thread_local_copy) noexcept;
    bool save(std::uintptr_t page) noexcept;

    std::function<void()> body_;
    std::vector<Range> before_;   ///< writable before the body ran
    std::vector<Range> watched_;  ///< the program's data first, then what the body has mapped
    std::byte *stack_, *fault_stack_;
    std::byte* copies_;             ///< of pages, as they were at mark()
    std::uintptr_t* page_of_copy_;  ///< where the same pages are
    std::size_t saved_ = 0;
    std::byte* thread_local_begin_ = nullptr;
    std::vector<std::byte> thread_local_copy_;
    ucontext_t outside_, inside_;
    bool begun_ = false, marked_ = false, goes_back_ = false;
    std::vector<std::unique_ptr<Place>> places_;  ///< kept for later ones when they are forgotten
    std::size_t places_count_ = 0;
};

}  // namespace hiroba::sim_test
