// SPDX-License-Identifier: BSD-3-Clause
// Role: takes and compares fingerprints.
#include "omp/process/fingerprint.hpp"

#include <cpuid.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace hiroba::omp {
namespace {

/// FNV-1a, 64 bits, taken over whole words where it can: code segments are megabytes.
/// Source: Fowler, Noll, Vo; draft-eastlake-fnv.
class Digest {
public:
    void add(std::uint64_t word) { value_ = (value_ ^ word) * prime; }
    void add(const void* bytes, std::size_t count) {
        const auto* at = static_cast<const std::byte*>(bytes);
        for (; count >= sizeof(std::uint64_t); count -= sizeof(std::uint64_t)) {
            std::uint64_t word;
            std::memcpy(&word, at, sizeof word);
            add(word);
            at += sizeof word;
        }
        for (; count > 0; --count) add(static_cast<std::uint64_t>(*at++));
    }
    std::uint64_t value() const { return value_; }

private:
    static constexpr std::uint64_t prime = 0x100000001b3;
    std::uint64_t value_ = 0xcbf29ce484222325;
};

/// Copies the end of `text`, which tells paths apart better than their beginning.
template <std::size_t size>
void copy_end(char (&target)[size], std::string_view text) {
    const std::size_t bytes = std::min(text.size(), size - 1);
    std::memcpy(target, text.data() + (text.size() - bytes), bytes);
}

std::uint64_t layout_digest(const LoadedObject& object) {
    Digest digest;
    for (const auto* const ranges : {&object.writable, &object.executable}) {
        for (const dsm::AddressRange& range : *ranges) {
            digest.add(range.address);
            digest.add(range.bytes);
        }
        digest.add(ranges->size());
    }
    return digest.value();
}

std::uint64_t contents_digest(const LoadedObject& object) {
    Digest digest;
    for (const dsm::AddressRange& range : object.executable) {
        digest.add(reinterpret_cast<const void*>(range.address), range.bytes);
    }
    return digest.value();
}

ObjectRecord record_of(const LoadedObject& object) {
    ObjectRecord record;
    record.bias = object.bias;
    record.layout = layout_digest(object);
    record.build_id = object.build_id;
    if (object.build_id.bytes == 0) record.contents = contents_digest(object);
    copy_end(record.name, object.path);
    return record;
}

/// Feature bits only: model, stepping and core numbers may differ without harm.
void read_processor_features(std::uint64_t (&words)[4]) {
    const auto pair = [](unsigned high, unsigned low) { return std::uint64_t{high} << 32 | low; };
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) != 0) words[0] = pair(c, d);
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
        words[1] = pair(b, c);
        words[2] = d;
    }
    if (__get_cpuid(0x80000001, &a, &b, &c, &d) != 0) words[3] = pair(c, d);
}

std::string difference_of_objects(const ObjectRecord& ours, const ObjectRecord& theirs,
                                  const std::string& other) {
    const std::string name = ours.name;
    if (name != theirs.name) {
        return "node 0 has loaded " + name + " where " + other + " has loaded " + theirs.name +
               ". Run the same program with the same libraries on every node";
    }
    if (ours.build_id != theirs.build_id || ours.contents != theirs.contents) {
        return name + " is build " + to_text(ours.build_id) + " on node 0 but build " +
               to_text(theirs.build_id) + " on " + other + ". Install the same file on every node";
    }
    return name + " (build " + to_text(ours.build_id) + ") lies at another address on " + other +
           " (build " + to_text(theirs.build_id) +
           ") than on node 0. Address randomization must be off: run a copy of the program that "
           "has "
           "no setuid or setgid bits, or allow personality(2) in the container's seccomp profile";
}

}  // namespace

Fingerprint take_fingerprint(std::span<const LoadedObject> objects,
                             std::uint32_t threads_per_node) {
    Fingerprint print;
    print.threads_per_node = threads_per_node;
    rlimit limit{};
    if (getrlimit(RLIMIT_STACK, &limit) == 0) print.stack_limit = limit.rlim_cur;
    read_processor_features(print.processor);
    if (!objects.empty()) copy_end(print.program, objects.front().path);

    Digest everything;
    for (const LoadedObject& object : objects) {
        const ObjectRecord record = record_of(object);
        everything.add(record.bias);
        everything.add(record.layout);
        everything.add(record.contents);
        everything.add(record.build_id.value.data(), record.build_id.value.size());
        everything.add(object.path.data(), object.path.size());
        if (print.objects < Fingerprint::objects_max) print.object[print.objects++] = record;
    }
    print.everything = everything.value();
    return print;
}

std::uint64_t digest_of(const Fingerprint& print) noexcept {
    Digest digest;
    digest.add(&print, sizeof print);
    return digest.value();
}

std::optional<std::string> first_difference(const Fingerprint& node_0, const Fingerprint& theirs,
                                            std::uint32_t other_rank) {
    const std::string other = "node " + std::to_string(other_rank);
    if (std::strcmp(node_0.program, theirs.program) != 0) {
        return "node 0 runs " + std::string(node_0.program) + " but " + other + " runs " +
               theirs.program;
    }
    if (node_0.threads_per_node != theirs.threads_per_node) {
        return "node 0 has " + std::to_string(node_0.threads_per_node) + " threads but " + other +
               " has " + std::to_string(theirs.threads_per_node) +
               ". Give every node the same --threads";
    }
    if (node_0.stack_limit != theirs.stack_limit) {
        return "the stack limit is " + std::to_string(node_0.stack_limit) +
               " bytes on node 0 but " + std::to_string(theirs.stack_limit) + " on " + other +
               ". Set the same ulimit -s on every node";
    }
    if (!std::ranges::equal(node_0.processor, theirs.processor)) {
        return "the processor of " + other +
               " has other features than that of node 0. Mask the difference with "
               "GLIBC_TUNABLES=glibc.cpu.hwcaps=... or choose equal machines";
    }
    for (std::uint32_t i = 0; i < std::min(node_0.objects, theirs.objects); ++i) {
        const ObjectRecord& ours = node_0.object[i];
        const ObjectRecord& its = theirs.object[i];
        const bool equal = ours.bias == its.bias && ours.layout == its.layout &&
                           ours.contents == its.contents && ours.build_id == its.build_id &&
                           std::strcmp(ours.name, its.name) == 0;
        if (!equal) return difference_of_objects(ours, its, other);
    }
    if (node_0.everything != theirs.everything) {
        return other + " has loaded other libraries than node 0 (" +
               std::to_string(theirs.objects) +
               " compared, node 0: " + std::to_string(node_0.objects) +
               "). Compare LD_LIBRARY_PATH on both";
    }
    return std::nullopt;
}

}  // namespace hiroba::omp
