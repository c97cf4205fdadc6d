// SPDX-License-Identifier: BSD-3-Clause
// Role: values of OMP_* variables, good and bad.
#include "omp/icv/icv.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace hiroba::omp {
namespace {

class OmpVariables : public testing::Test {
protected:
    void SetUp() override { clear(); }
    void TearDown() override { clear(); }
    static void clear() {
        for (const char* name :
             {"OMP_NUM_THREADS", "OMP_SCHEDULE", "OMP_DYNAMIC", "OMP_MAX_ACTIVE_LEVELS",
              "OMP_THREAD_LIMIT", "OMP_STACKSIZE", "OMP_WAIT_POLICY", "OMP_CANCELLATION",
              "OMP_NESTED", "KMP_STACKSIZE"})
            unsetenv(name);
    }
    static Environment with(const char* name, const char* value) {
        setenv(name, value, 1);
        return read_environment(false);
    }
};

TEST_F(OmpVariables, a_list_of_threads_gives_one_number_per_level) {
    const Environment environment = with("OMP_NUM_THREADS", " 4 , 2");
    EXPECT_EQ(environment.levels, 2u);
    EXPECT_EQ(environment.initial.threads, 4u);
    EXPECT_EQ(environment.threads_by_level[1], 2u);
}

TEST_F(OmpVariables, bad_thread_numbers_leave_the_default) {
    for (const char* bad : {"", "0", "-1", "abc", "4,", "4,0", "4x", "99999999999999999999"})
        EXPECT_EQ(with("OMP_NUM_THREADS", bad).levels, 0u) << bad;
}

TEST_F(OmpVariables, schedules_are_read_with_modifier_and_chunk) {
    const Icvs guided = with("OMP_SCHEDULE", "monotonic: Guided , 5").initial;
    EXPECT_EQ(guided.schedule, Schedule::guided);
    EXPECT_EQ(guided.chunk, 5u);
    EXPECT_TRUE(guided.monotonic);
    EXPECT_EQ(with("OMP_SCHEDULE", "static").initial.chunk, 0u);
    EXPECT_EQ(with("OMP_SCHEDULE", "dynamic").initial.chunk, 1u);
    EXPECT_EQ(with("OMP_SCHEDULE", "auto").initial.schedule, Schedule::automatic);
    for (const char* bad :
         {"", "foo", "static,x", "static,-1", "sometimes:dynamic", "static,2 3"}) {
        const Icvs icvs = with("OMP_SCHEDULE", bad).initial;
        EXPECT_EQ(icvs.schedule, Schedule::dynamic) << bad;
        EXPECT_EQ(icvs.chunk, 1u) << bad;
    }
}

TEST_F(OmpVariables, stack_sizes_are_in_kib_unless_they_name_a_unit) {
    EXPECT_EQ(with("OMP_STACKSIZE", "64").stack_bytes, 65536u);
    EXPECT_EQ(with("OMP_STACKSIZE", "100b").stack_bytes, 100u);
    EXPECT_EQ(with("OMP_STACKSIZE", "2 M").stack_bytes, std::uint64_t{2} << 20);
    EXPECT_EQ(with("OMP_STACKSIZE", "1g").stack_bytes, std::uint64_t{1} << 30);
    for (const char* bad : {"", "M", "3Q", "-1", "99999999999999999G"})
        EXPECT_EQ(with("OMP_STACKSIZE", bad).stack_bytes, 0u) << bad;
}

TEST_F(OmpVariables, llvm_s_stack_size_is_in_bytes_and_comes_last) {
    EXPECT_EQ(with("KMP_STACKSIZE", "65536").stack_bytes, 65536u);
    EXPECT_EQ(stack_bytes_from_environment(), 65536u);
    EXPECT_EQ(with("KMP_STACKSIZE", "2m").stack_bytes, std::uint64_t{2} << 20);
    EXPECT_EQ(with("OMP_STACKSIZE", "64k").stack_bytes, 65536u);
    EXPECT_EQ(stack_bytes_from_environment(), 65536u);
}

TEST_F(OmpVariables, more_levels_than_supported_are_as_many_as_supported) {
    EXPECT_EQ(with("OMP_MAX_ACTIVE_LEVELS", "7").initial.max_active_levels, 7u);
    EXPECT_EQ(with("OMP_MAX_ACTIVE_LEVELS", "1000").initial.max_active_levels, levels_supported);
    EXPECT_EQ(with("OMP_MAX_ACTIVE_LEVELS", "0").initial.max_active_levels, 0u);
    EXPECT_EQ(with("OMP_MAX_ACTIVE_LEVELS", "x").initial.max_active_levels, 1u);
}

TEST_F(OmpVariables, a_list_of_threads_asks_for_levels_unless_something_else_says_how_many) {
    EXPECT_EQ(with("OMP_NUM_THREADS", "4").initial.max_active_levels, 1u);
    EXPECT_EQ(with("OMP_NUM_THREADS", "4,2").initial.max_active_levels, levels_supported);
    setenv("OMP_NESTED", "false", 1);
    EXPECT_EQ(with("OMP_NUM_THREADS", "4,2").initial.max_active_levels, 1u);
    unsetenv("OMP_NESTED");
    setenv("OMP_MAX_ACTIVE_LEVELS", "2", 1);
    EXPECT_EQ(with("OMP_NUM_THREADS", "4,2,2").initial.max_active_levels, 2u);
    unsetenv("OMP_MAX_ACTIVE_LEVELS");
    unsetenv("OMP_NUM_THREADS");
    EXPECT_EQ(with("OMP_NESTED", "true").initial.max_active_levels, levels_supported);
    unsetenv("OMP_NESTED");
}

TEST_F(OmpVariables, truths_limits_and_policies) {
    EXPECT_TRUE(with("OMP_DYNAMIC", " TRUE ").initial.dynamic);
    EXPECT_FALSE(with("OMP_DYNAMIC", "maybe").initial.dynamic);
    EXPECT_TRUE(with("OMP_CANCELLATION", "true").cancellation);
    EXPECT_EQ(with("OMP_THREAD_LIMIT", "3").thread_limit, 3u);
    EXPECT_EQ(with("OMP_THREAD_LIMIT", "0").thread_limit, thread_limit_none);
    EXPECT_EQ(with("OMP_WAIT_POLICY", "active").wait_policy, WaitPolicy::active);
    EXPECT_EQ(with("OMP_WAIT_POLICY", "lazy").wait_policy, WaitPolicy::unset);
}

TEST_F(OmpVariables, the_display_names_every_value_as_gcc_does) {
    setenv("OMP_SCHEDULE", "monotonic:guided,5", 1);
    const Environment environment = with("OMP_NUM_THREADS", "3,2");
    const std::string text = display_text(environment, environment.initial, false);
    EXPECT_EQ(text.find("\nOPENMP DISPLAY ENVIRONMENT BEGIN\n  _OPENMP = '201511'\n"), 0u);
    EXPECT_NE(text.find("  OMP_NUM_THREADS = '3,2'\n"), std::string::npos);
    EXPECT_NE(text.find("  OMP_SCHEDULE = 'MONOTONIC:GUIDED,5'\n"), std::string::npos);
    EXPECT_NE(text.find("OPENMP DISPLAY ENVIRONMENT END\n"), std::string::npos);
}

}  // namespace
}  // namespace hiroba::omp
