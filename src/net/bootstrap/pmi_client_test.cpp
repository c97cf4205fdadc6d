// SPDX-License-Identifier: BSD-3-Clause
// The client speaks to a launcher of this test: a store, a barrier, and limits like those of
// launchers, over sockets.
#include "net/bootstrap/pmi_client.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

namespace hiroba::net {
namespace {

constexpr std::size_t value_bytes_max = 64;

/// Answers the processes of one job, as MPICH's does.
class Launcher {
public:
    explicit Launcher(std::size_t processes, std::string greeting_status = "0")
        : greeting_status_(std::move(greeting_status)) {
        for (std::size_t i = 0; i < processes; ++i) {
            int ends[2];
            EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
            own_.push_back(ends[0]);
            theirs_.push_back(ends[1]);
        }
        thread_ = std::thread([this] { serve(); });
    }
    ~Launcher() {
        thread_.join();
        for (const int fd : own_) ::close(fd);
    }
    int end_of(std::size_t rank) const { return theirs_[rank]; }
    std::size_t longest_value() const { return longest_value_; }
    std::size_t goodbyes() const { return goodbyes_; }

private:
    static std::string word(const std::string& line, const std::string& key) {
        const std::size_t at = line.find(key + "=");
        if (at == line.npos) return "";
        const std::size_t begin = at + key.size() + 1;
        return line.substr(begin, line.find(' ', begin) - begin);
    }

    void serve() {
        for (std::size_t open = own_.size(); open > 0;) {
            std::vector<pollfd> entries;
            for (const int fd : own_) entries.push_back({fd, POLLIN, 0});
            ::poll(entries.data(), entries.size(), -1);
            for (std::size_t i = 0; i < own_.size(); ++i) {
                if (entries[i].revents == 0 || own_[i] < 0) continue;
                std::string line;
                for (char byte = 0; ::read(own_[i], &byte, 1) == 1 && byte != '\n';) line += byte;
                if (!line.empty()) {
                    answer(own_[i], line);
                    continue;
                }
                ::close(own_[i]);
                own_[i] = -1;
                --open;
            }
        }
    }

    void answer(int fd, const std::string& line) {
        const std::string command = word(line, "cmd");
        if (command == "init")
            return say(
                fd, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=" + greeting_status_);
        if (command == "get_maxes")
            return say(fd, "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=" +
                               std::to_string(value_bytes_max));
        if (command == "get_my_kvsname") return say(fd, "cmd=my_kvsname kvsname=job_1");
        if (command == "finalize") {
            ++goodbyes_;
            return say(fd, "cmd=finalize_ack");
        }
        if (command == "put") {
            longest_value_ = std::max(longest_value_, word(line, "value").size());
            store_[word(line, "key")] = word(line, "value");
            return say(fd, "cmd=put_result rc=0 msg=success");
        }
        if (command == "get") {
            const auto found = store_.find(word(line, "key"));
            return say(fd, found == store_.end()
                               ? "cmd=get_result rc=-1 msg=key_not_found value=unknown"
                               : "cmd=get_result rc=0 msg=success value=" + found->second);
        }
        waiting_.push_back(fd);
        if (waiting_.size() < own_.size()) return;
        for (const int each : waiting_) say(each, "cmd=barrier_out");
        waiting_.clear();
    }

    static void say(int fd, const std::string& text) {
        const std::string line = text + "\n";
        ASSERT_EQ(::write(fd, line.data(), line.size()), static_cast<ssize_t>(line.size()));
    }

    std::string greeting_status_;
    std::vector<int> own_, theirs_;
    std::map<std::string, std::string> store_;
    std::vector<int> waiting_;
    std::size_t longest_value_ = 0, goodbyes_ = 0;
    std::thread thread_;
};

std::vector<std::byte> card_of(std::uint32_t rank) {
    std::vector<std::byte> card(rank * 100);  // The first is empty, the others of several values.
    for (std::size_t i = 0; i < card.size(); ++i) card[i] = std::byte(i * 7 + rank);
    return card;
}

TEST(PmiClient, GivesEachTheBytesOfAll) {
    static constexpr std::uint32_t processes = 3;
    Launcher launcher(processes);
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < processes; ++rank)
        threads.emplace_back([&launcher, rank] {
            const auto client = PmiClient::over(launcher.end_of(rank), rank, processes);
            ASSERT_TRUE(client) << client.error().text;
            const auto all = (*client)->exchange(card_of(rank));
            ASSERT_TRUE(all) << all.error().text;
            ASSERT_EQ(all->size(), processes);
            for (std::uint32_t other = 0; other < processes; ++other)
                EXPECT_EQ((*all)[other], card_of(other)) << rank << " of " << other;
            EXPECT_TRUE((*client)->barrier());
        });
    for (std::thread& each : threads) each.join();
    EXPECT_LE(launcher.longest_value(), value_bytes_max);
    EXPECT_EQ(launcher.goodbyes(), processes);
}

TEST(PmiClient, TellsWhatTheLauncherRefused) {
    Launcher launcher(1, "-1");
    const auto client = PmiClient::over(launcher.end_of(0), 0, 1);
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().kind, ErrorKind::environment);
    EXPECT_NE(client.error().text.find("rc=-1"), std::string::npos) << client.error().text;
}

TEST(PmiClient, TellsOfALauncherThatIsGone) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ::close(ends[0]);
    EXPECT_FALSE(PmiClient::over(ends[1], 0, 2));
}

}  // namespace
}  // namespace hiroba::net
