// SPDX-License-Identifier: BSD-3-Clause
// Role: the floor of the shared memory's tests: pages whose accesses are noticed by the kernel's
// own means, with a handler of a few lines and without any of the shared memory's layers.
// Invariant: one RawPages handles faults at a time, between its Handling's begin and end; outside
// of it the process's former handlers are in place.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"

namespace hiroba::tools::perf_parts {

/// Thread: one. Faults come on that thread's alternate signal stack.
class RawPages {
public:
    /// Brings the bytes of page `index` into `to`; runs in the signal handler.
    using Bring = std::function<void(std::size_t index, std::byte* to)>;

    /// @param engine      "uffd" or "mprotect": what notices accesses
    /// @param page_bytes  size of one page, a multiple of 4 KiB  @param pages how many
    static Result<std::unique_ptr<RawPages>> create(const char* engine, std::size_t page_bytes,
                                                    std::size_t pages);
    RawPages(const RawPages&) = delete;
    RawPages& operator=(const RawPages&) = delete;
    ~RawPages();

    std::size_t pages() const { return pages_; }
    std::byte* page(std::size_t index) { return program_ + index * page_bytes_; }
    /// The twin of a page; `bring` fills the page, and the handler copies it here.
    std::byte* twin(std::size_t index) { return twins_ + index * page_bytes_; }

    /// Makes every page inaccessible, in one call.
    void drop_all();
    /// Makes the next write to each written page noticed again. @return pages written
    std::size_t collect();

    /// While one lives, faults on the pages are answered with `bring`.
    class Handling {
    public:
        Handling(RawPages& pages, Bring bring);
        Handling(const Handling&) = delete;
        Handling& operator=(const Handling&) = delete;
        ~Handling();

    private:
        struct sigaction bus_ {};
        struct sigaction segv_ {};
    };

private:
    RawPages(std::size_t page_bytes, std::size_t pages) : page_bytes_(page_bytes), pages_(pages) {}
    Result<void> open(bool uffd);
    static void handle(int signal, siginfo_t* info, void* context);
    void resolve(std::size_t index, bool write);

    std::size_t page_bytes_;
    std::size_t pages_;
    std::byte* program_ = nullptr;
    std::byte* alias_ = nullptr;
    std::byte* twins_ = nullptr;
    int memory_ = -1, uffd_ = -1, pagemap_ = -1;
    std::vector<std::uint8_t> present_;  ///< 1: brought since the last drop_all()
    std::vector<std::size_t> written_;   ///< mprotect: pages written since the last collect()
    Bring bring_;
};

}  // namespace hiroba::tools::perf_parts
