// SPDX-License-Identifier: BSD-3-Clause
#include "tools/hosts/startup_packet.hpp"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "tools/run/elf_file.hpp"

namespace hiroba::tools {

namespace {

constexpr std::string_view magic = "hiroba-startup";
constexpr std::size_t first_line_max = 256;
/// More than the kernel lets a program have of arguments and environment.
constexpr std::size_t letter_bytes_max = std::size_t{64} << 20;

Error unreadable(std::string text) {
    return {ErrorKind::environment,
            "hiroba agent is started by hiroba run --hosts alone: " + std::move(text)};
}

/// Fields one after another, each as its length, a newline and its bytes.
class Writer {
public:
    void add(std::string_view text) { bytes_ += fmt::format("{}\n{}", text.size(), text); }
    void add(std::uint64_t number) { add(fmt::format("{}", number)); }
    void add(const std::vector<std::string>& list) {
        add(list.size());
        for (const std::string& each : list) add(each);
    }
    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

/// The reverse; `good()` turns false at the first field that is not whole.
class Reader {
public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}
    bool good() const { return good_; }
    bool at_end() const { return bytes_.empty(); }

    std::string text() {
        const auto line = bytes_.substr(0, bytes_.find('\n'));
        const std::uint64_t length = number_of(line);
        if (line.size() == bytes_.size() || length > bytes_.size() - line.size() - 1) good_ = false;
        if (!good_) return "";
        std::string field(bytes_.substr(line.size() + 1, length));
        bytes_.remove_prefix(line.size() + 1 + length);
        return field;
    }
    template <class T>
    void read(T& number) {
        number = static_cast<T>(number_of(text()));
    }
    void read(std::string& field) { field = text(); }
    void read(std::vector<std::string>& list) {
        const std::uint64_t count = number_of(text());
        for (std::uint64_t i = 0; i < count && good_; ++i) list.push_back(text());
    }

private:
    std::uint64_t number_of(std::string_view digits) {
        std::uint64_t value = 0;
        const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) good_ = false;
        return value;
    }
    std::string_view bytes_;
    bool good_ = true;
};

/// Reads exactly `bytes.size()`; empty result: all is well.
std::string read_exactly(int fd, std::span<char> bytes, int limit_ms) {
    while (!bytes.empty()) {
        pollfd entry{fd, POLLIN, 0};
        const int ready = ::poll(&entry, 1, limit_ms);
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) return fmt::format("nothing came for {} ms", limit_ms);
        const ssize_t got = ::read(fd, bytes.data(), bytes.size());
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got <= 0) return "standard input ended";
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return "";
}

/// One field after another, in one order for both directions.
template <class StartupPacket, class Visit>
void each_number(StartupPacket& packet, const Visit& visit) {
    visit(packet.host_index);
    visit(packet.job.key);
    visit(packet.job.key_high);
    visit(packet.plan.nodes);
    visit(packet.plan.first_rank);
    visit(packet.plan.local_nodes);
    visit(packet.plan.hosts);
    visit(packet.plan.threads_per_node);
    visit(packet.plan.spmd);
    visit(packet.port);
    visit(packet.umask);
    visit(packet.stack_limit);
}

template <class StartupPacket, class Visit>
void each_text(StartupPacket& packet, const Visit& visit) {
    visit(packet.host);
    visit(packet.runtime_folder);
    visit(packet.directory);
    visit(packet.plan.command);
    visit(packet.plan.node_cpus);
    visit(packet.plan.adopted_at);
    visit(packet.callers);
    visit(packet.environment);
}

}  // namespace

void describe_this_process(StartupPacket& packet) {
    std::error_code failure;
    packet.directory = std::filesystem::current_path(failure).string();
    packet.umask = ::umask(0);
    ::umask(packet.umask);
    rlimit stack{};
    ::getrlimit(RLIMIT_STACK, &stack);
    packet.stack_limit = stack.rlim_cur;
    for (char** entry = environ; *entry; ++entry) packet.environment.emplace_back(*entry);
}

std::string own_build_id() {
    const auto file = ElfFile::open("/proc/self/exe");
    return file ? file->build_id() : "none";
}

std::string write_startup_packet(const StartupPacket& packet) {
    Writer body;
    each_number(packet, [&](auto number) { body.add(std::uint64_t{number}); });
    each_text(packet, [&](const auto& text) { body.add(text); });
    return fmt::format("{} {} {}\n{}", magic, own_build_id(), body.bytes().size(), body.bytes());
}

Result<StartupPacket> read_startup_packet(int fd, int limit_ms) {
    std::string line;
    while (!line.ends_with('\n') && line.size() < first_line_max) {
        char byte = 0;
        if (const std::string why = read_exactly(fd, {&byte, 1}, limit_ms); !why.empty())
            return unreadable(why);
        line += byte;
    }
    const auto build = line.find(' '), size = line.rfind(' ');
    if (!line.starts_with(magic) || build == size || size == line.npos)
        return unreadable("its standard input is no start-up packet");
    const std::string theirs = line.substr(build + 1, size - build - 1);
    if (theirs != own_build_id())
        return Error{ErrorKind::environment,
                     fmt::format("hiroba here is build {}, the launcher's is {}. Install the same "
                                 "hiroba on every host",
                                 own_build_id(), theirs)};
    std::size_t bytes = 0;
    const auto parsed = std::from_chars(line.data() + size + 1, line.data() + line.size(), bytes);
    if (parsed.ec != std::errc() || bytes > letter_bytes_max)
        return unreadable("its start-up packet has no length");
    std::string body(bytes, '\0');
    if (const std::string why = read_exactly(fd, body, limit_ms); !why.empty())
        return unreadable("its start-up packet is cut: " + why);
    StartupPacket packet;
    Reader reader(body);
    each_number(packet, [&](auto& number) { reader.read(number); });
    each_text(packet, [&](auto& text) { reader.read(text); });
    if (!reader.good() || !reader.at_end()) return unreadable("its start-up packet is garbled");
    return packet;
}

}  // namespace hiroba::tools
