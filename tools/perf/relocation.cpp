// SPDX-License-Identifier: BSD-3-Clause
// Role: what the relocatable space takes beside the operations of net that it stands for.
// Source: Endo & Taura, MGAS-2, section 4: with three nodes directory node, owner and initiator are
// three; with two the owner is the directory node. Rank 0 asks; the others wait inside hiroba.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/clock.hpp"
#include "gas/relocatable/relocatable_space.hpp"
#include "tools/perf/done.hpp"
#include "tools/perf/floors.hpp"
#include "tools/perf/tests.hpp"

namespace hiroba::tools::perf_parts {
namespace {

using gas::ptr;
using Word = std::uint64_t;

constexpr std::uint64_t iterations_max = 1 << 16;
constexpr net::ActiveId question{2}, answer{3};

/// The space of this process and bare messages, between prepare and measure.
class SpaceRig {
public:
    SpaceRig(Rig& rig, std::unique_ptr<gas::RelocatableSpace> space, bool one_sided)
        : rig_(rig), space_(std::move(space)), one_sided_(one_sided) {
        rig.async().on(question, SpaceRig::asked, this);
        rig.async().on(answer, SpaceRig::answered, this);
    }
    /// Collective, once.
    void attach() {
        if (first_) return;
        space_->attach();
        const std::uint64_t pages = std::uint64_t{32} * rig_.plan().nodes + bytes_max / page_bytes;
        first_ = space_->allocate_together<Word>(pages * page_bytes / sizeof(Word),
                                                 gas::Distribution::on(owner));
        if (!first_) fatal("no room for the measured pages: see HIROBA_GAS");
        while (space_->directory_of(first_.address()) != directory()) {
            first_ += static_cast<std::int64_t>(page_bytes / sizeof(Word));
        }
    }
    gas::RelocatableSpace& space() { return *space_; }
    /// The first page whose directory node is the last node's.
    ptr<Word> first() const { return first_; }
    bool is_one_sided() const { return one_sided_; }
    std::uint32_t directory() const { return rig_.plan().nodes - 1; }
    static constexpr std::uint32_t owner = 1;
    static constexpr std::uint64_t bytes_max = 64 << 20;

    /// An active message to `to` and its answer.
    void round_trip(std::uint32_t to) {
        const std::uint64_t wanted = received_.load(std::memory_order_relaxed) + 1;
        send(NodeId{to}, question);
        rig_.endpoint().wait_until(
            [&] { return received_.load(std::memory_order_acquire) == wanted; });
    }
    void good(const gas::Status& status) {
        if (!status) fatal("an access of the measurement failed: %s", status.text().c_str());
    }

private:
    static void asked(void* self, NodeId from, std::span<const std::uint64_t>, Bytes) noexcept {
        static_cast<SpaceRig*>(self)->send(from, answer);
    }
    static void answered(void* self, NodeId, std::span<const std::uint64_t>, Bytes) noexcept {
        // Release, pairs with round_trip().
        static_cast<SpaceRig*>(self)->received_.fetch_add(1, std::memory_order_release);
    }
    void send(NodeId to, net::ActiveId id) {
        const std::uint64_t argument[] = {7};
        insist(rig_, [&] {
            return rig_.async().try_message({.target = to,
                                             .id = id,
                                             .arguments = argument,
                                             .payload = {},
                                             .payload_bytes = 0,
                                             .urgency = net::Urgency::when_polled,
                                             .on_complete = {}});
        });
    }

    Rig& rig_;
    std::unique_ptr<gas::RelocatableSpace> space_;
    bool one_sided_;
    ptr<Word> first_;
    std::atomic<std::uint64_t> received_{0};
};

std::unique_ptr<SpaceRig> prepared;  // of this process

/// Nanoseconds of one `operation` on rank 0; on the others 0.
template <class Operation>
double timed(Rig& rig, std::uint64_t iterations, Operation&& operation) {
    double spent_ns = 0;
    if (rig.self() == 0) {
        const std::uint64_t begun_ns = now_ns();
        for (std::uint64_t i = 0; i < iterations; ++i) operation();
        spent_ns = static_cast<double>(now_ns() - begun_ns);
    }
    rig.collectives().barrier();
    return spent_ns / static_cast<double>(iterations);
}

/// Reads or writes of net, one at a time, of the owner's landing area.
class BareAccess {
public:
    explicit BareAccess(Rig& rig) : rig_(rig) {}
    void get(std::uint64_t offset = 0) {
        start_get(offset, rig_.bytes());
        done_.wait_for(rig_, ++made_);
    }
    /// So many words of them, all under way at once.
    void get_many(std::uint64_t words) {
        for (std::uint64_t i = 0; i < words; ++i) {
            start_get(i * (rig_.bytes() / words), sizeof(Word));
        }
        done_.wait_for(rig_, made_ += words);
    }
    void put() {
        insist(rig_, [&] {
            return rig_.async().try_write({NodeId{SpaceRig::owner},
                                           {rig_.source(), 0},
                                           {rig_.landing(), 0},
                                           rig_.bytes(),
                                           done_.callback()});
        });
        done_.wait_for(rig_, ++made_);
    }
    void add() {
        insist(rig_, [&] {
            return rig_.async().try_atomic({NodeId{prepared->directory()},
                                            {rig_.landing(), 64},
                                            net::AtomicOp::fetch_add,
                                            8,
                                            1,
                                            0,
                                            {rig_.source(), 64},
                                            done_.callback()});
        });
        done_.wait_for(rig_, ++made_);
    }

    /// By the machine alone where the owner's memory is mapped: its own loads and stores, no call.
    bool is_mapped() const { return there_ != nullptr; }
    const std::byte* there() const { return there_; }
    void load() { raw_copy(rig_.source_bytes(), there_, rig_.bytes()); }
    void store() { raw_copy(there_, rig_.source_bytes(), rig_.bytes()); }

private:
    void start_get(std::uint64_t offset, std::uint64_t bytes) {
        insist(rig_, [&] {
            return rig_.async().try_read({NodeId{SpaceRig::owner},
                                          {rig_.landing(), offset},
                                          {rig_.source(), offset},
                                          bytes,
                                          done_.callback()});
        });
    }

    Rig& rig_;
    std::byte* there_ = rig_.mapped_landing(NodeId{SpaceRig::owner});
    Done done_;
    std::uint64_t made_ = 0;
};

std::span<Word> local_words(Rig& rig) {
    return {reinterpret_cast<Word*>(rig.source_bytes()), rig.bytes() / sizeof(Word)};
}

/// Rank 0 gets what it has put there, and another rank sees it too.
bool keeps_bytes(Rig& rig) {
    gas::RelocatableSpace& space = prepared->space();
    const std::span<Word> words = local_words(rig);
    const ptr<Word> at = prepared->first();
    if (rig.self() == 0) {
        for (std::size_t i = 0; i < words.size(); ++i) words[i] = i * 977 + 5;
        prepared->good(space.put(at, std::span<const Word>(words)));
    }
    space.barrier();
    std::vector<Word> seen(words.size());
    prepared->good(space.get(at, std::span<Word>(seen)));
    bool right = true;
    for (std::size_t i = 0; i < seen.size(); ++i) right = right && seen[i] == i * 977 + 5;
    space.barrier();
    return right;
}

}  // namespace

Result<void> prepare_space(Rig& rig) {
    auto options = gas::SpaceOptions::of_settings(rig.endpoint().provider().limits());
    if (!options) return options.error();
    auto space = gas::RelocatableSpace::make(rig.async(), rig.collectives(), *options);
    if (!space) return space.error();
    prepared = std::make_unique<SpaceRig>(rig, std::move(*space), options->one_sided);
    return {};
}

namespace {

/// What an access of the space is measured with; attaches the space.
struct Access {
    explicit Access(Rig& rig) : bare(rig), words(local_words(rig)) {
        prepared->attach();
        at = prepared->first();
    }
    BareAccess bare;
    gas::RelocatableSpace& space = prepared->space();
    ptr<Word> at;
    std::span<Word> words;
};

/// Accesses of the space beside those that bare memory or net have. Each is given an Access.
template <class Load, class Ask, class Many, class One>
Measured measure_access(Rig& rig, Load&& load, Ask&& ask, Many&& many, One&& one) {
    Access access{rig};
    const auto times = [&](std::uint64_t n, auto& operation) {
        return timed(rig, n, [&] { operation(access); });
    };
    Measured measured = rig.alternate(
        [&](std::uint64_t n) { return access.bare.is_mapped() ? times(n, load) : times(n, ask); },
        [&](std::uint64_t n) {
            return rig.bytes() == sizeof(Word) ? times(n, one) : times(n, many);
        },
        8, iterations_max);
    measured.verified = keeps_bytes(rig);
    return measured;
}

}  // namespace

Measured measure_gas_get(Rig& rig) {
    return measure_access(
        rig, [](Access& a) { a.bare.load(); }, [](Access& a) { a.bare.get(); },
        [](Access& a) { prepared->good(a.space.get(a.at, a.words)); },
        [](Access& a) { prepared->good(a.space.get(a.at, a.words[0])); });
}

Measured measure_gas_put(Rig& rig) {
    return measure_access(
        rig, [](Access& a) { a.bare.store(); }, [](Access& a) { a.bare.put(); },
        [](Access& a) { prepared->good(a.space.put(a.at, std::span<const Word>(a.words))); },
        [](Access& a) { prepared->good(a.space.put(a.at, a.words[0])); });
}

Measured measure_gas_start_get(Rig& rig) {
    prepared->attach();
    BareAccess bare{rig};
    gas::RelocatableSpace& space = prepared->space();
    constexpr std::uint64_t together = 64;
    static std::vector<Word> to(together);
    const ptr<Word> at = prepared->first();
    const std::int64_t apart = static_cast<std::int64_t>(rig.bytes() / sizeof(Word)) / together;
    const auto start_many = [&] {
        gas::Pending pending;
        for (std::uint64_t i = 0; i < together; ++i) {
            prepared->good(space.start_get(at + static_cast<std::int64_t>(i) * apart,
                                           std::span(&to[i], 1), pending));
        }
        prepared->good(space.wait(pending));
    };
    const auto load_many = [&] {
        for (std::uint64_t i = 0; i < together; ++i)
            raw_copy(reinterpret_cast<std::byte*>(&to[i]),
                     bare.there() + i * static_cast<std::uint64_t>(apart) * sizeof(Word),
                     sizeof(Word));
    };
    Measured measured = rig.alternate(
        [&](std::uint64_t n) {
            return bare.is_mapped() ? timed(rig, n, load_many) / together
                                    : timed(rig, n, [&] { bare.get_many(together); }) / together;
        },
        [&](std::uint64_t n) { return timed(rig, n, start_many) / together; }, 8, iterations_max);
    measured.verified = keeps_bytes(rig);
    if (rig.self() == 0) {
        start_many();
        for (std::uint64_t i = 0; i < together; ++i) {
            const auto place = i * static_cast<std::uint64_t>(apart);
            measured.verified = measured.verified && to[i] == place * 977 + 5;
        }
    }
    return measured;
}

Measured measure_gas_get_miss(Rig& rig) {
    prepared->attach();
    BareAccess bare{rig};
    gas::RelocatableSpace& space = prepared->space();
    const std::span<Word> words = local_words(rig);
    const ptr<Word> at = prepared->first();
    const auto get = [&] { prepared->good(space.get(at, words)); };
    const auto floor = [&](std::uint64_t n) {
        const double cached_ns = timed(rig, n, get);
        if (prepared->is_one_sided()) return cached_ns + 2 * timed(rig, n, [&] { bare.add(); });
        const double asked_ns = timed(rig, n, [&] { prepared->round_trip(prepared->directory()); });
        return cached_ns + 1.2 * asked_ns;
    };
    // Pages of one directory node in turn; what is forgotten between two sweeps is not timed.
    const std::uint64_t stride = round_up(rig.bytes(), page_bytes) / sizeof(Word);
    const std::uint64_t places =
        std::max<std::uint64_t>(gas::SpaceShape::run_pages * page_bytes / sizeof(Word) / stride, 1);
    const auto test = [&](std::uint64_t n) {
        double spent_ns = 0;
        for (std::uint64_t done = 0; rig.self() == 0 && done < n;) {
            space.forget(at.address(), places * stride * sizeof(Word));
            const std::uint64_t begun_ns = now_ns();
            for (std::uint64_t i = 0; i < places && done < n; ++i, ++done) {
                prepared->good(space.get(at + static_cast<std::int64_t>(i * stride), words));
            }
            spent_ns += static_cast<double>(now_ns() - begun_ns);
        }
        rig.collectives().barrier();
        return spent_ns / static_cast<double>(n);
    };
    const std::uint64_t misses = space.counts().misses;
    Measured measured = rig.alternate(floor, test, 8, iterations_max);
    measured.verified = keeps_bytes(rig) && (rig.self() != 0 || space.counts().misses > misses);
    return measured;
}

namespace {

/// Pages that ranks 0 and 1 own in turn. What the rank that does not move them waits in is a
/// barrier, so that it answers at once.
class Moves {
public:
    explicit Moves(Rig& rig) : rig_(rig) {}
    double run(std::uint64_t iterations) {
        gas::RelocatableSpace& space = prepared->space();
        double spent_ns = 0;
        for (std::uint64_t i = 0; i < iterations; ++i) {
            for (std::uint32_t turn = 0; turn < 2; ++turn) {
                if (rig_.self() == turn) {
                    const std::uint64_t begun_ns = now_ns();
                    prepared->good(space.own(prepared->first(), rig_.bytes() / sizeof(Word)));
                    spent_ns += static_cast<double>(now_ns() - begun_ns);
                }
                rig_.collectives().barrier();
            }
        }
        return spent_ns / static_cast<double>(iterations);
    }

private:
    Rig& rig_;
};

/// As many bytes from the owner's memory, in cache nowhere: another part each time.
class ColdReads {
public:
    explicit ColdReads(Rig& rig) : rig_(rig), bare_(rig) {}
    void read() {
        const std::uint64_t offset = next_;
        next_ = (next_ + rig_.bytes()) % (Rig::area_bytes - rig_.bytes() + 1);
        next_ = next_ / page_bytes * page_bytes;
        bare_.get(offset);
    }

private:
    Rig& rig_;
    BareAccess bare_;
    std::uint64_t next_ = 0;
};

}  // namespace

Measured measure_gas_own(Rig& rig) {
    prepared->attach();
    ColdReads reads{rig};
    Moves moves{rig};
    const bool is_bulk = rig.bytes() >= (std::uint64_t{1} << 20);
    const auto floor = [&](std::uint64_t n) {
        const double read_ns = timed(rig, n, [&] { reads.read(); });
        if (is_bulk) return read_ns;
        const double message_ns =
            timed(rig, n, [&] { prepared->round_trip(prepared->directory()); });
        return 4 * message_ns + 2 * read_ns;
    };
    const std::uint64_t moved = prepared->space().counts().relocations;
    Measured measured = rig.alternate(
        floor, [&](std::uint64_t n) { return moves.run(n); }, 1, 4096);
    measured.verified =
        keeps_bytes(rig) && (rig.self() > 1 || prepared->space().counts().relocations > moved);
    return measured;
}

}  // namespace hiroba::tools::perf_parts
