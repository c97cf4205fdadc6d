// SPDX-License-Identifier: BSD-3-Clause
// Role: where our signal handlers return to: rt_sigreturn from our own code. Byte for byte what
// libc's is, and with the same unwind information: some unwinders know a signal frame by the bytes
// (gdb, where there are no symbols), others by the information (libdw, libgcc). It says where the
// kernel has put the registers: rsp points to the ucontext, whose gregs begin at 40. The
// information begins a byte early, because unwinders look before a return address.
    .set    stack_plus, 0x77            // DW_OP_breg7: rsp plus an offset

    .macro  register_at number, offset
    .cfi_escape 0x10, \number, 3, stack_plus, (\offset & 0x7f) | 0x80, \offset >> 7  // DW_CFA_expression
    .endm

    .text
    .globl  hiroba_signal_return
    .hidden hiroba_signal_return
    .type   hiroba_signal_return, @function
    .p2align 4
    .cfi_startproc simple
    .cfi_signal_frame
    .cfi_escape 0x0f, 4, stack_plus, 0xa0, 1, 0x06  // DW_CFA_def_cfa_expression: the word at rsp + 160
    register_at 8, 40
    register_at 9, 48
    register_at 10, 56
    register_at 11, 64
    register_at 12, 72
    register_at 13, 80
    register_at 14, 88
    register_at 15, 96
    register_at 5, 104                  // rdi
    register_at 4, 112                  // rsi
    register_at 6, 120                  // rbp
    register_at 3, 128                  // rbx
    register_at 1, 136                  // rdx
    register_at 0, 144                  // rax
    register_at 2, 152                  // rcx
    register_at 7, 160                  // rsp
    register_at 16, 168                 // rip
    nop
hiroba_signal_return:
    movq    $15, %rax
    syscall
    .cfi_endproc
    .size   hiroba_signal_return, . - hiroba_signal_return
    .section .note.GNU-stack, "", @progbits
