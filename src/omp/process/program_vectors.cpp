// SPDX-License-Identifier: BSD-3-Clause
// Role: copies the start vectors of the program into one block: pointers first, then strings.
#include "omp/process/program_vectors.hpp"

#include <cstring>

namespace hiroba::omp {
namespace {

std::span<char* const> entries_of(char* const* vector) noexcept {
    std::size_t count = 0;
    while (vector[count] != nullptr) ++count;
    return {vector, count};
}

std::size_t text_bytes(std::span<char* const> entries) noexcept {
    std::size_t bytes = 0;
    for (const char* const entry : entries) bytes += std::strlen(entry) + 1;
    return bytes;
}

class Layout {
public:
    Layout(void* block, std::size_t pointers)
        : next_pointer_(static_cast<char**>(block)),
          next_text_(reinterpret_cast<char*>(next_pointer_ + pointers)) {}

    /// Appends a vector and its strings; returns where it begins.
    char** add(std::span<char* const> entries) noexcept {
        char** const first = next_pointer_;
        for (const char* const entry : entries) {
            const std::size_t bytes = std::strlen(entry) + 1;
            std::memcpy(next_text_, entry, bytes);
            *next_pointer_++ = next_text_;
            next_text_ += bytes;
        }
        *next_pointer_++ = nullptr;
        return first;
    }
    void add(AuxiliaryVector entries) noexcept {
        std::memcpy(next_pointer_, entries.data(), entries.size_bytes());
    }

private:
    char** next_pointer_;
    char* next_text_;
};

}  // namespace

AuxiliaryVector auxiliary_vector(int argc, char* const* argv) noexcept {
    const auto environment = entries_of(argv + argc + 1);
    const auto* const first =
        reinterpret_cast<const ElfW(auxv_t)*>(environment.data() + environment.size() + 1);
    const auto* last = first;
    while (last->a_type != AT_NULL) ++last;
    return {first, last + 1};
}

ProgramVectors copy_vectors(int argc, char* const* argv, char* const* environment,
                            AuxiliaryVector auxiliary, AllocateVectors allocate) {
    const std::span arguments(argv, static_cast<std::size_t>(argc));
    const auto variables = entries_of(environment);
    const std::size_t pointers =
        arguments.size() + 1 + variables.size() + 1 + auxiliary.size_bytes() / sizeof(char*);
    const std::size_t texts = text_bytes(arguments) + text_bytes(variables);

    Layout layout(allocate(pointers * sizeof(char*) + texts), pointers);
    ProgramVectors vectors;
    vectors.argv = layout.add(arguments);
    vectors.environment = layout.add(variables);
    layout.add(auxiliary);
    return vectors;
}

}  // namespace hiroba::omp
