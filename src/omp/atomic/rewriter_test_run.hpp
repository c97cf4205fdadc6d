// SPDX-License-Identifier: BSD-3-Clause
// Role: runs one form of the rewriter's tests with given registers, and keeps what it leaves.
// Invariant: included by one test. The form sees its own stack and no register of the caller's.
#pragma once

#include <cstdint>

extern "C" {
/// The registers with which a form starts and ends, in the order that run_form's assembly knows.
struct Registers {
    std::uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15;
    std::uint64_t flags;
    void* stack;
    const void* code;
    void* caller_stack;
};
/// Global words that forms reach relative to the instruction; a page of its own.
[[gnu::visibility("hidden")]] alignas(4096) std::uint64_t form_word[512];
[[gnu::visibility("hidden")]] Registers* form_registers;
void run_form(Registers* registers);
}

// Loads every register from *rdi, calls the code on its own stack, stores every register.
asm(R"(
    .text
run_form:
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rdi, form_registers(%rip)
    mov %rsp, 144(%rdi)
    mov 128(%rdi), %rsp
    push 120(%rdi)
    mov 0(%rdi), %rax
    mov 8(%rdi), %rbx
    mov 16(%rdi), %rcx
    mov 24(%rdi), %rdx
    mov 32(%rdi), %rsi
    mov 48(%rdi), %rbp
    mov 56(%rdi), %r8
    mov 64(%rdi), %r9
    mov 72(%rdi), %r10
    mov 80(%rdi), %r11
    mov 88(%rdi), %r12
    mov 96(%rdi), %r13
    mov 104(%rdi), %r14
    mov 112(%rdi), %r15
    mov 40(%rdi), %rdi
    popfq
    push %rdi
    mov form_registers(%rip), %rdi
    mov 136(%rdi), %rdi
    mov %rdi, form_code(%rip)
    pop %rdi
    call *form_code(%rip)
    pushfq
    push %rdi
    mov form_registers(%rip), %rdi
    mov %rax, 0(%rdi)
    mov %rbx, 8(%rdi)
    mov %rcx, 16(%rdi)
    mov %rdx, 24(%rdi)
    mov %rsi, 32(%rdi)
    mov %rbp, 48(%rdi)
    mov %r8, 56(%rdi)
    mov %r9, 64(%rdi)
    mov %r10, 72(%rdi)
    mov %r11, 80(%rdi)
    mov %r12, 88(%rdi)
    mov %r13, 96(%rdi)
    mov %r14, 104(%rdi)
    mov %r15, 112(%rdi)
    pop 40(%rdi)
    pop 120(%rdi)
    mov %rsp, 128(%rdi)
    mov 144(%rdi), %rsp
    cld
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
    .local form_code
    .comm form_code, 8, 8
)");
