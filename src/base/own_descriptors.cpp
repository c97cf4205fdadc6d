// SPDX-License-Identifier: BSD-3-Clause
#include "base/own_descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace hiroba {
namespace {

constexpr int descriptors_max = 1024;
/// From the limit downwards: what the launcher gave takes the uppermost of them.
constexpr int numbers_kept = 124;

using Word = std::atomic<std::uint64_t>;
constinit std::array<Word, descriptors_max / 64> kept{};

bool has_bit(int fd) noexcept { return fd >= 0 && fd < descriptors_max; }
Word& word_of(int fd) noexcept { return kept[static_cast<std::size_t>(fd) / 64]; }
std::uint64_t bit_of(int fd) noexcept { return std::uint64_t{1} << (fd % 64); }

}  // namespace

void adopt_descriptor(int fd) noexcept {
    if (has_bit(fd)) word_of(fd).fetch_or(bit_of(fd), std::memory_order_relaxed);
}

void close_kept_descriptor(int fd) noexcept {
    if (has_bit(fd)) word_of(fd).fetch_and(~bit_of(fd), std::memory_order_relaxed);
    ::close(fd);
}

bool is_kept_descriptor(int fd) noexcept {
    // Relaxed: it is asked about numbers that the program has, which were kept before it began.
    return has_bit(fd) && (word_of(fd).load(std::memory_order_relaxed) & bit_of(fd)) != 0;
}

int keep_descriptor(int fd) noexcept {
    if (fd < 0) return fd;
    const int saved_errno = errno;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        const int highest = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, descriptors_max));
        const int copy = highest >= 2 * numbers_kept && fd < highest - numbers_kept
                             ? ::fcntl(fd, F_DUPFD_CLOEXEC, highest - numbers_kept)
                             : -1;
        if (copy >= 0) {
            ::close(fd);
            fd = copy;
        }
    }
    errno = saved_errno;
    adopt_descriptor(fd);
    return fd;
}

}  // namespace hiroba
