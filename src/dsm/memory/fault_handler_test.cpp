// SPDX-License-Identifier: BSD-3-Clause
// Role: what becomes of faults that no FaultTarget resolves, each in a process of its own that they
// may end.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <cstring>
#include <string>
#include <thread>

#include "dsm/memory/fault_engine.hpp"
#include "dsm/memory/mprotect_engine.hpp"
#include "dsm/memory/private_memory.hpp"

namespace hiroba::dsm {
namespace {

constexpr std::uintptr_t base = 0x2f00'0000'0000;
constexpr std::size_t pages = 16;

/// Page 0 is a guard; the others map when touched; page 15 faults again while being resolved.
class Target : public FaultTarget {
public:
    explicit Target(const char* engine_name)
        : memory_(std::move(*PrivateMemory::create(pages * page_bytes))),
          engine_(std::move(*make_fault_engine(engine_name))) {
        const auto attached =
            engine_->attach({base, pages * page_bytes}, memory_.fd(), 0, memory_.at(0));
        if (!attached) abort();
        add_fault_target(*this);
    }
    ~Target() override { remove_fault_target(*this); }
    bool on_fault(std::uintptr_t address, bool) noexcept override {
        const std::uintptr_t page = (address - base) / page_bytes;
        if (page == 0 || page >= pages) return false;
        if (page == pages - 1) *reinterpret_cast<volatile char*>(base + page_bytes) = 1;
        engine_->map({base + page * page_bytes, page_bytes}, Access::write);
        return true;
    }

private:
    PrivateMemory memory_;
    std::unique_ptr<FaultEngine> engine_;
};

volatile char& at(std::uintptr_t address) {
    const volatile std::uintptr_t hidden = address;  // the compiler warns of small constants
    return *reinterpret_cast<volatile char*>(hidden);
}

void no_core() {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
}

void set_handler(void (*handler)(int, siginfo_t*, void*), int flags = 0) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    set_program_action(SIGSEGV, &action, nullptr);
}

class FaultsOfNobody : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (std::string(GetParam()) == "uffd" && !probe_uffd().usable) GTEST_SKIP();
    }
};
INSTANTIATE_TEST_SUITE_P(Engines, FaultsOfNobody, testing::Values("uffd", "mprotect"),
                         [](const auto& info) { return std::string(info.param); });
using FaultsOfNobodyDeathTest = FaultsOfNobody;

TEST_P(FaultsOfNobody, a_null_pointer_kills_by_the_real_signal_and_in_silence) {
    EXPECT_EXIT(
        {
            no_core();
            const Target target{GetParam()};
            at(8) = 1;
        },
        testing::KilledBySignal(SIGSEGV), "^$");
}

TEST_P(FaultsOfNobody, a_guard_page_kills_by_sigsegv_after_one_line_with_the_address) {
    EXPECT_EXIT(
        {
            no_core();
            const Target target{GetParam()};
            at(base + 0x123) = 1;
        },
        testing::KilledBySignal(SIGSEGV), "^hiroba.*SIGSEGV: write of 0x2f0000000123.*\n$");
}

TEST_P(FaultsOfNobody, the_programs_handler_runs_with_the_address_and_shared_memory_usable) {
    EXPECT_EXIT(
        {
            const Target target{GetParam()};
            set_handler([](int signal, siginfo_t* info, void*) {
                at(base + 5 * page_bytes) = 7;  // a fault of ours inside it
                const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
                _exit(signal == SIGSEGV && address == base + 0x40 ? 33 : 34);
            });
            at(base + 0x40) = 1;
        },
        testing::ExitedWithCode(33), "^$");
}

TEST_P(FaultsOfNobody, the_programs_handler_may_jump_out_again_and_again) {
    static sigjmp_buf back;
    EXPECT_EXIT(
        {
            give_alternate_stack();
            const Target target{GetParam()};
            set_handler([](int, siginfo_t*, void*) { siglongjmp(back, 1); });
            volatile int caught = 0;
            while (caught < 1000)
                if (sigsetjmp(back, 1) == 0)
                    at(caught % 2 == 0 ? base : 16) = 1;
                else
                    caught = caught + 1;
            at(base + 3 * page_bytes) = 1;  // our faults still work
            _exit(35);
        },
        testing::ExitedWithCode(35), "^$");
}

TEST_P(FaultsOfNobody, a_fault_inside_the_programs_handler_kills) {
    EXPECT_EXIT(
        {
            no_core();
            give_alternate_stack();
            const Target target{GetParam()};
            set_handler([](int, siginfo_t*, void*) { at(24) = 1; });
            at(16) = 1;
        },
        testing::KilledBySignal(SIGSEGV), "^$");
}

TEST_P(FaultsOfNobody, a_fault_in_the_course_of_a_fault_stops_the_node_with_both_addresses) {
    EXPECT_DEATH(
        {
            no_core();
            const Target target{GetParam()};
            at(base + 15 * page_bytes) = 1;
        },
        "fault at 0x2f0000001000 .* while resolving the fault at 0x2f000000f000");
}

TEST_P(FaultsOfNobody, a_thread_without_any_context_and_with_a_tiny_stack_is_served) {
    EXPECT_EXIT(
        {
            const Target target{GetParam()};
            std::thread{[] { at(base + 2 * page_bytes) = 1; }}.join();
            std::thread{[] {
                give_alternate_stack();
                at(base + 4 * page_bytes) = 1;
            }}.join();
            _exit(at(base + 2 * page_bytes) + at(base + 4 * page_bytes));
        },
        testing::ExitedWithCode(2), "^$");
}

TEST_P(FaultsOfNobody, executing_data_is_no_miss_and_kills) {
    EXPECT_EXIT(
        {
            no_core();
            const Target target{GetParam()};
            at(base + 2 * page_bytes) = static_cast<char>(0xc3);
            reinterpret_cast<void (*)()>(base + 2 * page_bytes)();
        },
        testing::KilledBySignal(SIGSEGV), "^$");
}

TEST_P(FaultsOfNobody, a_signal_sent_by_kill_is_ignored_or_kills_as_the_program_asked) {
    EXPECT_EXIT(
        {
            no_core();
            const Target target{GetParam()};
            struct sigaction ignore {};
            ignore.sa_handler = SIG_IGN;
            set_program_action(SIGSEGV, &ignore, nullptr);
            kill(getpid(), SIGSEGV);
            struct sigaction before {};
            struct sigaction by_default {};
            by_default.sa_handler = SIG_DFL;
            set_program_action(SIGSEGV, &by_default, &before);
            if (before.sa_handler != SIG_IGN) _exit(1);
            kill(getpid(), SIGSEGV);
            _exit(2);
        },
        testing::KilledBySignal(SIGSEGV), "^$");
}

TEST(mprotect_engine, survives_the_limit_on_mappings_without_losing_writes_or_kept_pages) {
    const EngineProbe probe = probe_mprotect();
    ASSERT_TRUE(probe.usable);
    constexpr std::size_t many = 80000;
    auto memory = std::move(*PrivateMemory::create(many * page_bytes));
    auto engine = std::move(*MprotectEngine::create("test"));
    const AddressRange range{0x2e00'0000'0000, many * page_bytes};
    ASSERT_TRUE(engine->attach(range, memory.fd(), 0, memory.at(0)));
    const auto page = [&](std::size_t n) {
        return AddressRange{range.address + n * page_bytes, page_bytes};
    };
    engine->keep(page(101));
    engine->map(page(101), Access::write);
    engine->map(page(100), Access::write);
    at(page(100).address) = 1;

    for (std::size_t n = 0; n < many && engine->retreats() == 0; n += 2)
        engine->map(page(n), Access::read);

    ASSERT_EQ(engine->retreats(), 1u) << "vm.max_map_count is higher than this test reckons with";
    at(page(101).address) = 2;  // would kill the test if it were not accessible
    struct : WrittenSink {
        void written(AddressRange written) noexcept override {
            pages += written.bytes / page_bytes;
            first = first == 0 ? written.address : first;
        }
        std::size_t pages = 0;
        std::uintptr_t first = 0;
    } sink;
    engine->collect(sink);
    EXPECT_EQ(sink.first, page(100).address);
    EXPECT_EQ(sink.pages, 2u);
}

}  // namespace
}  // namespace hiroba::dsm
