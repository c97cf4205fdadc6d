// SPDX-License-Identifier: BSD-3-Clause
// Role: remote procedures of the communication layer's face: the table of this process's
// procedures, and the questions that call them.
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "abi/net/network.hpp"
#include "base/fatal.hpp"
#include "base/latch.hpp"
#include "hiroba/net_procedures.hpp"

namespace hiroba::net {
namespace {

struct Table {
    Latch latch;
    std::unordered_map<std::uint64_t, ProcedureEntry> entries;  ///< nullptr: two have the id
};
/// Made by the first call, which comes before main().
Table& table() {
    static Table made;
    return made;
}

ProcedureEntry find(std::uint64_t id, NodeId self, NodeId from) noexcept {
    const std::scoped_lock guard{table().latch};
    const auto found = table().entries.find(id);
    if (found == table().entries.end())
        fatal(
            "node %u calls a procedure that the program of node %u does not have: call<&function> "
            "is in its code nowhere",
            from.value, self.value);
    if (found->second == nullptr)
        fatal("node %u calls a procedure of which node %u has two of one name: name them apart",
              from.value, self.value);
    return found->second;
}

/// Keeps the result of an answer: where, and how many bytes it has to have.
bool took_result(Questions&, Questions::Asking& asking, std::uint64_t, Bytes bytes) noexcept {
    HIROBA_INVARIANT(bytes.size() == asking.kept[1], "a result of %lu bytes, wanted were %lu",
                     bytes.size(), asking.kept[1]);
    if (!bytes.empty())
        std::memcpy(reinterpret_cast<std::byte*>(asking.kept[0]), bytes.data(), bytes.size());
    return true;
}

}  // namespace

bool add_procedure(std::uint64_t id, ProcedureEntry entry) noexcept {
    const std::scoped_lock guard{table().latch};
    const auto [at, is_new] = table().entries.emplace(id, entry);
    if (!is_new && at->second != entry) at->second = nullptr;
    return true;
}

void NetworkOver::answer_procedure(void* context, const Questions::Asked& asked) noexcept {
    auto& self = *static_cast<NetworkOver*>(context);
    const ProcedureEntry entry = find(asked.words[0], self.self_, asked.from);
    HIROBA_INVARIANT(asked.payload.size() >= asked.words[1], "%lu bytes of arguments of %lu came",
                     asked.payload.size(), asked.words[1]);
    alignas(16) std::byte result[procedure_result_max];
    const std::size_t bytes = entry({self, asked.from}, asked.payload, result);
    asked.answer(0, {result, bytes});
}

Submission NetworkOver::try_procedure_async(const ProcedureParams& params) noexcept {
    const std::size_t bytes = params.fixed.size() + params.bytes.size();
    if (!connected_ || params.target.value >= nodes_ || bytes > async_->payload_bytes_max())
        fatal(
            "node %u calls a procedure of node %u of a job of %u with %lu bytes of arguments, of "
            "%lu there may be, %s",
            self_.value, params.target.value, nodes_, bytes, async_->payload_bytes_max(),
            connected_ ? "connected" : "before connect()");
    std::vector<std::byte> joined;
    Bytes payload = params.fixed;
    if (!params.bytes.empty()) {
        joined.assign(params.fixed.begin(), params.fixed.end());
        joined.insert(joined.end(), params.bytes.begin(), params.bytes.end());
        payload = joined;
    }
    const Questions::Asking asking{
        .to = params.target,
        .about = Questions::About::procedure,
        .answered = &took_result,
        .done = params.on_complete,
        .kept = {reinterpret_cast<std::uint64_t>(params.result.data()), params.result.size()}};
    return counted(params.on_complete, [&] {
        return questions_->try_ask(asking, {params.id, params.fixed.size(), 0, 0}, payload);
    });
}

}  // namespace hiroba::net
