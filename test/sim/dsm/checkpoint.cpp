// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dsm/checkpoint.hpp"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "base/fatal.hpp"

namespace hiroba::sim_test {
namespace {

constexpr std::size_t stack_bytes = std::size_t{1} << 20, fault_stack_bytes = std::size_t{64} << 10;
constexpr std::size_t copies_max = std::size_t{1} << 14;

Checkpoint* the_one = nullptr;  // the signal handler's, and enter()'s

std::byte* reserve(std::size_t bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    HIROBA_INVARIANT(memory != MAP_FAILED, "no %lu bytes: %m", bytes);
    return static_cast<std::byte*>(memory);
}

/// Where the program itself has its data, without what the linker has made read-only, and those of
/// the calling thread.
struct ProgramData {
    std::uintptr_t begin = 0, end = 0;
    std::byte* thread_local_begin = nullptr;
    std::size_t thread_local_bytes = 0;
};

int find_data(dl_phdr_info* info, std::size_t, void* found) {
    auto& data = *static_cast<ProgramData*>(found);
    std::uintptr_t read_only_end = 0;
    for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr, end = begin + part.p_memsz;
        if (part.p_type == PT_LOAD && (part.p_flags & PF_W) != 0)
            data.begin = begin, data.end = end;
        if (part.p_type == PT_GNU_RELRO) read_only_end = end;
        if (part.p_type == PT_TLS) {
            data.thread_local_begin = static_cast<std::byte*>(info->dlpi_tls_data);
            data.thread_local_bytes = part.p_memsz;
        }
    }
    data.begin = round_down(std::max(data.begin, read_only_end), page_bytes);
    data.end = round_up(data.end, page_bytes);
    return 1;  // the first is the program
}

}  // namespace

/// All that may be written now but the heap and the stack.
std::vector<Checkpoint::Range> Checkpoint::writable() {
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");
    HIROBA_INVARIANT(maps != nullptr, "no /proc/self/maps: %m");
    std::vector<Range> ranges;
    char line[1024], access[8];
    while (std::fgets(line, sizeof line, maps) != nullptr) {
        Range range{};
        if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &range.begin, &range.end, access) !=
            3)
            continue;
        if (access[1] != 'w' || std::strstr(line, "[heap]") != nullptr) continue;
        if (std::strstr(line, "[stack]") == nullptr) ranges.push_back(range);
    }
    std::fclose(maps);
    return ranges;
}

Checkpoint::Checkpoint(std::function<void()> body)
    : body_(std::move(body)),
      stack_(reserve(stack_bytes)),
      fault_stack_(reserve(fault_stack_bytes)),
      copies_(reserve(copies_max * page_bytes)),
      page_of_copy_(
          reinterpret_cast<std::uintptr_t*>(reserve(copies_max * sizeof(std::uintptr_t)))) {
    HIROBA_INVARIANT(the_one == nullptr, "a second checkpoint");
    the_one = this;
    before_ = writable();
}

Checkpoint::~Checkpoint() {
    for (const Range& range : watched_)
        mprotect(reinterpret_cast<void*>(range.begin), range.end - range.begin,
                 PROT_READ | PROT_WRITE);
    std::signal(SIGSEGV, SIG_DFL);
    munmap(stack_, stack_bytes);
    munmap(fault_stack_, fault_stack_bytes);
    munmap(copies_, copies_max * page_bytes);
    munmap(page_of_copy_, copies_max * sizeof(std::uintptr_t));
    the_one = nullptr;
}

void Checkpoint::enter() {
    the_one->body_();
    fatal("the body of a checkpoint returned");
}

void Checkpoint::go() {
    if (!begun_) {
        begun_ = true;
        getcontext(&inside_);
        inside_.uc_stack = {stack_, 0, stack_bytes};
        makecontext(&inside_, &Checkpoint::enter, 0);
        swapcontext(&outside_, &inside_);
        if (!marked_) return;  // left before it came to mark()
        watch_memory();
    }
    HIROBA_INVARIANT(marked_, "a body that did not come to mark() cannot go again");
    if (places_count_ == 0) {
        take_back(copies_, saved_, thread_local_copy_);
        swapcontext(&outside_, &inside_);
    } else {
        const Place& place = *places_[places_count_ - 1];
        take_back(place.pages.data(), place.saved, place.thread_local_copy);
        goes_back_ = true;
        swapcontext(&outside_, &place.context);
    }
}

void Checkpoint::mark() {
    marked_ = true;
    swapcontext(&inside_, &outside_);
}

// The copy is made behind getcontext(), so that the frame here is among it as the context finds it.
// Nothing of this object is taken back: it does not lie in memory that is watched.
void Checkpoint::remember() {
    if (places_.size() == places_count_) places_.push_back(std::make_unique<Place>());
    Place& place = *places_[places_count_++];
    getcontext(&place.context);
    if (std::exchange(goes_back_, false)) return;
    place.saved = saved_;
    if (place.pages.size() < saved_ * page_bytes) place.pages.resize(saved_ * page_bytes);
    for (std::size_t i = 0; i < saved_; ++i)
        std::memcpy(place.pages.data() + i * page_bytes,
                    reinterpret_cast<const void*>(page_of_copy_[i]), page_bytes);
    place.thread_local_copy.assign(thread_local_begin_,
                                   thread_local_begin_ + thread_local_copy_.size());
}

void Checkpoint::leave() {
    setcontext(&outside_);
    std::abort();
}

void Checkpoint::watch_memory() {
    ProgramData data;
    dl_iterate_phdr(&find_data, &data);
    thread_local_begin_ = data.thread_local_begin;
    thread_local_copy_.assign(data.thread_local_begin,
                              data.thread_local_begin + data.thread_local_bytes);
    watched_ = {{data.begin, data.end},
                {reinterpret_cast<std::uintptr_t>(stack_),
                 reinterpret_cast<std::uintptr_t>(stack_) + stack_bytes}};
    for (Range range : writable()) {  // both in order: the kernel merges neighbours
        for (const Range& old : before_) {
            if (old.end <= range.begin || old.begin >= range.end) continue;
            if (range.begin < old.begin) watched_.push_back({range.begin, old.begin});
            range.begin = std::min(old.end, range.end);
        }
        if (range.begin < range.end) watched_.push_back(range);
    }
    const stack_t faults{fault_stack_, 0, fault_stack_bytes};
    HIROBA_INVARIANT(sigaltstack(&faults, nullptr) == 0, "no stack for faults: %m");
    struct sigaction action {};
    action.sa_sigaction = &Checkpoint::on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    HIROBA_INVARIANT(sigaction(SIGSEGV, &action, nullptr) == 0, "no handler for faults: %m");
    for (const Range& range : watched_) {
        HIROBA_INVARIANT(
            mprotect(reinterpret_cast<void*>(range.begin), range.end - range.begin, PROT_READ) == 0,
            "0x%lx to 0x%lx cannot be made read-only: %m", range.begin, range.end);
    }
}

void Checkpoint::on_fault(int signal, siginfo_t* info, void*) {
    const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
    // Elsewhere, or at a page that is writable already: again, and for good.
    if (!the_one->save(round_down(at, page_bytes))) std::signal(signal, SIG_DFL);
}

/// Async-signal-safe.
bool Checkpoint::save(std::uintptr_t page) noexcept {
    const auto holds = [page](const Range& range) {
        return range.begin <= page && page < range.end;
    };
    if (std::none_of(watched_.begin(), watched_.end(), holds) || saved_ == copies_max) return false;
    void* const memory = reinterpret_cast<void*>(page);
    std::memcpy(copies_ + saved_ * page_bytes, memory, page_bytes);
    page_of_copy_[saved_++] = page;
    return mprotect(memory, page_bytes, PROT_READ | PROT_WRITE) == 0;
}

/// @param pages  the first `count` of those changed; the others were as at mark()
void Checkpoint::take_back(const std::byte* pages, std::size_t count,
                           const std::vector<std::byte>& thread_local_copy) noexcept {
    for (std::size_t i = 0; i < saved_; ++i) {
        void* const page = reinterpret_cast<void*>(page_of_copy_[i]);
        const std::byte* const former = (i < count ? pages : copies_) + i * page_bytes;
        if (std::memcmp(page, former, page_bytes) != 0) std::memcpy(page, former, page_bytes);
    }
    std::memcpy(thread_local_begin_, thread_local_copy.data(), thread_local_copy.size());
}

}  // namespace hiroba::sim_test
