! SPDX-License-Identifier: BSD-3-Clause
! What main has and tells libgfortran, every thread has: arguments, and random numbers from the
! streams of one seed, of which each thread draws another.
program fortran_start
  use omp_lib
  implicit none
  integer, parameter :: most = 64
  real(8) :: drawn(0:most - 1), again(0:most - 1)
  character(16) :: words(0:most - 1)
  integer :: seed(8), counts(0:most - 1), threads, round
  threads = omp_get_max_threads()
  !$omp parallel
  call get_command_argument(2, words(omp_get_thread_num()))
  counts(omp_get_thread_num()) = command_argument_count()
  !$omp end parallel
  print '(a,l2,l2)', 'arguments:', all(words(0:threads - 1) == words(0)), &
      all(counts(0:threads - 1) == counts(0))
  print '(a,1x,a,i3)', 'of main:', trim(words(0)), counts(0)
  do round = 1, 2
    seed = [11, 22, 33, 44, 55, 66, 77, 88] * round
    call random_seed(put=seed)
    !$omp parallel
    call random_number(drawn(omp_get_thread_num()))
    call random_number(again(omp_get_thread_num()))
    !$omp end parallel
    call sort(drawn(0:threads - 1))
    call sort(again(0:threads - 1))
    print '(a,99f20.17)', 'drawn:', drawn(0:threads - 1)
    print '(a,99f20.17)', 'again:', again(0:threads - 1)
  end do
contains
  ! Which thread has which stream differs from run to run.
  subroutine sort(x)
    real(8), intent(inout) :: x(:)
    integer :: i, at
    do i = 1, size(x) - 1
      at = i - 1 + minloc(x(i:), 1)
      x([i, at]) = x([at, i])
    end do
  end subroutine
end program
