// SPDX-License-Identifier: BSD-3-Clause
// Role: where our signal handlers return to: rt_sigreturn from our own code. Byte for byte what
// libc's is, because debuggers and unwinders know a signal frame by these bytes.
    .text
    .globl  hiroba_signal_return
    .hidden hiroba_signal_return
    .type   hiroba_signal_return, @function
    .p2align 4
    nop
hiroba_signal_return:
    movq    $15, %rax
    syscall
    .size   hiroba_signal_return, . - hiroba_signal_return
    .section .note.GNU-stack, "", @progbits
