// SPDX-License-Identifier: BSD-3-Clause
// Role: the parts of examined system calls that no compiler writes.
// hiroba_signal_end(stack): rt_sigreturn with the stack pointer a handler left behind.
// hiroba_repeat_calls: 16 stubs of 16 bytes; stub i makes the system call the registers say and goes
// on at hiroba_repeat_places[i]. A call that returns twice (clone, vfork) is repeated there: parent
// and child both find every register but rcx and r11, which the kernel overwrites anyway.
    .text
    .globl  hiroba_signal_end
    .hidden hiroba_signal_end
    .type   hiroba_signal_end, @function
hiroba_signal_end:
    movq    %rdi, %rsp
    movl    $15, %eax
    syscall
    ud2
    .size   hiroba_signal_end, . - hiroba_signal_end

    .globl  hiroba_repeat_calls
    .hidden hiroba_repeat_calls
    .type   hiroba_repeat_calls, @object
    .p2align 4
hiroba_repeat_calls:
    .set    place, 0
    .rept   16
    .p2align 4
    syscall
    jmpq    *(hiroba_repeat_places + place)(%rip)
    .set    place, place + 8
    .endr
    .p2align 4
    .size   hiroba_repeat_calls, . - hiroba_repeat_calls

    .bss
    .globl  hiroba_repeat_places
    .hidden hiroba_repeat_places
    .type   hiroba_repeat_places, @object
    .p2align 3
hiroba_repeat_places:
    .zero   16 * 8
    .size   hiroba_repeat_places, . - hiroba_repeat_places
    .section .note.GNU-stack, "", @progbits
