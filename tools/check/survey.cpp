// SPDX-License-Identifier: BSD-3-Clause
#include "tools/check/survey.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <string_view>

#include "omp/atomic/code_calls.hpp"
#include "omp/atomic/code_scan.hpp"
#include "omp/atomic/rewriter.hpp"
#include "omp/process/system_libraries.hpp"
#include "tools/check/image.hpp"
#include "tools/check/library_search.hpp"
#include "tools/run/elf_file.hpp"
#include "tools/run/program.hpp"
#include "tools/run/symbol.hpp"

namespace hiroba::tools {
namespace {

constexpr std::string_view runtime_names[] = {"libgomp.so.1", "libomp.so.5", "libomp.so",
                                              "libiomp5.so"};
constexpr std::string_view entry_prefixes[] = {"GOMP_", "GOACC_", "omp_", "__kmpc_",
                                               "kmp_",  "__tgt_", "acc_"};

template <class Range, class Value>
bool holds(const Range& range, const Value& value) {
    return std::ranges::find(range, value) != std::end(range);
}

constexpr const char* not_offered =
    "this hiroba has no such entry point: it knows gcc's up to 16 and clang's up to 19; build it "
    "by "
    "one of these, or look for a newer hiroba";

/// What compilers leave in .comment, each once.
std::vector<std::string> compilers_of(const ElfFile& file) {
    const std::string comment = file.section(".comment");
    std::vector<std::string> found;
    for (std::size_t at = 0; at < comment.size();) {
        const std::string each = comment.c_str() + at;
        if (!each.empty() && !holds(found, each)) found.push_back(each);
        at += each.size() + 1;
    }
    return found;
}

using Names = std::set<std::string, std::less<>>;

/// The file's symbols that `fits`, without their versions.
template <class Fits>
Names names_of(const ElfFile& file, Fits&& fits) {
    Names names;
    file.each_symbol([&](const ElfSymbol& symbol) {
        const std::string_view name = symbol.name;
        if (fits(symbol)) names.emplace(name.substr(0, name.find('@')));
        return true;
    });
    return names;
}
Names names_asked_for(const ElfFile& file) {
    return names_of(file, [](const ElfSymbol& symbol) { return !symbol.is_defined; });
}
Names names_defined(const ElfFile& file) {
    return names_of(file, [](const ElfSymbol& symbol) { return symbol.is_defined; });
}
/// Without them the loader refuses the program.
Names names_needed(const ElfFile& file) {
    return names_of(file,
                    [](const ElfSymbol& symbol) { return !symbol.is_defined && !symbol.is_weak; });
}

/// The entry points of the runtime, and those of them that it refuses.
struct Runtime {
    std::vector<std::string> refused;
    Names offered;  ///< empty: there is no runtime to look at
};
Runtime runtime_at(const std::string& library) {
    const auto file = ElfFile::open(library);
    return {all_refused_entry_points(library), file ? names_defined(*file) : Names{}};
}

/// An OpenMP runtime that would be a second one in the process.
std::string own_runtime_of(const ElfFile& file) {
    std::string found;
    file.each_symbol([&](const ElfSymbol& symbol) {
        const std::string_view name = symbol.name;
        if (symbol.is_defined && symbol.address != 0 &&
            (name == "GOMP_parallel" || name == "__kmpc_fork_call"))
            found = name;
        return found.empty();
    });
    return found;
}

/// One object, while it is looked at.
class Look {
public:
    Look(const Image& image, const ElfFile& file, ObjectFound& found)
        : image_(image), file_(file), found_(found) {
        if (auto code = omp::find_code({image.bias(), image.path(), {}}); code)
            sections_ = std::move(code->sections);
    }

    void atomics() {
        const omp::CodeScan scan = omp::scan_code(sections_);
        AtomicsFound& all = found_.atomics;
        for (const omp::CodeSite& site : scan.sites) {
            ++(site.kind == omp::SiteKind::flush ? all.flushes : all.atomics);
            all.by_trap += site.by_trap && !site.may_borrow;
        }
        all.left_alone = scan.left_alone;
        all.undecodable_bytes = scan.undecodable_bytes;
    }

    void add(std::string name, Effect effect, std::string why) {
        std::vector<std::string> places = places_of(name);
        found_.findings.push_back({std::move(name), effect, std::move(why), std::move(places)});
    }

    void entry_points(const Runtime& runtime) {
        const Names needed = names_needed(file_);
        for (const std::string& name : names_asked_for(file_)) {
            const bool openmp = std::ranges::any_of(
                entry_prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
            if (openmp) found_.entry_points.push_back(name);
            if (openmp && needed.contains(name) && !runtime.offered.empty() &&
                !runtime.offered.contains(name))
                add(name, Effect::ends, not_offered);
            if (holds(runtime.refused, name))
                add(name, Effect::ends, "hiroba cannot carry out this entry point of OpenMP");
            for (const Ending& ending : endings)
                if (ending.function == name) add(name, ending.effect, std::string(ending.why));
        }
    }

private:
    /// Where the object's code calls `name`, as the source has it.
    std::vector<std::string> places_of(const std::string& name) const {
        std::vector<std::string> places;
        const std::vector<LoadedFile> as_linked = {{image_.path(), image_.linked_base()}};
        for (const omp::CallSite& call : omp::find_calls(sections_, image_.slots_of(name))) {
            const std::uint64_t linked = call.address - image_.bias();
            std::string place = name_code(as_linked, linked).value_or(fmt::format("{:#x}", linked));
            if (!holds(places, place)) places.push_back(std::move(place));
        }
        return places;
    }

    const Image& image_;
    const ElfFile& file_;
    ObjectFound& found_;
    std::vector<omp::CodeSection> sections_;
};

void look_at(const Image& image, const Runtime& runtime, Names& defined, ObjectFound& found) {
    const auto file = ElfFile::open(image.path());
    if (!file) return;
    defined.merge(names_defined(*file));
    found.compilers = compilers_of(*file);
    found.code_on_stack = image.code_on_stack();
    if (!found.asked_as.empty())
        if (const char* const why =
                omp::why_system_library(image.path(), image.bias(), image.dynamic()))
            found.why_private = why;
    if (!found.why_private.empty()) return;
    Look look(image, *file, found);
    look.atomics();
    look.entry_points(runtime);
    if (const std::string name = own_runtime_of(*file); !name.empty() && !found.asked_as.empty())
        look.add(name, Effect::ends,
                 "it is a second OpenMP runtime in the process; link it with libgomp or libomp as "
                 "a library");
}

struct Wanted {
    std::string path, asked_as;
};

/// Enters what `image` needs and is not in the queue yet.
void follow(const Image& image, const LibrarySearch& search, std::deque<Wanted>& queue,
            std::set<std::string>& seen, Survey& found) {
    for (const std::string& name : image.needed()) {
        if (!seen.insert(name).second) continue;
        if (holds(runtime_names, name)) {
            found.runtimes.push_back(name);
            continue;
        }
        const std::string path = search.find(name, image);
        if (path.empty())
            found.missing.push_back(name);
        else
            queue.push_back({path, name});
    }
}

}  // namespace

bool Survey::would_run() const {
    if (!refusal.empty() || !missing.empty()) return false;
    return std::ranges::none_of(objects, [](const ObjectFound& object) {
        return !object.error.empty() ||
               std::ranges::any_of(object.findings, [](const Finding& finding) {
                   return finding.effect == Effect::ends;
               });
    });
}

Survey survey(const std::string& program, const std::string& library) {
    Survey found;
    found.program = program;
    if (auto fit = check_can_take_over(program); !fit) {
        found.refusal = fit.error().text;
        return found;
    }
    if (auto known = check_versions(program, library); !known) {
        found.refusal = known.error().text;
        return found;
    }
    const Runtime runtime = runtime_at(library);
    Names defined;  // by the program and its libraries
    const LibrarySearch search;
    std::deque<Wanted> queue = {{program, ""}};
    std::set<std::string> seen;
    for (; !queue.empty(); queue.pop_front()) {
        ObjectFound object;
        object.path = queue.front().path;
        object.asked_as = queue.front().asked_as;
        if (const auto image = Image::map(object.path)) {
            look_at(*image, runtime, defined, object);
            follow(*image, search, queue, seen, found);
        } else {
            object.error = image.error().text;
        }
        found.objects.push_back(std::move(object));
    }
    // A name like OpenMP's that the program brings itself is its own.
    for (ObjectFound& object : found.objects)
        std::erase_if(object.findings, [&](const Finding& finding) {
            return finding.why == not_offered && defined.contains(finding.name);
        });
    return found;
}

}  // namespace hiroba::tools
