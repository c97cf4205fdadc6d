// SPDX-License-Identifier: BSD-3-Clause
// Role: rewriting one object, in order: find its code, find the sites, write the trampolines, make
// them executable, announce the traps, change the code.
// Invariant: the code is changed last, when nothing that a site needs can fail any more; each page
// of it is writable only while it is not executable.
//
// Why. An atomic add on a page that is mapped and writable here makes no fault, so the shared
// memory does not see it; two nodes would add to their own copies and lose one sum. So each locked
// instruction is replaced by a jump to a trampoline of its own, which compares the operand's
// address with the ranges of global memory. Outside: the displaced instruction runs and jumps back,
// 2 ns more than before. Inside: enter() brings the block here and keeps it, the same instruction
// runs on the private copy, leave() publishes the word and makes the notice. Nothing is emulated:
// flags and registers are what the processor makes of them.
//
// What makes it hard:
// 1. Length. A jump has 5 bytes, `lock incl (%rax)` has 3. Shorter sites keep their own first bytes
//    as the jump's opcode and half its distance; the rest of the distance is the next instruction's
//    bytes, which stay as they are (landing_pads.hpp maps memory where such jumps happen to lead).
//    Where that cannot be had, the site is an int3, and a SIGTRAP handler (fault_trap.hpp) goes on
//    in the trampoline. A branch into the middle of a site, or a second site within 5 bytes, has
//    int3, too.
// 2. Finding. Code is decoded from each section's beginning (code_scan.hpp); compilers put no data
//    into code, and bytes that do not decode are stepped over one by one and counted.
// 3. State. At a site every register may be in use, the red zone below the stack pointer too, and
//    the flags. The short way saves two registers and the flags; the long way (slow_path_entry.S)
//    all of them, vectors included, since the hooks copy memory with them. Which vectors can be in
//    use is a property of the object: where no instruction of it has a VEX prefix, sixteen are
//    saved.
// 4. Operands that are relative to the instruction or on the stack are counted anew, because the
//    trampoline lies elsewhere and has moved the stack pointer.
// 5. Loads. A loop that waits by loads alone has no such instruction; it is found by its form
//    (wait_loops.hpp), and a copy of it runs that tells the shared memory, round by round, what it
//    waits for.
// 6. Time. Other threads of the process must not run the code while it is changed: rewrite() is
//    called before the program's threads exist, or, for libraries that are opened later, before the
//    loader has relocated them.
#include "omp/atomic/rewriter.hpp"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>

#include "base/fatal.hpp"
#include "omp/atomic/code_scan.hpp"
#include "omp/atomic/code_sections.hpp"
#include "omp/atomic/fault_trap.hpp"
#include "omp/atomic/landing_pads.hpp"
#include "omp/atomic/machine_code.hpp"
#include "omp/atomic/slow_path.hpp"
#include "omp/atomic/trampoline.hpp"
#include "omp/atomic/wait_loops.hpp"

namespace hiroba::omp {
namespace {

struct Patch {
    CodeSite site;
    std::uintptr_t trampoline = 0;
    std::uintptr_t target = 0;  ///< of the jump written at the site; 0: a trap
};

/// What the trampolines must reach: the sites, and what they address relative to themselves. An
/// object may be larger than any displacement: gigabytes of static data, far from its code. What is
/// addressed outside of it is data among the code (tables of libcrypto), taken for an instruction.
dsm::AddressRange reach_of(const CodeScan& scan, dsm::AddressRange object) {
    std::uintptr_t low = scan.sites.front().address, high = scan.sites.back().address;
    const auto add = [&](const CodeSite& site) {
        if (site.addressing != Addressing::instruction) return;
        const auto distance = static_cast<std::uintptr_t>(std::int64_t{site.displacement});
        const std::uintptr_t operand = site.address + site.length + distance;
        if (!object.contains(operand)) return;
        low = std::min(low, operand);
        high = std::max(high, operand);
    };
    for (const CodeSite& site : scan.sites) add(site);
    for (const WaitLoop& loop : scan.loops)
        for (const LoopStep& step : loop.steps) add(step.code);
    return {low, high + page_bytes - low};
}

/// Trampolines for all sites of a scan. Sites whose operand does not reach are left alone.
std::vector<Patch> make_trampolines(TrampolineZone& zone, LandingPads& pads, const CodeScan& scan,
                                    RewrittenObject& object, RewriteSummary& summary) {
    object.sites.reserve(scan.sites.size());
    std::vector<Patch> patches;
    patches.reserve(scan.sites.size());
    for (const CodeSite& site : scan.sites) {
        object.sites.push_back({&object, site.address, site.operand_bytes, site.kind, site.last});
        const std::uintptr_t trampoline = zone.add(site, object.sites.back());
        if (trampoline == 0) {
            ++summary.left_alone;
            continue;
        }
        std::uintptr_t target = site.by_trap ? 0 : trampoline;
        if (site.may_borrow) target = pads.add(site, trampoline);
        patches.push_back({site, trampoline, target});
        ++(site.kind == SiteKind::flush  ? summary.flushes
           : site.kind == SiteKind::wait ? summary.waits
                                         : summary.atomics);
        ++(target == 0 ? summary.traps : summary.jumps);
    }
    return patches;
}

/// The thread sanitizer takes code for constant, and stops who tells it of a write there.
#ifdef __SANITIZE_THREAD__
[[gnu::flatten, gnu::no_sanitize("thread")]]
#endif
void write_site(const Patch& patch) {
    constexpr std::byte int3{0xcc};
    auto* code = reinterpret_cast<std::byte*>(patch.site.address);
    if (patch.target == 0) {
        *code = int3;
        return;
    }
    std::byte behind[jump_bytes];
    memcpy(behind, code, sizeof behind);
    MachineCode jump{code};
    jump.jump(patch.target);
    if (patch.site.length < jump_bytes) {
        const std::size_t borrowed = jump_bytes - std::size_t{patch.site.length};
        HIROBA_INVARIANT(
            memcmp(code + patch.site.length, behind + patch.site.length, borrowed) == 0,
            "the jump at %lx changes the instruction behind", patch.site.address);
        return;
    }
    memset(jump.at(), 0x90, patch.site.address + patch.site.length - jump.address());
}

/// Applies the patches that lie in one section.
Result<void> change_section(const CodeSection& section, std::span<const Patch> patches,
                            const std::string& path) {
    if (patches.empty()) return {};
    const std::uintptr_t begin = round_down(section.range.address, page_bytes);
    void* const pages = reinterpret_cast<void*>(begin);
    const std::size_t bytes = round_up(section.range.end(), page_bytes) - begin;
    if (mprotect(pages, bytes, PROT_READ | PROT_WRITE) != 0) {
        return Error{ErrorKind::environment,
                     "cannot change the code of " + path +
                         " (does SELinux forbid execmod?): " + strerror(errno)};
    }
    for (const Patch& patch : patches) write_site(patch);
    if (mprotect(pages, bytes, section.protection) != 0) {
        fatal(
            "cannot make the code of %s at %lx executable again: %s (does SELinux forbid "
            "execmod?)",
            path.c_str(), begin, strerror(errno));
    }
    return {};
}

/// The sections, those of one segment as one: what lies between them is mapped, too.
std::vector<CodeSection> joined(const std::vector<CodeSection>& sections) {
    std::vector<CodeSection> joined;
    for (const CodeSection& each : sections) {
        if (joined.empty() || joined.back().segment != each.segment ||
            each.range.address < joined.back().range.end())
            joined.push_back(each);
        else
            joined.back().range.bytes = each.range.end() - joined.back().range.address;
    }
    return joined;
}

std::span<const Patch> patches_in(const std::vector<Patch>& patches, dsm::AddressRange range) {
    const auto at_or_above = [&](std::uintptr_t address) {
        return std::lower_bound(
            patches.begin(), patches.end(), address,
            [](const Patch& patch, std::uintptr_t a) { return patch.site.address < a; });
    };
    return {at_or_above(range.address), at_or_above(range.end())};
}

}  // namespace

Result<RewriteSummary> rewrite(const RewriteTarget& target, const AtomicHooks& hooks) {
    auto code = find_code(target);
    if (!code) return code.error();

    const CodeScan scan = scan_code(code->sections);
    RewriteSummary summary;
    summary.left_alone = scan.left_alone;
    summary.undecodable_bytes = scan.undecodable_bytes;
    if (scan.sites.empty()) return summary;

    auto zone = TrampolineZone::create(reach_of(scan, code->object), scan.sites.size(),
                                       hulls_of(hooks.global),
                                       scan.wide_vectors ? VectorUse::all : VectorUse::xmm,
                                       hooks.sequential ? nullptr : hooks.own.passes);
    if (!zone) return Error{zone.error().kind, target.path + ": " + zone.error().text};

    auto object = std::make_unique<RewrittenObject>();
    object->hooks = hooks;
    LandingPads pads{hooks.kept_free};
    const std::vector<Patch> patches = make_trampolines(*zone, pads, scan, *object, summary);
    if (auto sealed = zone->seal(); !sealed) return sealed.error();
    if (auto sealed = pads.seal(); !sealed) return sealed.error();

    std::vector<TrapSite> traps;
    for (const Patch& patch : patches) {
        if (patch.target == 0) traps.push_back({patch.site.address, patch.trampoline});
    }
    if (!traps.empty()) {
        if (auto added = add_trap_sites(traps); !added) return added.error();
    }
    // Trampolines refer to it for as long as the code exists.
    keep_object(*object.release());
    for (const CodeSection& section : joined(code->sections)) {
        if (auto changed = change_section(section, patches_in(patches, section.range), target.path);
            !changed) {
            return changed.error();
        }
    }
    return summary;
}

}  // namespace hiroba::omp
