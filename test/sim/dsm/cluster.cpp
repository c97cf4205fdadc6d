// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dsm/cluster.hpp"

#include <cstring>
#include <utility>

namespace hiroba::sim_test {

namespace {

using dsm::Others;

dsm::SpaceShape shape_of(const ClusterOptions& options) {
    dsm::SpaceShape shape;
    shape.nodes = options.nodes;
    shape.threads_per_node = options.threads_of_first;
    shape.stack_bytes = 2 * page_bytes;
    shape.early_bytes = page_bytes;
    shape.heap_bytes = 4 * page_bytes;
    return shape;
}

template <class T>
T must(Result<T> result) {
    if (!result) fatal("%s", result.error().text.c_str());
    return std::move(*result);
}

}  // namespace

// --- a node --------------------------------------------------------------------------------------

ClusterNode::ClusterNode(Cluster& cluster, NodeId self) : cluster_(cluster), self_(self) {}

void ClusterNode::connect() {
    endpoint_ = cluster_.job().open(self_);
    SoftwareEngineOptions options = cluster_.options().engine;
    options.steps &= cluster_.threads_of(self_.value) > 1;  // no other thread uses a node's pages
    auto engine = std::make_unique<SoftwareEngine>(cluster_.scheduler(), options);
    engine_ = engine.get();
    memory_ = must(dsm::SharedMemory::create(*endpoint_, cluster_.map(), std::move(engine),
                                             cluster_.options().memory));
    if (cluster_.options().with_locks) {
        payer_ = std::make_unique<dsm::DebtPayer>(*endpoint_);
        locks_ = must(dsm::LockTable::create(*endpoint_, *memory_, *payer_));
    }
    if (cluster_.options().with_objects)
        objects_ = must(dsm::SyncTable::create(*endpoint_, *memory_, *payer_));
    news_ = std::make_unique<NewsExchange>(*endpoint_, *memory_);
    if (const auto connected = endpoint_->connect(); !connected) {
        fatal("%s", connected.error().text.c_str());
    }
    if (locks_ != nullptr) locks_->attach();
    if (objects_ != nullptr) objects_->attach();
    if (const auto attached = memory_->attach({}); !attached) {
        fatal("%s", attached.error().text.c_str());
    }
}

void ClusterNode::stop() {
    if (payer_ != nullptr) {
        payer_->stop();
        endpoint_->wake_local();
    }
    endpoint_->stop();
}

std::uint64_t ClusterNode::load(std::uintptr_t address, std::size_t bytes) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, engine_->touch(address, false), bytes);
    return value;
}

void ClusterNode::store(std::uintptr_t address, std::size_t bytes, std::uint64_t value) noexcept {
    std::memcpy(engine_->touch(address, true), &value, bytes);
}

std::uint64_t ClusterNode::time_ns() noexcept { return cluster_.scheduler().time_ns(); }

void ClusterNode::lend_to_kernel(std::uintptr_t address, bool lent) noexcept {
    engine_->hold(address, lent);
}

bool ClusterNode::kernel_fills(std::uintptr_t address, std::size_t bytes,
                               std::uint64_t value) noexcept {
    std::byte* const at = engine_->kernel_touch(address, true);
    if (at != nullptr) std::memcpy(at, &value, bytes);
    return at != nullptr;
}

bool ClusterNode::kernel_reads(std::uintptr_t address, std::size_t bytes,
                               std::uint64_t& value) noexcept {
    const std::byte* const at = engine_->kernel_touch(address, false);
    value = 0;
    if (at != nullptr) std::memcpy(&value, at, bytes);
    return at != nullptr;
}

bool ClusterNode::come(std::uint32_t threads) noexcept {
    if (++come_ == threads) return true;
    const std::uint64_t meeting = meetings_;
    while (meetings_ == meeting) {
        waiting_.push_back(&cluster_.scheduler().running());
        cluster_.scheduler().park(~std::uint64_t{0});
    }
    return false;
}

void ClusterNode::leave() noexcept {
    come_ = 0;
    ++meetings_;
    for (net::sim::Fiber* fiber : std::exchange(waiting_, {})) cluster_.scheduler().wake(*fiber);
}

dsm::Others ClusterNode::at_release() noexcept {
    const bool still = cluster_.scheduler().random().happens(50);
    return still ? Others::stopped : Others::running;
}

void ClusterNode::barrier(std::uint32_t threads) noexcept {
    if (!come(threads)) return;
    news_->barrier(at_release());
    leave();
}

void ClusterNode::serial(std::uint32_t threads, const std::function<void()>& alone) noexcept {
    if (!come(threads)) return;
    news_->serial(at_release(), alone);
    leave();
}

// --- the cluster ---------------------------------------------------------------------------------

Cluster::Cluster(net::sim::FiberStacks& stacks, const ClusterOptions& options)
    : options_(options),
      job_(stacks, options.nodes, options.scheduling, options.wire),
      map_(shape_of(options)) {
    for (std::uint32_t rank = 0; rank < options.nodes; ++rank) {
        nodes_.push_back(std::make_unique<ClusterNode>(*this, NodeId{rank}));
    }
}

Cluster::~Cluster() = default;

net::sim::Scheduler::Outcome Cluster::run(
    const std::function<void(std::uint32_t, ClusterNode&)>& program) {
    running_ = threads();
    return job_.run([&](NodeId self) {
        ClusterNode& node = *nodes_[self.value];
        node.connect();
        job_.gather(self, {});
        for (std::uint32_t thread = 0; thread < threads(); ++thread) {
            if (node_of(thread) != self.value) continue;
            scheduler().spawn(self, [&, thread] {
                program(thread, node);
                // Nodes serve each other until the last thread of the last one is done.
                if (--running_ == 0) {
                    for (const auto& each : nodes_) each->stop();
                }
            });
        }
        if (node.payer_ != nullptr) scheduler().spawn(self, [&node] { node.payer_->work(); });
        if (options_.with_payers) scheduler().spawn(self, [&] { pay_until_the_end(node); });
        node.endpoint_->serve();
    });
}

// What the thread of a real node does that makes the releases which others want.
void Cluster::pay_until_the_end(ClusterNode& node) {
    if (options_.payer_comes) options_.payer_comes(node);
    while (running_ > 0) {
        if (node.memory().has_to_pay()) {
            node.memory().pay();
        } else if (options_.payer_comes) {
            scheduler().pass();
        } else {
            scheduler().work(pay_ns);
        }
    }
}

dsm::NodeView::RowCounts Cluster::rows() const {
    dsm::NodeView::RowCounts sum{};
    for (const auto& node : nodes_) {
        if (node->memory_ == nullptr) continue;
        const dsm::NodeView::RowCounts rows = node->coherence().rows();
        for (unsigned state = 0; state < dsm::block_states; ++state) {
            for (unsigned event = 0; event < dsm::block_events; ++event) {
                sum[state][event] += rows[state][event];
            }
        }
    }
    return sum;
}

}  // namespace hiroba::sim_test
