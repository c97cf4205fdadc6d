// SPDX-License-Identifier: BSD-3-Clause
// Role: one trampoline, instruction by instruction, and the memory they lie in.
// Invariant: from its first to its last byte a trampoline keeps the red zone, and has the
// program's registers, flags and stack pointer in place wherever the program's instruction runs.
#include "omp/atomic/trampoline.hpp"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/atomic_window.hpp"
#include "base/fatal.hpp"
#include "dsm/dsm.hpp"
#include "omp/atomic/machine_code.hpp"
#include "omp/atomic/wait_loops.hpp"
#include "omp/process/process_maps.hpp"

namespace hiroba::omp {
namespace {

/// The beginning of every zone; trampolines address it relative to themselves.
struct ZoneConstants {
    std::uint64_t before;
    std::uint64_t after;
    std::uint64_t passes;  ///< OwnAtomics::passes
    struct Hull {
        std::uint64_t low, high;
    } hulls[hulls_max];
};

constexpr std::size_t trampoline_bytes_max = 704;  // the longest is about 650
constexpr std::size_t constants_bytes = round_up(sizeof(ZoneConstants), cache_line_bytes);

// Bytes between the program's stack pointer and ours: red zone, rax, rdi; then flags, address, and
// below them room for the vectors.
constexpr std::int32_t pushed_at_entry = 144;
constexpr std::int32_t pushed_at_hook = 160;

/// Free address space, from /proc/self/maps: the place nearest below the object, else the highest
/// above it that its displacements reach, but not where the stack grows.
std::optional<std::uintptr_t> find_room(dsm::AddressRange object, std::size_t bytes) {
    constexpr std::uintptr_t reach = (std::uintptr_t{2} << 30) - (std::uintptr_t{1} << 20);
    constexpr std::uintptr_t lowest = 0x10000;            // vm.mmap_min_addr
    constexpr std::uintptr_t highest = 0x7fff'ffff'f000;  // where programs' addresses end
    constexpr std::uintptr_t stack_growth = std::uintptr_t{64} << 20;
    const std::uintptr_t low = std::max(object.end() > reach ? object.end() - reach : 0, lowest);
    const std::uintptr_t high = std::min(object.address + reach, highest);

    std::optional<std::uintptr_t> below, above;
    std::uintptr_t gap_begin = low;
    const auto gap = [&](std::uintptr_t gap_end) {
        const std::uintptr_t end = round_down(std::min(gap_end, high), page_bytes);
        if (end < bytes || end - bytes < std::max(gap_begin, low)) return;
        const std::uintptr_t place = end - bytes;
        if (end <= object.address) {
            below = place;
        } else if (place >= object.end()) {
            above = place;
        }
    };
    for_each_mapping({low, high + stack_growth - low}, [&](const Mapping& mapping) {
        gap(mapping.range.address - (mapping.is_stack ? stack_growth : 0));
        gap_begin = std::max(gap_begin, mapping.range.end());
    });
    gap(high);
    return below ? below : above;
}

/// Back to the program's registers and flags; the stack is as behind the prologue.
void restore_from_entry(MachineCode& code) {
    code.bytes({0x04, 0x7f});                                      // add al, 127: OF
    code.bytes({0x9e});                                            // sahf: the other five
    code.bytes({0x5f, 0x58});                                      // pop rdi; pop rax
    code.bytes({0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00});  // lea rsp, [rsp + 128]
}

constexpr std::int32_t address_at = 0, flags_at = 8, rdi_at = 16, rax_at = 24;  // above the room

void restore_at_hook(MachineCode& code, std::int32_t room) {
    code.load_rax(room + flags_at);
    code.bytes({0x04, 0x7f, 0x9e});  // add al, 127; sahf
    code.load_rdi(room + rdi_at);
    code.load_rax(room + rax_at);
}

/// push rax (flags); push rdi (address); then the room in which `before` leaves the vectors.
void make_room(MachineCode& code, std::int32_t room) {
    code.bytes({0x50, 0x57});
    code.move_stack(-room);
}

void call_hook(MachineCode& code, const std::uint64_t* entry, const SiteRecord& record) {
    code.bytes({0x56});  // push rsi
    code.load_constant(reinterpret_cast<std::uintptr_t>(&record));
    code.call_constant(entry);
    code.bytes({0x5e});  // pop rsi
}

void run_and_return(MachineCode& code, const CodeSite& site) {
    restore_from_entry(code);
    code.copy(site, 0);
    code.jump(site.address + site.length);
}

/// Saves rax, rdi and the flags (in rax); rdi = the operand's address.
void enter_trampoline(MachineCode& code, const CodeSite& site) {
    code.bytes({0x48, 0x8d, 0x64, 0x24, 0x80});  // lea rsp, [rsp - 128]
    code.bytes({0x50, 0x57});                    // push rax; push rdi
    if (site.kind == SiteKind::atomic) code.load_address(site, pushed_at_entry);
    code.bytes({0x9f, 0x0f, 0x90, 0xc0});  // lahf; seto al
    if (site.bit_register >= 0) {
        code.bytes({0x56});  // push rsi
        code.add_bit_offset(site, 16, 8, 0);
        code.bytes({0x5e});  // pop rsi
    }
}

void flush_trampoline(MachineCode& code, const CodeSite& site, const SiteRecord& record,
                      const ZoneConstants& constants) {
    enter_trampoline(code, site);
    const std::int32_t room = vector_room_bytes();
    make_room(code, room);
    call_hook(code, &constants.before, record);
    code.load_rax(room + flags_at);
    code.move_stack(room + 16);
    run_and_return(code, site);  // the fence itself, for the threads of this node
}

/// Distance of the calling thread's word for its window from its fs, as every thread's.
std::int32_t window_in_tls() {
    std::uintptr_t fs = 0;
    asm("mov %%fs:0, %0" : "=r"(fs));
    return static_cast<std::int32_t>(reinterpret_cast<std::uintptr_t>(&own_atomic_window) - fs);
}

/// Carries out the instruction at once where its page is open to that (dsm/block/atomic_passes.hpp)
/// and the thread may go by; else goes on. From announcing the page up to taking that back nothing
/// is touched but the operand and memory private to the node: the thread takes no other fault.
void go_by(MachineCode& code, const CodeSite& site, const SiteRecord& record,
           const ZoneConstants& constants) {
    constexpr auto page = static_cast<std::int32_t>(offsetof(AtomicWindow, page)),
                   left = static_cast<std::int32_t>(offsetof(AtomicWindow, left)),
                   flags = static_cast<std::int32_t>(offsetof(AtomicWindow, flags)),
                   rax = static_cast<std::int32_t>(offsetof(AtomicWindow, rax)),
                   rdi = static_cast<std::int32_t>(offsetof(AtomicWindow, rdi)),
                   address = static_cast<std::int32_t>(offsetof(AtomicWindow, address));
    static_assert(offsetof(AtomicWindow, self) == 0 && dsm::OwnAtomics::places == 4096);
    static_assert(AtomicWindow::preparing == 0xffff'ffff'8000'0000);
    std::byte* crosses = nullptr;
    if (record.operand_bytes > 1) {
        const auto mask = static_cast<std::uint8_t>(record.operand_bytes - 1);
        code.bytes({0x40, 0xf6, 0xc7, mask});  // test dil, mask
        crosses = code.jump_later(0x85);
    }
    code.bytes({0x48, 0x89, 0x44, 0x24, 0xf8});                        // mov [rsp - 8], rax
    code.at_segment({0x64, 0x48, 0x8b, 0x04, 0x25}, window_in_tls());  // mov rax, fs:[...]
    code.bytes({0x48, 0x85, 0xc0});                                    // test rax, rax
    std::byte* const has_none = code.jump_later(0x84);
    code.at_segment({0x65, 0x48, 0x3b, 0x04, 0x25}, 0);  // cmp rax, gs:[self]
    std::byte* const is_other = code.jump_later(0x85);
    code.at_segment({0x65, 0x48, 0x83, 0x3c, 0x25}, page);  // cmp gs:[page], 0
    code.bytes({0});
    std::byte* const is_inside = code.jump_later(0x85);
    code.at_segment({0x65, 0x83, 0x2c, 0x25}, left);  // sub gs:[left], 1
    code.bytes({1});
    std::byte* const is_noted = code.jump_later(0x88);

    // A handler of a signal that made atomics here would overwrite what is put aside.
    code.at_segment({0x65, 0x48, 0xc7, 0x04, 0x25}, page);  // mov gs:[page], preparing
    code.bytes({0, 0, 0, 0x80});
    code.bytes({0x48, 0x8b, 0x44, 0x24, 0xf8});                // mov rax, [rsp - 8]
    code.at_segment({0x65, 0x48, 0x89, 0x04, 0x25}, flags);    // mov gs:[flags], rax
    code.at_segment({0x65, 0x48, 0x89, 0x3c, 0x25}, address);  // mov gs:[address], rdi
    code.load_rax(8);
    code.at_segment({0x65, 0x48, 0x89, 0x04, 0x25}, rax);
    code.load_rax(0);
    code.at_segment({0x65, 0x48, 0x89, 0x04, 0x25}, rdi);
    code.bytes({0x48, 0x89, 0xf8, 0x48, 0xc1, 0xe8, 0x0c});  // mov rax, rdi; shr rax, 12
    code.at_segment({0x65, 0x48, 0x89, 0x04, 0x25}, page);   // announced
    code.bytes({0x89, 0xc7, 0x81, 0xe7, 0xff, 0x0f, 0, 0});  // mov edi, eax; and edi, 4095
    code.bytes({0xc1, 0xe7, 0x03});                          // shl edi, 3
    code.add_constant(&constants.passes);                    // add rdi, [...]
    code.bytes({0x48, 0x39, 0x07});                          // cmp [rdi], rax
    std::byte* const is_closed = code.jump_later(0x85);
    code.at_segment({0x65, 0x48, 0x8b, 0x04, 0x25}, flags);
    code.bytes({0x04, 0x7f, 0x9e});  // add al, 127; sahf
    code.at_segment({0x65, 0x48, 0x8b, 0x3c, 0x25}, rdi);
    code.at_segment({0x65, 0x48, 0x8b, 0x04, 0x25}, rax);
    code.copy(site, pushed_at_entry);
    code.at_segment({0x65, 0x48, 0xc7, 0x04, 0x25}, page);  // mov gs:[page], 0
    code.bytes({0, 0, 0, 0});
    code.move_stack(pushed_at_entry);
    code.jump(site.address + site.length);

    code.land(is_closed);
    code.at_segment({0x65, 0x48, 0x8b, 0x04, 0x25}, flags);
    code.at_segment({0x65, 0x48, 0x8b, 0x3c, 0x25}, address);
    code.at_segment({0x65, 0x48, 0xc7, 0x04, 0x25}, page);
    code.bytes({0, 0, 0, 0});
    code.at_segment({0x65, 0x83, 0x04, 0x25}, left);  // add gs:[left], 1
    code.bytes({1});
    std::byte* const calls = code.jump_later(0xe9);
    for (std::byte* const jump : {has_none, is_other, is_inside, is_noted}) code.land(jump);
    code.bytes({0x48, 0x8b, 0x44, 0x24, 0xf8});  // mov rax, [rsp - 8]
    code.land(calls);
    if (crosses != nullptr) code.land(crosses);
}

/// The instruction between the two hooks, on the address that `before` was told.
void global_path(MachineCode& code, const CodeSite& site, const SiteRecord& record,
                 const ZoneConstants& constants) {
    const std::int32_t room = vector_room_bytes();
    make_room(code, room);
    call_hook(code, &constants.before, record);
    std::byte* passed_over = nullptr;
    if (site.last) {
        code.bytes({0x3c, static_cast<std::uint8_t>(Entered::elsewhere)});  // cmp al, ...
        passed_over = code.jump_later(0x84);
    }
    code.bytes({0x84, 0xc0});  // test al, al
    std::byte* private_after_all = code.jump_later(0x84);

    // No locked instruction touches a vector: they stay the hooks' until `after` restores them.
    restore_at_hook(code, room);
    code.copy(site, pushed_at_hook + room);

    code.store_rdi(room + rdi_at);
    code.store_rax(room + rax_at);
    code.bytes({0x9f, 0x0f, 0x90, 0xc0});  // lahf; seto al
    code.store_rax(room + flags_at);
    code.load_rdi(room + address_at);
    call_hook(code, &constants.after, record);
    restore_at_hook(code, room);
    code.move_stack(room + pushed_at_hook);
    code.jump(site.address + site.length);

    code.land(private_after_all);
    code.load_rax(room + flags_at);
    code.move_stack(room + 16);
    run_and_return(code, site);
    if (passed_over == nullptr) return;
    code.land(passed_over);
    code.load_rax(room + flags_at);
    code.move_stack(room + 16);
    restore_from_entry(code);
    code.jump(site.address + site.length);
}

void atomic_trampoline(MachineCode& code, const CodeSite& site, const SiteRecord& record,
                       const ZoneConstants& constants, std::size_t hull_count) {
    enter_trampoline(code, site);
    std::byte* global[hulls_max];
    for (std::size_t i = 0; i < hull_count; ++i) {
        code.compare_constant(&constants.hulls[i].low);
        std::byte* below = code.jump_later(0x82);  // jb
        code.compare_constant(&constants.hulls[i].high);
        global[i] = code.jump_later(0x82);
        code.land(below);
    }
    run_and_return(code, site);
    if (hull_count == 0) return;
    for (std::size_t i = 0; i < hull_count; ++i) code.land(global[i]);
    if (constants.passes != 0 && !site.last) go_by(code, site, record, constants);
    global_path(code, site, record, constants);
}

/// One round of a copied loop, with rsp pushed_at_hook bytes below the program's, and its ways out.
class LoopCopy {
public:
    LoopCopy(MachineCode& code, const CodeSite& site) : code_(code), site_(site) {}

    /// Returns the jump of a round that goes on.
    std::byte* round(std::byte* entry) {
        std::byte* back = nullptr;
        std::int32_t slot = address_at;
        for (const LoopStep& step : site_.loop->steps) {
            if (step.code.address == site_.address) code_.land(entry);
            switch (step.kind) {
                case LoopStep::Kind::load:
                    keep_address(step.code, slot);
                    slot = flags_at;
                    [[fallthrough]];
                case LoopStep::Kind::plain: code_.copy(step.code, pushed_at_hook); break;
                case LoopStep::Kind::exit:
                    exits_.push_back({code_.jump_later(step.condition), step.target});
                    break;
                case LoopStep::Kind::back: back = code_.jump_later(step.condition); break;
            }
        }
        leave_to(site_.loop->end());
        return back;
    }

    void leave() {
        for (const auto& [jump, target] : exits_) {
            code_.land(jump);
            leave_to(target);
        }
    }

private:
    void keep_address(const CodeSite& load, std::int32_t slot) {
        code_.store_rdi(rdi_at);
        code_.load_address(load, pushed_at_hook);
        code_.store_rdi(slot);
        code_.load_rdi(rdi_at);
    }

    void leave_to(std::uintptr_t target) {
        code_.move_stack(pushed_at_hook);
        code_.jump(target);
    }

    MachineCode& code_;
    const CodeSite& site_;
    std::vector<std::pair<std::byte*, std::uintptr_t>> exits_;
};

/// A copy of the loop, which the program enters where its jump lies. Each round keeps the addresses
/// it has loaded from, the later one in the place of the flags: none of the program's are in use
/// where a round begins anew. Some rounds turn by themselves before one tells: a thread of this
/// node may write soon, and handlers of signals run in them. They are counted in the place of rax.
void wait_trampoline(MachineCode& code, const CodeSite& site, const SiteRecord& record,
                     const ZoneConstants& constants) {
    constexpr std::uint8_t rounds = 32;  // about a microsecond
    const auto put = [&](std::int32_t slot, std::uint8_t value) {
        code.bytes({0x48, 0xc7, 0x44, 0x24, static_cast<std::uint8_t>(slot), value, 0, 0, 0});
    };
    code.move_stack(-pushed_at_hook);
    put(address_at, 0);
    put(flags_at, 0);
    put(rax_at, rounds);
    std::byte* const entry = code.jump_later(0xe9);
    const std::uintptr_t begin = code.address();
    LoopCopy loop{code, site};
    std::byte* const back = loop.round(entry);
    loop.leave();

    code.land(back);
    code.bytes({0xf3, 0x90, 0x83, 0x6c, 0x24, rax_at, 1});  // pause; sub dword [rsp + rax_at], 1
    code.bytes({0x0f, 0x85});                               // jnz
    code.relative(begin);
    const std::int32_t room = vector_room_bytes();
    code.store_rdi(rdi_at);
    code.store_rax(rax_at);
    code.bytes({0x48, 0x89, 0xe7});  // mov rdi, rsp: where the addresses are
    code.move_stack(-room);
    call_hook(code, &constants.before, record);
    code.move_stack(room);
    code.load_rdi(rdi_at);
    code.load_rax(rax_at);
    put(rax_at, rounds);
    code.jump(begin);
}

}  // namespace

std::vector<dsm::AddressRange> hulls_of(std::span<const dsm::AddressRange> global) {
    if (global.empty()) return {};
    std::vector<dsm::AddressRange> rest(global.begin() + 1, global.end());
    std::sort(rest.begin(), rest.end(),
              [](const auto& a, const auto& b) { return a.address < b.address; });
    while (rest.size() > hulls_max - 1) {
        std::size_t closest = 1;
        for (std::size_t i = 2; i < rest.size(); ++i) {
            if (rest[i].address - rest[i - 1].end() <
                rest[closest].address - rest[closest - 1].end()) {
                closest = i;
            }
        }
        rest[closest - 1].bytes = rest[closest].end() - rest[closest - 1].address;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(closest));
    }
    rest.insert(rest.begin(), global.front());
    return rest;
}

Result<TrampolineZone> TrampolineZone::create(dsm::AddressRange object, std::size_t sites,
                                              std::span<const dsm::AddressRange> hulls,
                                              VectorUse vectors,
                                              const std::atomic<std::uint64_t>* passes) {
    HIROBA_INVARIANT(hulls.size() <= hulls_max, "%lu hulls", hulls.size());
    TrampolineZone zone;
    zone.bytes_ = round_up(constants_bytes + sites * trampoline_bytes_max, page_bytes);
    const auto place = find_room(object, zone.bytes_);
    if (!place) {
        return Error{ErrorKind::environment,
                     "no " + std::to_string(zone.bytes_) + " free bytes within 2 GiB of the code"};
    }
    void* memory = mmap(reinterpret_cast<void*>(*place), zone.bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory == MAP_FAILED) {
        return Error{ErrorKind::environment, "cannot map " + std::to_string(zone.bytes_) +
                                                 " bytes near the code: " + strerror(errno)};
    }
    zone.base_ = static_cast<std::byte*>(memory);
    zone.next_ = zone.base_ + constants_bytes;
    zone.hull_count_ = hulls.size();

    auto& constants = *reinterpret_cast<ZoneConstants*>(zone.base_);
    const SlowPathEntries entries = slow_path_entries(vectors);
    constants.before = entries.before;
    constants.after = entries.after;
    constants.passes = reinterpret_cast<std::uintptr_t>(passes);
    for (std::size_t i = 0; i < hulls.size(); ++i) {
        constants.hulls[i] = {hulls[i].address, hulls[i].end()};
    }
    return zone;
}

TrampolineZone::TrampolineZone(TrampolineZone&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_),
      next_(other.next_),
      hull_count_(other.hull_count_),
      sealed_(other.sealed_) {}

TrampolineZone::~TrampolineZone() {
    if (base_ != nullptr && !sealed_) munmap(base_, bytes_);
}

std::uintptr_t TrampolineZone::add(const CodeSite& site, SiteRecord& record) {
    HIROBA_INVARIANT(next_ + trampoline_bytes_max <= base_ + bytes_, "more sites than announced");
    const auto& constants = *reinterpret_cast<const ZoneConstants*>(base_);
    MachineCode code{next_};
    if (site.kind == SiteKind::flush) {
        flush_trampoline(code, site, record, constants);
    } else if (site.kind == SiteKind::wait) {
        wait_trampoline(code, site, record, constants);
    } else {
        atomic_trampoline(code, site, record, constants, hull_count_);
    }
    HIROBA_INVARIANT(code.at() <= next_ + trampoline_bytes_max, "a trampoline of %ld bytes",
                     static_cast<long>(code.at() - next_));
    if (!code.reaches()) return 0;
    const auto address = reinterpret_cast<std::uintptr_t>(next_);
    next_ = base_ + round_up(static_cast<std::size_t>(code.at() - base_), 16);
    return address;
}

Result<void> TrampolineZone::seal() {
    if (auto made = make_executable("trampolines", base_, bytes_); !made) return made;
    sealed_ = true;
    return {};
}

}  // namespace hiroba::omp
