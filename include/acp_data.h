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

#ifdef __cplusplus
}
#endif

#endif
