// SPDX-License-Identifier: BSD-3-Clause
// Role: the lines and variables that a recording's addresses are, looked up in the files of the run
// when it ends, and kept in the recording as text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/report/recording.hpp"

namespace hiroba::tools {

struct CodeOfProgram {
    std::string line;  ///< "cg.c:57 (conj_grad)", or "conj_grad+20 in cg"
    bool has_line = false;
};

struct Variable {
    std::uint64_t address = 0, bytes = 0;
    std::string name, line;  ///< line: where it is defined, or empty
};

class Names {
public:
    /// Looks up whatever the events of `recording` name.
    static Names of(const Recording& recording);
    /// What text() wrote; a line that makes no sense is passed by.
    static Names from_text(const std::string& text);
    std::string text() const;

    /// The line of an instruction; a return address is given as that minus 1.
    std::string code(std::uint64_t address) const;
    /// nullptr: no variable lies there.
    const Variable* variable(std::uint64_t address) const;
    /// The first that begins in [address, end).
    const Variable* first_in(std::uint64_t address, std::uint64_t end) const;
    std::string place(const SyncPlace& place) const;

private:
    std::map<std::uint64_t, CodeOfProgram> code_;
    std::map<std::uint64_t, Variable> variables_;
};

/// A function as people call it: "a::work" of "void a::work<int>(int) const [clone ._omp_fn.0]".
std::string plain_function(std::string_view name);

/// The address to look up for a place: where its call is.
std::uint64_t code_of_place(const SyncPlace& place);

/// Code addresses of faults are 48 bits of a word.
constexpr std::uint64_t low_48 = (std::uint64_t{1} << 48) - 1;

}  // namespace hiroba::tools
