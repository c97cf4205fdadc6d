// SPDX-License-Identifier: BSD-3-Clause
// Role: bad input to the relocatable space: each is refused by name, nothing is changed, and the
// space goes on. Usage: gas_refusals
#include <cstring>
#include <vector>

#include "gas/check.hpp"
#include "hiroba/gas_view.hpp"

namespace {

using namespace hiroba::gas;
using gas_test::insist;
using Word = std::uint64_t;

void expect(const Status& status, Fault fault, const char* text, const char* what) {
    insist(status.fault == fault, what, "got: " + status.text());
    insist(status.text().find(text) != std::string::npos, what, "says: " + status.text());
}

void pointers(space& space, ptr<Word> memory) {
    Word word = 7, old = 0;
    const ptr<Word> null;
    expect(space.get(null, word), Fault::null_pointer, "is null", "get of null");
    expect(space.put(null, 1), Fault::null_pointer, "is null", "put to null");
    expect(space.fetch_add(null, 1, old), Fault::null_pointer, "is null", "atomic on null");
    expect(space.own(null, 1), Fault::null_pointer, "is null", "own of null");
    expect(space.prefetch(null, 1), Fault::null_pointer, "is null", "prefetch of null");
    expect(space.free(null), Fault::null_pointer, "is null", "free of null");
    insist(!space.local(null, 1), "a view of null");
    const auto outside = ptr<Word>::at(~std::uint64_t{0} - 63);
    expect(space.get(outside, word), Fault::outside, "outside the global", "get from outside");
    expect(space.own(outside, 1), Fault::outside, "outside the global", "own of outside");
    const auto never = memory + static_cast<std::int64_t>(1 << 20);
    expect(space.get(never, word), Fault::not_allocated, "is not allocated", "get of nothing");
    expect(space.put(never, 1), Fault::not_allocated, "is not allocated", "put to nothing");
    expect(space.own(never, 1), Fault::not_allocated, "is not allocated", "own of nothing");
    insist(word == 7, "a refused get has stored something");
}

void ends(space& space, ptr<Word> memory, std::uint64_t count) {
    Word word = 0, old = 0;
    std::vector<Word> many(count + 1);
    const auto end = memory + static_cast<std::int64_t>(count);
    expect(space.get(end, word), Fault::past_end, "past the end", "get behind the end");
    expect(space.put(end, 1), Fault::past_end, "past the end", "put behind the end");
    expect(space.fetch_add(end, 1, old), Fault::past_end, "past the end", "atomic behind the end");
    expect(space.get(memory, std::span<Word>(many)), Fault::past_end, "past the end", "long get");
    expect(space.put(memory, std::span<const Word>(many)), Fault::past_end, "past the end",
           "long put");
    const std::span<Word> half = std::span(many).first(count / 2 + 1);
    expect(space.get_strided(memory, 2, 1, half.size(), half), Fault::past_end, "past the end",
           "long strided get");
    expect(space.own(memory, count + 1), Fault::past_end, "past the end", "long own");
    insist(!space.local(memory, count + 1), "a view past the end");
    const ptr<std::uint64_t> one_bad[] = {memory, memory + count, memory + 1};
    expect(space.get_list(one_bad, 1, std::span(many).first(3)), Fault::past_end, "past the end",
           "list with one place past the end");
    insist(space.get(end - 1, word), "the last word is allocated");
    const auto odd = ptr<Word>::at(memory.address() + 4);
    expect(space.fetch_add(odd, 1, old), Fault::misaligned, "no multiple", "misaligned atomic");
}

/// Sizes that do not fit 64 bits, and distances.
void sizes(space& space, ptr<Word> memory) {
    constexpr std::uint64_t huge = (std::uint64_t{1} << 61) + 1;
    Word words[4] = {7, 7, 7, 7};
    insist(space.own(memory, 1), "own");
    insist(!space.local(memory, huge), "a view whose size wraps around");
    insist(!space.local(memory, ~std::uint64_t{0}), "a view of -1 elements");
    expect(space.own(memory, huge), Fault::past_end, "past the end", "own of 2^61 + 1");
    expect(space.prefetch(memory, huge), Fault::past_end, "past the end", "prefetch of 2^61 + 1");
    const ptr<Word> one[] = {memory};
    expect(space.get_list(one, huge, words), Fault::wrong_length,
           "1 pieces of 2305843009213693953 elements each, but the local memory has 4 elements",
           "a list of 2^61 + 1");
    expect(space.get_list(one, 3, words), Fault::wrong_length,
           "1 pieces of 3 elements each, but the local memory has 4 elements",
           "a list into longer memory");
    expect(space.put_list(one, 5, words), Fault::wrong_length, "but the local memory has 4",
           "a list from shorter memory");
    expect(space.get_strided(memory, 1, huge, 1, words), Fault::wrong_length,
           "but the local memory has 4", "a piece of 2^61 + 1");
    expect(space.get_strided(memory, 1, std::uint64_t{1} << 62, 4, {}), Fault::wrong_length,
           "but the local memory has 0", "pieces whose elements wrap around to none");
    expect(space.put_strided(memory, 1, 2, 3, words), Fault::wrong_length,
           "3 pieces of 2 elements each, but the local memory has 4", "a stride, too short");
    expect(space.get_strided(memory, std::int64_t{1} << 61, 1, 4, words), Fault::past_end,
           "past the end", "a stride that wraps around");
    expect(space.get_strided(memory, std::int64_t{1} << 60, 1, 4, words), Fault::past_end,
           "past the end", "strides that together wrap around");
    expect(space.get(memory + (std::int64_t{1} << 61), words[0]), Fault::outside, "outside",
           "a distance that wraps around");
    expect(space.get(memory - (std::int64_t{1} << 61), words[0]), Fault::outside, "outside",
           "a distance back that wraps around");
    for (const Word word : words) insist(word == 7, "a refused get has stored something");
    space.barrier();
}

/// Texts have the sizes.
void texts(space& space, ptr<Word> memory, std::uint64_t count) {
    Word word = 0;
    Status why;
    expect(space.get(memory + static_cast<std::int64_t>(count), word), Fault::past_end,
           "8 bytes at offset 8000 go past the end of an allocation of 8000 bytes", "a text");
    const Status kept = space.get(memory + static_cast<std::int64_t>(count), word);
    for (int i = 0; i < 300; ++i) (void)space.get(memory + 1000, word);
    expect(kept, Fault::past_end, "the range goes past the end", "an old fault's text");
    insist(!space.allocate<Word>(0, Distribution::block(), &why), "an allocation of nothing");
    expect(why, Fault::no_room, "allocation of 0 elements", "a text");
    insist(!space.allocate<Word>(1ull << 40, Distribution::block(), &why), "too much");
    expect(why, Fault::no_room, "1099511627776 elements of 8 bytes", "a text");
    CachedView<Word> view{space, memory, count};
    expect(view.read(count + 2, word), Fault::past_end,
           "1 elements from 1002 on go past the end of a view of 1000", "a text");
}

/// Different arguments are a fault on all ranks, and later calls have the same answers.
void together(space& space) {
    if (space.ranks() == 1) return;
    const bool first = space.rank() == 0;
    Status why;
    insist(!space.allocate_together<Word>(first ? 10 : 2000, Distribution::block(), &why),
           "counts");
    expect(why, Fault::differs, "allocate_together() of 10 elements of 8 bytes, block, rank 1 ",
           "counts");
    expect(why, Fault::differs, "of 2000 elements", "counts");
    const auto memory =
        first ? space.allocate_together<Word>(10, Distribution::block(), &why)
              : space.allocate_together<char>(10, Distribution::block(), &why).as<Word>();
    insist(!memory, "types");
    expect(why, Fault::differs, "10 elements of 1 bytes", "types");
    const auto where = first ? Distribution::cyclic(8192) : Distribution::on(1).fixed();
    insist(!space.allocate_together<Word>(10, where, &why), "distributions");
    expect(why, Fault::differs, "cyclic by 8192, rank 1 allocate_together()", "distributions");
    expect(why, Fault::differs, "on rank 1, fixed", "distributions");
    insist(!space.allocate_together<Word>(first ? 10 : 1ull << 40, Distribution::block(), &why),
           "room on one rank alone");
    expect(why, Fault::differs, "1099511627776 elements", "room on one rank alone");

    const auto a = space.allocate_together<Word>(10, Distribution::block());
    const auto b = space.allocate_together<Word>(10, Distribution::block());
    insist(space.broadcast(a.address(), 0) == a.address(), "addresses differ after refusals");
    expect(space.free(first ? a : b), Fault::differs, "rank 0 calls free() of 0x", "free");
    Word word = 0;
    insist(space.get(a, word) && space.get(b, word), "something was freed");
    space.barrier();
    insist(space.free(a), "free of the same");
    insist(space.free(b), "free of the same");
}

/// free() under a view of one's own.
void views(space& space) {
    const auto mine = space.allocate<Word>(2000, Distribution::on(space.rank()));
    insist(space.prefetch(mine, 2000), "prefetch");
    for (const std::uint64_t count : {1, 2000}) {
        const auto view = space.local(mine + 1500 * (count == 1), count);
        insist(static_cast<bool>(view), "a view");
        expect(space.free(mine), Fault::view_open, "a LocalView of this rank is open", "free");
    }
    // Not by a hit: the page's metadata is not here.
    const auto cold = space.allocate<Word>(8, Distribution::on(space.rank()));
    {
        const auto view = space.local(cold, 8);
        insist(static_cast<bool>(view), "a view");
        expect(space.free(cold), Fault::view_open, "a LocalView of this rank is open", "free");
    }
    insist(space.free(mine) && space.free(cold), "free after the views");
    const auto shared = space.allocate_together<Word>(8, Distribution::on(0));
    {
        const auto view = space.local(shared, 8);
        insist(static_cast<bool>(view) == (space.rank() == 0), "a view");
        expect(space.free(shared), Fault::view_open,
               space.rank() == 0 ? "a LocalView of this rank" : "a LocalView of rank 0", "free");
    }
    insist(space.free(shared), "free after the view");
}

/// Allocations of another rank are known by what the directory nodes say.
void of_another(space& space) {
    ptr<Word> theirs;
    constexpr std::uint64_t count = 700;
    if (space.rank() == 0) theirs = space.allocate<Word>(count, Distribution::cyclic());
    theirs = ptr<Word>::at(space.broadcast(theirs.address(), 0));
    ends(space, theirs, count);
    space.barrier();
    if (space.ranks() > 1 && space.rank() != 0) {
        expect(space.free(theirs), Fault::not_mine, "allocated by rank 0", "free of another's");
    }
    space.barrier();
    if (space.rank() == 0) {
        expect(space.free(theirs + 512), Fault::not_allocated, "is not allocated",
               "free of a page inside");
        expect(space.free(theirs + 1), Fault::not_allocated, "is not allocated", "free of a word");
        insist(space.free(theirs), "free");
        expect(space.free(theirs), Fault::not_allocated, "is not allocated", "free again");
    }
    space.barrier();
    Word word = 0, old = 0;
    expect(space.get(theirs, word), Fault::not_allocated, "freed", "get of freed memory");
    expect(space.put(theirs, 1), Fault::not_allocated, "freed", "put to freed memory");
    expect(space.fetch_add(theirs, 1, old), Fault::not_allocated, "freed",
           "atomic on freed memory");
    expect(space.own(theirs, 1), Fault::not_allocated, "freed", "own of freed memory");
    space.barrier();
}

void allocations(space& space) {
    Status why;
    insist(!space.allocate<Word>(0, Distribution::block(), &why), "an allocation of nothing");
    insist(why.fault == Fault::no_room, "an allocation of nothing", why.text());
    insist(!space.allocate<Word>(~std::uint64_t{0} / 4, Distribution::block(), &why), "overflow");
    insist(!space.allocate<Word>(1ull << 40, Distribution::block(), &why), "too much");
    expect(why, Fault::no_room, "HIROBA_GAS", "too much");
    insist(!space.allocate<Word>(1, Distribution::on(space.ranks()), &why), "an unknown rank");
    expect(why, Fault::outside, "not in the job", "an unknown rank");
    const auto fixed = space.allocate_together<Word>(600, Distribution::cyclic().fixed());
    expect(space.own(fixed, 600), Fault::not_relocatable, "cannot be owned", "own of fixed memory");
    insist(space.put(fixed + space.rank(), 3), "fixed memory is memory");
    ptr<Word> theirs;
    if (space.rank() == 0) theirs = space.allocate<Word>(9, Distribution::on(0).fixed());
    theirs = ptr<Word>::at(space.broadcast(theirs.address(), 0));
    expect(space.own(theirs, 9), Fault::not_relocatable, "cannot be owned",
           "own of another's fixed memory");
    insist(space.put(theirs + space.rank(), 3), "it is still memory");
    space.barrier();
}

}  // namespace

int main() {
    const auto space = gas_test::join();
    constexpr std::uint64_t count = 1000;
    const auto memory = space->allocate_together<Word>(count, Distribution::block());
    insist(static_cast<bool>(memory), "allocation");
    pointers(*space, memory);
    ends(*space, memory, count);
    sizes(*space, memory);
    texts(*space, memory, count);
    together(*space);
    views(*space);
    of_another(*space);
    allocations(*space);
    // All of that has changed nothing.
    std::vector<Word> all(count);
    insist(space->get(memory, std::span<Word>(all)), "get");
    for (const Word word : all) insist(word == 0, "a refused access has stored something");
    space->barrier();
    if (space->rank() == 0) std::printf("refused and alive on %u ranks\n", space->ranks());
    return 0;
}
