// SPDX-License-Identifier: BSD-3-Clause
// Hosts from files and batch systems, and which rank of `hiroba exec` runs where.
#include "tools/hosts/allocation.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/cpu_list.hpp"
#include "net/bootstrap/process_manager.hpp"
#include "tools/exec/placement.hpp"
#include "tools/launch_test/command.hpp"

namespace hiroba::tools {
namespace {

std::map<std::string, std::string> variables;

const char* given(const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
}

struct HostFile {
    explicit HostFile(const std::string& text)
        : path(::testing::TempDir() + "hosts" + std::to_string(::getpid())) {
        std::ofstream(path) << text;
    }
    ~HostFile() { ::unlink(path.c_str()); }
    std::string path;
};

TEST(HostFile, CountsSlotsAndRepeatedNames) {
    const HostFile file("# ours\na slots=2\nb:3 # fast\n\nc\nc\n[::1]\n");
    const auto hosts = read_hostfile(file.path);
    ASSERT_FALSE(!hosts) << hosts.error().text;
    EXPECT_EQ(hosts->substr(0, 11), "a:2,b:3,c:2");
}

TEST(HostFile, WrongLinesAreNamed) {
    const HostFile file("a\nb slots=x\n");
    const auto hosts = read_hostfile(file.path);
    ASSERT_FALSE(hosts);
    EXPECT_EQ(hosts.error().kind, ErrorKind::usage);
    EXPECT_NE(hosts.error().text.find("line 2: the number of nodes of b"), std::string::npos);
    EXPECT_NE(read_hostfile("/nonexistent").error().text.find("No such file"), std::string::npos);
    const HostFile empty("# nothing\n");
    EXPECT_NE(read_hostfile(empty.path).error().text.find("names no host"), std::string::npos);
}

TEST(Allocation, SlurmsListIsExpanded) {
    const auto names = expand_host_list("n[08-10,3]-ib,login,x[1]");
    ASSERT_TRUE(names);
    EXPECT_EQ(*names,
              (std::vector<std::string>{"n08-ib", "n09-ib", "n10-ib", "n3-ib", "login", "x1"}));
    for (const char* const wrong : {"n[1-", "n]1[", "a,,b", "n[2-1]", "n[a-b]", ""})
        EXPECT_FALSE(expand_host_list(wrong)) << wrong;
}

TEST(Allocation, SlurmGivesHostsWithTheirTasks) {
    variables = {{"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_TASKS_PER_NODE", "2(x2),1"}};
    const auto found = find_allocation(given);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->hosts, "n1:2,n2:2,n3:1");
    EXPECT_TRUE((*found)->command.starts_with("srun "));
    variables["SLURM_TASKS_PER_NODE"] = "two";
    EXPECT_FALSE(find_allocation(given));
}

TEST(Allocation, PbsGivesALinePerSlot) {
    const HostFile file("a\na\nb\n");
    variables = {{"PBS_NODEFILE", file.path}};
    const auto found = find_allocation(given);
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->hosts, "a:2,b:1");
    EXPECT_TRUE((*found)->command.empty());
}

TEST(Allocation, OutsideABatchSystemThereIsNone) {
    variables.clear();
    const auto found = find_allocation(given);
    ASSERT_TRUE(found);
    EXPECT_FALSE(*found);
}

ExecCard card(std::uint64_t host, const std::string& name, const std::string& cpus) {
    ExecCard made;
    made.build = "abc";
    made.host = host;
    made.host_name = name;
    made.cpus = cpus;
    return made;
}

TEST(Placement, RanksOfAHostAreOneRunHoweverTheyWereMapped) {
    const auto placed =
        place({card(7, "a", "0"), card(9, "b", "0"), card(7, "a", "1"), card(9, "b", "1")});
    ASSERT_TRUE(placed);
    ASSERT_EQ(placed->hosts.size(), 2u);
    EXPECT_EQ(placed->hosts[0].first_rank, 0u);
    EXPECT_EQ(placed->hosts[1].first_rank, 2u);
    EXPECT_EQ(placed->hosts[1].nodes, 2u);
    EXPECT_EQ(placed->hosts[1].node_cpus, (std::vector<std::string>{"0", "1"}));
    EXPECT_TRUE(placed->leads(0) && placed->leads(1));
    EXPECT_FALSE(placed->leads(2) || placed->leads(3));
}

TEST(Placement, AnotherBuildIsNamedWithItsHost) {
    auto other = card(9, "b", "0");
    other.build = "def";
    const auto placed = place({card(7, "a", "0"), other});
    ASSERT_FALSE(placed);
    EXPECT_EQ(placed.error().text,
              "process 1 on b is hiroba build def, process 0 on a is abc. Install the same hiroba "
              "on every host");
}

TEST(ExecCard, TravelsWhole) {
    ExecCard sent = card(7, "a", "0-3,8");
    sent.key = ~0ull;
    sent.key_high = 1;
    sent.port = 65535;
    sent.callers = {"10.0.0.1", "fd77::1"};
    const auto back = read_card(write_card(sent));
    ASSERT_TRUE(back);
    EXPECT_EQ(write_card(*back), write_card(sent));
    EXPECT_EQ(back->port, 65535);
    EXPECT_EQ(back->callers, sent.callers);
    EXPECT_FALSE(read_card(std::as_bytes(std::span("something", 9))));
}

TEST(WhyAlone, SingletonsWhereAJobWasMeantAreNamed) {
    variables = {{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}};
    EXPECT_NE(net::why_alone(given).find("srun has started 4 processes"), std::string::npos);
    variables = {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}};
    EXPECT_EQ(net::why_alone(given), "");
    variables = {{"PMI_SIZE", "2"}};
    EXPECT_NE(net::why_alone(given).find("PMIx"), std::string::npos);
}

TEST(CpuList, IsReadAsItIsWritten) {
    for (const char* const text : {"0", "0-3", "1,3,5-7,1000-1023", ""}) {
        const auto set = parse_cpu_list(text);
        ASSERT_TRUE(set) << text;
        EXPECT_EQ(cpu_list(*set), text);
    }
    for (const char* const wrong : {"0,", "3-1", "1024", "x", "1-", "0 1"})
        EXPECT_FALSE(parse_cpu_list(wrong)) << wrong;
}

}  // namespace
}  // namespace hiroba::tools
