! SPDX-License-Identifier: BSD-3-Clause
! Output of Fortran units comes in the order of the regions; COMMON and threadprivate are shared and
! private as they should be.
program fortran_print
    use omp_lib
    implicit none
    integer :: turn, threads, private_value, total
    real(8) :: shared_values(1000)
    common /shared_block/ shared_values
    common /private_block/ private_value
    !$omp threadprivate(/private_block/)

    threads = omp_get_max_threads()
    print *, 'begin with', threads
    do turn = 0, 2 * threads - 1
        !$omp parallel
        if (omp_get_thread_num() == mod(turn, threads)) print '(a,i0)', 'thread ', mod(turn, threads)
        !$omp end parallel
        print '(a,i0)', 'main after ', turn
    end do

    private_value = 11
    total = 0
    !$omp parallel copyin(/private_block/) reduction(+:total)
    total = total + private_value
    !$omp end parallel
    print '(a,i0)', 'copied in ', total

    !$omp parallel do schedule(static, 7)
    do turn = 1, 1000
        shared_values(turn) = 0.5d0 * turn
    end do
    print '(a,f12.2)', 'sum ', sum(shared_values)
    stop 4
end program fortran_print
