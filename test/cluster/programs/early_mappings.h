// SPDX-License-Identifier: BSD-3-Clause
// What the library of early_mappings.c has mapped.
enum { early_count = 1 << 16 };
struct early {
    long *buffer, *grown, *committed, *shared, *on_break, *cut;
};
extern struct early early;
