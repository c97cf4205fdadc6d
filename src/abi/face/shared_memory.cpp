// SPDX-License-Identifier: BSD-3-Clause
// Role: the C++ face over the layers: puts one SPMD node together and converts calls.
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>
#include <string>
#include <thread>

#include "abi/face/program_calls.hpp"
#include "base/fatal.hpp"
#include "base/program_threads.hpp"
#include "base/service_thread.hpp"
#include "base/settings.hpp"
#include "base/sync_place.hpp"
#include "base/thread_context.hpp"
#include "dsm/dsm.hpp"
#include "dsm/heap/heap.hpp"
#include "dsm/memory/reserved_range.hpp"
#include "dsm/sync/lock_table.hpp"
#include "dsm/sync/news_barrier.hpp"
#include "dsm/sync/sync_table.hpp"
#include "hiroba/dsm.hpp"
#include "net/bootstrap/joined_job.hpp"
#include "net/kick/kick.hpp"
#include "net/loss_watch.hpp"
#include "net/net.hpp"
#include "omp/messages.hpp"

namespace hiroba {

namespace {

/// How long a node that leaves looks after what it sent.
constexpr std::uint64_t drain_ns = 1'000'000'000;

class SpmdNode final : public SharedMemory {
public:
    Result<void> start();
    ~SpmdNode() override;

    unsigned node() const noexcept override { return job_.self.value; }
    unsigned nodes() const noexcept override { return job_.nodes; }
    void* allocate(std::size_t bytes, std::size_t alignment) noexcept override;
    void deallocate(void* memory) noexcept override;
    void barrier() noexcept override;
    void all_gather(std::uint64_t value, std::uint64_t* all) noexcept override;
    std::uint64_t broadcast(std::uint64_t value, unsigned from) noexcept override;
    void lock(std::uint64_t key) noexcept override;
    bool try_lock(std::uint64_t key) noexcept override;
    void unlock(std::uint64_t key) noexcept override;
    void flush() noexcept override;
    void atomically(std::uint64_t* word, void (*operation)(std::uint64_t*, void*),
                    void* argument) noexcept override;
    Counts counts() const noexcept override;

private:
    Result<void> compose();
    std::span<const dsm::NewsBarrier::Word> meet(std::uint64_t value,
                                                 const CollectiveCall& call) noexcept;

    net::JobInfo job_;
    std::unique_ptr<net::ControlChannel> control_;
    std::unique_ptr<net::Endpoint> endpoint_;
    std::unique_ptr<net::LossWatch> losses_;
    std::unique_ptr<dsm::AddressMap> map_;
    std::unique_ptr<dsm::SharedMemory> memory_;
    std::unique_ptr<dsm::DebtPayer> payer_;
    std::unique_ptr<dsm::SyncTable> objects_;  ///< of locks, where there are many
    std::unique_ptr<dsm::LockTable> locks_;
    std::unique_ptr<dsm::Heap> heap_;
    std::unique_ptr<net::kick::Board> board_;  ///< null where no peer is mapped
    std::unique_ptr<net::kick::Mailboxes> mail_;
    std::unique_ptr<dsm::NewsBarrier> barrier_;
    HeldLocks held_;
    ProgramThreads threads_;
    std::thread service_;
};

Result<void> SpmdNode::start() {
    auto job = net::join_job_info();
    if (!job) return job.error();
    job_ = *job;
    char host[HOST_NAME_MAX + 1] = {};
    ::gethostname(host, sizeof host - 1);
    set_identity(job_.self.value, host);
    control_ = std::make_unique<net::ControlChannel>(job_);
    if (auto done = compose(); !done) return done;
    dsm::give_alternate_stack();
    this_thread().global_thread = job_.self.value * job_.threads_per_node;
    service_ = start_service_thread("serves other nodes", [this] { endpoint_->serve(); });
    if (auto met = control_->barrier(); !met) return met;
    auto losses = net::LossWatch::start(job_, endpoint_->provider());
    if (!losses) return losses.error();
    losses_ = std::move(*losses);
    return {};
}

Result<void> SpmdNode::compose() {
    auto engine = dsm::make_fault_engine(setting("HIROBA_FAULT_ENGINE"));
    if (!engine) return engine.error();
    const auto heap_bytes = setting_number("HIROBA_HEAP");
    if (!heap_bytes) return heap_bytes.error();
    const auto options = dsm::MemoryOptions::from_settings();
    if (!options) return options.error();

    dsm::SpaceShape shape;
    shape.nodes = job_.nodes;
    shape.heap_bytes = *heap_bytes;
    shape.block_bytes = (*engine)->facts().block_bytes;
    map_ = std::make_unique<dsm::AddressMap>(shape);
    // A program started with the runtime preloaded has reserved them before.
    if (const int error = dsm::reserve_range(map_->main_range()); error != 0 && error != EEXIST)
        return Error{ErrorKind::environment, std::to_string(map_->main_range().bytes) +
                                                 " bytes for global memory refused"
                                                 " (error " +
                                                 std::to_string(error) +
                                                 "): raise ulimit -v, or lower HIROBA_HEAP"};
    auto endpoint = net::Endpoint::open(job_, *control_);
    if (!endpoint) return endpoint.error();
    endpoint_ = std::move(*endpoint);
    auto memory = dsm::SharedMemory::create(*endpoint_, *map_, std::move(*engine), *options);
    if (!memory) return memory.error();
    memory_ = std::move(*memory);
    payer_ = std::make_unique<dsm::DebtPayer>(*endpoint_);
    auto locks = dsm::LockTable::create(*endpoint_, *memory_, *payer_);
    if (!locks) return locks.error();
    locks_ = std::move(*locks);
    auto objects = dsm::SyncTable::create(*endpoint_, *memory_, *payer_);
    if (!objects) return objects.error();
    objects_ = std::move(*objects);
    locks_->overflow_to(*objects_);
    const auto keep_freed = setting_number("HIROBA_KEEP_FREED");
    if (!keep_freed) return keep_freed.error();
    auto heap = dsm::Heap::create(*endpoint_, *map_, *memory_, {*keep_freed});
    if (!heap) return heap.error();
    heap_ = std::move(*heap);

    auto board = net::kick::Mailboxes::make_board(*endpoint_, job_.job_key);
    if (!board) return board.error();
    board_ = std::move(*board);
    auto mail = net::kick::Mailboxes::create(*endpoint_, board_.get(), omp::message::team_news);
    if (!mail) return mail.error();
    mail_ = std::move(*mail);
    auto barrier = dsm::NewsBarrier::create(*endpoint_, *memory_, *heap_, *mail_, [this] {
        return threads_.is_caller_alone() ? dsm::Others::stopped : dsm::Others::running;
    });
    if (!barrier) return barrier.error();
    barrier_ = std::move(*barrier);
    if (auto done = endpoint_->connect(); !done) return done;
    locks_->attach();
    objects_->attach();
    payer_->start();
    heap_->attach();
    if (board_ != nullptr) board_->attach();
    mail_->attach();
    dsm::report_races(*memory_, *control_);
    return memory_->attach({});
}

SpmdNode::~SpmdNode() {
    if (!service_.joinable()) return;
    held_.before_leaving();
    meet(0, {CollectiveCall::Kind::leave});
    dsm::report_counts(*memory_, *control_);
    control_->report_leaving();
    endpoint_->drain(drain_ns);
    endpoint_->stop();
    service_.join();
}

void* SpmdNode::allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (!std::has_single_bit(alignment)) {
        say("allocate(): the alignment %lu is no power of two: nothing is allocated", alignment);
        return nullptr;
    }
    bool zeroed = false;
    void* const memory = heap_->allocate(bytes, alignment, &zeroed);
    if (memory != nullptr && !zeroed) std::memset(memory, 0, bytes);
    return memory;
}

void SpmdNode::deallocate(void* memory) noexcept {
    if (memory == nullptr) return;
    if (!heap_->owns(memory)) {
        die(exit_program, "deallocate(%p): no shared memory that allocate() gave", memory);
    }
    heap_->deallocate(memory);
}

void SpmdNode::lock(std::uint64_t key) noexcept {
    synchronizes_at(SyncKind::lock, __builtin_return_address(0));
    held_.before_lock(key);
    locks_->lock(key);
    held_.locked(key);
}

bool SpmdNode::try_lock(std::uint64_t key) noexcept {
    const bool is_locked = locks_->try_lock(key);
    if (is_locked) held_.locked(key);
    return is_locked;
}

void SpmdNode::unlock(std::uint64_t key) noexcept {
    synchronizes_at(SyncKind::lock, __builtin_return_address(0));
    held_.before_unlock(key);
    locks_->unlock(key);
}

std::span<const dsm::NewsBarrier::Word> SpmdNode::meet(std::uint64_t value,
                                                       const CollectiveCall& call) noexcept {
    const auto words = barrier_->meet({value, call.packed()});
    check_collective_calls(job_.self.value, words);
    return words;
}

void SpmdNode::barrier() noexcept {
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    meet(0, {CollectiveCall::Kind::barrier});
}

void SpmdNode::flush() noexcept {
    synchronizes_at(SyncKind::flush, __builtin_return_address(0));
    memory_->flush();
}

// `all` may lie in the shared memory, where a store before the acquire would be a race.
void SpmdNode::all_gather(std::uint64_t value, std::uint64_t* all) noexcept {
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    for (const auto& word : meet(value, {CollectiveCall::Kind::all_gather})) *all++ = word.value;
}

std::uint64_t SpmdNode::broadcast(std::uint64_t value, unsigned from) noexcept {
    if (from >= job_.nodes) {
        die(exit_program, "broadcast() from node %u: the job has %u nodes", from, job_.nodes);
    }
    synchronizes_at(SyncKind::barrier, __builtin_return_address(0));
    return meet(value, {CollectiveCall::Kind::broadcast, from})[from].value;
}

void SpmdNode::atomically(std::uint64_t* word, void (*operation)(std::uint64_t*, void*),
                          void* argument) noexcept {
    if (!memory_->enter_atomic(word, sizeof *word)) {
        die(exit_program, "atomically(%p): no shared memory that allocate() gave",
            static_cast<void*>(word));
    }
    operation(word, argument);
    memory_->leave_atomic(word, sizeof *word);
}

SharedMemory::Counts SpmdNode::counts() const noexcept {
    const dsm::MemoryCounts c = memory_->counts();
    return {c.read_faults + c.write_faults, c.bytes_fetched, c.blocks_merged, c.notices_made,
            c.invalidations};
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::open(std::string* why) {
    auto node = std::make_unique<SpmdNode>();
    if (auto started = node->start(); !started) {
        if (why != nullptr) *why = started.error().text;
        return nullptr;
    }
    return node;
}

}  // namespace hiroba
