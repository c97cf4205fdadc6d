// SPDX-License-Identifier: BSD-3-Clause
// Role: see served_memory.hpp.
#include "net/served_memory.hpp"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "base/fatal.hpp"
#include "net/provider/apply_atomic.hpp"

namespace hiroba::net {
namespace {

using Words = std::array<std::uint64_t, Questions::words_max>;

/// What answered() keeps of a copy.
enum Kept : std::size_t { at_local, at_left, at_offset, at_number, at_piece };

std::size_t piece_of(Questions& of, std::uint64_t left) noexcept {
    return std::min<std::size_t>(left, of.async().payload_bytes_max());
}
std::byte* pointer(std::uint64_t word) noexcept { return reinterpret_cast<std::byte*>(word); }
std::uint64_t word_of(const void* pointer) noexcept {
    return reinterpret_cast<std::uint64_t>(pointer);
}

template <class Word>
std::uint64_t apply_here(std::byte* at, AtomicOp op, std::uint64_t operand,
                         std::uint64_t expected) noexcept {
    return apply_atomic(std::atomic_ref<Word>(*reinterpret_cast<Word*>(at)), op,
                        static_cast<Word>(operand), static_cast<Word>(expected));
}

bool took_word(Questions&, Questions::Asking& asking, std::uint64_t word, Bytes) noexcept {
    if (asking.kept[at_local] != 0)
        std::memcpy(pointer(asking.kept[at_local]), &word, asking.kept[at_left]);
    return true;
}
bool took_wide_word(Questions&, Questions::Asking& asking, std::uint64_t, Bytes bytes) noexcept {
    HIROBA_INVARIANT(bytes.size() == sizeof(WideWord), "a wide word of %lu bytes", bytes.size());
    std::memcpy(pointer(asking.kept[at_local]), bytes.data(), bytes.size());
    return true;
}

}  // namespace

bool swaps_wide_words() noexcept {
    static const bool does = [] {
        unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
        return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_CMPXCHG16B) != 0;
    }();
    return does;
}

// A locked instruction: sequentially consistent, and atomic against those of 4 and 8 bytes.
WideWord swap_wide_word(std::byte* at, WideWord expected, WideWord wanted) noexcept {
    asm volatile("lock cmpxchg16b %2"
                 : "+a"(expected.low), "+d"(expected.high), "+m"(*reinterpret_cast<WideWord*>(at))
                 : "b"(wanted.low), "c"(wanted.high)
                 : "cc", "memory");
    return expected;
}

ServedMemory::ServedMemory(Questions& questions) : questions_(questions) {
    questions.on(Questions::About::copy_out, &ServedMemory::copy_out, this);
    questions.on(Questions::About::copy_in, &ServedMemory::copy_in, this);
    questions.on(Questions::About::word, &ServedMemory::change_word, this);
    questions.on(Questions::About::wide_word, &ServedMemory::change_wide_word, this);
}

// --- at the node that has the memory -------------------------------------------------------------

std::uint64_t ServedMemory::expose(MutableBytes memory) {
    const std::scoped_lock guard{latch_};
    exposed_.emplace(next_, memory);
    return next_++;
}

bool ServedMemory::withdraw(std::uint64_t number) noexcept {
    const std::scoped_lock guard{latch_};
    return exposed_.erase(number) != 0;
}

std::byte* ServedMemory::place(NodeId from, std::uint64_t number, std::uint64_t offset,
                               std::uint64_t bytes) noexcept {
    const auto found = exposed_.find(number);
    if (found == exposed_.end())
        fatal(
            "node %u accesses %lu bytes at offset %lu of memory number %lu of node %u, which was "
            "withdrawn: withdraw it when all others are done with it",
            from.value, bytes, offset, number, questions_.async().endpoint().self().value);
    const MutableBytes memory = found->second;
    HIROBA_INVARIANT(offset <= memory.size() && bytes <= memory.size() - offset,
                     "node %u accesses %lu bytes at offset %lu of memory of %lu", from.value, bytes,
                     offset, memory.size());
    return memory.data() + offset;
}

void ServedMemory::copy_out(void* context, const Questions::Asked& asked) noexcept {
    auto& self = *static_cast<ServedMemory*>(context);
    const auto [number, offset, bytes, unused] = asked.words;
    const std::scoped_lock guard{self.latch_};
    asked.answer(0, {self.place(asked.from, number, offset, bytes), bytes});
}

void ServedMemory::copy_in(void* context, const Questions::Asked& asked) noexcept {
    auto& self = *static_cast<ServedMemory*>(context);
    {
        const std::scoped_lock guard{self.latch_};
        std::byte* const to =
            self.place(asked.from, asked.words[0], asked.words[1], asked.payload.size());
        if (!asked.payload.empty()) std::memcpy(to, asked.payload.data(), asked.payload.size());
    }
    asked.answer(0, {});
}

void ServedMemory::change_word(void* context, const Questions::Asked& asked) noexcept {
    auto& self = *static_cast<ServedMemory*>(context);
    const auto [number, offset, how, operand] = asked.words;
    const auto op = static_cast<AtomicOp>(how & 0xff);
    const std::uint64_t width = how >> 8;
    std::uint64_t expected = 0, old = 0;
    HIROBA_INVARIANT(asked.payload.size() == sizeof expected && op <= AtomicOp::compare_swap &&
                         (width == 4 || width == 8),
                     "node %u asks for an atomic of %lu bytes", asked.from.value, width);
    std::memcpy(&expected, asked.payload.data(), sizeof expected);
    {
        const std::scoped_lock guard{self.latch_};
        std::byte* const at = self.place(asked.from, number, offset, width);
        if (reinterpret_cast<std::uintptr_t>(at) % width != 0)
            fatal("node %u asks for an atomic of %lu bytes at offset %lu of memory that is at %p",
                  asked.from.value, width, offset, static_cast<void*>(at - offset));
        old = width == 8 ? apply_here<std::uint64_t>(at, op, operand, expected)
                         : apply_here<std::uint32_t>(at, op, operand, expected);
    }
    asked.answer(old, {});
}

void ServedMemory::change_wide_word(void* context, const Questions::Asked& asked) noexcept {
    auto& self = *static_cast<ServedMemory*>(context);
    const auto [is_served, number, offset, unused] = asked.words;
    std::array<WideWord, 2> words;
    HIROBA_INVARIANT(asked.payload.size() == sizeof words, "a wide swap of %lu bytes",
                     asked.payload.size());
    std::memcpy(words.data(), asked.payload.data(), sizeof words);
    WideWord found;
    {
        const std::scoped_lock guard{self.latch_};
        std::byte* at = nullptr;
        if (is_served != 0) {
            at = self.place(asked.from, number, offset, sizeof found);
        } else {
            const MutableBytes region = self.questions_.async().endpoint().provider().local(
                RegionId{static_cast<std::uint32_t>(number)});
            HIROBA_INVARIANT(offset <= region.size() && sizeof found <= region.size() - offset,
                             "node %u swaps a wide word at %lu of %lu", asked.from.value, offset,
                             region.size());
            at = region.data() + offset;
        }
        if (!swaps_wide_words() || reinterpret_cast<std::uintptr_t>(at) % sizeof found != 0)
            fatal("node %u swaps 16 bytes at %p: %s", asked.from.value, static_cast<void*>(at),
                  swaps_wide_words() ? "no multiple of 16" : "this processor has no cmpxchg16b");
        found = swap_wide_word(at, words[0], words[1]);
    }
    asked.answer(0, std::as_bytes(std::span(&found, 1)));
}

// --- at the others -------------------------------------------------------------------------------

bool ServedMemory::copied(Questions& of, Questions::Asking& asking, std::uint64_t,
                          Bytes bytes) noexcept {
    auto& kept = asking.kept;
    const bool reads = asking.about == Questions::About::copy_out;
    std::byte* const local = pointer(kept[at_local]);
    if (reads) {
        HIROBA_INVARIANT(bytes.size() == kept[at_piece], "%lu bytes of %lu came", bytes.size(),
                         kept[at_piece]);
        if (!bytes.empty()) std::memcpy(local, bytes.data(), bytes.size());
    }
    kept[at_left] -= kept[at_piece];
    if (kept[at_left] == 0) return true;
    kept[at_local] += kept[at_piece];
    kept[at_offset] += kept[at_piece];
    kept[at_piece] = piece_of(of, kept[at_left]);
    const Bytes next = reads ? Bytes{} : Bytes{pointer(kept[at_local]), kept[at_piece]};
    of.ask_again(asking, {kept[at_number], kept[at_offset], kept[at_piece], 0}, next);
    return false;
}

Submission ServedMemory::try_copy(bool reads, NodeId peer, At at, std::byte* local,
                                  std::size_t bytes, const Completion& done) noexcept {
    const std::size_t piece = piece_of(questions_, bytes);
    const Questions::Asking asking{
        .to = peer,
        .about = reads ? Questions::About::copy_out : Questions::About::copy_in,
        .answered = &ServedMemory::copied,
        .done = done,
        .kept = {word_of(local), bytes, at.offset, at.number, piece}};
    return questions_.try_ask(asking, {at.number, at.offset, piece, 0},
                              reads ? Bytes{} : Bytes{local, piece});
}

Submission ServedMemory::try_atomic(const AtomicParams& params, At at, std::byte* old) noexcept {
    const Questions::Asking asking{.to = params.target,
                                   .about = Questions::About::word,
                                   .answered = &took_word,
                                   .done = params.on_complete,
                                   .kept = {word_of(old), params.bytes, 0, 0, 0}};
    const Words words{at.number, at.offset,
                      static_cast<std::uint64_t>(params.op) | std::uint64_t{params.bytes} << 8,
                      params.operand};
    return questions_.try_ask(asking, words, std::as_bytes(std::span(&params.expected, 1)));
}

Submission ServedMemory::try_wide_swap(NodeId peer, const Async::Place& place, WideWord expected,
                                       WideWord wanted, WideWord& found,
                                       const Completion& done) noexcept {
    const Questions::Asking asking{.to = peer,
                                   .about = Questions::About::wide_word,
                                   .answered = &took_wide_word,
                                   .done = done,
                                   .kept = {word_of(&found), sizeof found, 0, 0, 0}};
    const std::array<WideWord, 2> both{expected, wanted};
    const Words words{place.is_served ? 1u : 0u,
                      place.is_served ? place.number : place.region.value, place.offset, 0};
    return questions_.try_ask(asking, words, std::as_bytes(std::span(both)));
}

}  // namespace hiroba::net
