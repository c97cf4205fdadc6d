// SPDX-License-Identifier: BSD-3-Clause
// Role: tsearch() and its kin for the program: libc would have the nodes from its own heap. A
// treap: a search tree by key that is a heap by a number drawn from each node's address, so its
// depth is some 2 log2(n) whatever the order of the keys.
// Invariant: a node begins with the pointer to its key, which POSIX lets the program read. A tree
// is the program's as a whole: the same callers make, search and free it.
#include <search.h>

#include <cstddef>
#include <cstdint>

#include "abi/libc/memory/malloc_place.hpp"
#include "abi/libc/real.hpp"

HIROBA_REAL(tsearch);
HIROBA_REAL(tfind);
HIROBA_REAL(tdelete);
HIROBA_REAL(twalk);
HIROBA_REAL(twalk_r);
HIROBA_REAL(tdestroy);

namespace hiroba::abi {
namespace {

using Compare = int (*)(const void*, const void*);

struct Node {
    const void* key;
    Node* left;
    Node* right;
};

/// Nodes of higher rank lie above. Addresses of neighbours must not be ordered by it.
std::uint64_t rank_of(const Node* node) noexcept {
    std::uint64_t x = reinterpret_cast<std::uintptr_t>(node);
    x = (x ^ (x >> 31)) * 0x9E37'79B9'7F4A'7C15;
    return x ^ (x >> 29);
}

Node** find(Node** at, const void* key, Compare compare) {
    while (*at != nullptr) {
        const int order = compare(key, (*at)->key);
        if (order == 0) break;
        at = order < 0 ? &(*at)->left : &(*at)->right;
    }
    return at;
}

/// The nodes below `tree` that come before `key`, and those after it.
void split(Node* tree, const void* key, Compare compare, Node** before, Node** after) {
    while (tree != nullptr) {
        if (compare(key, tree->key) < 0) {
            *after = tree;
            after = &tree->left;
            tree = tree->left;
        } else {
            *before = tree;
            before = &tree->right;
            tree = tree->right;
        }
    }
    *before = *after = nullptr;
}

/// All of `before` come before all of `after`.
void join(Node* before, Node* after, Node** at) noexcept {
    while (before != nullptr && after != nullptr) {
        if (rank_of(before) > rank_of(after)) {
            *at = before;
            at = &before->right;
            before = before->right;
        } else {
            *at = after;
            at = &after->left;
            after = after->left;
        }
    }
    *at = before != nullptr ? before : after;
}

Node* search(Node** root, const void* key, Compare compare) {
    if (Node* const found = *find(root, key, compare)) return found;
    auto* const made = static_cast<Node*>(allocate_for_program(sizeof(Node), alignof(Node), false));
    if (made == nullptr) return nullptr;
    made->key = key;
    Node** at = root;
    while (*at != nullptr && rank_of(*at) >= rank_of(made))
        at = compare(key, (*at)->key) < 0 ? &(*at)->left : &(*at)->right;
    split(*at, key, compare, &made->left, &made->right);
    *at = made;
    return made;
}

/// The node above the one that goes; for the root any address that is not null. Null: not found.
void* remove(Node** root, const void* key, Compare compare) {
    Node** above = root;
    Node** at = root;
    while (*at != nullptr) {
        const int order = compare(key, (*at)->key);
        if (order == 0) break;
        above = at;
        at = order < 0 ? &(*at)->left : &(*at)->right;
    }
    Node* const gone = *at;
    if (gone == nullptr) return nullptr;
    void* const parent = at == root ? static_cast<void*>(root) : *above;
    join(gone->left, gone->right, at);
    give_back(gone);
    return parent;
}

template <class Visit>
void walk(const Node* node, const Visit& visit, int depth) {
    if (node == nullptr) return;
    if (node->left == nullptr && node->right == nullptr) return visit(node, leaf, depth);
    visit(node, preorder, depth);
    walk(node->left, visit, depth + 1);
    visit(node, postorder, depth);
    walk(node->right, visit, depth + 1);
    visit(node, endorder, depth);
}

void destroy(Node* node, void (*free_key)(void*)) {
    if (node == nullptr) return;
    destroy(node->left, free_key);
    destroy(node->right, free_key);
    free_key(const_cast<void*>(node->key));
    give_back(node);
}

bool serves_program(const void* return_address) noexcept {
    return is_spread() && is_for_program(return_address);
}

}  // namespace
}  // namespace hiroba::abi

using namespace hiroba::abi;

#define HIROBA_CALLER __builtin_return_address(0)

#pragma GCC visibility push(default)
extern "C" {

void* tsearch(const void* key, void** root, Compare compare) {
    if (!serves_program(HIROBA_CALLER)) return real_tsearch(key, root, compare);
    return root == nullptr ? nullptr : search(reinterpret_cast<Node**>(root), key, compare);
}
void* tfind(const void* key, void* const* root, Compare compare) {
    if (!serves_program(HIROBA_CALLER)) return real_tfind(key, root, compare);
    auto** const tree = reinterpret_cast<Node**>(const_cast<void**>(root));
    return root == nullptr ? nullptr : *find(tree, key, compare);
}
void* tdelete(const void* key, void** root, Compare compare) {
    if (!serves_program(HIROBA_CALLER)) return real_tdelete(key, root, compare);
    return root == nullptr ? nullptr : remove(reinterpret_cast<Node**>(root), key, compare);
}
void twalk(const void* root, void (*visit)(const void*, VISIT, int)) {
    if (!serves_program(HIROBA_CALLER)) return real_twalk(root, visit);
    walk(static_cast<const Node*>(root), visit, 0);
}
void twalk_r(const void* root, void (*visit)(const void*, VISIT, void*), void* data) {
    if (!serves_program(HIROBA_CALLER)) return real_twalk_r(root, visit, data);
    walk(
        static_cast<const Node*>(root),
        [&](const void* node, VISIT when, int) { visit(node, when, data); }, 0);
}
void tdestroy(void* root, void (*free_key)(void*)) {
    if (!serves_program(HIROBA_CALLER)) return real_tdestroy(root, free_key);
    destroy(static_cast<Node*>(root), free_key);
}

}  // extern "C"
