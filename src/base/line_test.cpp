// SPDX-License-Identifier: BSD-3-Clause
#include "base/line.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <string>

namespace hiroba {
namespace {

template <class... Arguments>
std::string formatted(const char* format, Arguments... arguments) {
    Line line;
    line.append_format(format, arguments...);
    return std::string(line.text());
}

TEST(Line, FormatsEachConversionAsPrintfDoes) {
    const auto expect_same = [](const char* format, auto... arguments) {
        char expected[256];
        std::snprintf(expected, sizeof expected, format, arguments...);
        EXPECT_EQ(formatted(format, arguments...), expected) << format;
    };
    expect_same("plain%s", "");
    expect_same("%s and %c and 100%%", "text", 'x');
    expect_same("%d %i %u %x", INT_MIN, INT_MAX, UINT_MAX, 0xdeadbeefu);
    expect_same("%ld %lu %lx %zu", LONG_MIN, ULONG_MAX, ULONG_MAX, SIZE_MAX);
    expect_same("%d %u %ld", 0, 0u, -1L);
    expect_same("%p", reinterpret_cast<void*>(0x1000));
    expect_same("%5d|%05d|%04x|%016lx|%8s|", -42, -42, 0xabu, 0x1234ul, "right");
    expect_same("%.3s|%.*s|%.0s|", "abcdef", 2, "xyz", "gone");
}

TEST(Line, PrintsNullStringInsteadOfFaulting) {
    EXPECT_EQ(formatted("<%s>", static_cast<const char*>(nullptr)), "<(null)>");
}

TEST(Line, CopiesTheRestOfAFormatItCannotRead) {
    EXPECT_EQ(formatted("%d then %f and %d", 1, 2.0, 3), "1 then %f and %d");
}

TEST(Line, EndsInDotsWhenCutAndStaysWithinItsBytes) {
    Line line;
    std::string whole;
    while (whole.size() < Line::bytes_max) {
        line.append("0123456789");
        whole += "0123456789";
    }
    line.append("more");
    line.append_format("%2000d", 1);
    EXPECT_EQ(line.text(), whole.substr(0, Line::bytes_max - 1 - 3) + "...");
}

TEST(Line, IsWrittenByOneCallAndKeepsErrno) {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    Line line;
    line.append_format("%s %d", "number", 7);
    errno = EDOM;
    line.write_to(pair[0]);
    line.write_to(-1);
    EXPECT_EQ(errno, EDOM);

    char datagram[64];
    const ssize_t bytes = read(pair[1], datagram, sizeof datagram);
    ASSERT_GT(bytes, 0);
    EXPECT_EQ(std::string(datagram, static_cast<std::size_t>(bytes)), "number 7\n");
    close(pair[0]);
    close(pair[1]);
}

}  // namespace
}  // namespace hiroba
