// SPDX-License-Identifier: BSD-3-Clause
// Role: see port_range.hpp.
#include "net/bootstrap/port_range.hpp"

#include <charconv>
#include <string>

namespace hiroba::net {
namespace {

/// 0: no port.
std::uint16_t port_of(std::string_view text) {
    std::uint16_t port = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), port);
    return read.ec == std::errc{} && read.ptr == text.data() + text.size() ? port : 0;
}

}  // namespace

Result<PortRange> port_range(std::string_view text) {
    if (text.empty()) return PortRange{};
    const std::size_t dash = text.find('-');
    PortRange range;
    if (dash != text.npos) range = {port_of(text.substr(0, dash)), port_of(text.substr(dash + 1))};
    if (range.first == 0 || range.last <= range.first)
        return Error{ErrorKind::usage, "HIROBA_PORTS=" + std::string(text) +
                                           ": give the first and the last port, as in 20000-20063"};
    return range;
}

}  // namespace hiroba::net
