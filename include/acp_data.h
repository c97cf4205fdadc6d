/* SPDX-License-Identifier: BSD-3-Clause
   Role: ACP, middle layer, data: memory allocated on any rank; vectors, deques, lists, sets,
   multisets, maps in it, with iterators. Included by acp.h. For C11 and C++.
   Source: the public interface of ACP 3; what it leaves open: docs/layers/acp.md.

   Structures are named by small values, which ranks may tell each other by copies; any rank uses
   them. Calls return when their effect is in memory. `elem`, `key` and `pair` are memory that any
   rank may name, of which a call takes a copy.

   Who may call at the same time, from whichever ranks: for sets, multisets and maps, functions that
   look for, insert, remove or retrieve one key; all else, and all of vectors, deques and lists, as
   with a standard container: calls that only read, or one that changes.

   A function that fails says why in one line on stderr, sets errno, and returns what its
   documentation calls failure (ACP_GA_NULL in `ga` or `elem`, 0, the iterator given). Sizes and
   positions of vectors and deques are bytes. */
#ifndef HIROBA_ACP_DATA_H
#define HIROBA_ACP_DATA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Memory --------------------------------------------------------------------------------- */

/** Allocates `size` bytes (0: as 1) in the memory of `rank`, aligned to 16, of undefined content.
    Waits for the owner's answer, not for its program. @return ACP_GA_NULL on failure */
acp_ga_t acp_malloc(size_t size, int rank);
/** Frees what acp_malloc gave to any rank; ACP_GA_NULL: nothing. Accesses to it are complete. An
    address that is none is told and changes nothing (EINVAL). */
void acp_free(acp_ga_t ga);

/** Memory that any rank may name. */
typedef struct {
    acp_ga_t ga;
    size_t size; /**< bytes */
} acp_element_t;
/** Key and value of a map; or memory that lies in two pieces. */
typedef struct {
    acp_element_t first;
    acp_element_t second;
} acp_pair_t;

/* --- Vector: bytes in one piece ------------------------------------------------------------- */

/** At `ga`: address of the bytes, size, capacity; 8 bytes each. */
typedef struct {
    acp_ga_t ga;
} acp_vector_t;
/** A position, 0 to the size. It stays a position when the vector changes. */
typedef struct {
    acp_vector_t vector;
    int index; /**< bytes from the first */
} acp_vector_it_t;

/** A vector of `size` bytes, zeros, on `rank`. @return `ga` ACP_GA_NULL on failure */
acp_vector_t acp_create_vector(size_t size, int rank);
void acp_destroy_vector(acp_vector_t vector);
/** Makes vector1 a copy of vector2. */
void acp_assign_vector(acp_vector_t vector1, acp_vector_t vector2);
/** Makes it a copy of [start, end), which may be its own. */
void acp_assign_range_vector(acp_vector_t vector, acp_vector_it_t start, acp_vector_it_t end);
/** Exchanges the bytes, which stay with their vectors' ranks. */
void acp_swap_vector(acp_vector_t vector1, acp_vector_t vector2);
void acp_clear_vector(acp_vector_t vector);
/** Makes room for `size` bytes at least. */
void acp_reserve_vector(acp_vector_t vector, size_t size);
size_t acp_size_vector(acp_vector_t vector);
size_t acp_capacity_vector(acp_vector_t vector);
/** @return 1 or 0 */
int acp_empty_vector(acp_vector_t vector);
/** @return the address until the vector grows; ACP_GA_NULL from the size on */
acp_ga_t acp_at_vector(acp_vector_t vector, int index);
acp_vector_it_t acp_begin_vector(acp_vector_t vector);
acp_vector_it_t acp_end_vector(acp_vector_t vector);
/** Puts `size` bytes of `ga`, which may be its own, before `it`. @return where they begin */
acp_vector_it_t acp_insert_vector(acp_vector_it_t it, const acp_ga_t ga, size_t size);
acp_vector_it_t acp_insert_range_vector(acp_vector_it_t it, acp_vector_it_t start,
                                        acp_vector_it_t end);
/** Takes `size` bytes away, or as many as there are. @return what is behind them now */
acp_vector_it_t acp_erase_vector(acp_vector_it_t it, size_t size);
acp_vector_it_t acp_erase_range_vector(acp_vector_it_t start, acp_vector_it_t end);
void acp_push_back_vector(acp_vector_t vector, const acp_ga_t ga, size_t size);
/** Takes `size` bytes away, or as many as there are. */
void acp_pop_back_vector(acp_vector_t vector, size_t size);
/** No access; `n` may be negative. */
acp_vector_it_t acp_advance_vector_it(acp_vector_it_t it, int n);
/** @return as acp_at_vector() */
acp_ga_t acp_dereference_vector_it(acp_vector_it_t it);
/** @return bytes from first to last; no access */
int acp_distance_vector_it(acp_vector_it_t first, acp_vector_it_t last);

/* --- Deque: bytes in a ring, cheap at both ends ---------------------------------------------- */

/** At `ga`: address of the ring, offset of the first byte, size, capacity; 8 bytes each. */
typedef struct {
    acp_ga_t ga;
} acp_deque_t;
/** A position, 0 to the size. */
typedef struct {
    acp_deque_t deque;
    int index; /**< bytes from the first */
} acp_deque_it_t;

/** An empty deque with room for `size` bytes on `rank`. @return `ga` ACP_GA_NULL on failure */
acp_deque_t acp_create_deque(size_t size, int rank);
/** As the functions of vectors. @{ */
void acp_destroy_deque(acp_deque_t deque);
void acp_assign_deque(acp_deque_t deque1, acp_deque_t deque2);
void acp_assign_range_deque(acp_deque_t deque, acp_deque_it_t start, acp_deque_it_t end);
void acp_swap_deque(acp_deque_t deque1, acp_deque_t deque2);
void acp_clear_deque(acp_deque_t deque);
void acp_reserve_deque(acp_deque_t deque, size_t size);
size_t acp_size_deque(acp_deque_t deque);
size_t acp_capacity_deque(acp_deque_t deque);
int acp_empty_deque(acp_deque_t deque);
acp_ga_t acp_at_deque(acp_deque_t deque, int index);
acp_deque_it_t acp_begin_deque(acp_deque_t deque);
acp_deque_it_t acp_end_deque(acp_deque_t deque);
acp_deque_it_t acp_insert_deque(acp_deque_it_t it, const acp_ga_t ga, size_t size);
acp_deque_it_t acp_insert_range_deque(acp_deque_it_t it, acp_deque_it_t start, acp_deque_it_t end);
acp_deque_it_t acp_erase_deque(acp_deque_it_t it, size_t size);
acp_deque_it_t acp_erase_range_deque(acp_deque_it_t start, acp_deque_it_t end);
void acp_push_back_deque(acp_deque_t deque, const acp_ga_t ga, size_t size);
void acp_push_front_deque(acp_deque_t deque, const acp_ga_t ga, size_t size);
void acp_pop_back_deque(acp_deque_t deque, size_t size);
void acp_pop_front_deque(acp_deque_t deque, size_t size);
acp_deque_it_t acp_advance_deque_it(acp_deque_it_t it, int n);
int acp_distance_deque_it(acp_deque_it_t first, acp_deque_it_t last);
/** @} */
/** Where `size` bytes from `it` are, or as many as there are: in two pieces where the ring ends in
    between. @return sizes 0 from the end on */
acp_pair_t acp_dereference_deque_it(acp_deque_it_t it, size_t size);

/* --- List: elements of any sizes, each on a rank of its own ----------------------------------- */

/** At `ga`: first element, last element, their number; 8 bytes each. */
typedef struct {
    acp_ga_t ga;
} acp_list_t;
/** At `elem`: the next element, the previous one, bytes; 8 bytes each; then the bytes. The end is
    `elem` = list.ga. It stays good while its element is in a list. */
typedef struct {
    acp_list_t list;
    acp_ga_t elem;
} acp_list_it_t;

/** An empty list; its three words are on `rank`. @return `ga` ACP_GA_NULL on failure */
acp_list_t acp_create_list(int rank);
/** Frees the elements, too. */
void acp_destroy_list(acp_list_t list);
/** Makes list1 a copy of list2: each element on the rank where the other's is. */
void acp_assign_list(acp_list_t list1, acp_list_t list2);
/** Makes it a copy of [start, end) of another list. */
void acp_assign_range_list(acp_list_t list, acp_list_it_t start, acp_list_it_t end);
/** Exchanges the elements; no byte moves, and iterators keep their element. */
void acp_swap_list(acp_list_t list1, acp_list_t list2);
void acp_clear_list(acp_list_t list);
size_t acp_size_list(acp_list_t list);
/** @return 1 or 0 */
int acp_empty_list(acp_list_t list);
acp_list_it_t acp_begin_list(acp_list_t list);
acp_list_it_t acp_end_list(acp_list_t list);
/** Puts a copy of `elem` on `rank` and before `it`. @return it; `elem` ACP_GA_NULL on failure */
acp_list_it_t acp_insert_list(acp_list_it_t it, const acp_element_t elem, int rank);
/** Puts copies of [start, end), on their ranks. @return the first of them */
acp_list_it_t acp_insert_range_list(acp_list_it_t it, acp_list_it_t start, acp_list_it_t end);
/** @return the element behind; `elem` ACP_GA_NULL on failure: the end is no element */
acp_list_it_t acp_erase_list(acp_list_it_t it);
acp_list_it_t acp_erase_range_list(acp_list_it_t start, acp_list_it_t end);
void acp_push_back_list(acp_list_t list, const acp_element_t elem, int rank);
void acp_push_front_list(acp_list_t list, const acp_element_t elem, int rank);
/** Of an empty list: nothing. @{ */
void acp_pop_back_list(acp_list_t list);
void acp_pop_front_list(acp_list_t list);
/** @} */
/** Moves all of list2 into list1, both sorted by `comp`; equal ones behind those of list1.
    @param comp  negative, 0 or positive, as the first is less, equal or greater. It is called in
                 between; it may access global memory, but neither list. */
void acp_merge_list(acp_list_t list1, acp_list_t list2,
                    int (*comp)(const acp_element_t elem1, const acp_element_t elem2));
/** Equal elements keep their order. @param comp  as above */
void acp_sort_list(acp_list_t list,
                   int (*comp)(const acp_element_t elem1, const acp_element_t elem2));
void acp_reverse_list(acp_list_t list);
/** Erases all elements of the same bytes. */
void acp_remove_list(acp_list_t list, const acp_element_t elem);
/** Erases elements of the same bytes as the one before. */
void acp_unique_list(acp_list_t list);
/** Moves the element it2 before it1; no byte of it moves. */
void acp_splice_list(acp_list_it_t it1, acp_list_it_t it2);
/** Moves [start, end) before `it`, which is not in there. */
void acp_splice_range_list(acp_list_it_t it, acp_list_it_t start, acp_list_it_t end);
/** Goes `n` elements on, or back; not beyond the end or the first. */
acp_list_it_t acp_advance_list_it(acp_list_it_t it, int n);
/** @return `elem` ACP_GA_NULL on failure: behind the end is nothing, nor before the first @{ */
acp_list_it_t acp_increment_list_it(acp_list_it_t it);
acp_list_it_t acp_decrement_list_it(acp_list_it_t it);
/** @} */
/** @return where the bytes of the element are; `ga` ACP_GA_NULL of the end */
acp_element_t acp_dereference_list_it(acp_list_it_t it);
/** @return elements from first on to last; -1 if last does not follow */
int acp_distance_list_it(acp_list_it_t first, acp_list_it_t last);

/* --- Set, multiset, map: keys of any bytes, spread over ranks --------------------------------- */

/* Common to the three, with set for each name:
   acp_create_set     slots on the `num_ranks` ranks of the array, each once, `num_slots` >= 1 on
                      each; the directory on `rank`. `ga` ACP_GA_NULL on failure
   acp_assign_set     makes set1 a copy of set2, in its own shape; acp_merge_set inserts what set2
                      has; acp_move_set does so and empties set2; acp_swap_set exchanges all
   acp_find_set       an element, or the end
   acp_increment_set_it  the next element, or the end: rank num_ranks, slot 0, elem ACP_GA_NULL
   ..._local_...      of the keys in the memory of the calling rank; assign_local empties all of
                      set1 before. The local end is the first element behind them
   A key has 1 byte or more. What order elements have is not defined, but it stays. */

/** A set: at `ga` the address of a table for each of `num_ranks` ranks, each of `num_slots` slots.
 */
typedef struct {
    acp_ga_t ga;
    uint64_t num_ranks;
    uint64_t num_slots;
} acp_set_t;
/** An element. It stays good until the element is removed. */
typedef struct {
    acp_set_t set;
    int rank; /**< index among the ranks with slots; num_ranks at the end */
    int slot;
    acp_ga_t elem;
} acp_set_it_t;
acp_set_t acp_create_set(int num_ranks, const int* ranks, int num_slots, int rank);
void acp_destroy_set(acp_set_t set);
void acp_clear_set(acp_set_t set);
size_t acp_size_set(acp_set_t set);
size_t acp_size_local_set(acp_set_t set);
int acp_empty_set(acp_set_t set);
int acp_empty_local_set(acp_set_t set);
void acp_assign_set(acp_set_t set1, acp_set_t set2);
void acp_assign_local_set(acp_set_t set1, acp_set_t set2);
void acp_merge_set(acp_set_t set1, acp_set_t set2);
void acp_merge_local_set(acp_set_t set1, acp_set_t set2);
void acp_move_set(acp_set_t set1, acp_set_t set2);
void acp_move_local_set(acp_set_t set1, acp_set_t set2);
void acp_swap_set(acp_set_t set1, acp_set_t set2);
acp_set_it_t acp_begin_set(acp_set_t set);
acp_set_it_t acp_end_set(acp_set_t set);
acp_set_it_t acp_begin_local_set(acp_set_t set);
acp_set_it_t acp_end_local_set(acp_set_t set);
acp_set_it_t acp_increment_set_it(acp_set_it_t it);
acp_set_it_t acp_find_set(acp_set_t set, acp_element_t key);
/** @return 1; 0 on failure. A key that is there is left as it is */
int acp_insert_set(acp_set_t set, acp_element_t key);
void acp_remove_set(acp_set_t set, acp_element_t key);
/** @return where the key is; `ga` ACP_GA_NULL of the end */
acp_element_t acp_dereference_set_it(acp_set_it_t it);

/** A multiset, of which each key has a count: at `ga` the address of a table for each of
 * `num_ranks` ranks, each of `num_slots` slots. */
typedef struct {
    acp_ga_t ga;
    uint64_t num_ranks;
    uint64_t num_slots;
} acp_multiset_t;
/** An element. It stays good until the element is removed. */
typedef struct {
    acp_multiset_t set;
    int rank; /**< index among the ranks with slots; num_ranks at the end */
    int slot;
    acp_ga_t elem;
} acp_multiset_it_t;
acp_multiset_t acp_create_multiset(int num_ranks, const int* ranks, int num_slots, int rank);
void acp_destroy_multiset(acp_multiset_t set);
void acp_clear_multiset(acp_multiset_t set);
size_t acp_size_multiset(acp_multiset_t set);
size_t acp_size_local_multiset(acp_multiset_t set);
int acp_empty_multiset(acp_multiset_t set);
int acp_empty_local_multiset(acp_multiset_t set);
void acp_assign_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_assign_local_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_merge_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_merge_local_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_move_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_move_local_multiset(acp_multiset_t set1, acp_multiset_t set2);
void acp_swap_multiset(acp_multiset_t set1, acp_multiset_t set2);
acp_multiset_it_t acp_begin_multiset(acp_multiset_t set);
acp_multiset_it_t acp_end_multiset(acp_multiset_t set);
acp_multiset_it_t acp_begin_local_multiset(acp_multiset_t set);
acp_multiset_it_t acp_end_local_multiset(acp_multiset_t set);
acp_multiset_it_t acp_increment_multiset_it(acp_multiset_it_t it);
acp_multiset_it_t acp_find_multiset(acp_multiset_t set, acp_element_t key);
/** Adds 1 to the count of a key that is there. @return 1; 0 on failure */
int acp_insert_multiset(acp_multiset_t set, acp_element_t key);
/** Takes 1 from the count; the last one removes the key. */
void acp_remove_multiset(acp_multiset_t set, acp_element_t key);
/** Removes the key whatever its count. */
void acp_remove_all_multiset(acp_multiset_t set, acp_element_t key);
/** @return the count; 0 if the key is not there */
uint64_t acp_retrieve_multiset(acp_multiset_t set, acp_element_t key);
/** @return where the key is; `ga` ACP_GA_NULL of the end */
acp_element_t acp_dereference_multiset_it(acp_multiset_it_t it);

/** A map, of which each key has a value of any bytes, or none: at `ga` the address of a table for
 * each of `num_ranks` ranks, each of `num_slots` slots. */
typedef struct {
    acp_ga_t ga;
    uint64_t num_ranks;
    uint64_t num_slots;
} acp_map_t;
/** An element. It stays good until the element is removed. */
typedef struct {
    acp_map_t map;
    int rank; /**< index among the ranks with slots; num_ranks at the end */
    int slot;
    acp_ga_t elem;
} acp_map_it_t;
/** Declared by ACP 3, for which no function is. */
typedef struct {
    acp_map_it_t it;
    int success;
} acp_map_ib_t;
acp_map_t acp_create_map(int num_ranks, const int* ranks, int num_slots, int rank);
void acp_destroy_map(acp_map_t map);
void acp_clear_map(acp_map_t map);
size_t acp_size_map(acp_map_t map);
size_t acp_size_local_map(acp_map_t map);
int acp_empty_map(acp_map_t map);
int acp_empty_local_map(acp_map_t map);
void acp_assign_map(acp_map_t map1, acp_map_t map2);
void acp_assign_local_map(acp_map_t map1, acp_map_t map2);
void acp_merge_map(acp_map_t map1, acp_map_t map2);
void acp_merge_local_map(acp_map_t map1, acp_map_t map2);
void acp_move_map(acp_map_t map1, acp_map_t map2);
void acp_move_local_map(acp_map_t map1, acp_map_t map2);
void acp_swap_map(acp_map_t map1, acp_map_t map2);
acp_map_it_t acp_begin_map(acp_map_t map);
acp_map_it_t acp_end_map(acp_map_t map);
acp_map_it_t acp_begin_local_map(acp_map_t map);
acp_map_it_t acp_end_local_map(acp_map_t map);
acp_map_it_t acp_increment_map_it(acp_map_it_t it);
acp_map_it_t acp_find_map(acp_map_t map, acp_element_t key);
void acp_clear_local_map(acp_map_t map);
/** @return 1; 0 on failure, and for a key that is there: it keeps its value */
int acp_insert_map(acp_map_t map, acp_pair_t pair);
void acp_remove_map(acp_map_t map, acp_element_t key);
/** Copies the value of the key `first` to `second`, as much as fits. @return bytes of the whole
    value; 0 if the key is not there */
size_t acp_retrieve_map(acp_map_t map, acp_pair_t pair);
/** @return where key and value are; `ga` ACP_GA_NULL of the end */
acp_pair_t acp_dereference_map_it(acp_map_it_t it);

#ifdef __cplusplus
}
#endif

/* --- Names with the type as an argument ------------------------------------------------------ */

/* acp_size(vector, v) is acp_size_vector(v), acp_advance(list_it, it, 2) acp_advance_list_it(it,
 * 2). */
#define acp_assign(type, ...) acp_assign_##type(__VA_ARGS__)
#define acp_assign_range(type, ...) acp_assign_range_##type(__VA_ARGS__)
#define acp_at(type, ...) acp_at_##type(__VA_ARGS__)
#define acp_begin(type, ...) acp_begin_##type(__VA_ARGS__)
#define acp_capacity(type, ...) acp_capacity_##type(__VA_ARGS__)
#define acp_clear(type, ...) acp_clear_##type(__VA_ARGS__)
#define acp_create(type, ...) acp_create_##type(__VA_ARGS__)
#define acp_destroy(type, ...) acp_destroy_##type(__VA_ARGS__)
#define acp_empty(type, ...) acp_empty_##type(__VA_ARGS__)
#define acp_end(type, ...) acp_end_##type(__VA_ARGS__)
#define acp_erase(type, ...) acp_erase_##type(__VA_ARGS__)
#define acp_erase_range(type, ...) acp_erase_range_##type(__VA_ARGS__)
#define acp_find(type, ...) acp_find_##type(__VA_ARGS__)
#define acp_insert(type, ...) acp_insert_##type(__VA_ARGS__)
#define acp_insert_range(type, ...) acp_insert_range_##type(__VA_ARGS__)
#define acp_merge(type, ...) acp_merge_##type(__VA_ARGS__)
#define acp_pop_back(type, ...) acp_pop_back_##type(__VA_ARGS__)
#define acp_pop_front(type, ...) acp_pop_front_##type(__VA_ARGS__)
#define acp_push_back(type, ...) acp_push_back_##type(__VA_ARGS__)
#define acp_push_front(type, ...) acp_push_front_##type(__VA_ARGS__)
#define acp_remove(type, ...) acp_remove_##type(__VA_ARGS__)
#define acp_reserve(type, ...) acp_reserve_##type(__VA_ARGS__)
#define acp_reverse(type, ...) acp_reverse_##type(__VA_ARGS__)
#define acp_size(type, ...) acp_size_##type(__VA_ARGS__)
#define acp_sort(type, ...) acp_sort_##type(__VA_ARGS__)
#define acp_splice(type, ...) acp_splice_##type(__VA_ARGS__)
#define acp_swap(type, ...) acp_swap_##type(__VA_ARGS__)
#define acp_unique(type, ...) acp_unique_##type(__VA_ARGS__)
#define acp_advance(type, ...) acp_advance_##type(__VA_ARGS__)
#define acp_decrement(type, ...) acp_decrement_##type(__VA_ARGS__)
#define acp_dereference(type, ...) acp_dereference_##type(__VA_ARGS__)
#define acp_distance(type, ...) acp_distance_##type(__VA_ARGS__)
#define acp_increment(type, ...) acp_increment_##type(__VA_ARGS__)

#endif
