// SPDX-License-Identifier: BSD-3-Clause
#include "net/bootstrap/pmi_client.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace hiroba::net {

namespace {

constexpr std::size_t line_bytes_max = 65536;

Error unfit(std::string text) {
    return {ErrorKind::environment, "the launcher's PMI: " + std::move(text)};
}

/// The value of `key` in an answer, `cmd=put_result rc=0 msg=success`; empty: it is not there.
std::string field(std::string_view answer, std::string_view key) {
    for (std::size_t at = 0; at < answer.size();) {
        const std::size_t end = std::min(answer.find(' ', at), answer.size());
        const std::string_view word = answer.substr(at, end - at);
        if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
            return std::string(word.substr(key.size() + 1));
        at = end + 1;
    }
    return "";
}

std::string as_digits(Bytes bytes) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const std::byte each : bytes) {
        text += digits[std::to_integer<unsigned>(each) >> 4];
        text += digits[std::to_integer<unsigned>(each) & 15];
    }
    return text;
}

std::vector<std::byte> from_digits(std::string_view text) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
        bytes.push_back(std::byte(digit(text[i]) << 4 | digit(text[i + 1])));
    return bytes;
}

std::string key_of(std::uint32_t rank, std::size_t piece) {
    return "hiroba-" + std::to_string(rank) + "-" + std::to_string(piece);
}

}  // namespace

bool is_pmi_process(GetVariable get) {
    return get("PMI_FD") != nullptr && get("PMI_RANK") != nullptr && get("PMI_SIZE") != nullptr;
}

Result<std::unique_ptr<PmiClient>> PmiClient::connect() {
    // An MPI library may close the socket, whose number is then anything's: this has its own.
    const int fd = ::fcntl(::atoi(::getenv("PMI_FD")), F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return unfit(std::string("PMI_FD=") + ::getenv("PMI_FD") + " is no open descriptor: " +
                     ::strerror(errno) + ". Join the job before the MPI library leaves it");
    return over(fd, static_cast<std::uint32_t>(::atoi(::getenv("PMI_RANK"))),
                static_cast<std::uint32_t>(::atoi(::getenv("PMI_SIZE"))));
}

Result<std::unique_ptr<PmiClient>> PmiClient::over(int fd, std::uint32_t rank,
                                                   std::uint32_t processes) {
    std::unique_ptr<PmiClient> client(new PmiClient(fd));
    client->rank_ = rank;
    client->processes_ = processes;
    // Launchers answer a second greeting, after the MPI library's or before it, as the first.
    const auto greeted = client->ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init");
    if (!greeted) return greeted.error();
    const auto limits = client->ask("cmd=get_maxes", "maxes");
    if (!limits) return limits.error();
    const auto name = client->ask("cmd=get_my_kvsname", "my_kvsname");
    if (!name) return name.error();
    client->space_ = field(*name, "kvsname");
    const unsigned long longest = ::strtoul(field(*limits, "vallen_max").c_str(), nullptr, 10);
    // Two digits for each byte, and room for what launchers count in.
    client->piece_bytes_ = std::min<std::size_t>(longest / 2, 512) / 2 * 2;
    if (client->space_.empty() || client->piece_bytes_ < 16)
        return unfit("it names no store, or one of values that are too short: " + *limits);
    return client;
}

PmiClient::~PmiClient() {
    constexpr std::string_view bye = "cmd=finalize\n";
    // An MPI library that has said so before has ended the connection.
    if (::send(fd_, bye.data(), bye.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bye.size())) {
        char answer[256];
        [[maybe_unused]] const ssize_t got = ::recv(fd_, answer, sizeof answer, 0);
    }
    ::close(fd_);
}

Result<std::string> PmiClient::ask(const std::string& line, const char* expected) {
    const std::string sent = line + "\n";
    for (std::size_t at = 0; at < sent.size();) {
        const ssize_t put = ::send(fd_, sent.data() + at, sent.size() - at, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return unfit("it takes no more: " + std::string(::strerror(errno)));
        at += static_cast<std::size_t>(put);
    }
    std::string answer;
    // A byte at a time: what comes behind the line is another's.
    for (char byte = 0; answer.size() < line_bytes_max; answer += byte) {
        const ssize_t got = ::recv(fd_, &byte, 1, 0);
        if (got < 0 && errno == EINTR) {
            byte = 0;
            continue;
        }
        if (got <= 0) return unfit("it has ended the connection after `" + line + "`");
        if (byte == '\n') break;
    }
    const std::string status = field(answer, "rc");
    if (field(answer, "cmd") != expected || (!status.empty() && status != "0"))
        return unfit("`" + line + "` was answered by `" + answer + "`");
    return answer;
}

Result<void> PmiClient::put(const std::string& key, const std::string& value) {
    const auto answer =
        ask("cmd=put kvsname=" + space_ + " key=" + key + " value=" + value, "put_result");
    if (!answer) return answer.error();
    return {};
}

Result<std::string> PmiClient::get(const std::string& key) {
    const auto answer = ask("cmd=get kvsname=" + space_ + " key=" + key, "get_result");
    if (!answer) return answer.error();
    return field(*answer, "value");
}

// A value begins with the number of pieces, so that a reader knows how many there are.
Result<std::vector<std::vector<std::byte>>> PmiClient::exchange(Bytes mine) {
    const std::string text = as_digits(mine);
    const std::size_t pieces = (text.size() + piece_bytes_ - 1) / piece_bytes_;
    if (auto done = put(key_of(rank_, 0), std::to_string(pieces)); !done) return done.error();
    for (std::size_t i = 0; i < pieces; ++i)
        if (auto done = put(key_of(rank_, i + 1), text.substr(i * piece_bytes_, piece_bytes_));
            !done)
            return done.error();
    if (auto met = barrier(); !met) return met.error();
    std::vector<std::vector<std::byte>> all;
    for (std::uint32_t rank = 0; rank < processes_; ++rank) {
        const auto count = get(key_of(rank, 0));
        if (!count) return count.error();
        std::string whole;
        for (unsigned long i = 1; i <= ::strtoul(count->c_str(), nullptr, 10); ++i) {
            const auto piece = get(key_of(rank, i));
            if (!piece) return piece.error();
            whole += *piece;
        }
        all.push_back(from_digits(whole));
    }
    return all;
}

Result<void> PmiClient::barrier() {
    const auto answer = ask("cmd=barrier_in", "barrier_out");
    if (!answer) return answer.error();
    return {};
}

}  // namespace hiroba::net
