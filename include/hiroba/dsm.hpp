// SPDX-License-Identifier: BSD-3-Clause
// Role: the C++ face of the distributed shared memory, for people who build runtimes on it.
// A program that uses it is started with `hiroba run --spmd -n N ./program`: every node enters
// main. Link with hiroba::dsm. First page: docs/tutorials/dsm.md; example: examples/spmd_sum.cpp;
// contracts: docs/layers/dsm.md.
#pragma once

#if __cplusplus < 202002L
#error "hiroba needs C++20: compile with -std=c++20 (pkg-config and find_package say so)"
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace hiroba {

/// This process's part of the job's shared memory.
///
/// Memory from allocate() has the same address on every node and is used by ordinary loads and
/// stores. All other memory (globals, stacks, malloc) is private to each process, so shared memory
/// holds no pointers to it. A data-race-free program, ordered by barrier(), Mutex and flush(), sees
/// sequentially consistent memory. Thread: any, unless said otherwise. Wrong use that would wait
/// for ever, or give wrong answers, ends the job with a line and status 1 where it is seen.
class __attribute__((visibility("default"))) SharedMemory {
public:
    struct Counts {
        std::uint64_t faults, bytes_fetched, blocks_merged, notices_made, invalidations;
    };

    /// Joins the job; collective, before any other thread starts, once in a process. A process that
    /// no launcher started is a job of one node. On failure: nullptr, and `*why` says what to
    /// change; `why` may be null.
    static std::unique_ptr<SharedMemory> open(std::string* why);
    /// Leaves the job; collective: returns when every node has called it. Shared memory is gone
    /// then. A node that still holds a lock ends the job with a line.
    virtual ~SharedMemory() = default;

    virtual unsigned node() const noexcept = 0;
    virtual unsigned nodes() const noexcept = 0;

    /// Zeroed memory; nullptr when this node's arena is full (HIROBA_HEAP) or, with a line, when
    /// `alignment` is no power of two. Any node may use and free it; tell others where it is by
    /// broadcast(). 0 bytes give a pointer that may be freed.
    virtual void* allocate(std::size_t bytes, std::size_t alignment = 64) noexcept = 0;
    /// The same for `count` objects of T, all of whose bytes are 0: `allocate<double>(1000)`. T's
    /// pointers, if it has any, are to point to shared memory alone.
    template <class T>
    T* allocate(std::size_t count) noexcept {
        static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>,
                      "shared memory holds types that are trivially copyable");
        std::size_t bytes = 0;
        if (__builtin_mul_overflow(count, sizeof(T), &bytes)) return nullptr;
        return static_cast<T*>(allocate(bytes, alignof(T) < 64 ? 64 : alignof(T)));
    }
    /// Collective, as broadcast() is: node 0 allocates, and all get the same pointer; nullptr on
    /// all where it fails. `count` is node 0's.
    template <class T>
    T* allocate_together(std::size_t count) noexcept {
        T* const made = node() == 0 ? allocate<T>(count) : nullptr;
        return reinterpret_cast<T*>(broadcast(reinterpret_cast<std::uintptr_t>(made), 0));
    }
    /// Frees what allocate() of any node gave, once; nullptr: nothing. Anything else ends the job
    /// with a line. No node uses the memory any more: order that by barrier() or a lock.
    virtual void deallocate(void* memory) noexcept = 0;

    /// Waits until every node has called it; all that any node wrote before is visible after.
    /// Where the caller is the node's only thread, pages of other nodes that were read behind this
    /// call before come with it, without a fault each. One thread per node. This and the other
    /// collective calls (broadcast, all_gather, all_reduce, the end of the object) are made by all
    /// nodes in the same order: a node that makes another one, or names another root, ends the job
    /// with a line.
    virtual void barrier() noexcept = 0;
    /// A barrier that brings node `from`'s value to every node (a pointer to start with, for
    /// example). Other nodes' values are of no use. `from` is the same on all nodes.
    virtual std::uint64_t broadcast(std::uint64_t value, unsigned from) noexcept = 0;

    /// The lock known by `key`, an address or a number; lock acquires, unlock releases. It is not
    /// recursive: a thread that locks what it holds ends the job with a line. Any thread of the
    /// node that locked may unlock; another node may not (a line). No order among those who wait.
    virtual void lock(std::uint64_t key) noexcept = 0;
    /// False where any thread of the job holds it, this one too, or waits for it.
    virtual bool try_lock(std::uint64_t key) noexcept = 0;
    virtual void unlock(std::uint64_t key) noexcept = 0;

    /// A release and an acquire, totally ordered with all other flushes of the job. A loop that
    /// waits for another node's plain store calls it; so does who stores.
    virtual void flush() noexcept = 0;

    /// Runs `operation(word, argument)` as one atomic read-modify-write on 8 aligned bytes of
    /// shared memory; orders nothing else. It must touch nothing else that is shared, and call
    /// nothing of this class. A word that is not shared ends the job with a line.
    virtual void atomically(std::uint64_t* word, void (*operation)(std::uint64_t*, void*),
                            void* argument) noexcept = 0;

    /// Returns what this node has done since open().
    virtual Counts counts() const noexcept = 0;

    /// A barrier that brings every node's `value` to `all`, nodes() words in rank order, in this
    /// node's private memory or in shared memory of its own.
    virtual void all_gather(std::uint64_t value, std::uint64_t* all) noexcept = 0;
    /// A barrier that combines the nodes' values in rank order, combine(combine(v0, v1), v2) and so
    /// on: all nodes get the same bits, of floating-point sums too.
    template <class T, class Combine>
    T all_reduce(const T& value, Combine&& combine) noexcept {
        static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
        std::uint64_t mine = 0;
        std::memcpy(&mine, &value, sizeof value);
        std::vector<std::uint64_t> all(nodes());
        all_gather(mine, all.data());
        T result;
        std::memcpy(&result, all.data(), sizeof result);
        for (unsigned node = 1; node < nodes(); ++node) {
            T next;
            std::memcpy(&next, &all[node], sizeof next);
            result = static_cast<T>(combine(result, next));
        }
        return result;
    }
};

/// A mutex known by the address of what it guards; std::lock_guard works with it. Every node makes
/// its own Mutex object for the same address.
class Mutex {
public:
    Mutex(SharedMemory& memory, const void* guarded)
        : memory_(memory), key_(reinterpret_cast<std::uintptr_t>(guarded)) {}
    void lock() noexcept { memory_.lock(key_); }
    bool try_lock() noexcept { return memory_.try_lock(key_); }
    void unlock() noexcept { memory_.unlock(key_); }

private:
    SharedMemory& memory_;
    std::uint64_t key_;
};

/// Relaxed atomics on one word of shared memory, 8 aligned bytes. All of them are atomic against
/// each other; a plain load or store of the word is not.
class AtomicWord {
public:
    AtomicWord(SharedMemory& memory, std::uint64_t* word) : memory_(&memory), word_(word) {}

    std::uint64_t fetch_add(std::uint64_t value) noexcept {
        return update([value](std::uint64_t old) { return old + value; });
    }
    std::uint64_t fetch_and(std::uint64_t value) noexcept {
        return update([value](std::uint64_t old) { return old & value; });
    }
    std::uint64_t fetch_or(std::uint64_t value) noexcept {
        return update([value](std::uint64_t old) { return old | value; });
    }
    std::uint64_t fetch_xor(std::uint64_t value) noexcept {
        return update([value](std::uint64_t old) { return old ^ value; });
    }
    std::uint64_t exchange(std::uint64_t value) noexcept {
        return update([value](std::uint64_t) { return value; });
    }
    void store(std::uint64_t value) noexcept { exchange(value); }
    std::uint64_t load() noexcept { return fetch_add(0); }
    /// Stores `desired` where the word is `expected`. @return whether it was; `expected` is what
    /// was found
    bool compare_exchange(std::uint64_t& expected, std::uint64_t desired) noexcept {
        const std::uint64_t wanted = expected;
        expected = update([=](std::uint64_t old) { return old == wanted ? desired : old; });
        return expected == wanted;
    }
    /// Makes the word `next(value)` and returns the value before. `next` touches nothing else that
    /// is shared and calls nothing of SharedMemory. It runs once.
    template <class Next>
    std::uint64_t update(Next&& next) noexcept {
        struct Update {
            std::remove_reference_t<Next>* next;
            std::uint64_t old;
        };
        Update made{&next, 0};
        memory_->atomically(
            word_,
            [](std::uint64_t* word, void* argument) {
                auto& of = *static_cast<Update*>(argument);
                of.old = *word;
                *word = (*of.next)(of.old);
            },
            &made);
        return made.old;
    }

private:
    SharedMemory* memory_;
    std::uint64_t* word_;
};

}  // namespace hiroba
