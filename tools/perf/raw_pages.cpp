// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/raw_pages.hpp"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/fatal.hpp"
#include "dsm/memory/uffd_calls.hpp"

namespace hiroba::tools::perf_parts {
namespace {

constexpr greg_t error_write = 1 << 1;

RawPages* handled = nullptr;  // whose Handling lives

std::byte* mapping(std::size_t bytes, int memory) {
    const int flags = memory < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, memory, 0);
    return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

}  // namespace

Result<std::unique_ptr<RawPages>> RawPages::create(const char* engine, std::size_t page_bytes,
                                                   std::size_t pages) {
    auto raw = std::unique_ptr<RawPages>(new RawPages(page_bytes, pages));
    if (auto opened = raw->open(std::strcmp(engine, "uffd") == 0); !opened) return opened.error();
    return raw;
}

Result<void> RawPages::open(bool uffd) {
    const auto failed = [](const char* what) {
        return Error{ErrorKind::environment, std::string("the floor's ") + what +
                                                 " failed: " + std::strerror(errno) +
                                                 ". Choose another HIROBA_FAULT_ENGINE"};
    };
    const std::size_t bytes = pages_ * page_bytes_;
    memory_ = ::memfd_create("hiroba-perf", MFD_CLOEXEC);
    if (memory_ < 0 || ::ftruncate(memory_, static_cast<off_t>(bytes)) != 0)
        return failed("memfd_create");
    program_ = mapping(bytes, memory_);
    alias_ = mapping(bytes, memory_);
    twins_ = mapping(bytes, -1);
    if (program_ == nullptr || alias_ == nullptr || twins_ == nullptr) return failed("mmap");
    std::memset(alias_, 1, bytes);
    std::memset(twins_, 1, bytes);
    present_.assign(pages_, 0);
    written_.reserve(pages_);
    if (uffd) {
        uffd_ = static_cast<int>(dsm::open_uffd());
        pagemap_ = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        const auto at = reinterpret_cast<std::uintptr_t>(program_);
        if (uffd_ < 0 || pagemap_ < 0 || dsm::uffd_register(uffd_, {at, bytes}) != 0)
            return failed("userfaultfd");
        ::madvise(program_, bytes, MADV_NOHUGEPAGE);
    }
    drop_all();
    return {};
}

RawPages::~RawPages() {
    const std::size_t bytes = pages_ * page_bytes_;
    for (std::byte* each : {program_, alias_, twins_})
        if (each != nullptr) ::munmap(each, bytes);
    for (const int fd : {memory_, uffd_, pagemap_})
        if (fd >= 0) ::close(fd);
}

void RawPages::drop_all() {
    const std::size_t bytes = pages_ * page_bytes_;
    const int result = uffd_ >= 0 ? ::madvise(program_, bytes, MADV_DONTNEED)
                                  : ::mprotect(program_, bytes, PROT_NONE);
    HIROBA_INVARIANT(result == 0, "dropping the floor's pages: errno %d", errno);
    present_.assign(pages_, 0);
    written_.clear();
}

std::size_t RawPages::collect() {
    std::size_t count = written_.size();
    if (uffd_ < 0) {
        for (const std::size_t index : written_) ::mprotect(page(index), page_bytes_, PROT_READ);
        written_.clear();
        return count;
    }
    std::array<dsm::ScanRegion, 64> regions;
    auto at = reinterpret_cast<std::uintptr_t>(program_);
    for (const std::uintptr_t end = at + pages_ * page_bytes_; at < end;) {
        std::uintptr_t stopped = at;
        const long found =
            dsm::scan_written(pagemap_, at, end, dsm::AfterScan::protect, regions, stopped);
        HIROBA_INVARIANT(found >= 0 && stopped > at, "the floor's PAGEMAP_SCAN gave %ld", found);
        for (long i = 0; i < found; ++i) {
            const dsm::ScanRegion& region = regions[static_cast<std::size_t>(i)];
            count += (region.end - region.start) / page_bytes_;
        }
        at = stopped;
    }
    return count;
}

void RawPages::resolve(std::size_t index, bool write) {
    std::byte* const alias = alias_ + index * page_bytes_;
    if (present_[index] == 0) {
        bring_(index, alias);
        std::memcpy(twin(index), alias, page_bytes_);
        present_[index] = 1;
    }
    if (uffd_ < 0) {
        ::mprotect(page(index), page_bytes_, write ? PROT_READ | PROT_WRITE : PROT_READ);
        if (write) written_.push_back(index);
        return;
    }
    std::size_t done = 0;
    const auto at = reinterpret_cast<std::uintptr_t>(page(index));
    const long result = dsm::uffd_continue(uffd_, {at, page_bytes_}, !write, done);
    HIROBA_INVARIANT(result == 0, "the floor's UFFDIO_CONTINUE gave %ld", result);
}

void RawPages::handle(int, siginfo_t* info, void* context) {
    const auto offset =
        static_cast<std::size_t>(static_cast<std::byte*>(info->si_addr) -
                                 (handled == nullptr ? nullptr : handled->program_));
    if (handled == nullptr || offset >= handled->pages_ * handled->page_bytes_)
        fatal("fault at %p while the floor was measured", info->si_addr);
    const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    handled->resolve(offset / handled->page_bytes_, (registers[REG_ERR] & error_write) != 0);
}

RawPages::Handling::Handling(RawPages& pages, Bring bring) {
    HIROBA_INVARIANT(handled == nullptr, "two floors at once%s", "");
    pages.bring_ = std::move(bring);
    handled = &pages;
    struct sigaction action {};
    action.sa_sigaction = &RawPages::handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGBUS, &action, &bus_);
    ::sigaction(SIGSEGV, &action, &segv_);
}

RawPages::Handling::~Handling() {
    ::sigaction(SIGBUS, &bus_, nullptr);
    ::sigaction(SIGSEGV, &segv_, nullptr);
    handled = nullptr;
}

}  // namespace hiroba::tools::perf_parts
