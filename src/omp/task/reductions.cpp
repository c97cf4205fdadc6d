// SPDX-License-Identifier: BSD-3-Clause
#include "omp/task/reductions.hpp"

#include "base/fatal.hpp"

namespace hiroba::omp::reductions {

namespace {
struct Found {
    const std::uintptr_t* descriptor = nullptr;
    std::uintptr_t item = 0, offset = 0;
};

Found find(const std::uintptr_t* data, std::uintptr_t address) {
    for (const auto* each = data; each != nullptr;
         each = reinterpret_cast<const std::uintptr_t*>(each[next_at])) {
        const bool copy = address >= each[copies_at] && address < each[end_at];
        const std::uintptr_t offset = copy ? (address - each[copies_at]) % each[bytes_at] : 0;
        for (std::uintptr_t i = 0; i < each[items_at]; ++i) {
            const std::uintptr_t* const item = each + item_words_at + i * words_per_item;
            if (copy ? item[1] == offset : item[0] == address) return {each, item[0], item[1]};
        }
    }
    return {};
}
}  // namespace

void share(std::uintptr_t* data, std::uintptr_t* outer, const std::uintptr_t* made) {
    for (std::uintptr_t* each = data;; each = reinterpret_cast<std::uintptr_t*>(each[next_at])) {
        each[copies_at] = made[copies_at];
        each[end_at] = made[end_at];
        each[first_at] = each == data;
        made = reinterpret_cast<const std::uintptr_t*>(made[next_at]);
        if (each[next_at] != 0) continue;
        each[next_at] = reinterpret_cast<std::uintptr_t>(outer);
        return;
    }
}

void remap(std::uintptr_t* data, std::uint32_t thread, std::span<void*> pointers,
           std::size_t originals) {
    for (std::size_t i = 0; i < pointers.size(); ++i) {
        const Found found = find(data, reinterpret_cast<std::uintptr_t>(pointers[i]));
        if (found.descriptor == nullptr)
            die(1, "in_reduction of %p, which no task_reduction or reduction(task) names",
                pointers[i]);
        const std::uintptr_t* const each = found.descriptor;
        pointers[i] =
            reinterpret_cast<void*>(each[copies_at] + thread * each[bytes_at] + found.offset);
        if (i < originals)
            pointers.data()[pointers.size() + i] = reinterpret_cast<void*>(found.item);
    }
}

}  // namespace hiroba::omp::reductions
