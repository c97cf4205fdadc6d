// SPDX-License-Identifier: BSD-3-Clause
// Role: all contact with the machine's page tables: which pages the program may touch, and which
// it has written. Two engines behind one interface (docs/decisions/two-fault-engines.md).
// Invariant: an engine decides nothing; it knows neither nodes nor states of blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "dsm/memory/address_map.hpp"

namespace hiroba::dsm {

enum class Access : std::uint8_t {
    read,   ///< readable; the first write is noticed (by the kernel or as a fault)
    write,  ///< readable and writable, and counted as written from now on
};

/// Facts fixed at creation.
struct EngineFacts {
    const char* name;           ///< "uffd" or "mprotect"
    std::string why;            ///< one line: why this one was chosen
    std::size_t block_bytes;    ///< the block size it works best with
    bool write_faults;          ///< each first write to a readable page raises a fault of its own
    bool kept_always_reported;  ///< collect() reports every mapped page of kept ranges
};

/// Receives what collect() finds.
class WrittenSink {
public:
    virtual ~WrittenSink() = default;
    /// A range of pages written since the previous collect(), in ascending order of address; those
    /// that were left open come after the others, ascending likewise. No page comes twice.
    virtual void written(AddressRange range) noexcept = 0;
};

class FaultTarget;

/// Thread: map(), keep() and allow_execution() from any thread, also during the others; the rest
/// one thread at a time. After attach() nothing allocates or throws; map(), keep() and unmap() are
/// async-signal-safe. Ranges are whole blocks clipped to the extent they lie in; failures of the
/// kernel are fatal with the numbers (ENOMEM names vm.max_map_count).
///
/// A page that was mapped and not unmapped may fault nevertheless (evicted to swap, or given up
/// by the mprotect engine when the kernel's VMAs run out): the answer is to map it again. No write
/// is ever lost by it.
class FaultEngine {
public:
    virtual ~FaultEngine() = default;
    virtual const EngineFacts& facts() const noexcept = 0;

    /// Maps [memory_offset, + range.bytes) of `memory_fd` at `range`, replacing what is there;
    /// everything in it is inaccessible at first. `alias` is the same memory, always accessible.
    virtual Result<void> attach(AddressRange range, int memory_fd, std::uint64_t memory_offset,
                                std::byte* alias) = 0;
    /// Makes whole pages accessible. Mapping what is mapped already is harmless (it may raise
    /// read to write, never lower write to read).
    virtual void map(AddressRange range, Access access) noexcept = 0;
    /// Makes ranges inaccessible; the bytes stay in the memory. When the call returns no thread
    /// can read or write them without a fault.
    virtual void unmap(std::span<const AddressRange> ranges) noexcept = 0;
    /// Whether a page of `range` is gone that only map() brings back. Thread: any.
    virtual bool lacks_page(AddressRange) const noexcept { return false; }
    /// Marks whole pages as never to become inaccessible or lose write access except by unmap() or
    /// watch(): a live stack. map() with either access makes them writable. Where the facts say so,
    /// collect() then reports them each time; otherwise they are tracked as all others are.
    virtual void keep(AddressRange) noexcept {}
    /// What the program writes into whole pages, which are writable, need not be reported from now
    /// on, until track(). They stay as they are otherwise. Thread: any, with what keeps other calls
    /// from these pages.
    virtual void leave_untracked(AddressRange) noexcept {}
    /// Ends that: the pages count as written.
    virtual void track(AddressRange) noexcept {}
    /// What was written into whole pages that are tracked need not be reported, only what comes
    /// later. Thread: as track()'s.
    virtual void forget_writes(AddressRange) noexcept {}
    /// Whole pages that the last collect() has reported hold what they held before. Thread: as
    /// collect()'s.
    virtual void unchanged(AddressRange) noexcept {}
    /// Whole pages that collect() has reported and that were not written: they need not be reported
    /// before they are. Ends keep(). Thread: the collector's, with what keeps other calls from
    /// these pages.
    virtual void watch(AddressRange) noexcept {}
    /// Whole pages of which none is writable: each write to any of them is a fault until unseal(),
    /// whatever map() says, and one of the kernel's fails. False: it cannot be done. Thread: any,
    /// with what keeps others from seal() and unseal() of these pages.
    virtual bool seal(AddressRange) noexcept { return false; }
    virtual void unseal(AddressRange) noexcept {}
    /// The engine may change how it learns of writes. Thread: the collector's, right after
    /// collect(), while no thread of the program runs.
    virtual void adapt() noexcept {}
    /// From now on what is accessible of `range` may be executed as well (code on stacks).
    virtual void allow_execution(AddressRange) noexcept {}
    /// Reports every page written since the last collect() and makes their next write noticed
    /// again, or leaves them open: they are then reported each time, until watch(). A write that
    /// races with the call is reported by this or the next collect(). Pages not mapped at present
    /// may be reported too; the caller filters. So may those that were written before some of the
    /// last collects, though not before this one: the caller says unchanged().
    virtual void collect(WrittenSink& sink) noexcept = 0;
    /// False: no thread's write was noticed but what a collect() or unmap() that has begun takes
    /// care of. Thread: any.
    virtual bool has_written() const noexcept { return true; }

    /// Has `target` resolve faults, until end_faults(). Before the first attach(). Here the
    /// process's signal handlers ask it for any address (add_fault_target()); an engine whose
    /// accesses are calls (test/sim) asks it itself, so that many nodes can have equal addresses.
    virtual void begin_faults(FaultTarget& target) noexcept;
    virtual void end_faults(FaultTarget& target) noexcept;
};

/// Why each engine is usable on this machine or not, found by trying.
struct EngineProbe {
    bool usable = false;
    std::string reason;
};
EngineProbe probe_uffd();  ///< userfaultfd with MINOR and asynchronous write protection
EngineProbe probe_mprotect();

/// Chooses: `wanted` is "auto", "uffd" or "mprotect" (setting HIROBA_FAULT_ENGINE). An unusable
/// wish is an environment error that says why.
Result<std::unique_ptr<FaultEngine>> make_fault_engine(std::string_view wanted);

/// Resolves faults in attached ranges.
class FaultTarget {
public:
    virtual ~FaultTarget() = default;
    /// In the faulting thread, on its alternate signal stack. Returns false when the address is
    /// not its business (the fault then goes to the program's handler or the default action).
    virtual bool on_fault(std::uintptr_t address, bool write) noexcept = 0;
    /// Asked first, of every address: maps the page again if it always is accessible, so that only
    /// the kernel can have taken the mapping away (memory was short). The faulting thread's own TLS
    /// may lie there: what this calls uses none. False: it was something else.
    virtual bool restore(std::uintptr_t) noexcept { return false; }
};

/// Installs the SIGBUS and SIGSEGV handlers that ask the targets in turn. A target is asked for
/// any address; up to 64 targets (several nodes in one process in tests). Errno is preserved. A
/// fault in the course of on_fault() is fatal. What all refuse goes to the program's action.
void add_fault_target(FaultTarget& target) noexcept;
void remove_fault_target(FaultTarget& target) noexcept;

/// Memory for a private alternate signal stack, above a page that is never accessible.
AddressRange map_alternate_stack() noexcept;
/// From here on the calling thread takes its signals there; on no other thread's meanwhile.
void use_alternate_stack(AddressRange memory) noexcept;
/// Both, for a thread that never ends; once per thread.
void give_alternate_stack() noexcept;

/// What the program asked for with sigaction on SIGBUS and SIGSEGV (abi/libc interposes it):
/// faults that no FaultTarget resolves go there. Returns the former one through `old`.
struct ProgramAction;  // = struct sigaction, kept out of this header
void set_program_action(int signal_number, const void* action, void* old) noexcept;

}  // namespace hiroba::dsm
