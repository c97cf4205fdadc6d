// SPDX-License-Identifier: BSD-3-Clause
// Role: wrong use of the C++ face of the shared memory. Each case but `allowed` ends the job with a
// line, where it would wait for ever or give wrong answers. Usage: spmd_misuse CASE, on two nodes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <hiroba/dsm.hpp>
#include <string>
#include <thread>

namespace {

using Word = std::uint64_t;

void insist(bool good, const char* what) {
    if (good) return;
    std::printf("WRONG: %s\n", what);
    std::exit(1);
}

void allowed(hiroba::SharedMemory& shared) {
    const unsigned node = shared.node();
    shared.deallocate(nullptr);
    insist(shared.allocate(8, 3) == nullptr && shared.allocate(8, 0) == nullptr, "alignments");
    for (std::size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        void* const memory = shared.allocate(8, alignment);
        insist(reinterpret_cast<std::uintptr_t>(memory) % alignment == 0, "an alignment");
        shared.deallocate(memory);
    }
    shared.lock(1 + node);
    insist(!shared.try_lock(1 + node), "try_lock of what is held");
    std::thread([&] { shared.unlock(1 + node); }).join();
    shared.lock(1 + node);
    shared.lock(11 + node);
    shared.unlock(1 + node);
    shared.unlock(11 + node);
    insist(shared.broadcast(5 + node, 1) == 6, "broadcast");
    insist(shared.all_reduce(Word{node} + 1, std::plus<>{}) == 3, "all_reduce");
    shared.barrier();
    if (node == 0) std::printf("what is allowed on 2 nodes: right\n");
}

void collective(hiroba::SharedMemory& shared, const std::string& what) {
    const unsigned node = shared.node();
    if (what == "kinds") {
        if (node == 0) (void)shared.all_reduce(Word{7}, std::plus<>{});
        if (node == 1) (void)shared.broadcast(3, 1);
    }
    if (what == "roots") (void)shared.broadcast(3, node);
    if (what == "root") (void)shared.broadcast(3, 9);
}

void locks(hiroba::SharedMemory& shared, const std::string& what) {
    const unsigned node = shared.node();
    if (what == "recursive") {
        shared.lock(0x4d);
        shared.lock(0x4d);
    }
    if (what == "other_node") {
        if (node == 0) shared.lock(0x4d);
        shared.barrier();
        if (node == 1) shared.unlock(0x4d);
    }
    if (what == "free_lock") shared.unlock(0x4e);
}

}  // namespace

int main(int, char** argv) {
    auto shared = hiroba::SharedMemory::open(nullptr);
    const std::string what = argv[1];
    if (what == "no_open") {  // a setting is wrong
        insist(shared == nullptr, "open");
        std::printf("no shared memory\n");
        return 0;
    }
    insist(shared != nullptr, "open");
    if (what == "allowed") return allowed(*shared), 0;
    collective(*shared, what);
    locks(*shared, what);
    Word word = 0;
    if (what == "private_word") hiroba::AtomicWord{*shared, &word}.fetch_add(1);
    if (what == "foreign") shared->deallocate(&word);
    if (what == "held" && shared->node() == 1) shared->lock(0x4d);
    if ((what == "held" || what == "leave") && shared->node() == 1) shared.reset();
    if (shared != nullptr) shared->barrier();
    std::printf("WRONG: %s was not told\n", what.c_str());
    return 0;
}
