! SPDX-License-Identifier: BSD-3-Clause
! Tasks as Fortran writes them; each node must execute some.
module work
  use omp_lib
  implicit none
  integer, allocatable :: executed(:)
contains
  subroutine pass_time()
    real(8) :: until
    until = omp_get_wtime() + 5d-4
    do while (omp_get_wtime() < until)
    end do
  end subroutine

  recursive function fibonacci(n) result(value)
    integer, intent(in) :: n
    integer :: value, first, second
    if (n < 2) then
       value = n
       return
    end if
    !$omp task shared(first) if(n > 8)
    first = fibonacci(n - 1)
    !$omp end task
    !$omp task shared(second) if(n > 8)
    second = fibonacci(n - 2)
    !$omp end task
    !$omp taskwait
    if (n > 8) then
       call pass_time()
       !$omp atomic
       executed(omp_get_thread_num()) = executed(omp_get_thread_num()) + 1
    end if
    value = first + second
  end function
end module

program fortran_tasks
  use work
  implicit none
  integer :: i, total, chain, grouped(8), finals
  character(len=12) :: word
  real(8), allocatable :: row(:)

  ! Again, should a thread have had no task of it: beside other work it may come late.
  allocate(executed(0:omp_get_max_threads() - 1))
  executed = 0
  total = 0
  do i = 1, 200
     !$omp parallel
     !$omp single
     total = fibonacci(17)
     !$omp end single
     !$omp end parallel
     if (total /= 1597 .or. all(executed > 0)) exit
  end do
  print '(a,i6,l2)', 'fibonacci ', total, all(executed > 0)

  ! What is firstprivate is copied, descriptors of arrays and lengths of strings as well.
  word = 'twelve chars'
  allocate(row(10))
  grouped = 0
  !$omp parallel
  !$omp single
  !$omp taskgroup
  do i = 1, 8
     row = i
     !$omp task firstprivate(i, row, word) shared(grouped)
     call pass_time()
     grouped(i) = nint(sum(row)) + len_trim(word) + ubound(row, 1)
     !$omp task firstprivate(i) shared(grouped)
     call pass_time()
     !$omp atomic
     grouped(i) = grouped(i) + 1000
     !$omp end task
     !$omp end task
  end do
  !$omp end taskgroup
  print '(a,8i6)', 'group ', grouped
  !$omp end single
  !$omp end parallel

  chain = 0
  !$omp parallel
  !$omp single
  do i = 1, 6
     !$omp task depend(inout: chain) shared(chain) firstprivate(i)
     chain = 3 * chain + i
     !$omp end task
  end do
  !$omp end single
  !$omp end parallel
  print '(a,i6)', 'depend ', chain

  finals = 0
  !$omp parallel
  !$omp single
  !$omp task final(.true.) shared(finals)
  if (omp_in_final()) finals = finals + 1
  !$omp task shared(finals)
  if (omp_in_final()) finals = finals + 10
  !$omp end task
  !$omp end task
  !$omp taskwait
  !$omp end single
  !$omp end parallel
  print '(a,i6)', 'final ', finals
end program
