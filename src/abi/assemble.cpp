// SPDX-License-Identifier: BSD-3-Clause
// Role: assembles a node, in the order the design gives: decide sizes, register memory, connect,
// attach, make the program's bytes global, rewrite its atomics.
// Invariant: world() is set last, when malloc may hand out global memory.
#include "abi/assemble.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "abi/global_objects.hpp"
#include "abi/gomp/runtime.hpp"
#include "abi/libc/files/remote_files.hpp"
#include "abi/libc/memory/early_mappings.hpp"
#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/memory/memory_of_others.hpp"
#include "abi/libc/memory/shared_files.hpp"
#include "abi/libc/process/first_thread.hpp"
#include "abi/libc/process/job_end.hpp"
#include "abi/libc/process/process_state.hpp"
#include "abi/libc/process/signals.hpp"
#include "abi/libc/process/stack_end.hpp"
#include "abi/libc/process/thread_attributes.hpp"
#include "abi/libc/process/thread_signals.hpp"
#include "abi/libc/threads/threads.hpp"
#include "abi/ompt/entry_points.hpp"
#include "abi/space_shape.hpp"
#include "abi/streams.hpp"
#include "abi/world.hpp"
#include "base/fatal.hpp"
#include "base/log.hpp"
#include "base/service_thread.hpp"
#include "base/thread_context.hpp"
#include "dsm/memory/fault_engine.hpp"
#include "omp/process/fingerprint.hpp"
#include "omp/process/node_threads.hpp"
#include "omp/tool/tool_runtime.hpp"

namespace hiroba::abi {
namespace {

omp::Parts::Regions where_regions_run() {
    using enum omp::Parts::Regions;
    const std::string_view wanted = setting("HIROBA_REGIONS");
    return wanted == "auto" ? best : wanted == "turns" ? turns : spread;
}

/// Ends the process on all nodes when they cannot run one program together. One node speaks: the
/// first that differs; the others wait until the launcher ends them.
/// @return what node 0 has mapped early
Result<EarlyMappings::Ranges> compare_processes(World& node,
                                                std::span<const omp::LoadedObject> objects) {
    struct Greeting {
        std::uint64_t digest;
        ProcessPlace place;
        EarlyMappings::Ranges early;  ///< node 0's is what counts
    };
    const auto mine = std::make_unique<omp::Fingerprint>(
        omp::take_fingerprint(objects, node.job.threads_per_node));
    const Greeting greeting{omp::digest_of(*mine), own_process_place(),
                            early_mappings().announce()};
    auto greetings = node.control->all_gather(std::as_bytes(std::span(&greeting, 1)), -1);
    if (!greetings) return greetings.error();
    Greeting from_node_0;
    std::memcpy(&from_node_0, greetings->bytes[0].data(), sizeof from_node_0);
    if (node.job.self.value != 0)
        learn_program_process(static_cast<pid_t>(from_node_0.place.process));
    explain_memory_of(from_node_0.place);
    std::vector<ProcessPlace> places;
    for (const auto& bytes : greetings->bytes) {
        Greeting each;
        std::memcpy(&each, bytes.data(), sizeof each);
        places.push_back(each.place);
    }
    learn_process_places(places);
    const auto as_node_0 = [&](const std::vector<std::byte>& bytes) {
        return std::memcmp(bytes.data(), &from_node_0.digest, sizeof from_node_0.digest) == 0;
    };
    if (std::ranges::all_of(greetings->bytes, as_node_0)) return from_node_0.early;

    // All nodes see that one of them differs.
    auto all = node.control->all_gather(std::as_bytes(std::span(mine.get(), 1)), -1);
    if (!all) return all.error();
    const auto first = std::make_unique<omp::Fingerprint>();
    const auto other = std::make_unique<omp::Fingerprint>();
    std::memcpy(first.get(), all->bytes[0].data(), sizeof *first);
    for (std::uint32_t rank = 1; rank < node.job.nodes; ++rank) {
        std::memcpy(other.get(), all->bytes[rank].data(), sizeof *other);
        const auto difference = omp::first_difference(*first, *other, rank);
        if (!difference) continue;
        if (rank == node.job.self.value) return Error{ErrorKind::environment, *difference};
        if (auto waited = node.control->barrier(); !waited) return waited.error();
        return Error{ErrorKind::environment, *difference};
    }
    return from_node_0.early;
}

void describe(const World& node) noexcept {
    if (node.job.self.value != 0) return;
    const dsm::EngineFacts& engine = node.memory->engine();
    log(LogLayer::abi, LogLevel::info, "%u nodes of %u threads, provider %s", node.job.nodes,
        node.job.threads_per_node, std::string(setting("HIROBA_PROVIDER")).c_str());
    log(LogLayer::dsm, LogLevel::info, "fault engine %s: %s; blocks of %zu bytes", engine.name,
        engine.why.c_str(), engine.block_bytes);
}

/// Creates all layers that register memory, in the one order all nodes share.
Result<void> create_layers(World& node, std::unique_ptr<dsm::FaultEngine> engine) {
    auto endpoint = net::Endpoint::open(node.job, *node.control);
    if (!endpoint) return endpoint.error();
    node.endpoint = std::move(*endpoint);
    listen_for_exits(*node.endpoint);

    const auto options = dsm::MemoryOptions::from_settings();
    if (!options) return options.error();
    auto memory = dsm::SharedMemory::create(*node.endpoint, *node.map, std::move(engine), *options);
    if (!memory) return memory.error();
    node.memory = std::move(*memory);
    dsm::report_races(*node.memory, *node.control);
    node.memory->before_release(&flush_output);

    node.payer = std::make_unique<dsm::DebtPayer>(*node.endpoint);
    auto locks = dsm::LockTable::create(*node.endpoint, *node.memory, *node.payer);
    if (!locks) return locks.error();
    node.locks = std::move(*locks);

    auto sync = dsm::SyncTable::create(*node.endpoint, *node.memory, *node.payer);
    if (!sync) return sync.error();
    node.sync = std::move(*sync);
    const dsm::Interruptions signals{&is_signal_deferred, &let_signals_in};
    node.locks->overflow_to(*node.sync);
    node.locks->interrupt_waits_for(signals);
    node.sync->interrupt_waits_for(signals);

    const auto keep_freed = setting_number("HIROBA_KEEP_FREED");
    if (!keep_freed) return keep_freed.error();
    auto heap = dsm::Heap::create(*node.endpoint, *node.map, *node.memory, {*keep_freed});
    if (!heap) return heap.error();
    node.heap = std::move(*heap);

    node.files = std::make_unique<RemoteFiles>(*node.endpoint);
    node.flusher = std::make_unique<dsm::BackgroundFlusher>(*node.memory);
    auto board = net::kick::Mailboxes::make_board(*node.endpoint, node.job.job_key);
    if (!board) return board.error();
    node.board = std::move(*board);
    auto runtime =
        omp::create_runtime({.endpoint = node.endpoint.get(),
                             .memory = node.memory.get(),
                             .locks = node.locks.get(),
                             .heap = node.heap.get(),
                             .board = node.board.get(),
                             .flusher = node.flusher.get(),
                             .threads_per_node = node.job.threads_per_node,
                             .threads_per_node_max = node.map->shape().threads_per_node,
                             .regions = where_regions_run(),
                             .start_thread = &start_another_thread,
                             .show_affinity = &show_affinity,
                             .flush_streams = &flush_streams,
                             .publish_process = &publish_process_state,
                             .apply_process = &apply_process_state,
                             .inheritance = {&attributes_of_this_thread, &take_over_attributes},
                             .interruptions = signals,
                             .own_interruptions = {&are_letters_waiting, &let_signals_in}},
                            &find_tool_entry_point);
    if (!runtime) return runtime.error();
    node.omp = std::move(*runtime);
    return {};
}

/// Before the image that the early mappings are is adopted.
Result<void> give_over_early(const World& node, dsm::AddressRange image) {
    if (!early_mappings().is_agreed(image)) return {};
    const int error = early_mappings().give_over(image, node.job.self.value == 0);
    if (error == 0) return {};
    char text[256];
    std::snprintf(text, sizeof text,
                  "%zu bytes at 0x%lx, where libraries have mapped memory before the program "
                  "starts, cannot be made accessible: %s; %s",
                  image.bytes, image.address, std::strerror(error),
                  error == EEXIST ? "something else lies there" : "raise ulimit -d and -v");
    return Error{ErrorKind::environment, text};
}

/// From here on the program's bytes are global.
Result<void> attach_layers(World& node) {
    if (auto connected = node.endpoint->connect(); !connected) return connected;
    if (auto attached = node.memory->attach(early_allocations()); !attached) return attached;
    node.locks->attach();
    node.sync->attach();
    node.payer->start();
    node.heap->attach();
    if (node.board != nullptr) node.board->attach();
    node.omp->attach();

    for (std::size_t i = 0; i < node.map->images(); ++i) {
        const dsm::AddressRange image = node.map->image(i);
        if (auto given = give_over_early(node, image); !given) return given;
        if (auto adopted = node.memory->adopt(image); !adopted) return adopted;
        log(LogLayer::dsm, LogLevel::debug, "image 0x%lx, %zu bytes, is global", image.address,
            image.bytes);
    }
    return {};
}

/// The launcher's barrier. Where operations on this node's memory need its help, it gives that help
/// to nodes that have not arrived.
Result<void> arrive(World& node) {
    if (node.endpoint->provider().limits().completes_inline) return node.control->barrier();
    std::atomic<bool> over{false};
    std::thread carrier = start_service_thread("serves nodes while this one waits for them", [&] {
        node.endpoint->wait_until([&] { return over.load(); });
    });
    auto arrived = node.control->barrier();
    over.store(true);
    node.endpoint->wake_local();
    carrier.join();
    return arrived;
}

Result<std::unique_ptr<dsm::AddressMap>> make_map(const net::JobInfo& job, std::size_t block_bytes,
                                                  std::span<const omp::LoadedObject> objects,
                                                  const EarlyMappings::Ranges& early) {
    auto shape = space_shape(job.nodes, job.threads_per_node);
    if (!shape) return shape.error();
    shape->block_bytes = block_bytes;
    auto map = std::make_unique<dsm::AddressMap>(*shape);
    for (const dsm::AddressRange& each : early) {
        if (each.bytes == 0) continue;
        if (auto added = map->add_image(each); !added) return added.error();
    }
    for (const omp::LoadedObject& object : objects) {
        if (!object.is_global()) continue;
        for (const dsm::AddressRange& range : object.writable) {
            if (auto added = map->add_image(range); !added) {
                return Error{added.error().kind, object.path + ": " + added.error().text};
            }
        }
    }
    return map;
}

}  // namespace

World::World() = default;
World::~World() = default;

Result<void> assemble_alone(const net::JobInfo& job) {
    auto node = std::make_unique<World>();
    node->job = job;
    node->control = std::make_unique<net::ControlChannel>(job);
    auto runtime = omp::create_runtime({.threads_per_node = job.threads_per_node,
                                        .show_affinity = &show_affinity,
                                        .flush_streams = &flush_streams},
                                       &find_tool_entry_point);
    if (!runtime) return runtime.error();
    node->omp = std::move(*runtime);
    node->omp->attach();
    set_world(node.release());
    return {};
}

Result<void> assemble_node(const net::JobInfo& job, std::span<const omp::LoadedObject> objects) {
    auto node = std::make_unique<World>();
    node->job = job;
    node->control = std::make_unique<net::ControlChannel>(job);
    const auto early = compare_processes(*node, objects);
    if (!early) return early.error();
    early_mappings().agree_on(*early);

    auto engine = dsm::make_fault_engine(setting("HIROBA_FAULT_ENGINE"));
    if (!engine) return engine.error();
    auto map = make_map(job, (*engine)->facts().block_bytes, objects, *early);
    if (!map) return map.error();
    node->map = std::move(*map);
    show_stack_end(node->map->stack_slice(0).end());

    // Faults begin with attach(), on this thread too.
    dsm::give_alternate_stack();
    if (auto created = create_layers(*node, std::move(*engine)); !created) return created;
    if (auto attached = attach_layers(*node); !attached) return attached;
    allow_code_on_stacks(*node, objects);
    if (auto reserved = node->library_range.reserve(); !reserved)
        log(LogLayer::abi, LogLevel::info, "dlopen: %s", reserved.error().text.c_str());
    if (auto rewritten = rewrite_atomics(*node, objects); !rewritten) return rewritten.error();
    if (auto arrived = arrive(*node); !arrived) return arrived;
    auto losses = net::LossWatch::start(node->job, node->endpoint->provider());
    if (!losses) return losses.error();
    node->losses = std::move(*losses);
    describe(*node);
    tell_private_libraries(*node, objects);
    set_world(node.release());
    return {};
}

}  // namespace hiroba::abi
