! SPDX-License-Identifier: BSD-3-Clause
! Internal procedures as arguments: gfortran puts code on the stack for them.
program internal_procedures
  use omp_lib
  implicit none
  integer :: base, total, i
  base = 7
  call apply(add, 1, total)
  print *, total
  total = 0
  !$omp parallel do reduction(+ : total) schedule(static, 1)
  do i = 1, 16
    call accumulate(add, i, total)
  end do
  print *, total
contains
  subroutine add(x, y)
    integer, intent(in) :: x
    integer, intent(out) :: y
    y = x + base
  end subroutine
  subroutine apply(f, x, y)
    external :: f
    integer, intent(in) :: x
    integer, intent(out) :: y
    call f(x, y)
  end subroutine
  subroutine accumulate(f, x, total)
    external :: f
    integer, intent(in) :: x
    integer, intent(inout) :: total
    integer :: y
    call f(x, y)
    total = total + y
  end subroutine
end program internal_procedures
