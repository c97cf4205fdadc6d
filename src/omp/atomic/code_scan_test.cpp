// SPDX-License-Identifier: BSD-3-Clause
#include "omp/atomic/code_scan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "omp/atomic/wait_loops.hpp"

namespace hiroba::omp {
namespace {

constexpr std::uint8_t nop = 0x90, no_instruction = 0x06;
constexpr std::array<std::uint8_t, 3> locked_increment{0xf0, 0xff, 0x00};  // of (rax)
/// What a length is told of that covers four bytes behind it, and what is no instruction.
constexpr std::array<std::uint8_t, 5> in_front_of_a_site{0xc4, 0xe2, 0x79, 0x1f, 0x82};

class Code {
public:
    explicit Code(std::size_t bytes) : bytes_(bytes, nop) {}

    template <class Bytes>
    std::size_t put(std::size_t at, const Bytes& bytes) {
        std::ranges::copy(bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(at));
        return at;
    }
    /// Where the sites lie.
    std::vector<std::size_t> sites() const {
        const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
        const CodeSection section{{begin, bytes_.size()}, 0, 0};
        std::vector<std::size_t> found;
        for (const CodeSite& site : scan_code({&section, 1}).sites)
            found.push_back(site.address - begin);
        return found;
    }

private:
    std::vector<std::uint8_t> bytes_;
};

constexpr std::size_t kib = 1024;

TEST(CodeScan, finds_each_site_once_where_data_lie_near_and_where_they_do_not) {
    Code code{512 * kib};
    std::vector<std::size_t> expected{code.put(100 * kib, locked_increment)};
    // The sweep has passed it by when it comes to what does not decode.
    code.put(300 * kib, in_front_of_a_site);
    expected.push_back(code.put(300 * kib + in_front_of_a_site.size(), locked_increment));
    expected.push_back(code.put(301 * kib, locked_increment));
    code.put(302 * kib, std::array{no_instruction});
    code.put(303 * kib, in_front_of_a_site);
    expected.push_back(code.put(303 * kib + in_front_of_a_site.size(), locked_increment));
    expected.push_back(code.put(500 * kib, locked_increment));
    EXPECT_EQ(code.sites(), expected);
}

TEST(CodeScan, data_all_along_are_swept_in_one_go) {
    Code code{4096 * kib};
    std::vector<std::size_t> expected;
    for (std::size_t at = kib; at < 4096 * kib; at += 20 * kib) {
        code.put(at, std::array{no_instruction});
        expected.push_back(code.put(at + 100, locked_increment));
    }
    EXPECT_EQ(code.sites(), expected);
}

}  // namespace
}  // namespace hiroba::omp
