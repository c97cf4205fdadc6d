! SPDX-License-Identifier: BSD-3-Clause
! Functions in the lists of READ and WRITE: libgfortran has locked the statement's unit when they
! have a region, or end the program.
module functions
  implicit none
contains
  integer function summed(n)
    integer, intent(in) :: n
    integer :: i
    summed = 0
    !$omp parallel do reduction(+:summed)
    do i = 1, n
      summed = summed + i
    end do
  end function

  integer function printing(n)
    use omp_lib
    integer, intent(in) :: n
    integer :: i
    printing = n
    !$omp parallel do ordered schedule(static, 1)
    do i = 1, omp_get_max_threads()
      !$omp ordered
      print *, 'from a region', i
      !$omp end ordered
    end do
  end function

  integer function stopping()
    stopping = 1
    if (stopping > 0) stop 3
  end function
end module

program fortran_statements
  use functions
  use omp_lib
  implicit none
  character(40) :: text
  integer :: numbers(100), got, i
  numbers = [(i, i = 1, 100)]
  print *, summed(10)
  write (text, '(i0)') summed(11)
  print *, trim(text)
  write (text, '(i0)') printing(12)
  print *, trim(text)
  read (text, *) numbers(summed(3))
  print *, numbers(6)
  open (20, status='scratch')
  write (20, *) summed(13)
  rewind (20)
  read (20, *) numbers(summed(4))
  print *, numbers(10)
  if (command_argument_count() == 0) stop
  !$omp parallel private(got)
  if (omp_get_thread_num() == omp_get_num_threads() - 1) then
    write (text, *) stopping()
  end if
  call sleep(1000)
  !$omp end parallel
end program
