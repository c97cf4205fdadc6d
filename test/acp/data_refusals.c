/* SPDX-License-Identifier: BSD-3-Clause
   What the data structures refuse: each call returns its documented failure, sets errno, and
   changes nothing. Called by rank 0, structures on the last rank. */
#include <errno.h>
#include <string.h>

#include "check.h"

static int lines; /* refusals that were asked for */

#define REFUSED(failed, number)                                        \
    do {                                                               \
        errno = 0;                                                     \
        CHECK(failed, "not refused");                                  \
        CHECK(errno == (number), "errno %d, not %d", errno, (number)); \
        ++lines;                                                       \
    } while (0)

static int is_silent(void) { return errno == 0; }

static void memory(int there, acp_ga_t block) {
    REFUSED(acp_malloc(8, acp_procs()) == ACP_GA_NULL, EINVAL);
    REFUSED(acp_malloc(8, -1) == ACP_GA_NULL, EINVAL);
    REFUSED(acp_malloc((size_t)-1, there) == ACP_GA_NULL, EIO);
    REFUSED(acp_malloc((size_t)1 << 60, 0) == ACP_GA_NULL, EIO);
    REFUSED((acp_free(block + 16), 1), EINVAL);
    REFUSED((acp_free(~0LLU), 1), EINVAL);
    acp_ga_t gone = acp_malloc(100, there);
    errno = 0;
    acp_free(gone);
    acp_free(ACP_GA_NULL);
    CHECK(is_silent(), "freeing what was allocated");
    REFUSED((acp_free(gone), 1), EINVAL);
}

static void sequences(int there, acp_ga_t block) {
    acp_vector_t null = {ACP_GA_NULL}, v = acp_create_vector(100, there),
                 w = acp_create_vector(9, 0);
    acp_deque_t d = acp_create_deque(64, there);
    REFUSED(acp_create_vector(8, acp_procs()).ga == ACP_GA_NULL, EINVAL);
    REFUSED(acp_size_vector(null) == 0, EINVAL);
    REFUSED((acp_push_back_vector(null, block, 8), 1), EINVAL);
    REFUSED((acp_push_back_vector(v, ACP_GA_NULL, 8), 1), EINVAL);
    REFUSED((acp_push_back_vector(v, block, (size_t)-1), 1), EINVAL);
    REFUSED(acp_erase_range_vector(acp_begin_vector(v), acp_end_vector(w)).index == 0, EINVAL);
    REFUSED((acp_push_front_deque(d, ACP_GA_NULL, 8), 1), EINVAL);
    acp_reserve_vector(w, 64);
    acp_assign_range_vector(w, acp_begin_vector(w), acp_begin_vector(w));
    acp_push_back_vector(w, block, 9);
    *(char*)acp_query_address(acp_at_vector(w, 8)) = 'z';
    REFUSED((acp_insert_vector(acp_begin_vector(w), ACP_GA_NULL, 4), 1), EINVAL);
    CHECK(memcmp(acp_query_address(acp_at_vector(w, 0)), "xxxxxxxxz", 9) == 0, "bytes have moved");
    errno = 0;
    CHECK(acp_size_vector(v) == 100 && acp_size_deque(d) == 0, "%zu bytes", acp_size_vector(v));
    CHECK(acp_at_vector(v, 100) == ACP_GA_NULL && acp_at_deque(d, 0) == ACP_GA_NULL,
          "behind the end");
    acp_pop_back_vector(v, 1000);
    CHECK(acp_empty_vector(v) == 1 && is_silent(), "what is cut to what there is");
    acp_destroy_vector(v);
    acp_destroy_vector(w);
    acp_destroy_deque(d);
}

static void lists(int there, acp_ga_t block) {
    const acp_list_t l = acp_create_list(there);
    const acp_element_t one = {block, 8}, none = {ACP_GA_NULL, 8};
    const acp_list_it_t nowhere = {l, ACP_GA_NULL};
    acp_push_back_list(l, one, there);
    REFUSED(acp_create_list(-1).ga == ACP_GA_NULL, EINVAL);
    REFUSED(acp_erase_list(acp_end_list(l)).elem == ACP_GA_NULL, EINVAL);
    REFUSED(acp_erase_list(nowhere).elem == ACP_GA_NULL, EINVAL);
    REFUSED(acp_insert_list(nowhere, one, 0).elem == ACP_GA_NULL, EINVAL);
    REFUSED(acp_insert_list(acp_end_list(l), one, acp_procs()).elem == ACP_GA_NULL, EINVAL);
    REFUSED(acp_insert_list(acp_end_list(l), none, 0).elem == ACP_GA_NULL, EINVAL);
    REFUSED((acp_splice_list(acp_begin_list(l), acp_end_list(l)), 1), EINVAL);
    errno = 0;
    CHECK(acp_increment_list_it(acp_end_list(l)).elem == ACP_GA_NULL, "behind the end");
    CHECK(acp_decrement_list_it(acp_begin_list(l)).elem == ACP_GA_NULL, "before the first");
    CHECK(acp_size_list(l) == 1 && is_silent(), "%zu elements", acp_size_list(l));
    acp_destroy_list(l);
}

static void maps(int there, acp_ga_t block) {
    const int ranks[] = {there, 0, there};
    acp_map_t null = {ACP_GA_NULL, 1, 1};
    acp_pair_t pair = {{block, 8}, {ACP_GA_NULL, 4}};
    REFUSED(acp_create_map(3, ranks, 4, 0).ga == ACP_GA_NULL, EINVAL);
    REFUSED(acp_create_map(0, ranks, 4, 0).ga == ACP_GA_NULL, EINVAL);
    REFUSED(acp_create_map(1, ranks, 0, 0).ga == ACP_GA_NULL, EINVAL);
    REFUSED(acp_create_map(1, ranks, 4, acp_procs()).ga == ACP_GA_NULL, EINVAL);
    REFUSED(acp_insert_map(null, pair) == 0, EINVAL);
    const acp_map_t m = acp_create_map(1, ranks, 1, 0);
    /* A value that is no memory is found when the slot is locked: it is given back. */
    REFUSED(acp_insert_map(m, pair) == 0, EINVAL);
    pair.first.size = 0;
    REFUSED(acp_insert_map(m, pair) == 0, EINVAL);
    pair.first.size = 8;
    pair.second.ga = block;
    errno = 0;
    CHECK(acp_insert_map(m, pair) == 1 && acp_insert_map(m, pair) == 0 && is_silent(),
          "one key, once");
    pair.second.ga = ACP_GA_NULL;
    REFUSED(acp_retrieve_map(m, pair) == 0, EINVAL);
    errno = 0;
    CHECK(acp_size_map(m) == 1 && is_silent(), "%zu keys", acp_size_map(m));
    CHECK(acp_dereference_map_it(acp_end_map(m)).first.ga == ACP_GA_NULL, "a key at the end");
    acp_destroy_map(m);
}

int main(int argc, char** argv) {
    (void)argv;
    errno = 0;
    acp_vector_t early = acp_create_vector(8, 0);
    CHECK(early.ga == ACP_GA_NULL && errno == EPERM, "before acp_init: errno %d", errno);
    if (acp_init(&argc, &argv) != 0) return 1;
    if (acp_rank() == 0) {
        const int there = acp_procs() - 1;
        const acp_ga_t block = acp_malloc(64, 0);
        memset(acp_query_address(block), 'x', 64);
        memory(there, block);
        sequences(there, block);
        lists(there, block);
        maps(there, block);
        acp_free(block);
        printf("%d calls refused, and all else right\n", lines);
    }
    return acp_finalize();
}
