// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/memory_rig.hpp"

#include <algorithm>
#include <cstring>

#include "base/settings.hpp"
#include "base/sync_place.hpp"
#include "base/thread_context.hpp"

namespace hiroba::tools::perf_parts {

Result<std::unique_ptr<MemoryRig>> MemoryRig::create(Rig& rig) {
    auto engine = dsm::make_fault_engine(setting("HIROBA_FAULT_ENGINE"));
    if (!engine) return engine.error();
    auto options = dsm::MemoryOptions::from_settings();
    if (!options) return options.error();
    // The tests measure what crosses: a page that one node writes again and again would not.
    options->exclusive = false;
    dsm::SpaceShape shape;
    shape.nodes = rig.plan().nodes;
    shape.stack_bytes = std::size_t{2} << 20;
    shape.early_bytes = shape.stack_bytes;
    shape.heap_bytes = area_bytes + round_up(rig.bytes(), page_bytes);
    shape.block_bytes = (*engine)->facts().block_bytes;

    auto made = std::unique_ptr<MemoryRig>(new MemoryRig(rig));
    made->map_ = std::make_unique<dsm::AddressMap>(shape);
    auto memory =
        dsm::SharedMemory::create(rig.endpoint(), *made->map_, std::move(*engine), *options);
    if (!memory) return memory.error();
    made->memory_ = std::move(*memory);
    made->payer_ = std::make_unique<dsm::DebtPayer>(rig.endpoint());
    auto locks = dsm::LockTable::create(rig.endpoint(), *made->memory_, *made->payer_);
    if (!locks) return locks.error();
    made->locks_ = std::move(*locks);
    const std::size_t nodes = rig.plan().nodes;
    made->news_.resize(nodes * made->memory_->news_bytes_max());
    made->told_.resize(nodes);
    made->heard_.resize(nodes);
    return made;
}

void MemoryRig::attach() {
    dsm::give_alternate_stack();
    this_thread().global_thread = rig_.self();
    locks_->attach();
    payer_->start();
    if (auto attached = memory_->attach({}); !attached)
        fatal("the shared memory of a measurement: %s", attached.error().text.c_str());
    rig_.collectives().barrier();
}

std::byte* MemoryRig::area() const {
    return reinterpret_cast<std::byte*>(map_->heap_arena(NodeId{0}).address);
}

void MemoryRig::synchronize(dsm::Others others) {
    const std::uint32_t nodes = rig_.plan().nodes;
    const std::size_t news_max = memory_->news_bytes_max();
    memory_->release(others);
    std::uint32_t most = 0;
    for (std::uint32_t peer = 0; peer < nodes; ++peer) {
        if (peer == rig_.self()) continue;
        const MutableBytes news{news_.data() + peer * news_max, news_max};
        const std::size_t bytes = memory_->news_for(NodeId{peer}, news);
        told_[peer].bytes = static_cast<std::uint32_t>(bytes);
        most = std::max(most, told_[peer].bytes);
        std::memcpy(told_[peer].news, news.data(), std::min(bytes, sizeof Piece::news));
    }
    for (Piece& piece : told_) piece.most = most;
    rig_.collectives().all_to_all(std::as_bytes(std::span{told_}),
                                  std::as_writable_bytes(std::span{heard_}), sizeof(Piece));
    for (const Piece& piece : heard_) most = std::max(most, piece.most);
    const bool longer = most > sizeof Piece::news;
    if (longer) exchange_long_news(most);
    for (std::uint32_t peer = 0; peer < nodes; ++peer) {
        if (peer == rig_.self()) continue;
        const std::byte* const news =
            longer ? in_.data() + std::size_t{peer} * most : heard_[peer].news;
        memory_->learn(NodeId{peer}, {news, heard_[peer].bytes});
    }
    memory_->acquire(others);
    memory_->everyone_knows();
    if (others == dsm::Others::running) return;
    synchronizes_at(SyncKind::barrier, this);
    memory_->bring_expected();
}

void MemoryRig::exchange_long_news(std::size_t most) {
    const std::uint32_t nodes = rig_.plan().nodes;
    out_.resize(nodes * most);
    in_.resize(nodes * most);
    for (std::uint32_t peer = 0; peer < nodes; ++peer) {
        if (peer == rig_.self()) continue;
        std::memcpy(out_.data() + peer * most, news_.data() + peer * memory_->news_bytes_max(),
                    told_[peer].bytes);
    }
    rig_.collectives().all_to_all(out_, in_, most);
}

std::unique_ptr<RawPages> MemoryRig::raw_pages(std::size_t pages) {
    auto raw = RawPages::create(engine(), block_bytes(), pages);
    if (!raw) fatal("%s", raw.error().text.c_str());
    return std::move(*raw);
}

}  // namespace hiroba::tools::perf_parts
