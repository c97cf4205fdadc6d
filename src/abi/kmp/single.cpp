// SPDX-License-Identifier: BSD-3-Clause
// Role: blocks that one thread executes, or one after the other.
// Invariant: a 1 sends the caller into the block.
#include "abi/kmp/kmp.hpp"
#include "base/program_call.hpp"

#pragma GCC visibility push(default)

using namespace hiroba::abi;
using namespace hiroba::abi::kmp;

using CopyFunction = void (*)(void*, void*);

namespace {
Int enter_masked(Int thread) noexcept {
    if (static_cast<Int>(runtime().place().thread) != thread) return 0;
    tell_tool(ToolReport::masked_begins);
    return 1;
}
}  // namespace

extern "C" {

Int __kmpc_master(Location*, Int) {
    note_caller();
    return enter_masked(0);
}
void __kmpc_end_master(Location*, Int) {
    note_caller();
    tell_tool(ToolReport::masked_ends);
}
Int __kmpc_masked(Location*, Int, Int filter) {
    note_caller();
    return enter_masked(filter);
}
void __kmpc_end_masked(Location*, Int) {
    note_caller();
    tell_tool(ToolReport::masked_ends);
}

Int __kmpc_single(Location*, Int) {
    note_caller();
    return runtime().single_start();
}
void __kmpc_end_single(Location*, Int) {
    note_caller();
    tell_tool(ToolReport::single_ends);
}

void __kmpc_copyprivate(Location*, Int, std::size_t, void* own, CopyFunction copy, Int did_it) {
    note_caller();
    synchronizes_at(SyncKind::single, __builtin_return_address(0));
    void* const given = runtime().pass_on(own, did_it != 0);
    if (did_it == 0) hiroba::call_program(copy, own, given);
    // The giver's variables last until all have read them.
    runtime().barrier();
}
void* __kmpc_copyprivate_light(Location*, Int, void* own) {
    note_caller();
    // The caller copies from what it gets, and waits at a barrier of its own.
    synchronizes_at(SyncKind::single, __builtin_return_address(0));
    return runtime().pass_on(own, own != nullptr);
}

void __kmpc_ordered(Location*, Int) {
    note_caller();
    runtime().ordered_start();
}
void __kmpc_end_ordered(Location*, Int) {
    note_caller();
    runtime().ordered_end();
}

void __kmpc_scope(Location*, Int, void*) {}
void __kmpc_end_scope(Location*, Int, void*) {}

}  // extern "C"
