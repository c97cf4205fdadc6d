// SPDX-License-Identifier: BSD-3-Clause
// Role: see fault_notes.hpp; also what Status and Pending say to people.
#include "gas/relocatable/fault_notes.hpp"

#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "base/fatal.hpp"
#include "base/latch.hpp"

namespace hiroba::gas {
namespace {

struct Note {
    std::uint32_t number = 0;  ///< 0: none
    Fault fault = Fault::none;
    std::uint64_t page = 0;
    char line[200] = {};
};
constexpr std::uint32_t notes_kept = 256;
/// A fault of a started access is packed into a Pending with 12 bits of Status::rank.
constexpr std::uint32_t numbers = 4095;

Latch latch;
std::uint32_t last_number = 0;
Note notes[notes_kept];

std::string with(const char* format, std::uint64_t first, std::uint64_t second = 0) {
    char text[200];
    std::snprintf(text, sizeof text, format, static_cast<unsigned long>(first),
                  static_cast<unsigned long>(second));
    return text;
}

}  // namespace

Status noted(Fault fault, std::uint64_t page, const char* format, ...) noexcept {
    const std::scoped_lock guard{latch};
    last_number = last_number % numbers + 1;
    Note& note = notes[last_number % notes_kept];
    note.number = last_number;
    note.fault = fault;
    note.page = page;
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(note.line, sizeof note.line, format, arguments);
    va_end(arguments);
    return {fault, last_number, page};
}

std::optional<std::string> line_of(const Status& status) {
    const std::scoped_lock guard{latch};
    const Note& note = notes[status.rank % notes_kept];
    const bool is_it = status.rank != 0 && note.number == status.rank &&
                       note.fault == status.fault && note.page == status.page;
    return is_it ? std::optional<std::string>(note.line) : std::nullopt;
}

std::string Status::text() const {
    switch (fault) {
        case Fault::none: return "done";
        case Fault::null_pointer: return "the global pointer is null";
        case Fault::outside:
            if (page == 0) return with("rank %lu is not in the job", rank);
            return with("page %lu is outside the global address space (HIROBA_GAS)", page);
        case Fault::not_allocated:
            return with("page %lu is not allocated: never, or it was freed", page);
        case Fault::past_end:
            if (auto line = line_of(*this)) return *line;
            return with("page %lu: the range goes past the end of its allocation", page);
        case Fault::misaligned:
            return with("page %lu: an atomic's address is no multiple of its size", page);
        case Fault::not_relocatable:
            return with("page %lu was allocated as fixed: it cannot be owned by another rank",
                        page);
        case Fault::not_mine:
            return with("page %lu was allocated by rank %lu, which frees it", page, rank);
        case Fault::no_room:
            if (auto line = line_of(*this)) return *line;
            return "no global addresses are left for this allocation, or it has no bytes: see "
                   "HIROBA_GAS";
        case Fault::peer_lost:
            return with("page %lu: rank %lu, which had it or was moving it, is lost", page, rank);
        case Fault::view_open:
            if (auto line = line_of(*this)) return *line;
            return with("page %lu: a LocalView of this rank is open: end it before free()", page);
        case Fault::differs:
            if (auto line = line_of(*this)) return *line;
            return "the ranks call allocate_together() or free() with different arguments";
        case Fault::wrong_length:
            if (auto line = line_of(*this)) return *line;
            return "the local memory is longer or shorter than the pieces that go there";
    }
    return "?";
}

Status Status::beyond(std::uint64_t page, std::uint64_t first, std::uint64_t count,
                      std::uint64_t size) noexcept {
    if (size == 0 && first != 0) {
        return noted(Fault::past_end, page,
                     "page %lu: pieces %ld elements apart go past the end of every allocation",
                     page, static_cast<long>(first));
    }
    return noted(Fault::past_end, page, "%lu elements from %lu on go past the end of a view of %lu",
                 count, first, size);
}

Status Status::unequal(std::uint64_t page, std::uint64_t pieces, std::uint64_t length,
                       std::uint64_t local) noexcept {
    return noted(Fault::wrong_length, page,
                 "page %lu: %lu pieces of %lu elements each, but the local memory has %lu elements",
                 page, pieces, length, local);
}

void Pending::ended_early(std::uint32_t left) noexcept {
    die(exit_program,
        "a gas::Pending ends while %u requests started with it are under way: call wait() first",
        left);
}

}  // namespace hiroba::gas
